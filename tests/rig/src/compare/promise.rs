//! What a scenario sets out to show, and whether it did.

use super::figures::{ClassFigures, quantile};
use super::scenario::Results;
use super::target::Target;
use serde::Serialize;
use std::fmt;

/// One promise with what was measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Promise {
    /// The promise in words.
    pub promise: String,
    /// What was measured, in the promise's unit.
    pub measured: String,
    /// Whether it was kept; a promise that could not be measured was not.
    pub met: bool,
}

impl fmt::Display for Promise {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = if self.met { "met   " } else { "MISSED" };
        write!(out, "{verdict}  {}: {}", self.promise, self.measured)
    }
}

/// A time of short requests: its name and how to find it.
#[derive(Clone, Copy)]
pub enum Time {
    FirstToken,
    Whole,
}

impl Time {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Time::FirstToken => "first token",
            Time::Whole => "whole answer",
        }
    }

    /// The times of a class, sorted.
    pub fn of(self, class: &ClassFigures) -> &[f64] {
        match self {
            Time::FirstToken => &class.first_token,
            Time::Whole => &class.whole,
        }
    }
}

/// The `part` quantile of short requests through `target` is at most `most` times that of the reference.
pub fn near_bound(results: &Results, target: Target, time: Time, part: f64, most: f64) -> Promise {
    let reference = results.reference;
    let ratio = ratio(results, target, reference, time, part);
    let which = format!("short {} P{:.0}", time.name(), part * 100.0);
    promise(format!("{which} at most {most} times of {}", reference.name()), times(ratio), ratio <= most)
}

/// The `part` quantile of short requests through `target` is at least `least` times lower than through `without`.
pub fn lower(
    results: &Results,
    target: Target,
    without: Target,
    time: Time,
    part: f64,
    least: f64,
) -> Promise {
    let ratio = ratio(results, without, target, time, part);
    let which = format!("short {} P{:.0}", time.name(), part * 100.0);
    promise(
        format!("{which} at least {least} times lower than {}", without.name()),
        times(ratio),
        ratio >= least,
    )
}

/// At least so many short and long requests through `target` got a complete answer, as parts of 1.
pub fn served(results: &Results, target: Target, short: f64, long: f64) -> Vec<Promise> {
    let Some(figures) = results.figures(target) else { return Vec::new() };
    let classes = [("short", &figures.short, short), ("long", &figures.long, long)];
    let one = |(name, class, least): (&str, &ClassFigures, f64)| {
        let (served, failures) = (class.served(), class.failures_said());
        promise(
            format!("at least {} % of {name} requests served", least * 100.0),
            format!("{:.2} % of {} (failed: {failures})", served * 100.0, class.sent),
            served >= least,
        )
    };
    classes.map(one).into()
}

/// Output tokens a second through `target` are at least `least` times those without.
pub fn throughput(results: &Results, target: Target, least: f64) -> Promise {
    let of = |target| results.figures(target).map_or(f64::NAN, |figures| figures.tokens_per_second);
    let ratio = of(target) / of(results.without);
    promise(
        format!("output tokens per second at least {least} of {}", results.without.name()),
        times(ratio),
        ratio >= least,
    )
}

fn ratio(results: &Results, above: Target, below: Target, time: Time, part: f64) -> f64 {
    let of =
        |target| results.figures(target).map_or(f64::NAN, |figures| quantile(time.of(&figures.short), part));
    of(above) / of(below)
}

fn promise(promise: String, measured: String, met: bool) -> Promise {
    Promise { promise, measured, met }
}

fn times(factor: f64) -> String {
    format!("{factor:.2}")
}
