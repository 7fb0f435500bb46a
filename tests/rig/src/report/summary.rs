//! The figures of one run.

use crate::load::client::PATIENCE;
use crate::load::outcome::{Failure, Outcome};
use crate::load::traffic::Class;
use hdrhistogram::Histogram;
use std::collections::BTreeMap;
use std::time::Duration;

/// One run.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Short requests.
    pub short: ClassSummary,
    /// Long requests.
    pub long: ClassSummary,
    /// Output tokens of complete answers a second, from the first arrival to the last end.
    pub tokens_per_second: f64,
    /// From the first arrival to the last end.
    pub span: Duration,
    /// The most requests that waited in the model server's own line.
    pub server_line_peak: u64,
}

/// One class of one run.
#[derive(Clone, Debug)]
pub struct ClassSummary {
    /// Requests sent.
    pub sent: usize,
    /// Time to the first token, over all requests sent: a failure counts as the client's whole patience.
    pub first_token: Latency,
    /// Time to the end of the answer, in the same way.
    pub whole: Latency,
    /// How often each failure was met.
    pub failures: BTreeMap<Failure, usize>,
}

/// A distribution of times.
#[derive(Clone, Debug)]
pub struct Latency(Histogram<u64>);

impl Summary {
    /// Sums a run up.
    pub fn of(outcomes: &[Outcome], server_line_peak: u64) -> Summary {
        let first = outcomes.iter().map(|outcome| outcome.at).min().unwrap_or_default();
        let last = outcomes.iter().map(|outcome| outcome.at + outcome.took).max().unwrap_or_default();
        let tokens: u32 =
            outcomes.iter().filter_map(|outcome| outcome.result.as_ref().ok()).map(|s| s.tokens).sum();
        let span = last.saturating_sub(first);
        Summary {
            short: ClassSummary::of(outcomes, Class::Short),
            long: ClassSummary::of(outcomes, Class::Long),
            tokens_per_second: f64::from(tokens) / span.as_secs_f64().max(f64::MIN_POSITIVE),
            span,
            server_line_peak,
        }
    }

    /// The figures of one class.
    pub fn class(&self, class: Class) -> &ClassSummary {
        match class {
            Class::Short => &self.short,
            Class::Long => &self.long,
        }
    }
}

impl ClassSummary {
    fn of(outcomes: &[Outcome], class: Class) -> ClassSummary {
        let mut summary = ClassSummary {
            sent: 0,
            first_token: Latency::new(),
            whole: Latency::new(),
            failures: BTreeMap::new(),
        };
        for outcome in outcomes.iter().filter(|outcome| outcome.class == class) {
            summary.sent += 1;
            match &outcome.result {
                Ok(served) => {
                    summary.first_token.record(served.first_token);
                    summary.whole.record(outcome.took);
                }
                Err(failure) => {
                    summary.first_token.record(PATIENCE);
                    summary.whole.record(PATIENCE);
                    *summary.failures.entry(failure.clone()).or_default() += 1;
                }
            }
        }
        summary
    }

    /// Requests without a complete answer.
    pub fn failed(&self) -> usize {
        self.failures.values().sum()
    }

    /// The same as a part of all sent; 0 when none was.
    pub fn failed_share(&self) -> f64 {
        self.failed() as f64 / self.sent.max(1) as f64
    }

    /// Requests that the filter sent away after they had waited their time.
    pub fn queue_timeouts(&self) -> usize {
        let timed_out =
            |failure: &Failure| matches!(failure, Failure::Status(_, why) if why == "queue_timeout");
        self.failures.iter().filter(|(failure, _)| timed_out(failure)).map(|(_, count)| count).sum()
    }
}

impl Latency {
    fn new() -> Latency {
        let most = u64::try_from(PATIENCE.as_micros()).unwrap_or(u64::MAX);
        // Fails only for bounds or digits that make no sense; these are constants.
        Latency(Histogram::new_with_bounds(1, most, 3).expect("constant bounds"))
    }

    fn record(&mut self, time: Duration) {
        self.0.saturating_record(u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
    }

    /// The time within which this part of the requests was served, e.g. 0.99; 0 when there was none.
    pub fn quantile(&self, part: f64) -> Duration {
        Duration::from_micros(self.0.value_at_quantile(part))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::outcome::Served;

    fn outcome(class: Class, at: u64, took: u64, failure: Option<Failure>) -> Outcome {
        let served = Served {
            first_token: Duration::from_millis(took / 2),
            tokens: 10,
            tagged: None,
            limit_action: None,
        };
        Outcome {
            class,
            at: Duration::from_millis(at),
            late: Duration::ZERO,
            took: Duration::from_millis(took),
            result: failure.map_or(Ok(served), Err),
        }
    }

    #[test]
    fn a_failure_counts_as_the_whole_patience() {
        let mut outcomes: Vec<_> = (0..98).map(|n| outcome(Class::Short, n, 1_000, None)).collect();
        outcomes.push(outcome(Class::Short, 98, 1, Some(Failure::Status(503, "queue_timeout".into()))));
        outcomes.push(outcome(Class::Short, 99, 1, Some(Failure::Broken)));
        let short = Summary::of(&outcomes, 0).short;
        assert_eq!((short.sent, short.failed(), short.queue_timeouts()), (100, 2, 1));
        assert!(short.whole.quantile(0.98) < Duration::from_millis(1_010));
        assert!(short.whole.quantile(0.99) >= Duration::from_secs(59));
        assert!(short.first_token.quantile(0.5) < Duration::from_millis(510));
    }

    #[test]
    fn throughput_spans_from_the_first_arrival_to_the_last_end() {
        let outcomes = [outcome(Class::Short, 1_000, 500, None), outcome(Class::Long, 2_000, 3_000, None)];
        let summary = Summary::of(&outcomes, 3);
        assert_eq!(summary.span, Duration::from_secs(4));
        assert_eq!(summary.tokens_per_second, 5.0);
        assert_eq!(summary.long.sent, 1);
    }
}
