//! The clock: what is compared runs in turns.

use std::hint::black_box;
use std::time::{Duration, Instant};

use serde::de::IgnoredAny;
use sluice::core::body::{Backend, dialect};
use sluice::core::engine::Engine;

use crate::bodies::Bodies;

/// Speeds in GB/s and how they compare.
pub struct Figures {
    /// The engine's whole verdict.
    pub read: f64,
    /// `serde_json` over the same bytes, keeping nothing.
    pub ignored: f64,
    /// A copy of them.
    pub copied: f64,
    /// The first to the second.
    pub to_ignored: f64,
    /// The first to the third.
    pub to_copied: f64,
}

const ROUNDS: usize = 11;
/// How long one of them runs in a round, at least: far over what the clock can tell.
const TURN: Duration = Duration::from_millis(2);
/// How long it runs before: V8 makes functions fast only once they have been called a while.
const WARM_UP: Duration = Duration::from_millis(40);

/// Measures bodies of one kind.
pub fn figures(engine: &Engine, bodies: &Bodies) -> Figures {
    let mut room = Vec::new();
    let (mut to_ignore, mut to_copy) = (bodies.turns.iter().cycle(), bodies.turns.iter().cycle());
    let mut ignore = || {
        let body = to_ignore.next().expect("one at least");
        black_box(serde_json::from_slice::<IgnoredAny>(black_box(&body.bytes)).expect("JSON"));
    };
    let mut copy = || {
        let body = to_copy.next().expect("one at least");
        room.clear();
        black_box(&mut room).extend_from_slice(black_box(&body.bytes));
    };
    let rounds = in_turns([&mut reading(engine, bodies), &mut ignore, &mut copy]);
    let speed = |what: usize| bodies.size() / median(&rounds, |took| took[what]);
    Figures {
        read: speed(0),
        ignored: speed(1),
        copied: speed(2),
        to_ignored: median(&rounds, |[read, ignored, _]| ignored / read),
        to_copied: median(&rounds, |[read, _, copied]| copied / read),
    }
}

/// Nanoseconds a byte of two sizes of a kind, and the second one's to the first one's.
pub fn growth(engine: &Engine, small: &Bodies, large: &Bodies) -> [f64; 3] {
    let rounds = in_turns([&mut reading(engine, small), &mut reading(engine, large)]);
    let [small, large] = [small, large].map(Bodies::size);
    [
        median(&rounds, |took| took[0] / small),
        median(&rounds, |took| took[1] / large),
        median(&rounds, |took| took[1] / large / (took[0] / small)),
    ]
}

/// The engine's verdict on the next body, which is checked.
fn reading<'b>(engine: &'b Engine, bodies: &'b Bodies) -> impl FnMut() + 'b {
    let spoken = dialect::named(bodies.dialect, Backend::Vllm).expect("a dialect");
    let mut turns = bodies.turns.iter().cycle();
    move || {
        let body = turns.next().expect("one at least");
        let judged = engine.judge(spoken, black_box(&body.bytes)).expect("it is let through");
        assert_eq!((judged.prompt.chars, judged.edit), (body.chars, None), "{}", bodies.kind);
    }
}

/// Nanoseconds that each of these takes, in rounds in which they alternate.
fn in_turns<const N: usize>(mut turns: [&mut dyn FnMut(); N]) -> Vec<[f64; N]> {
    let times = turns.each_mut().map(|what| warm_up(what));
    let mut round = || {
        let mut times = times.iter();
        turns.each_mut().map(|what| a_call(what, *times.next().expect("as many")))
    };
    (0..ROUNDS).map(|_| round()).collect()
}

fn median<const N: usize>(rounds: &[[f64; N]], figure: impl Fn(&[f64; N]) -> f64) -> f64 {
    let mut figures: Vec<f64> = rounds.iter().map(figure).collect();
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// Calls until it is fast; how many calls a turn takes.
fn warm_up(what: &mut dyn FnMut()) -> u32 {
    let (began, mut times) = (Instant::now(), 1);
    while began.elapsed() < WARM_UP {
        a_call(what, times);
        times += times / 8 + 1;
    }
    let nanoseconds = a_call(what, times.min(64));
    (TURN.as_nanos() as f64 / nanoseconds).ceil() as u32
}

/// Nanoseconds that one of so many calls takes.
fn a_call(what: &mut dyn FnMut(), times: u32) -> f64 {
    let began = Instant::now();
    (0..times).for_each(|_| what());
    began.elapsed().as_nanos() as f64 / f64::from(times)
}
