//! The straight lines of a [`Spec`] through what was measured of a server.

use crate::sim::spec::{Spec, Work};
use std::time::Duration;

/// What a server was seen to need, in seconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curve {
    /// A step, by how many sequences decode in it, beside short contexts.
    pub steps: Vec<(u32, f64)>,
    /// From sending a prompt of so many tokens to an idle server to its only token.
    pub prompts: Vec<(u32, f64)>,
    /// A step of one sequence, by the tokens of its context.
    pub contexts: Vec<(u32, f64)>,
}

impl Curve {
    /// `spec` with the costs whose lines miss what was measured by the least, each miss taken as a part of its time.
    pub fn fit(&self, spec: Spec) -> Spec {
        let (base, per_sequence) = line(&self.steps);
        let alone = base + per_sequence;
        let beyond = |points: &[(u32, f64)]| -> Vec<(u32, f64)> {
            points.iter().map(|&(tokens, seconds)| (tokens, seconds - alone)).collect()
        };
        // A slope through zero: the context adds to what a step lasts anyway, and so does a prompt.
        let per_context_token = slope(&beyond(&self.contexts), &self.contexts);
        let per_prefill_token = slope(&beyond(&self.prompts), &self.prompts) - per_context_token.max(0.0);
        let cost = |seconds: f64| Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or_default();
        Spec {
            base: cost(base),
            per_sequence: cost(per_sequence),
            per_prefill_token: cost(per_prefill_token),
            per_context_token: cost(per_context_token),
            ..spec
        }
    }

    /// Each point with what `spec` says of it: what it is of, how much of that, measured seconds, seconds of `spec`.
    pub fn beside(&self, spec: &Spec) -> Vec<(&'static str, u32, f64, f64)> {
        let lasts = |work| spec.lasts(work).as_secs_f64();
        let steps = self
            .steps
            .iter()
            .map(|&(n, seconds)| ("sequences", n, seconds, lasts(Work { sequences: n, ..Work::default() })));
        let prompts = self.prompts.iter().map(|&(n, seconds)| ("prompt tokens", n, seconds, prompt(spec, n)));
        let contexts = self.contexts.iter().map(|&(n, seconds)| {
            let work = Work { sequences: 1, context_tokens: n, ..Work::default() };
            ("tokens of context", n, seconds, lasts(work))
        });
        steps.chain(prompts).chain(contexts).collect()
    }
}

/// How long a prompt takes alone, in seconds: in as many steps as the budget makes of it.
fn prompt(spec: &Spec, tokens: u32) -> f64 {
    let budget = spec.max_num_batched_tokens.max(1);
    let steps = (0..tokens.div_ceil(budget)).map(|step| {
        let (from, to) = (step * budget, ((step + 1) * budget).min(tokens));
        spec.lasts(Work { sequences: 1, prefill_tokens: to - from, context_tokens: to }).as_secs_f64()
    });
    steps.sum()
}

/// Offset and slope of the line that misses the points by the least squares of parts of their values.
fn line(points: &[(u32, f64)]) -> (f64, f64) {
    let sum = |of: &dyn Fn(f64, f64) -> f64| -> f64 {
        points.iter().map(|&(x, y)| of(f64::from(x), y) / (y * y)).sum()
    };
    let (weight, x, y) = (sum(&|_, _| 1.0), sum(&|x, _| x), sum(&|_, y| y));
    let (xx, xy) = (sum(&|x, _| x * x), sum(&|x, y| x * y));
    let width = weight * xx - x * x;
    if width.abs() < f64::EPSILON * weight * xx {
        return (y / weight, 0.0);
    }
    let slope = (weight * xy - x * y) / width;
    ((y - slope * x) / weight, slope)
}

/// Slope of the line through zero and `points` that misses by the least parts of the whole values, of which the points
/// are what is left when something fixed is taken off.
fn slope(points: &[(u32, f64)], whole: &[(u32, f64)]) -> f64 {
    let (mut over, mut under) = (0.0, 0.0);
    for (&(x, y), &(_, whole)) in points.iter().zip(whole) {
        let x = f64::from(x);
        over += x * y / (whole * whole);
        under += x * x / (whole * whole);
    }
    if under > 0.0 { over / under } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::preset::Preset;

    /// What a server would be seen to need that is exactly as `spec` says.
    fn exact(spec: &Spec) -> Curve {
        let lasts = |work| spec.lasts(work).as_secs_f64();
        let step = |n| (n, lasts(Work { sequences: n, ..Work::default() }));
        let context = |n| (n, lasts(Work { sequences: 1, context_tokens: n, ..Work::default() }));
        Curve {
            steps: (1..=8).map(step).collect(),
            prompts: [64, 512, 2_000].map(|n| (n, prompt(spec, n))).into(),
            contexts: [64, 512, 2_000].map(context).into(),
        }
    }

    #[test]
    fn the_costs_of_a_server_are_found_again() {
        let spec = Preset::A100.spec();
        let none = Duration::ZERO;
        let bare =
            Spec { base: none, per_sequence: none, per_prefill_token: none, per_context_token: none, ..spec };
        let found = exact(&spec).fit(bare);
        let near =
            |one: Duration, other: Duration| (one.as_secs_f64() / other.as_secs_f64() - 1.0).abs() < 0.01;
        assert!(near(found.base, spec.base) && near(found.per_sequence, spec.per_sequence), "{found:?}");
        assert!(near(found.per_prefill_token, spec.per_prefill_token), "{found:?}");
        assert!(near(found.per_context_token, spec.per_context_token), "{found:?}");
    }

    #[test]
    fn a_fit_comes_near_to_points_that_lie_on_no_line() {
        let curve = Curve { steps: vec![(1, 0.010), (2, 0.013), (4, 0.016), (8, 0.030)], ..Curve::default() };
        let spec = curve.fit(Preset::Cpu.spec());
        for (_, n, measured, said) in curve.beside(&spec) {
            assert!((said / measured - 1.0).abs() < 0.15, "{n}: {said} for {measured}");
        }
        assert_eq!(curve.beside(&spec).len(), 4);
    }

    #[test]
    fn one_point_makes_no_slope() {
        let curve = Curve { steps: vec![(1, 0.01)], ..Curve::default() };
        let spec = curve.fit(Preset::Cpu.spec());
        assert_eq!((spec.base, spec.per_sequence), (Duration::from_millis(10), Duration::ZERO));
    }
}
