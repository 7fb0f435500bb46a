//! What became of a request.

use super::traffic::Class;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// A request and its end. All times count from the planned arrival, so that a generator or a proxy that falls
/// behind makes the figures worse and never better.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Of which kind the request was.
    pub class: Class,
    /// The planned arrival, since the start of the run.
    pub at: Duration,
    /// How much later than planned it was sent.
    pub late: Duration,
    /// How often it was sent; more than once where the client tried again.
    pub attempts: u32,
    /// When it was over, successful or not.
    pub took: Duration,
    /// The answer, or what came instead.
    pub result: Result<Served, Failure>,
}

impl Outcome {
    /// The times to its first token and to its end that count: a failure is `patience` in both, all that its client had.
    pub fn counted(&self, patience: Duration) -> (Duration, Duration) {
        self.result.as_ref().map_or((patience, patience), |served| (served.first_token, self.took))
    }
}

/// From the first planned arrival to the last end.
pub fn span(outcomes: &[Outcome]) -> Duration {
    let first = outcomes.iter().map(|outcome| outcome.at).min().unwrap_or_default();
    let last = outcomes.iter().map(|outcome| outcome.at + outcome.took).max().unwrap_or_default();
    last.saturating_sub(first)
}

/// The most that one of them was sent too late, by no fault of the server.
pub fn latest<'a>(outcomes: impl IntoIterator<Item = &'a Outcome>) -> Duration {
    outcomes.into_iter().map(|outcome| outcome.late).max().unwrap_or_default()
}

/// How often each failure was met.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failures(pub BTreeMap<Failure, usize>);

impl Failures {
    /// Counts one more, if there is one.
    pub fn count(&mut self, outcome: &Outcome) {
        if let Err(failure) = &outcome.result {
            *self.0.entry(failure.clone()).or_default() += 1;
        }
    }

    /// All of them together.
    pub fn sum(&self) -> usize {
        self.0.values().sum()
    }
}

/// As `2 x 429 queue_full, 1 x timed out`, or `none`.
impl fmt::Display for Failures {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return write!(out, "none");
        }
        let counted = self.0.iter().map(|(failure, count)| format!("{count} x {failure}"));
        write!(out, "{}", counted.collect::<Vec<_>>().join(", "))
    }
}

/// A complete answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    /// When its first token was there.
    pub first_token: Duration,
    /// How many tokens it had.
    pub tokens: u32,
    /// The time from each token's event to the next one's; empty where the answer came in one piece.
    pub gaps: Vec<Duration>,
    /// The class that the filter gave it (`x-sluice-class`); none without the filter.
    pub tagged: Option<String>,
    /// What the filter did to its output limit (`x-sluice-max-tokens-action`); none without the filter.
    pub limit_action: Option<String>,
}

/// No complete answer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Failure {
    /// A status other than 200, with the filter's reason where it gave one.
    Status(u16, String),
    /// An answer that ended too early or with an error, or of another length than asked for where that matters.
    Incomplete,
    /// No connection came about.
    Unreachable,
    /// The connection broke.
    Broken,
    /// Not over within the client's patience.
    TimedOut,
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Status(status, reason) if reason.is_empty() => write!(out, "{status}"),
            Failure::Status(status, reason) => write!(out, "{status} {reason}"),
            Failure::Incomplete => write!(out, "incomplete"),
            Failure::Unreachable => write!(out, "unreachable"),
            Failure::Broken => write!(out, "broken"),
            Failure::TimedOut => write!(out, "timed out"),
        }
    }
}
