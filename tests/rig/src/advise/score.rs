//! What a run came to, in the figures by which policies are compared.

use crate::load::outcome::Outcome;
use crate::load::traffic::Class;
use crate::report::summary::{ClassSummary, Latency, Summary};
use serde::Serialize;
use std::time::Duration;

/// When a request counts as served well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slo {
    /// A short one: its first token is there by then.
    pub short_first_token: Duration,
    /// A long one: its whole answer is there by then.
    pub long_whole: Duration,
}

/// The figures of one run; times in seconds, over all requests sent, those not served as their client's whole patience.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Score {
    /// Short requests.
    pub short: ClassScore,
    /// Long requests.
    pub long: ClassScore,
    /// The share of all requests that was served well.
    pub good: f64,
    /// Output tokens of complete answers a second, from the first arrival to the last end.
    pub tokens_per_second: f64,
    /// Answers that were cut off by an output limit of the policy.
    pub cut: usize,
}

/// The figures of one class; a class of which none was sent has times of 0.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClassScore {
    /// Requests sent.
    pub sent: usize,
    /// The share of them that was refused, or given up by its client.
    pub refused: f64,
    /// Time to the first token.
    pub first_token: Quantiles,
    /// Time to the end of the answer.
    pub whole: Quantiles,
}

/// Two quantiles of a time, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Quantiles {
    /// The median.
    pub p50: f64,
    /// What 99 % stay within.
    pub p99: f64,
}

impl Score {
    /// The figures of a run; `asked` is how many tokens each answer would have had, in the order of `outcomes`.
    pub fn of(outcomes: &[Outcome], asked: impl Iterator<Item = u32>, slo: Slo) -> Score {
        // How many waited in the server is not among the figures.
        let summary = Summary::of(outcomes, 0);
        let good = outcomes.iter().filter(|outcome| is_good(outcome, slo)).count();
        let cut = |(outcome, asked): &(&Outcome, u32)| {
            outcome.result.as_ref().is_ok_and(|served| served.tokens < *asked)
        };
        Score {
            short: ClassScore::of(&summary.short),
            long: ClassScore::of(&summary.long),
            good: good as f64 / outcomes.len().max(1) as f64,
            tokens_per_second: summary.tokens_per_second,
            cut: outcomes.iter().zip(asked).filter(cut).count(),
        }
    }
}

impl ClassScore {
    fn of(class: &ClassSummary) -> ClassScore {
        ClassScore {
            sent: class.sent,
            refused: class.failed_share(),
            first_token: Quantiles::of(&class.first_token),
            whole: Quantiles::of(&class.whole),
        }
    }
}

impl Quantiles {
    fn of(latency: &Latency) -> Quantiles {
        let [p50, p99] = [0.5, 0.99].map(|part| latency.quantile(part).as_secs_f64());
        Quantiles { p50, p99 }
    }
}

fn is_good(outcome: &Outcome, slo: Slo) -> bool {
    outcome.result.as_ref().is_ok_and(|served| match outcome.class {
        Class::Short => served.first_token <= slo.short_first_token,
        Class::Long | Class::Named(_) => outcome.took <= slo.long_whole,
    })
}
