//! The traffic of the demo: what is asked and when, all of it fixed by one seed.

use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::json;
use std::ops::RangeInclusive;
use std::time::Duration;

/// The two kinds of requests, named as the classes of the demo's policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// A short chat turn.
    Short,
    /// A long document with a long answer.
    Long,
}

impl Class {
    /// Both, in the order of reports.
    pub const ALL: [Class; 2] = [Class::Short, Class::Long];

    /// The name, as in `x-sluice-class`.
    pub fn name(self) -> &'static str {
        match self {
            Class::Short => "short",
            Class::Long => "long",
        }
    }

    /// Length of a prompt in characters; all of them are ASCII, four to a token.
    fn prompt_chars(self) -> RangeInclusive<usize> {
        match self {
            Class::Short => 100..=1_200,
            Class::Long => 10_000..=20_000,
        }
    }

    /// Length of an answer in tokens.
    fn output_tokens(self) -> RangeInclusive<u32> {
        match self {
            Class::Short => 16..=64,
            Class::Long => 350..=550,
        }
    }
}

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
        for (class, count) in [(Class::Short, self.shorts), (Class::Long, self.single_longs)] {
            for _ in 0..count {
                let at = random.random_range(0.0..span);
                planned.push(request(&mut random, class, at));
            }
        }
        let every = span / self.bursts.max(1) as f64;
        for burst in 0..self.bursts {
            for _ in 0..self.burst_longs {
                let at = every * (burst as f64 + FIRST_BURST) + random.random_range(0.0..BURST_LASTS);
                planned.push(request(&mut random, Class::Long, at));
            }
        }
        planned.sort_by_key(|request| request.at);
        planned
    }
}

fn request(random: &mut ChaCha8Rng, class: Class, at: f64) -> Planned {
    let chars = random.random_range(class.prompt_chars());
    let output_tokens = random.random_range(class.output_tokens());
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
    let body = json!({
        "model": "simulated",
        "messages": [{"role": "user", "content": text(random, chars)}],
        "max_tokens": output_tokens,
        "stream": true,
    });
    Planned { at, class, output_tokens, body: body.to_string() }
}

/// Words without sense, exactly `chars` ASCII characters of them.
fn text(random: &mut ChaCha8Rng, chars: usize) -> String {
    const WORDS: [&str; 8] = ["river", "lock", "barge", "gate", "water", "keeper", "upstream", "tide"];
    let mut text = String::with_capacity(chars + 16);
    while text.len() < chars {
        text.push_str(WORDS.choose(random).copied().unwrap_or_default());
        text.push(' ');
    }
    text.truncate(chars);
    text
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
            assert!(request.class.prompt_chars().contains(&content.len()));
            assert_eq!(body["max_tokens"], request.output_tokens);
        }
    }
}
