//! The port to whatever runs the filter, in the filter's own words.
//!
//! Calls act on the stream whose callback runs, or on the one chosen by [`Host::act_for`]. None panics; where one can
//! fail, `false` or `None` says that it did.

use std::time::Duration;

use crate::core::admission::{Connection, Demand, Limit, Writer};
use crate::core::clamp::Action;
use crate::core::refusal::{Family, Reason, Refusal};
use crate::core::units::{ClassId, StreamId, Time};

/// What a header or body callback asks of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Let it go on.
    Continue,
    /// Keep it until told otherwise.
    Hold,
}

/// How one request came out, for the counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It went to the model server.
    Admitted,
    /// It was refused.
    Refused(Reason),
    /// The client left before it was admitted.
    ClientGone,
}

impl Outcome {
    /// The label of metrics and access logs.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Admitted => "admitted",
            Outcome::Refused(reason) => reason.name(),
            Outcome::ClientGone => "client_gone",
        }
    }
}

/// Something to count.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// A request that is not ours.
    PassedThrough,
    /// A request's outcome; no class where it was refused before it had one.
    Outcome(Option<ClassId>, Outcome),
    /// What was done to an output limit.
    MaxTokens(ClassId, Action),
    /// An upstream's answer by its status; `None` where it broke off.
    Response(ClassId, Option<u16>),
}

/// Something to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Milliseconds in the queue.
    QueueMs,
    /// Milliseconds from release to the first byte of a streamed answer.
    TtftMs,
    /// Milliseconds from the first to the last byte of a streamed answer.
    DecodeMs,
    /// Milliseconds from the request's headers to its end.
    DurationMs,
    /// The prompt's estimate in tokens.
    PromptTokens,
    /// The output limit in force, in tokens.
    MaxTokensEffective,
}

/// A part of a request or response that is made of named fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// The request's headers.
    RequestHeaders,
    /// The request's trailers.
    RequestTrailers,
    /// The response's headers.
    ResponseHeaders,
    /// The response's trailers.
    ResponseTrailers,
}

/// The host.
pub trait Host {
    /// The monotonic clock.
    fn now(&self) -> Time;

    /// Calls `each` with every field of a section in order, names in lower case.
    fn fields(&self, of: Section, each: &mut dyn FnMut(&[u8], &[u8]));
    /// Removes a field from a section.
    fn remove_field(&self, of: Section, name: &[u8]) -> bool;
    /// Sets a request header, replacing all of its values.
    fn set_request_header(&self, name: &str, value: &[u8]) -> bool;
    /// The request body received so far, `size` bytes.
    fn request_body(&self, size: usize) -> Option<Vec<u8>>;
    /// Puts `bytes` in the place of the first `len` bytes of the request body.
    fn replace_body_prefix(&self, len: usize, bytes: &[u8]) -> bool;
    /// Bytes of the request's headers and body received so far.
    fn request_bytes(&self) -> Option<u64>;
    /// The client's connection that the request came by.
    fn connection(&self) -> Option<Connection>;
    /// Lets the held request go on.
    fn resume(&self) -> bool;
    /// Answers in the upstream's place, with `more` response headers.
    fn refuse(&self, refusal: &Refusal, family: Family, more: &[(&str, String)]) -> bool;

    /// Adds a response header beside those there are.
    fn add_response_header(&self, name: &str, value: &[u8]) -> bool;
    /// Whether the response is the upstream's, and not made by Envoy in its place.
    fn is_from_upstream(&self) -> bool;

    /// Tells operators what they should see to.
    fn warn(&self, what: &str);
    /// Shows `value` to access logs as filter state `wasm.<name>`.
    fn publish(&self, name: &str, value: &str);
    /// Shows what a class is up against and may have in flight, over all workers.
    fn show(&self, class: ClassId, demand: &Demand, limit: Limit);
    /// Counts.
    fn count(&self, event: Event);
    /// Measures.
    fn measure(&self, class: ClassId, measure: Measure, value: u64);

    /// Makes later calls act on `stream`; false where it is gone, and then nothing may be done for it.
    fn act_for(&self, stream: StreamId) -> bool;
    /// Makes this worker known to others: a number that nobody else has, and the queue that wakes it.
    fn listen(&self) -> Writer;
    /// Wakes the worker that listens to `queue`, right after the present callback where it is this one.
    fn wake(&self, queue: u32) -> bool;
    /// A record that all workers share, and its version. Versions grow: one that was written has the next number, or a
    /// later one where other records were written in between.
    fn read_shared(&self, key: &str) -> Option<(Vec<u8>, u32)>;
    /// Writes it; false where it has another version by now (`None`: where there is one).
    fn write_shared(&self, key: &str, record: &[u8], version: Option<u32>) -> bool;
    /// Sets the period of the timer.
    fn tick_every(&self, period: Duration);
}
