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

/// The `part` quantile of short requests through `target` is at most `most` times that of the reference. None, as with
/// the others here, where a target that it speaks of was not sent anything.
pub fn near_bound(results: &Results, target: Target, time: Time, part: f64, most: f64) -> Option<Promise> {
    let reference = results.reference;
    let ratio = ratio(results, target, reference, time, part)?;
    let which = format!("short {} P{:.0}", time.name(), part * 100.0);
    let promise = format!("{which} at most {most} times of {}", reference.name());
    Some(Promise { promise, measured: times(ratio), met: ratio <= most })
}

/// The `part` quantile of short requests through `target` is at least `least` times lower than through `without`.
pub fn lower(
    results: &Results,
    target: Target,
    without: Target,
    time: Time,
    part: f64,
    least: f64,
) -> Option<Promise> {
    let ratio = ratio(results, without, target, time, part)?;
    let which = format!("short {} P{:.0}", time.name(), part * 100.0);
    let promise = format!("{which} at least {least} times lower than {}", without.name());
    Some(Promise { promise, measured: times(ratio), met: ratio >= least })
}

/// At least so many short and long requests through `target` got a complete answer, as parts of 1.
pub fn served(results: &Results, target: Target, short: f64, long: f64) -> Vec<Promise> {
    let Some(figures) = results.figures(target) else { return Vec::new() };
    let classes = [("short", &figures.short, short), ("long", &figures.long, long)];
    let one = |(name, class, least): (&str, &ClassFigures, f64)| {
        let (served, failures) = (class.served(), &class.failures);
        Promise {
            promise: format!("at least {} % of {name} requests served", least * 100.0),
            measured: format!("{:.2} % of {} (failed: {failures})", served * 100.0, class.sent),
            met: served >= least,
        }
    };
    classes.map(one).into()
}

/// Output tokens a second through `target` are at least `least` times those without.
pub fn throughput(results: &Results, target: Target, least: f64) -> Option<Promise> {
    let of = |target| results.figures(target).map(|figures| figures.tokens_per_second);
    let ratio = of(target)? / of(results.without)?;
    let promise = format!("output tokens per second at least {least} of {}", results.without.name());
    Some(Promise { promise, measured: times(ratio), met: ratio >= least })
}

fn ratio(results: &Results, above: Target, below: Target, time: Time, part: f64) -> Option<f64> {
    let of = |target| Some(quantile(time.of(&results.figures(target)?.short), part));
    Some(of(above)? / of(below)?)
}

fn times(factor: f64) -> String {
    format!("{factor:.2}")
}

#[cfg(test)]
mod tests {
    use super::super::figures::{Figures, Round};
    use super::super::scenario::Played;
    use super::*;
    use crate::load::outcome::{Outcome, Served};
    use crate::load::traffic::Class;
    use std::time::Duration;

    /// One short request, whose first token came after so long and its last after twice that.
    fn played(target: Target, seconds: u64) -> Played {
        let first_token = Duration::from_secs(seconds);
        let served = Served { first_token, tokens: 10, gaps: Vec::new(), tagged: None, limit_action: None };
        let (at, late, attempts) = (Duration::ZERO, Duration::ZERO, 1);
        let outcome =
            Outcome { class: Class::Short, at, late, attempts, took: first_token * 2, result: Ok(served) };
        let rounds = vec![Round { outcomes: vec![outcome], timeline: Vec::new() }];
        Played { target, figures: Figures::of(&rounds), rounds }
    }

    fn results(targets: Vec<Played>) -> Results {
        let (reference, without) = (Target::Bound, Target::Envoy);
        let (about, policy, promises) = (Vec::new(), String::new(), |_: &Results| Vec::new());
        Results { name: "test", about, policy, reference, without, targets, promises }
    }

    #[test]
    fn a_promise_is_held_against_what_was_measured() {
        let all = results(
            [(Target::Envoy, 12), (Target::Sluice, 3), (Target::Bound, 2)].map(|(t, s)| played(t, s)).into(),
        );
        let near = |most| near_bound(&all, Target::Sluice, Time::FirstToken, 0.99, most).unwrap();
        assert_eq!((near(1.5).met, near(1.4).met, near(1.4).measured.as_str()), (true, false, "1.50"));
        let lower = |least| lower(&all, Target::Sluice, Target::Envoy, Time::Whole, 0.5, least).unwrap();
        assert_eq!((lower(4.0).met, lower(4.1).met, lower(4.1).measured.as_str()), (true, false, "4.00"));
        assert!(throughput(&all, Target::Sluice, 4.0).unwrap().met);
        assert!(!throughput(&all, Target::Sluice, 4.1).unwrap().met);
    }

    #[test]
    fn figures_that_are_worth_little_are_said_to_be() {
        let mut few = results(vec![played(Target::Sluice, 3)]);
        assert_eq!(few.warnings(), ["a P99 of 1 short requests is the slowest of them"]);
        let Played { rounds, figures, .. } = &mut few.targets[0];
        rounds[0].outcomes = vec![rounds[0].outcomes[0].clone(); 100];
        *figures = Figures::of(rounds);
        assert!(few.enough() && few.warnings().is_empty());
        few.targets[0].rounds[0].outcomes[7].late = Duration::from_secs(1);
        let warnings = few.warnings();
        assert!(
            matches!(&warnings[..], [late] if late.contains("sluice") && late.contains("1s late")),
            "{warnings:?}"
        );
    }

    #[test]
    fn of_what_was_not_sent_anything_nothing_is_said() {
        let alone = results(vec![played(Target::Sluice, 3)]);
        assert_eq!(near_bound(&alone, Target::Sluice, Time::Whole, 0.5, 1.2), None);
        assert_eq!(lower(&alone, Target::Sluice, Target::Envoy, Time::Whole, 0.5, 1.2), None);
        assert_eq!(throughput(&alone, Target::Sluice, 0.95), None);
        assert!(served(&alone, Target::Envoy, 1.0, 1.0).is_empty());
    }
}
