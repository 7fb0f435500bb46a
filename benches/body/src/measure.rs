//! The clock: one body read, ignored and copied in turns.

use std::hint::black_box;
use std::time::{Duration, Instant};

use serde::de::IgnoredAny;
use sluice::core::body::{Backend, dialect};
use sluice::core::engine::Engine;

use crate::bodies::Body;

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
/// How long one of the three runs in a round, at least: far over what the clock can tell.
const TURN: Duration = Duration::from_millis(2);
/// How long it runs before: V8 makes functions fast only once they have been called a while.
const WARM_UP: Duration = Duration::from_millis(40);

/// Measures one body.
pub fn figures(engine: &Engine, body: &Body) -> Figures {
    let spoken = dialect::named(body.dialect, Backend::Vllm).expect("a dialect");
    let mut copy = vec![0; body.bytes.len()];
    let mut read = || {
        let judged = engine.judge(spoken, black_box(&body.bytes)).expect("it is let through");
        assert_eq!((judged.prompt.chars, judged.edit), (body.chars, None), "{}", body.kind);
    };
    let mut ignore = || {
        black_box(serde_json::from_slice::<IgnoredAny>(black_box(&body.bytes)).expect("JSON"));
    };
    let mut copy = || black_box(&mut copy).copy_from_slice(black_box(&body.bytes));
    let len = body.bytes.len() as f64;
    let turns: [(&mut dyn FnMut(), u32); 3] = [
        {
            let times = warm_up(&mut read);
            (&mut read, times)
        },
        {
            let times = warm_up(&mut ignore);
            (&mut ignore, times)
        },
        {
            let times = warm_up(&mut copy);
            (&mut copy, times)
        },
    ];
    let mut turns = turns;
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        rounds.push(turns.each_mut().map(|(what, times)| len / a_call(what, *times)));
    }
    let median = |figure: &dyn Fn(&[f64; 3]) -> f64| {
        let mut figures: Vec<f64> = rounds.iter().map(figure).collect();
        figures.sort_by(f64::total_cmp);
        figures[ROUNDS / 2]
    };
    Figures {
        read: median(&|[read, _, _]| *read),
        ignored: median(&|[_, ignored, _]| *ignored),
        copied: median(&|[_, _, copied]| *copied),
        to_ignored: median(&|[read, ignored, _]| read / ignored),
        to_copied: median(&|[read, _, copied]| read / copied),
    }
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
