//! The scenarios before the simulated server. Every rate follows from what the server can do, and so does the number of
//! long requests that may run; both are found in virtual time before anything is sent.

use super::policy::{self, Short};
use super::promise::{Promise, Time, lower, near_bound, served, throughput};
use super::rates::{Rates, Size};
use super::scenario::{Results, Scenario};
use super::search::{Found, LOAD, SHORT_SHARE, THROUGHPUT, asks, capacity_of, fewest, long_rate_left};
use super::segment::Segment;
use super::stage::Setting;
use super::target::Target;
use crate::advise::bound::capacity;
use crate::envoy::root;
use crate::load::trace::{Arrival, Trace};
use crate::load::traffic::{Class, Planned, chat};
use crate::sim::spec::Spec;
use anyhow::Result;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use std::net::SocketAddr;
use std::time::Duration;

/// What the policies call short; every short request of the traffic is under it and every long one over it.
pub const SHORT: Short = Short { prompt_chars: 2_000, max_tokens: 256 };
/// The long demand in overload, in parts of what short requests leave.
const OVERLOAD: f64 = 1.3;
/// A part of a public trace; tests/rig/traces says where it comes from.
const TRACE: &str = "tests/rig/traces/azure2023-conv.csv";
/// What is short in it: about a third of its requests.
const TRACE_SHORT: Short = Short { prompt_chars: 4_000, max_tokens: 128 };
/// The long requests that wait at most, as in the policies.
const QUEUE: usize = 64;
/// About how long what is under way when arrivals end takes to be worked off.
const WORK_OFF: Duration = Duration::from_secs(7);
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// 80/20 at 85 % of what the server can do.
pub fn mixed(spec: Spec, size: Size, found: Found, servers: &[SocketAddr], targets: Vec<Target>) -> Scenario {
    let rates = Rates { short: SHORT_SHARE, long: 1.0 - SHORT_SHARE }.times(LOAD * found.capacity);
    let about = vec![
        format!(
            "{:.0} % short and {:.0} % long requests at {:.0} % of the server's capacity of {:.2} such requests a \
             second: {}, in {} rounds of {} s.",
            SHORT_SHARE * 100.0,
            (1.0 - SHORT_SHARE) * 100.0,
            LOAD * 100.0,
            found.capacity,
            rates.said(),
            size.rounds,
            size.span.as_secs(),
        ),
        found.said(spec),
    ];
    let promises = |results: &Results| {
        let times = [Time::FirstToken, Time::Whole];
        let near = times.map(|time| near_bound(results, Target::Sluice, time, 0.99, 1.2));
        let mut promises = Vec::from_iter(near.into_iter().flatten());
        promises.extend(served(results, Target::Sluice, 0.99, 0.95));
        promises.extend(throughput(results, Target::Sluice, THROUGHPUT));
        promises
    };
    scenario("mixed", about, spec, size, found, servers, targets, rates.plans(size), promises)
}

/// Short requests as in [`mixed`], and more long ones than there is room for.
pub fn overload(
    spec: Spec,
    size: Size,
    found: Found,
    servers: &[SocketAddr],
    targets: Vec<Target>,
) -> Result<Scenario> {
    let short = SHORT_SHARE * LOAD * found.capacity;
    let left = long_rate_left(spec, short, size.seed)?;
    let rates = Rates { short, long: OVERLOAD * left };
    let about = vec![format!(
        "The short requests leave the server room for {left:.2} long ones a second; {OVERLOAD} times that come: {}, in \
         {} rounds of {} s.",
        rates.said(),
        size.rounds,
        size.span.as_secs(),
    )];
    let promises = |results: &Results| {
        let times = [(Time::FirstToken, 10.0), (Time::Whole, 3.0)];
        let lower =
            times.map(|(time, least)| lower(results, Target::Sluice, Target::Envoy, time, 0.99, least));
        lower.into_iter().flatten().collect()
    };
    Ok(scenario("overload", about, spec, size, found, servers, targets, rates.plans(size), promises))
}

/// Requests as they came to a public service, at 85 % of what the server can do of them.
pub fn trace(spec: Spec, size: Size, servers: &[SocketAddr], targets: Vec<Target>) -> Result<Scenario> {
    let trace = Trace::read(&root().join(TRACE))?;
    let all: Vec<Planned> = replayed(&trace, size.seed);
    let rate = LOAD * capacity(spec, &asks(&all)?)?;
    // The rounds are the trace's next stretches, one after the other.
    let trace = trace.at_rate(rate)?;
    let plans = (0..size.rounds).map(|round| {
        let stretch = trace.window(size.span * round as u32, size.span)?;
        Ok(replayed(&stretch, size.seed.wrapping_add(round as u64)))
    });
    let plans = plans.collect::<Result<Vec<_>>>()?;
    let found = fewest(spec, rate / LOAD, &plans)?;
    let shorts = plans.iter().flatten().filter(|planned| planned.class == Class::Short).count();
    let about = vec![
        format!(
            "Lengths and moments of {TRACE} (Azure's chat service, November 2023), the moments drawn together to {rate:.2} \
             requests a second, {:.0} % of what the server can do of them; {} rounds of {} s. Short are prompts of up to \
             {} characters with answers of up to {} tokens: {:.0} % of them.",
            LOAD * 100.0,
            size.rounds,
            size.span.as_secs(),
            TRACE_SHORT.prompt_chars,
            TRACE_SHORT.max_tokens,
            shorts as f64 / plans.iter().flatten().count() as f64 * 100.0,
        ),
        found.said(spec),
    ];
    let promises = |_: &Results| Vec::new();
    let mut scenario = scenario("trace", about, spec, size, found, servers, targets, plans, promises);
    scenario.setting.policy = policy::shared("vllm", spec.max_num_seqs, found.longs, TRACE_SHORT);
    scenario.setting.short = TRACE_SHORT;
    Ok(scenario)
}

/// The requests of a trace. Its prompts are as many tokens as the server will count, four characters each.
fn replayed(trace: &Trace, seed: u64) -> Vec<Planned> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let one = |arrival: &Arrival| {
        let chars = arrival.prompt_tokens.saturating_mul(4);
        let is_short = chars <= TRACE_SHORT.prompt_chars && arrival.output_tokens <= TRACE_SHORT.max_tokens;
        let class = if is_short { Class::Short } else { Class::Long };
        chat(&mut random, class, arrival.at, chars as usize, arrival.output_tokens)
    };
    trace.arrivals().iter().map(one).collect()
}

/// A server for each class, each at 85 % of what it can do of its class.
pub fn two(spec: Spec, size: Size, servers: &[SocketAddr], targets: Vec<Target>) -> Result<Scenario> {
    let rates = Rates {
        short: LOAD * capacity_of(spec, Rates { short: 1.0, long: 0.0 }, size.seed)?,
        long: LOAD * capacity_of(spec, Rates { short: 0.0, long: 1.0 }, size.seed)?,
    };
    let about = vec![format!(
        "Two servers, with the filter one for each class, each at {:.0} % of what it can do of its class: {}, in {} rounds \
         of {} s. Without the filter, Envoy sends each request to the one with fewer under way.",
        LOAD * 100.0,
        rates.said(),
        size.rounds,
        size.span.as_secs(),
    )];
    let promises = |results: &Results| {
        let times = [Time::FirstToken, Time::Whole];
        let near = times.map(|time| near_bound(results, Target::SluiceTwo, time, 0.99, 1.2));
        near.into_iter().flatten().collect()
    };
    let setting = Setting {
        servers: servers.to_vec(),
        slots: spec.max_num_seqs,
        policy: policy::apart(spec.max_num_seqs, SHORT),
        short: SHORT,
        queue: QUEUE,
        keep_alive: true,
    };
    Ok(Scenario {
        name: "two",
        about,
        setting,
        targets,
        rounds: size.rounds,
        turn: size.span + WORK_OFF,
        segment: segments(rates.plans(size), 0),
        look_every: LOOK_EVERY,
        reference: Target::Alone,
        without: Target::Envoy,
        promises,
    })
}

#[expect(clippy::too_many_arguments, reason = "the parts of a scenario, each of another kind")]
fn scenario(
    name: &'static str,
    about: Vec<String>,
    spec: Spec,
    size: Size,
    found: Found,
    servers: &[SocketAddr],
    targets: Vec<Target>,
    plans: Vec<Vec<Planned>>,
    promises: fn(&Results) -> Vec<Promise>,
) -> Scenario {
    let setting = Setting {
        servers: servers[..1].to_vec(),
        slots: spec.max_num_seqs,
        policy: policy::shared("vllm", spec.max_num_seqs, found.longs, SHORT),
        short: SHORT,
        queue: QUEUE,
        keep_alive: true,
    };
    Scenario {
        name,
        about,
        setting,
        targets,
        rounds: size.rounds,
        turn: size.span + WORK_OFF,
        segment: segments(plans, found.longs),
        look_every: LOOK_EVERY,
        reference: Target::Bound,
        without: Target::Envoy,
        promises,
    }
}

/// What a target is sent: the plan of the round, or what of it is short, beside `longs` in closed loop for the bound.
fn segments(plans: Vec<Vec<Planned>>, longs: usize) -> Box<dyn Fn(Target, usize) -> Segment + Send + Sync> {
    Box::new(move |target, round| {
        let plan = plans.get(round).cloned().unwrap_or_default();
        if target.sends_longs() {
            return Segment { plan, ..Segment::default() };
        }
        let (shorts, supply) = plan.into_iter().partition(|planned| planned.class == Class::Short);
        let clients = if target == Target::Bound { longs } else { 0 };
        Segment { plan: shorts, supply, clients, ..Segment::default() }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::preset::Preset;

    const SIZE: Size = Size { seed: 1, rounds: 2, span: Duration::from_secs(6) };

    #[test]
    fn all_targets_are_sent_the_same_short_requests() {
        let plans = Rates { short: 3.0, long: 2.0 }.plans(SIZE);
        let segment = segments(plans.clone(), 4);
        let shorts = |plan: &[Planned]| {
            plan.iter().filter(|planned| planned.class == Class::Short).cloned().collect::<Vec<_>>()
        };
        let (all, alone, bound) =
            (segment(Target::Sluice, 1), segment(Target::Alone, 1), segment(Target::Bound, 1));
        assert_eq!((&all.plan, all.clients), (&plans[1], 0));
        assert_eq!((&alone.plan, alone.clients), (&shorts(&plans[1]), 0));
        assert_eq!((&bound.plan, bound.clients, bound.supply.len()), (&shorts(&plans[1]), 4, 12));
    }

    #[test]
    fn a_target_that_a_scenario_lacks_is_named_with_those_that_it_has() {
        let found = Found { capacity: 10.0, longs: 7, kept: 0.95, kept_with_one_fewer: 0.9 };
        let server = SocketAddr::from(([127, 0, 0, 1], 1));
        let scenario =
            || mixed(Preset::Gpu.spec(), SIZE, found, &[server], vec![Target::Envoy, Target::Bound]);
        assert_eq!(scenario().only(&[Target::Bound, Target::Alone]).unwrap().targets, [Target::Bound]);
        let error = scenario().only(&[Target::Alone]).err().unwrap().to_string();
        assert!(error.contains("envoy, bound"), "{error}");
        assert!(Target::named("envoi").unwrap_err().contains("envoy, breakers"));
    }
}
