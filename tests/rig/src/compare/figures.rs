//! What one target came to, over all of its rounds.

use super::timeline::Sample;
use crate::load::client::PATIENCE;
use crate::load::outcome::{Failures, Outcome, latest, span};
use crate::load::traffic::Class;
use std::time::Duration;

/// One round of one target.
#[derive(Clone, Debug)]
pub struct Round {
    /// Every request and its end.
    pub outcomes: Vec<Outcome>,
    /// Queue and batch meanwhile.
    pub timeline: Vec<Sample>,
}

/// One class of one target, over all rounds.
#[derive(Clone, Debug, Default)]
pub struct ClassFigures {
    /// Requests sent.
    pub sent: usize,
    /// Times to the first token in seconds, in ascending order; a failure counts as the client's whole patience.
    pub first_token: Vec<f64>,
    /// Times to the end of the answer, likewise.
    pub whole: Vec<f64>,
    /// What came of the others.
    pub failures: Failures,
}

/// The figures of one target.
#[derive(Clone, Debug)]
pub struct Figures {
    pub short: ClassFigures,
    pub long: ClassFigures,
    /// Output tokens of complete answers a second, over the rounds' times from first arrival to last end.
    pub tokens_per_second: f64,
    /// The latest that a request was sent behind its plan.
    pub latest: Duration,
    /// The most requests seen in the servers' own lines, in Envoy's.
    pub most_waiting: u64,
    pub most_held: u64,
}

impl Figures {
    /// Sums the rounds up.
    pub fn of(rounds: &[Round]) -> Figures {
        let outcomes = || rounds.iter().flat_map(|round| &round.outcomes);
        let tokens: u64 =
            outcomes().filter_map(|outcome| outcome.result.as_ref().ok()).map(|s| u64::from(s.tokens)).sum();
        let span: f64 = rounds.iter().map(|round| span(&round.outcomes).as_secs_f64()).sum();
        let samples = || rounds.iter().flat_map(|round| &round.timeline);
        Figures {
            short: ClassFigures::of(outcomes(), Class::Short),
            long: ClassFigures::of(outcomes(), Class::Long),
            tokens_per_second: tokens as f64 / span.max(f64::MIN_POSITIVE),
            latest: latest(outcomes()),
            most_waiting: samples().map(|sample| sample.waiting).max().unwrap_or_default(),
            most_held: samples().map(|sample| sample.held).max().unwrap_or_default(),
        }
    }

    /// The figures of one class.
    pub fn class(&self, class: Class) -> &ClassFigures {
        match class {
            Class::Short => &self.short,
            Class::Long | Class::Named(_) => &self.long,
        }
    }
}

impl ClassFigures {
    fn of<'a>(outcomes: impl Iterator<Item = &'a Outcome>, class: Class) -> ClassFigures {
        let mut figures = ClassFigures::default();
        for outcome in outcomes.filter(|outcome| outcome.class == class) {
            figures.sent += 1;
            figures.failures.count(outcome);
            let (first_token, whole) = outcome.counted(PATIENCE);
            figures.first_token.push(first_token.as_secs_f64());
            figures.whole.push(whole.as_secs_f64());
        }
        figures.first_token.sort_by(f64::total_cmp);
        figures.whole.sort_by(f64::total_cmp);
        figures
    }

    /// The part that got a complete answer; 1 where none was sent.
    pub fn served(&self) -> f64 {
        if self.sent == 0 {
            return 1.0;
        }
        1.0 - self.failures.sum() as f64 / self.sent as f64
    }
}

/// The value that this part of the sorted `values` does not exceed (nearest rank); NaN where there is none.
pub fn quantile(values: &[f64], part: f64) -> f64 {
    let rank = (part * values.len() as f64).ceil() as usize;
    values.get(rank.clamp(1, values.len().max(1)) - 1).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_values_that_were_measured() {
        let values: Vec<f64> = (1..=200).map(f64::from).collect();
        assert_eq!(quantile(&values, 0.5), 100.0);
        assert_eq!(quantile(&values, 0.99), 198.0);
        assert_eq!(quantile(&values, 1.0), 200.0);
        assert_eq!(quantile(&values, 0.0), 1.0);
        assert!(quantile(&[], 0.99).is_nan());
    }
}
