//! The figures of one run.

use crate::load::client::PATIENCE;
use crate::load::outcome::{Failure, Failures, Outcome, span};
use crate::load::traffic::Class;
use anyhow::{Result, anyhow};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer as _, V2DeflateSerializer};
use std::time::Duration;

const LONGEST: Duration = Duration::from_secs(3_600);

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
    /// How often they were sent, the attempts after failed ones counted.
    pub attempts: u64,
    /// Output tokens of complete answers.
    pub tokens: u64,
    /// Time to the first token, over all requests sent: a failure counts as the client's whole patience.
    pub first_token: Latency,
    /// Time to the end of the answer, in the same way.
    pub whole: Latency,
    /// Time from one token of a complete answer to the next, over all of them; nothing where answers are not streamed.
    pub inter_token: Latency,
    /// What came of the others.
    pub failures: Failures,
}

/// A distribution of times, good to three digits; an hour or more counts as an hour.
#[derive(Clone, Debug)]
pub struct Latency {
    histogram: Histogram<u64>,
    /// The longest, exactly.
    max: Duration,
}

impl Summary {
    /// Sums a run up.
    pub fn of(outcomes: &[Outcome], server_line_peak: u64) -> Summary {
        let tokens: u32 =
            outcomes.iter().filter_map(|outcome| outcome.result.as_ref().ok()).map(|s| s.tokens).sum();
        let span = span(outcomes);
        let of =
            |class| ClassSummary::of(outcomes.iter().filter(move |outcome| outcome.class == class), PATIENCE);
        Summary {
            short: of(Class::Short),
            long: of(Class::Long),
            tokens_per_second: f64::from(tokens) / span.as_secs_f64().max(f64::MIN_POSITIVE),
            span,
            server_line_peak,
        }
    }
}

impl ClassSummary {
    /// Sums up requests whose clients waited for `patience` at most.
    pub fn of<'a>(outcomes: impl Iterator<Item = &'a Outcome>, patience: Duration) -> ClassSummary {
        let mut summary = ClassSummary {
            sent: 0,
            attempts: 0,
            tokens: 0,
            first_token: Latency::new(),
            whole: Latency::new(),
            inter_token: Latency::new(),
            failures: Failures::default(),
        };
        for outcome in outcomes {
            summary.sent += 1;
            summary.attempts += u64::from(outcome.attempts);
            let (first_token, whole) = outcome.counted(patience);
            summary.first_token.record(first_token);
            summary.whole.record(whole);
            summary.failures.count(outcome);
            if let Ok(served) = &outcome.result {
                summary.tokens += u64::from(served.tokens);
                served.gaps.iter().for_each(|&gap| summary.inter_token.record(gap));
            }
        }
        summary
    }

    /// Requests without a complete answer.
    pub fn failed(&self) -> usize {
        self.failures.sum()
    }

    /// The same as a part of all sent; 0 when none was.
    pub fn failed_share(&self) -> f64 {
        self.failed() as f64 / self.sent.max(1) as f64
    }

    /// Requests that the filter sent away after they had waited their time.
    pub fn queue_timeouts(&self) -> usize {
        let timed_out =
            |failure: &Failure| matches!(failure, Failure::Status(_, why) if why == "queue_timeout");
        self.failures.0.iter().filter(|(failure, _)| timed_out(failure)).map(|(_, count)| count).sum()
    }
}

impl Latency {
    fn new() -> Latency {
        // Fails only for a number of digits that makes no sense; this one is a constant.
        let mut histogram = Histogram::new(3).expect("three digits");
        histogram.auto(true);
        Latency { histogram, max: Duration::ZERO }
    }

    fn record(&mut self, time: Duration) {
        // Fails only for a histogram that may not grow; the bound is one of memory.
        let time = time.min(LONGEST);
        let _ = self.histogram.record(time.as_micros() as u64);
        self.max = self.max.max(time);
    }

    /// How many times it is made of.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// The longest; 0 when there was none.
    pub fn max(&self) -> Duration {
        self.max
    }

    /// Their mean; 0 when there was none.
    pub fn mean(&self) -> Duration {
        Duration::from_secs_f64(self.histogram.mean() / 1e6)
    }

    /// The distribution as a step line: seconds, and the part of all that took no longer.
    pub fn cumulated(&self) -> impl Iterator<Item = (f64, f64)> {
        let all = self.histogram.len().max(1) as f64;
        let mut so_far = 0;
        self.histogram.iter_recorded().map(move |step| {
            so_far += step.count_since_last_iteration();
            (step.value_iterated_to() as f64 / 1e6, so_far as f64 / all)
        })
    }

    /// The whole histogram, in microseconds, as HdrHistogram's tools read it: V2, deflated, base64.
    ///
    /// # Errors
    ///
    /// When the library that writes it fails.
    pub fn encoded(&self) -> Result<String> {
        let mut bytes = Vec::new();
        let written = V2DeflateSerializer::new().serialize(&self.histogram, &mut bytes);
        written.map_err(|error| anyhow!("cannot serialize a histogram: {error:?}"))?;
        Ok(STANDARD.encode(bytes))
    }

    /// The time within which this part of the requests was served, e.g. 0.99; 0 when there was none.
    pub fn quantile(&self, part: f64) -> Duration {
        // Its buckets go beyond what is in them.
        Duration::from_micros(self.histogram.value_at_quantile(part)).min(self.max)
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
            gaps: Vec::new(),
            tagged: None,
            limit_action: None,
        };
        Outcome {
            class,
            at: Duration::from_millis(at),
            late: Duration::ZERO,
            attempts: 1,
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
    fn a_distribution_goes_up_to_all() {
        let outcomes: Vec<_> =
            [1_000, 1_000, 2_000, 9_000].map(|took| outcome(Class::Short, 0, took, None)).into();
        let whole = Summary::of(&outcomes, 0).short.whole;
        let steps: Vec<_> = whole.cumulated().map(|(seconds, part)| (seconds.round(), part)).collect();
        assert_eq!(steps, [(1.0, 0.5), (2.0, 0.75), (9.0, 1.0)]);
        assert_eq!((whole.count(), whole.max().as_secs_f64().round()), (4, 9.0));
    }

    #[test]
    fn throughput_spans_from_the_first_arrival_to_the_last_end() {
        let outcomes = [outcome(Class::Short, 1_000, 500, None), outcome(Class::Long, 2_000, 3_000, None)];
        let summary = Summary::of(&outcomes, 3);
        assert_eq!(summary.span, Duration::from_secs(4));
        assert_eq!(summary.tokens_per_second, 5.0);
        assert_eq!((summary.long.sent, summary.long.attempts, summary.long.tokens), (1, 1, 10));
    }
}
