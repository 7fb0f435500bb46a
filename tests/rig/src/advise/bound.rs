//! What a server can do at most, and what no admission policy can beat on a server that is shared: by simulation, in
//! virtual time.

use super::ask::Ask;
use super::run::{Setting, sum_up};
use super::server::{Made, Server};
use crate::load::outcome::{Outcome, Served};
use crate::load::traffic::Class;
use crate::report::summary::{ClassSummary, Summary};
use crate::sim::spec::Spec;
use anyhow::{Context, Result, bail, ensure};
use sluice::core::config;
use sluice::core::policy::Policy;
use std::time::Duration;

/// How long the long ones run before the short ones come: by then they are at different places of their answers.
const WARM_UP: Duration = Duration::from_secs(60);
/// So many requests are kept in the server while its capacity is taken: more than any batch has room for.
const BACKLOG: usize = 4_096;
/// At least so many requests are done before any are counted.
const LEAST_ROUND: usize = 500;

/// Requests a second that a server gets done of this mix (the lengths of all `asks`, in their order, again and again;
/// their moments do not matter) while it never lacks work: where it saturates.
///
/// # Errors
/// Without requests, with one that is longer than the model takes, and where `server` could not be started.
pub fn capacity(server: Spec, asks: &[Ask]) -> Result<f64> {
    ensure!(!asks.is_empty(), "a capacity is that of a mix of requests, and there is none");
    let mut server = Server::new(server)?;
    let mut mix = asks.iter().cycle();
    let mut refill = |server: &mut Server, now| match mix.next() {
        Some(ask) => server.push(now, 0, ask.prompt_tokens, ask.output_tokens),
        None => Ok(()),
    };
    (0..BACKLOG).try_for_each(|_| refill(&mut server, Duration::ZERO))?;
    // What fills the batch is not counted: it has been read, and not yet answered.
    let warm = asks.len().max(LEAST_ROUND);
    let (mut done, mut from) = (0, None);
    while let Some(edge) = server.edge() {
        let mut ended = 0;
        server.step(|made| ended += usize::from(matches!(made, Made::Last(_))));
        (0..ended).try_for_each(|_| refill(&mut server, edge))?;
        done += ended;
        if done >= warm {
            let (before, since) = *from.get_or_insert((done, edge));
            if done - before >= warm * 4 {
                return Ok((done - before) as f64 / (edge - since).as_secs_f64());
            }
        }
    }
    bail!("the server does not work this mix off")
}

/// Short requests beside a fixed number of long ones, nothing ever held back: interference inside the batch alone.
#[derive(Clone, Debug)]
pub struct Beside {
    /// The short ones.
    pub short: ClassSummary,
    /// Output tokens a second of short and long ones together, while short ones come.
    pub tokens_per_second: f64,
}

/// The short ones of `asks` at their moments, beside exactly `longs` of the long ones: whenever one of those ends, the
/// next begins, over and over. With `longs` 0 the short ones are alone. `hop` as in [`Setting`].
///
/// # Errors
/// Where `asks` has no short ones, or no long ones and `longs` is not 0, or one that is longer than the model takes;
/// where `server` could not be started.
pub fn beside(server: Spec, asks: &[Ask], longs: usize, hop: Duration) -> Result<Beside> {
    let shorts: Vec<&Ask> = asks.iter().filter(|ask| ask.class == Class::Short).collect();
    let mut mix = asks.iter().filter(|ask| ask.class == Class::Long).cycle();
    ensure!(!shorts.is_empty(), "there is no short request to look at");
    ensure!(
        longs == 0 || mix.clone().next().is_some(),
        "there is no long request to put beside the short ones"
    );
    let mut server = Server::new(server)?;
    let mut refill = |server: &mut Server, now: Duration| match mix.next() {
        Some(ask) => server.push(now, LONG, ask.prompt_tokens, ask.output_tokens),
        None => Ok(()),
    };
    let (mut begun, mut sent, mut tokens_before) = (0, 0, None);
    let mut ends: Vec<(Option<Duration>, Option<Duration>)> = vec![(None, None); shorts.len()];
    let mut open = shorts.len();
    while open > 0 {
        // The long ones begin one after the other, evenly spread over half of the warm-up.
        let next_long = (begun < longs).then(|| WARM_UP / 2 * begun as u32 / longs as u32);
        let next_short = shorts.get(sent).map(|ask| WARM_UP + ask.at + hop * 2);
        let moments = [next_long, next_short, server.edge()];
        let Some(now) = moments.into_iter().flatten().min() else { break };
        if next_long == Some(now) {
            refill(&mut server, now)?;
            begun += 1;
        } else if next_short == Some(now) {
            tokens_before.get_or_insert((server.tokens, now));
            server.push(now, sent as u32, shorts[sent].prompt_tokens, shorts[sent].output_tokens)?;
            sent += 1;
        } else {
            let mut ended = 0;
            server.step(|made| match made {
                Made::Last(LONG) => ended += 1,
                Made::First(LONG) => {}
                Made::First(id) => ends[id as usize].0 = Some(now),
                Made::Last(id) => {
                    let (first, last) = &mut ends[id as usize];
                    first.get_or_insert(now);
                    *last = Some(now);
                    open -= 1;
                }
            });
            (0..ended).try_for_each(|_| refill(&mut server, now))?;
        }
    }
    let last = ends.iter().filter_map(|(_, last)| *last).max().unwrap_or_default();
    let (before, since) = tokens_before.unwrap_or_default();
    let tokens_per_second = (server.tokens - before) as f64 / (last - since).as_secs_f64();
    let outcomes: Vec<Outcome> =
        shorts.iter().zip(ends).map(|(ask, (first, last))| outcome(ask, first, last, hop)).collect();
    Ok(Beside { short: Summary::of(&outcomes, 0).short, tokens_per_second })
}

/// The owner of every long one in [`beside`].
const LONG: u32 = u32::MAX;

fn outcome(ask: &Ask, first: Option<Duration>, last: Option<Duration>, hop: Duration) -> Outcome {
    let since_sent =
        |moment: Option<Duration>| (moment.unwrap_or_default() + hop * 2).saturating_sub(WARM_UP + ask.at);
    Outcome {
        class: ask.class,
        at: ask.at,
        late: Duration::ZERO,
        attempts: 1,
        took: since_sent(last),
        result: Ok(Served {
            first_token: since_sent(first),
            tokens: ask.output_tokens,
            gaps: Vec::new(),
            tagged: None,
            limit_action: None,
        }),
    }
}

/// How fast a server is, and how short ones fare, by the number of long ones that may run.
#[derive(Clone, Debug)]
pub struct Bound {
    /// All of `asks` straight to the server, as they come.
    pub without: Summary,
    /// The short ones alone: nobody can beat that on any server.
    pub alone: Beside,
    /// By number of long ones, from 1 on.
    pub rows: Vec<Row>,
}

/// One number of long ones.
#[derive(Clone, Debug)]
pub struct Row {
    /// The number.
    pub longs: usize,
    /// The short ones beside exactly so many, all the time.
    pub beside: Beside,
    /// The whole traffic, at most so many long ones let in at once and the others waiting, classes told apart without
    /// error: what the best policy with this cap gets done.
    pub capped: Summary,
}

impl Bound {
    /// Goes through 1 to `most` long ones. `hop` as in [`Setting`].
    ///
    /// # Errors
    /// Where `asks` lack one of the classes, or `most` is 0.
    pub fn find(server: Spec, asks: &[Ask], most: usize, hop: Duration) -> Result<Bound> {
        ensure!(most > 0, "the number of long ones that may run is at least 1");
        let without = sum_up(asks, &Setting { server, policy: None, workers: 1, hop })?;
        let alone = beside(server, asks, 0, hop)?;
        let told_apart: Vec<Ask> = asks.iter().map(labelled).collect();
        let row = |longs| {
            let policy = cap(longs)?;
            let setting = Setting { server, policy: Some(&policy), workers: 1, hop };
            Ok(Row {
                longs,
                beside: beside(server, asks, longs, hop)?,
                capped: sum_up(&told_apart, &setting)?,
            })
        };
        Ok(Bound { without, alone, rows: (1..=most).map(row).collect::<Result<_>>()? })
    }

    /// The smallest number of long ones with which the traffic as it came is still served at this share (0.95, say) of
    /// the output tokens a second that it has without the filter; `None` where none is enough.
    pub fn fewest(&self, share: f64) -> Option<&Row> {
        let enough = share * self.without.tokens_per_second;
        self.rows.iter().find(|row| row.capped.tokens_per_second >= enough)
    }

    /// The smallest number of long ones that, running all the time, make this share of those tokens. It is smaller, as
    /// in real traffic there are moments without so many of them.
    pub fn fewest_running(&self, share: f64) -> Option<&Row> {
        let enough = share * self.without.tokens_per_second;
        self.rows.iter().find(|row| row.beside.tokens_per_second >= enough)
    }
}

/// The same request, with a prompt by whose length the filter tells its class without error.
fn labelled(ask: &Ask) -> Ask {
    let prompt_chars = match ask.class {
        Class::Short => 1,
        Class::Long | Class::Named(_) => 2,
    };
    Ask { prompt_chars, max_tokens: Some(ask.output_tokens), ..ask.clone() }
}

/// Long ones up to a number, the others in a line as long as it has to be; nothing else.
fn cap(longs: usize) -> Result<Policy> {
    let policy = serde_json::json!({
        "limits": { "max_tokens": u32::MAX },
        "classes": [
            { "name": "short", "at_most": { "prompt_chars": 1 } },
            { "name": "long", "concurrency": longs, "queue": { "capacity": 1_000_000, "timeout": "1h" } },
        ],
    });
    config::parse(policy.to_string().as_bytes()).context("the policy that caps the long ones")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::preset::Preset;

    fn server() -> Spec {
        Spec {
            max_num_seqs: 2,
            base: Duration::from_millis(10),
            per_sequence: Duration::from_millis(5),
            per_prefill_token: Duration::from_millis(1),
            ..Preset::Gpu.spec()
        }
    }

    fn ask(at: u64, class: Class, prompt_tokens: u32, output_tokens: u32) -> Ask {
        let at = Duration::from_millis(at);
        Ask { at, class, prompt_tokens, prompt_chars: 1, output_tokens, max_tokens: None }
    }

    /// Short ones every second, and more long ones than a server with two places gets done.
    fn traffic() -> Vec<Ask> {
        let shorts = (0..60).map(|n| ask(n * 1_000, Class::Short, 2, 5));
        let longs = (0..40).map(|n| ask(n * 1_500 + 7, Class::Long, 50, 120));
        let mut asks: Vec<Ask> = shorts.chain(longs).collect();
        asks.sort_by_key(|ask| ask.at);
        asks
    }

    #[test]
    fn a_capacity_is_what_the_steps_come_to() {
        // Two at a time, ten steps of 20 ms, the prompts of both read in the first of them: 240 ms.
        let rate = capacity(server(), &[ask(0, Class::Short, 20, 10)]).unwrap();
        assert!((rate * 0.24 / 2.0 - 1.0).abs() < 0.002, "{rate}");
        assert!(capacity(server(), &[]).unwrap_err().to_string().contains("there is none"));
    }

    #[test]
    fn the_short_ones_alone_and_beside_one_long_one() {
        let hop = Duration::from_millis(1);
        let asks = [ask(0, Class::Short, 2, 5), ask(100, Class::Long, 1, 1_100)];
        let alone = beside(server(), &asks, 0, hop).unwrap();
        // 15 ms a step, 2 ms of prompt, 4 ms on the way.
        let first = alone.short.first_token.quantile(1.0);
        assert!(first.abs_diff(Duration::from_millis(21)) < Duration::from_micros(50), "{first:?}");
        let whole = alone.short.whole.quantile(1.0);
        assert!(whole.abs_diff(Duration::from_millis(81)) < Duration::from_micros(100), "{whole:?}");
        // Steps of 20 ms, and up to one of 15 ms of waiting before.
        let both = beside(server(), &asks, 1, hop).unwrap();
        let whole = both.short.whole.quantile(1.0);
        assert!((106..=122).contains(&whole.as_millis()), "{whole:?}");
        // Nine tokens a 110 ms or so: one of each in a step, one step of the long one alone.
        assert!((80.0..=110.0).contains(&both.tokens_per_second), "{}", both.tokens_per_second);
        assert!(beside(server(), &asks[..1], 1, hop).unwrap_err().to_string().contains("no long request"));
        assert!(beside(server(), &asks[1..], 1, hop).unwrap_err().to_string().contains("no short request"));
    }

    #[test]
    fn the_fewest_are_enough_and_one_fewer_is_not() {
        let server = Spec { max_num_seqs: 8, ..server() };
        let bound = Bound::find(server, &traffic(), 8, Duration::from_micros(200)).unwrap();
        let fewest = bound.fewest(0.95).unwrap().longs;
        let share = |row: &Row| row.capped.tokens_per_second / bound.without.tokens_per_second;
        assert!(fewest > 1 && fewest < 8, "{:?}", bound.rows.iter().map(share).collect::<Vec<_>>());
        for row in &bound.rows[..fewest - 1] {
            assert!(share(row) < 0.95, "{} of {fewest}", row.longs);
        }
        assert!(bound.fewest_running(0.95).unwrap().longs <= fewest);
        let p99 = |beside: &Beside| beside.short.whole.quantile(0.99);
        assert!(p99(&bound.alone) < p99(&bound.rows[0].beside));
        assert!(p99(&bound.rows[0].beside) < p99(&bound.rows[5].beside));
        assert!(
            bound.rows.iter().all(|row| row.capped.long.failed() == 0),
            "nobody is refused for want of a place"
        );
    }
}
