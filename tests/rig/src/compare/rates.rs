//! How much of what comes.

use crate::load::traffic::{Mix, Planned};
use std::time::Duration;

/// How much of it is played.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    pub seed: u64,
    pub rounds: usize,
    /// How long requests arrive in a segment.
    pub span: Duration,
}

/// A mix of short and long requests, in requests a second.
#[derive(Clone, Copy, Debug)]
pub struct Rates {
    pub short: f64,
    pub long: f64,
}

impl Rates {
    /// The same mix, more or less of it.
    pub fn times(self, factor: f64) -> Rates {
        Rates { short: self.short * factor, long: self.long * factor }
    }

    /// In words.
    pub fn said(self) -> String {
        format!("{:.2} short and {:.2} long ones a second", self.short, self.long)
    }

    /// A plan a round, each of its own seed: as many requests as the rates say, at independent random moments.
    pub fn plans(self, size: Size) -> Vec<Vec<Planned>> {
        let count = |rate: f64| (rate * size.span.as_secs_f64()).round() as usize;
        let plan = |round| {
            let seed = size.seed.wrapping_mul(1_000).wrapping_add(round as u64);
            let (shorts, single_longs) = (count(self.short), count(self.long));
            Mix { seed, span: size.span, shorts, single_longs, bursts: 0, burst_longs: 0 }.plan()
        };
        (0..size.rounds).map(plan).collect()
    }
}
