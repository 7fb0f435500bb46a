//! What the demo sets out to show, and whether it did.

use super::summary::{Latency, Summary};
use std::fmt;

/// One promise with what was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// The promise in words.
    pub promise: &'static str,
    /// What was measured, in the promise's unit.
    pub measured: String,
    /// Whether the promise was kept.
    pub met: bool,
}

impl fmt::Display for Target {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = if self.met { "met   " } else { "MISSED" };
        write!(out, "{verdict}  {}: {}", self.promise, self.measured)
    }
}

/// Holds the two runs against the promises.
pub fn targets(without: &Summary, with: &Summary) -> Vec<Target> {
    let first_token = times_lower(&without.short.first_token, &with.short.first_token);
    let whole = times_lower(&without.short.whole, &with.short.whole);
    let throughput = with.tokens_per_second / without.tokens_per_second;
    let (short_failed, long_failed) = (with.short.failed_share(), with.long.failed_share());
    vec![
        target("P99 of short first tokens at least 5 times lower", times(first_token), first_token >= 5.0),
        target("P99 of whole short answers at least 2 times lower", times(whole), whole >= 2.0),
        target(
            "at most 1 % of short requests refused or failed",
            percent(short_failed),
            short_failed <= 0.01,
        ),
        target("at most 5 % of long requests refused or failed", percent(long_failed), long_failed <= 0.05),
        target("output tokens per second within 10 %", times(throughput), (0.9..=1.1).contains(&throughput)),
    ]
}

fn target(promise: &'static str, measured: String, met: bool) -> Target {
    Target { promise, measured, met }
}

fn times_lower(without: &Latency, with: &Latency) -> f64 {
    let [without, with] = [without, with].map(|latency| latency.quantile(0.99).as_secs_f64());
    without / with.max(f64::MIN_POSITIVE)
}

fn times(factor: f64) -> String {
    format!("{factor:.2}x")
}

fn percent(part: f64) -> String {
    format!("{:.1} %", part * 100.0)
}
