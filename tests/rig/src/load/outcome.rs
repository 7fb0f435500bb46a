//! What became of a request.

use super::traffic::Class;
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
