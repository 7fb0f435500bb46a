//! The scenarios before a real server: llama.cpp's, with a few slots, four long requests in closed loop, and one client
//! that sends short ones.

use super::policy::{self, Short};
use super::promise::{Promise, Time, lower, near_bound, served};
use super::scenario::{Results, Scenario};
use super::segment::{Pace, Segment};
use super::stage::Setting;
use super::target::Target;
use crate::load::traffic::{Class, Planned};
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::json;
use std::net::SocketAddr;
use std::time::Duration;

/// Clients that send long requests without a pause.
const LONG_CLIENTS: usize = 4;
/// Long requests to choose from; they are taken in turn.
const LONG_SUPPLY: usize = 64;
/// About 330 tokens of prompt with what the chat template adds, and exactly 128 of answer.
const LONG: Length = Length { words: 295, output_tokens: 128 };
/// About 50 tokens of prompt, and exactly 64 of answer.
const SHORT: Length = Length { words: 20, output_tokens: 64 };
/// What the policy calls short lies between the two.
const SHORT_CLASS: Short = Short { prompt_chars: 1_000, max_tokens: 64 };
/// Looked at seldom: the server answers from the very loop that makes the tokens.
const LOOK_EVERY: Duration = Duration::from_millis(500);

#[derive(Clone, Copy)]
struct Length {
    words: usize,
    output_tokens: u32,
}

/// How much of it is played.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    pub seed: u64,
    pub rounds: usize,
    /// Short requests of a segment.
    pub shorts: usize,
}

/// A server of so many slots, of which the policy lets long requests have `longs`.
pub fn scenario(
    slots: usize,
    longs: usize,
    size: Size,
    server: SocketAddr,
    targets: Vec<Target>,
) -> Scenario {
    let about = vec![
        format!(
            "llama.cpp's server with {slots} slots on this machine's CPU. {LONG_CLIENTS} clients send long requests (about \
             330 tokens in, {} out) one after the other; one client sends short ones (about 50 in, {} out, streamed), \
             {} in each of {} rounds, with a pause of up to a second before each.",
            LONG.output_tokens, SHORT.output_tokens, size.shorts, size.rounds,
        ),
        format!(
            "The policy lets {longs} of {slots} slots hold long requests. The bound is short requests beside exactly so \
             many, nothing queued.",
        ),
    ];
    let setting = Setting {
        servers: vec![server],
        slots,
        policy: policy::shared("llamacpp", slots, longs, SHORT_CLASS),
        short: SHORT_CLASS,
        queue: 64,
        keep_alive: false,
    };
    let segment = move |target, round| {
        let clients = match target {
            Target::Alone => 0,
            Target::Bound => longs,
            _ => LONG_CLIENTS,
        };
        segment(size, round, clients)
    };
    Scenario {
        name: if slots == 2 { "real, 2 slots" } else { "real, 4 slots" },
        about,
        setting,
        targets,
        rounds: size.rounds,
        turn: Duration::from_secs(5) * u32::try_from(size.shorts).unwrap_or(u32::MAX),
        segment: Box::new(segment),
        look_every: LOOK_EVERY,
        reference: Target::Bound,
        without: Target::Direct,
        promises: if slots == 2 { two_slots } else { more_slots },
    }
}

fn two_slots(results: &Results) -> Vec<Promise> {
    let mut promises = more_slots(results);
    promises.extend(lower(results, Target::Sluice, Target::Direct, Time::FirstToken, 0.5, 20.0));
    promises
}

fn more_slots(results: &Results) -> Vec<Promise> {
    let mut promises = Vec::from_iter(near_bound(results, Target::Sluice, Time::Whole, 0.5, 1.2));
    promises.extend(served(results, Target::Sluice, 1.0, 1.0));
    promises
}

/// The same short requests for every target of a round.
pub fn segment(size: Size, round: usize, clients: usize) -> Segment {
    let seed = size.seed.wrapping_mul(1_000).wrapping_add(round as u64);
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let plan = (0..size.shorts).map(|_| {
        let pause = Duration::from_secs_f64(random.random_range(0.1..1.0));
        request(&mut random, pause, Class::Short, SHORT)
    });
    let plan = plan.collect();
    let supply = (0..LONG_SUPPLY).map(|_| request(&mut random, Duration::ZERO, Class::Long, LONG)).collect();
    Segment { pace: Pace::OneByOne, plan, supply, clients }
}

fn request(random: &mut ChaCha8Rng, at: Duration, class: Class, length: Length) -> Planned {
    const WORDS: [&str; 8] = ["river", "lock", "boat", "gate", "water", "keeper", "stream", "tide"];
    // Words that are one token each.
    let words = (0..length.words).map(|_| WORDS.choose(random).copied().unwrap_or_default());
    let content = words.collect::<Vec<_>>().join(" ");
    let body = json!({
        "model": "any",
        "messages": [{"role": "user", "content": content}],
        "max_tokens": length.output_tokens,
        "stream": true,
        "stream_options": {"include_usage": true},
        // As long an answer as was asked for, whatever the model has to say.
        "ignore_eos": true,
        // Every target is sent the same prompts: those after the first one would find them read.
        "cache_prompt": false,
    });
    Planned { at, class, output_tokens: length.output_tokens, body: body.to_string() }
}
