//! `rig demo`: traffic with bursts of long documents through Envoy without the filter and with it, and what came of it.

use crate::compare::policy::Short;
use crate::compare::promise::{Time, lower, served, throughput};
use crate::compare::scenario::{Results, Scenario};
use crate::compare::segment::Segment;
use crate::compare::stage::Setting;
use crate::compare::target::Target;
use crate::compare::{conclude, play, record, write};
use crate::envoy::root;
use crate::load::traffic::Mix;
use crate::model::http::ModelServer;
use crate::sim::preset::Preset;
use anyhow::{Context, Result};
use std::fs;
use std::time::Duration;

/// The server.
pub const PRESET: Preset = Preset::Gpu;
/// Held against the server's figures in docs/demo.md: about 85 % of what it can do.
pub const MIX: Mix =
    Mix { seed: 0, span: Duration::from_secs(42), shorts: 336, single_longs: 24, bursts: 4, burst_longs: 15 };
/// What the policy calls short.
const SHORT: Short = Short { prompt_chars: 2_000, max_tokens: 256 };

/// Runs the demo; an error means that the runs cannot be compared. With `keep`, a record goes under `benches/record`.
pub async fn demo(seed: u64, keep: bool) -> Result<()> {
    let plan = Mix { seed, ..MIX }.plan();
    let policy = root().join("envoy/demo-policy.json");
    let policy = fs::read_to_string(&policy).with_context(|| policy.display().to_string())?;
    let server = ModelServer::start(0, PRESET.spec()).await?;
    let about = format!(
        "{} requests over {} s, most of the long ones in bursts, sent twice: without the filter and with it. Seed {seed}. \
         docs/demo.md explains the figures.",
        plan.len(),
        MIX.span.as_secs(),
    );
    let scenario = Scenario {
        name: "demo",
        about: vec![about],
        setting: Setting {
            servers: vec![server.address()],
            slots: PRESET.spec().max_num_seqs,
            policy,
            short: SHORT,
            queue: 64,
            keep_alive: true,
        },
        targets: vec![Target::Envoy, Target::Sluice],
        rounds: 1,
        turn: MIX.span + Duration::from_secs(7),
        segment: Box::new(move |_, _| Segment { plan: plan.clone(), ..Segment::default() }),
        look_every: Duration::from_millis(100),
        reference: Target::Envoy,
        without: Target::Envoy,
        promises: |results: &Results| {
            let (with, without) = (Target::Sluice, Target::Envoy);
            let times = [(Time::FirstToken, 5.0), (Time::Whole, 2.0)];
            let lower = times.map(|(time, least)| lower(results, with, without, time, 0.99, least));
            let mut promises = Vec::from_iter(lower.into_iter().flatten());
            promises.extend(served(results, with, 0.99, 0.95));
            promises.extend(throughput(results, with, 0.9));
            promises
        },
    };
    let results = [play(scenario).await?];
    let record = record::of(&results, seed);
    let page = root().join("target/report/demo.html");
    write("Sluice: the demo", &page, &results, &record)?;
    let mut written = vec![page];
    if keep {
        written.push(record::keep(&format!("demo-{seed}"), &record)?);
    }
    conclude(&written, &results)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::traffic::{Class, Planned};
    use serde_json::Value;

    fn policy() -> Value {
        serde_json::from_str(&fs::read_to_string(root().join("envoy/demo-policy.json")).unwrap()).unwrap()
    }

    #[test]
    fn nothing_is_won_by_clamping_or_refusing_what_is_too_large() {
        let policy = policy();
        for request in MIX.plan() {
            let body: Value = serde_json::from_str(&request.body).unwrap();
            let chars = body["messages"][0]["content"].as_str().unwrap().len() as u64;
            let tokens = u64::from(request.output_tokens);
            assert!(tokens <= policy["limits"]["max_tokens"].as_u64().unwrap());
            assert!(chars <= policy["limits"]["prompt_chars"].as_u64().unwrap());
            let short = &policy["classes"][0]["at_most"];
            let fits = chars <= short["prompt_chars"].as_u64().unwrap()
                && tokens <= short["max_tokens"].as_u64().unwrap();
            assert_eq!(fits, request.class == Class::Short);
        }
    }

    #[test]
    fn the_classes_share_exactly_what_the_run_without_filter_has() {
        let caps: u64 = policy()["classes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|class| class["concurrency"].as_u64().unwrap())
            .sum();
        assert_eq!(PRESET.spec().max_num_seqs as u64, caps);
    }

    #[test]
    fn the_load_is_high_and_below_what_the_server_can_do() {
        let spec = PRESET.spec();
        let sequences = u32::try_from(spec.max_num_seqs).unwrap();
        let full_step = spec.base + spec.per_sequence * sequences;
        let work = |request: &Planned| {
            let prompt = u32::try_from(request.body.len() / 4).unwrap();
            full_step * request.output_tokens / sequences + spec.per_prefill_token * prompt
        };
        let load = MIX.plan().iter().map(work).sum::<Duration>().as_secs_f64() / MIX.span.as_secs_f64();
        assert!((0.8..0.9).contains(&load), "{load}");
    }
}
