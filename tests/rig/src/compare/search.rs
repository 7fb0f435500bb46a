//! What is looked for in virtual time before anything is sent: what the server can do, and how many long requests may run.

use super::rates::{Rates, Size};
use crate::advise::ask::Ask;
use crate::advise::bound::{Bound, capacity};
use crate::load::traffic::Planned;
use crate::report::summary::Summary;
use crate::sim::spec::Spec;
use anyhow::{Context, Result};
use std::time::Duration;

/// The part of a server's capacity that is asked for.
pub const LOAD: f64 = 0.85;
/// How many of all requests are short.
pub const SHORT_SHARE: f64 = 0.8;
/// The output tokens a second that must be left, in parts of the run without the filter.
pub const THROUGHPUT: f64 = 0.95;

/// What was found before anything was sent.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    /// Requests a second that the server gets done of the mixed traffic.
    pub capacity: f64,
    /// The fewest long requests at once that keep [`THROUGHPUT`].
    pub longs: usize,
    /// The part of the output tokens a second that they keep.
    pub kept: f64,
    /// The same with one fewer; NaN where there is none fewer.
    pub kept_with_one_fewer: f64,
}

/// Looks for the server's capacity and for the number of long requests that the policy lets run, in virtual time.
pub fn find(spec: Spec, size: Size) -> Result<Found> {
    let rates = Rates { short: SHORT_SHARE, long: 1.0 - SHORT_SHARE };
    let capacity = capacity_of(spec, rates, size.seed)?;
    fewest(spec, capacity, &rates.times(LOAD * capacity).plans(size))
}

/// The fewest long requests at once that keep [`THROUGHPUT`] over all of these plans.
pub fn fewest(spec: Spec, capacity: f64, plans: &[Vec<Planned>]) -> Result<Found> {
    let mut bounds = Vec::new();
    for plan in plans {
        bounds.push(Bound::find(spec, &asks(plan)?, spec.max_num_seqs - 1, Duration::ZERO)?);
    }
    // Each plan has its own times, so tokens and times are added up.
    let rate = |of: &dyn Fn(&Bound) -> Summary| {
        let summaries: Vec<Summary> = bounds.iter().map(of).collect();
        let time = |summary: &Summary| summary.span.as_secs_f64();
        let tokens: f64 = summaries.iter().map(|summary| summary.tokens_per_second * time(summary)).sum();
        tokens / summaries.iter().map(time).sum::<f64>()
    };
    let without = rate(&|bound| bound.without.clone());
    let kept = |longs: usize| rate(&|bound| bound.rows[longs - 1].capped.clone()) / without;
    let longs = (1..spec.max_num_seqs).find(|&longs| kept(longs) >= THROUGHPUT);
    let longs = longs.context("no number of long requests keeps the throughput")?;
    let kept_with_one_fewer = if longs > 1 { kept(longs - 1) } else { f64::NAN };
    Ok(Found { capacity, longs, kept: kept(longs), kept_with_one_fewer })
}

impl Found {
    /// In words.
    pub fn said(self, spec: Spec) -> String {
        format!(
            "{} of {} slots may hold long requests: the fewest that keep {THROUGHPUT} of the output tokens a second, {:.3} \
             in virtual time (one fewer: {:.3}). The bound is short requests beside exactly {} long ones.",
            self.longs, spec.max_num_seqs, self.kept, self.kept_with_one_fewer, self.longs,
        )
    }
}

/// Requests a second that the server gets done of a mix in these proportions.
pub fn capacity_of(spec: Spec, proportions: Rates, seed: u64) -> Result<f64> {
    // A thousand requests, at moments that do not matter.
    let size = Size { seed, rounds: 1, span: Duration::from_secs(1_000) };
    let all = proportions.short + proportions.long;
    let plan = proportions.times(1.0 / all).plans(size).concat();
    capacity(spec, &asks(&plan)?)
}

/// Long requests a second that the server gets done beside so many short ones.
pub fn long_rate_left(spec: Spec, short: f64, seed: u64) -> Result<f64> {
    // The more of a mix is long, the fewer short ones a second are in what the server gets done of it.
    let (mut fewer, mut more) = (0.0, 1.0);
    for _ in 0..20 {
        let share = f64::midpoint(fewer, more);
        let rates = Rates { short: 1.0 - share, long: share };
        if rates.short * capacity_of(spec, rates, seed)? > short { fewer = share } else { more = share }
    }
    Ok(short * fewer / (1.0 - fewer))
}

/// The requests of a plan as virtual time knows them.
pub fn asks(plan: &[Planned]) -> Result<Vec<Ask>> {
    plan.iter().map(Ask::planned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::preset::Preset;

    const SIZE: Size = Size { seed: 1, rounds: 2, span: Duration::from_secs(6) };

    #[test]
    fn one_long_request_fewer_would_not_keep_the_throughput() {
        let found = find(Preset::Gpu.spec(), SIZE).unwrap();
        assert!(found.kept >= THROUGHPUT && found.kept_with_one_fewer < THROUGHPUT, "{found:?}");
    }

    #[test]
    fn what_short_requests_leave_is_what_the_server_gets_done_beside_them() {
        let (spec, short) = (Preset::Gpu.spec(), 5.0);
        let long = long_rate_left(spec, short, 1).unwrap();
        let done = capacity_of(spec, Rates { short, long }, 1).unwrap();
        assert!((done / (short + long) - 1.0).abs() < 0.02, "{done} of {short} + {long}");
    }
}
