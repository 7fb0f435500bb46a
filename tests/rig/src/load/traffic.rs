//! The traffic of the demo: what is asked and when, all of it fixed by one seed.

use super::request::Style;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::ops::RangeInclusive;
use std::time::Duration;

/// A kind of requests, named as the policy's class for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// A short chat turn.
    Short,
    /// A long document with a long answer.
    Long,
    /// Another one, of a workload.
    Named(&'static str),
}

impl Class {
    /// Those of the demo, in the order of reports.
    pub const ALL: [Class; 2] = [Class::Short, Class::Long];

    /// The class of this name. A new name is kept for the life of the program; there are a few in a workload.
    pub fn of(name: &str) -> Class {
        match Class::ALL.into_iter().find(|class| class.name() == name) {
            Some(class) => class,
            None => Class::Named(name.to_owned().leak()),
        }
    }

    /// The name, as in `x-sluice-class`.
    pub fn name(self) -> &'static str {
        match self {
            Class::Short => "short",
            Class::Long => "long",
            Class::Named(name) => name,
        }
    }
}

/// How long requests of a class are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lengths {
    /// Of a prompt, in characters.
    pub prompt_chars: RangeInclusive<usize>,
    /// Of an answer, in tokens.
    pub output_tokens: RangeInclusive<u32>,
}

const SHORT: Lengths = Lengths { prompt_chars: 100..=1_200, output_tokens: 16..=64 };
const LONG: Lengths = Lengths { prompt_chars: 10_000..=20_000, output_tokens: 350..=550 };

/// How much of what arrives when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mix {
    /// Decides everything that is drawn.
    pub seed: u64,
    /// Over how long requests arrive.
    pub span: Duration,
    /// Short requests, at independent random moments of the span.
    pub shorts: usize,
    /// Long requests that likewise come one by one.
    pub single_longs: usize,
    /// Bursts of long requests, evenly spread over the span.
    pub bursts: usize,
    /// Long requests in a burst, which lasts half a second.
    pub burst_longs: usize,
}

/// A request that will be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    /// When, since the start of the run.
    pub at: Duration,
    /// Of which kind.
    pub class: Class,
    /// The length of its answer in tokens.
    pub output_tokens: u32,
    /// The JSON body.
    pub body: String,
}

/// From the start of the run to the first burst, as a part of the time between two bursts. Late enough that the last
/// one is still being worked off when arrivals end: otherwise any policy would show the throughput of the arrivals.
const FIRST_BURST: f64 = 0.45;
const BURST_LASTS: f64 = 0.5;

impl Mix {
    /// The requests in order of arrival.
    pub fn plan(&self) -> Vec<Planned> {
        let mut random = ChaCha8Rng::seed_from_u64(self.seed);
        let span = self.span.as_secs_f64();
        let mut planned = Vec::new();
        for (class, lengths, count) in
            [(Class::Short, &SHORT, self.shorts), (Class::Long, &LONG, self.single_longs)]
        {
            for _ in 0..count {
                let at = random.random_range(0.0..span);
                planned.push(request(&mut random, class, lengths, at));
            }
        }
        let every = span / self.bursts.max(1) as f64;
        for burst in 0..self.bursts {
            for _ in 0..self.burst_longs {
                let at = every * (burst as f64 + FIRST_BURST) + random.random_range(0.0..BURST_LASTS);
                planned.push(request(&mut random, Class::Long, &LONG, at));
            }
        }
        planned.sort_by_key(|request| request.at);
        planned
    }
}

fn request(random: &mut ChaCha8Rng, class: Class, lengths: &Lengths, at: f64) -> Planned {
    let chars = random.random_range(lengths.prompt_chars.clone());
    let output_tokens = random.random_range(lengths.output_tokens.clone());
    chat(random, class, Duration::from_secs_f64(at), chars, output_tokens)
}

/// A streamed chat request whose prompt has so many characters, four to a token, and whose answer so many tokens.
pub fn chat(
    random: &mut ChaCha8Rng,
    class: Class,
    at: Duration,
    chars: usize,
    output_tokens: u32,
) -> Planned {
    let body = Style::default().body(random, chars, output_tokens);
    Planned { at, class, output_tokens, body }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    const MIX: Mix = Mix {
        seed: 7,
        span: Duration::from_secs(40),
        shorts: 80,
        single_longs: 8,
        bursts: 4,
        burst_longs: 3,
    };

    #[test]
    fn the_seed_decides_everything() {
        assert_eq!(MIX.plan(), MIX.plan());
        assert_ne!(MIX.plan(), Mix { seed: 8, ..MIX }.plan());
    }

    #[test]
    fn the_plan_is_in_order_and_complete() {
        let plan = MIX.plan();
        assert!(plan.is_sorted_by_key(|request| request.at));
        assert!(plan.iter().all(|request| request.at < MIX.span));
        let longs = plan.iter().filter(|request| request.class == Class::Long).count();
        assert_eq!((plan.len(), longs), (100, 20));
    }

    #[test]
    fn bodies_have_the_lengths_of_their_class() {
        for request in MIX.plan() {
            let body: Value = serde_json::from_str(&request.body).unwrap();
            let content = body["messages"][0]["content"].as_str().unwrap();
            let lengths = if request.class == Class::Short { SHORT } else { LONG };
            assert!(lengths.prompt_chars.contains(&content.len()));
            assert!(lengths.output_tokens.contains(&request.output_tokens));
            assert_eq!(body["max_tokens"], request.output_tokens);
        }
    }
}
