//! The policy as run: what a good configuration compiles to. Only `config` makes one.

mod text;

use std::time::Duration;

pub use super::body::Backend;
use super::body::Dialect;

/// What happens to an output limit over the ceiling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverMaxTokens {
    /// Write the ceiling in its place.
    Clamp,
    /// Refuse the request with 400.
    Reject,
}

/// Bounds of one request.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Largest body, in bytes.
    pub body_bytes: u64,
    /// Bodies being read or parked together, in bytes.
    pub buffered_bytes: u64,
    /// How long a body may take to arrive.
    pub body_timeout: Duration,
    /// Largest prompt in Unicode scalar values; `None` = unbounded.
    pub prompt_chars: Option<u64>,
    /// Largest prompt in estimated tokens; `None` = unbounded.
    pub prompt_tokens: Option<u64>,
    /// Ceiling of the output limit, in tokens.
    pub max_tokens: u64,
    /// Output limit given to a request that has none, in tokens.
    pub default_max_tokens: u64,
    /// What to do with an output limit over the ceiling.
    pub over_max_tokens: OverMaxTokens,
    /// Most sequences one request may ask for.
    pub sequences: u64,
    /// Whether background responses are let through.
    pub background: bool,
    /// What one image, sound or video counts, in tokens.
    pub media_tokens: u64,
    /// UTF-8 bytes per token of the prompt estimate; over 0.
    pub bytes_per_token: f64,
}

/// The bounds within which a request belongs to a class; `None` = unbounded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AtMost {
    /// Prompt in Unicode scalar values.
    pub prompt_chars: Option<u64>,
    /// Prompt in estimated tokens.
    pub prompt_tokens: Option<u64>,
    /// Output limit times sequences, in tokens.
    pub max_tokens: Option<u64>,
}

/// How a class waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Most requests waiting; 0 = never wait.
    pub capacity: usize,
    /// Longest wait.
    pub timeout: Duration,
    /// Status when the queue is full: 429 or 503.
    pub overflow_status: u16,
    /// Status when the wait was too long: 503 or 429.
    pub timeout_status: u16,
    /// After this wait a request goes before newer ones of more urgent classes; `None` = never.
    pub promote_after: Option<Duration>,
}

/// A service level objective, exported for rules and dashboards.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slo {
    /// 99 % of requests end within this.
    pub duration_p99: Option<Duration>,
    /// 99 % of streamed requests have their first token within this.
    pub ttft_p99: Option<Duration>,
}

/// Slots that several classes share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    /// Its name, matching `[a-z][a-z0-9_-]{0,31}`.
    pub name: String,
    /// Most requests in flight at once; `None` = unbounded.
    pub concurrency: Option<usize>,
    /// Most estimated tokens in flight at once; `None` = unbounded.
    pub concurrency_tokens: Option<u64>,
}

/// By what requests of a class take turns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fairness {
    /// The value of this request header, named in lower case.
    Header(String),
    /// The body's `user`.
    User,
    /// The body's `model`.
    Model,
}

impl Fairness {
    /// The header that keys are made of, if they are made of one.
    pub fn header(&self) -> Option<&str> {
        match self {
            Fairness::Header(name) => Some(name),
            Fairness::User | Fairness::Model => None,
        }
    }
}

/// One class of requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// Its name, matching `[a-z][a-z0-9_-]{0,31}`.
    pub name: String,
    /// Its bounds.
    pub at_most: AtMost,
    /// Model-name patterns (`*` stands for any run of characters); empty = every model.
    pub models: Vec<String>,
    /// The pool that it shares; `None` = its slots are its own.
    pub pool: Option<String>,
    /// Most requests in flight at once; `None` = unbounded.
    pub concurrency: Option<usize>,
    /// Most estimated tokens (prompt and output) in flight at once; `None` = unbounded.
    pub concurrency_tokens: Option<u64>,
    /// Slots of its pool that less urgent classes may not take.
    pub reserved: usize,
    /// How it waits.
    pub queue: Queue,
    /// Its objective.
    pub slo: Slo,
}

/// A path of one's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// The path, as a suffix of whole segments.
    pub path: String,
    /// What it speaks; `None` = it passes.
    pub dialect: Option<&'static Dialect>,
}

/// The whole policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// The model server's kind.
    pub backend: Backend,
    /// Bounds of one request.
    pub limits: Limits,
    /// Slots that classes share.
    pub pools: Vec<Pool>,
    /// By what waiting requests of a class take turns; `None` = by age alone.
    pub fairness: Option<Fairness>,
    /// Paths beside those that the backend's dialects know.
    pub endpoints: Vec<Endpoint>,
    /// Whether POSTs to paths that are neither guarded nor listed are refused.
    pub reject_unlisted: bool,
    /// The classes in order of urgency; never empty, the last one takes everything.
    pub classes: Vec<Class>,
    /// Filters of one process that name the same domain share their slots.
    pub domain: String,
    /// Whether our own response headers are sent to the client.
    pub response_headers: bool,
}
