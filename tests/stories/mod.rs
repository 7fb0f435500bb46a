//! The stories: what a client, the filter and the model server go through together. Each is told once, against
//! [`World`], and runs natively (a simulated Envoy, a clock that is set) and on the real Envoy.

#[macro_use]
mod table;

pub mod bodies;
pub mod bystanders;
pub mod case;
pub mod corpus;
pub mod endpoints;
pub mod headers;
pub mod leaving;
pub mod limits;
pub mod operators;
pub mod overload;
pub mod policies;
pub mod pools;
pub mod queue;
pub mod reconfigure;
pub mod turns;
pub mod types;
pub mod words;

use std::time::Duration;

/// How a request's body travels.
#[derive(Clone, Debug)]
pub enum Body {
    /// With `content-length`, in one piece. Empty = no body at all for GET, `content-length: 0` for POST.
    Whole(Vec<u8>),
    /// Chunked, one piece a chunk, in the order given.
    Chunks(Vec<Vec<u8>>),
    /// Chunked, then these trailers.
    Trailers(Vec<Vec<u8>>, Vec<(String, String)>),
    /// Only these first bytes are sent (nothing where empty), the end never comes.
    Withheld(Vec<u8>),
}

/// The client's protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    Http1,
    Http2,
}

/// A request as a client sends it.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: String,
    pub path: String,
    /// Without `:method`, `:path`, `host`, `content-length` and `transfer-encoding`, which follow from the rest
    /// (a `content-length` given here wins, for a `Withheld` body).
    pub headers: Vec<(String, Vec<u8>)>,
    pub body: Body,
    pub protocol: Protocol,
}

/// What a client gets.
#[derive(Clone, Debug)]
pub struct Response {
    pub status: u16,
    /// Names in lower case, in order.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// Whether the answer came whole; false where the connection broke within it.
    pub complete: bool,
}

/// A request as the model server sees it.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// The cluster that the route chose: `llm_short` for class `short`, else `llm_long`.
    pub cluster: String,
    pub method: String,
    pub path: String,
    pub headers: Vec<(String, Vec<u8>)>,
    pub body: Vec<u8>,
}

/// What the model server does with a request that it holds.
#[derive(Clone, Debug)]
pub enum Answer {
    /// A whole answer.
    Whole { status: u16, headers: Vec<(String, String)>, body: Vec<u8> },
    /// Response headers and these first pieces of a stream; more may follow.
    Begin(Vec<Vec<u8>>),
    /// More pieces of a stream begun.
    More(Vec<Vec<u8>>),
    /// The end of a stream begun.
    End,
    /// The connection is closed, before or within the answer.
    Reset,
}

/// A request on its way, by the order in which they were sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent(pub usize);

/// Client, filter and model server. All waits are bounded; a wait that fails panics with what was awaited.
pub trait World {
    /// Starts a request and returns once the filter has seen all that is sent of it.
    fn send(&mut self, request: &Request) -> Sent;
    /// The client's answer, awaited.
    fn response(&mut self, sent: Sent) -> Response;
    /// Whether the client already has response headers; never waits.
    fn answered(&mut self, sent: Sent) -> bool;
    /// The client goes away.
    fn leave(&mut self, sent: Sent);
    /// The first `count` requests that reached the model server, awaited, in order of arrival. It holds each until told.
    fn arrivals(&mut self, count: usize) -> Vec<Arrival>;
    /// How many requests have reached the model server once everything now on its way has settled.
    fn arrived(&mut self) -> usize;
    /// The model server answers its `arrival`-th request (from 0).
    fn answer(&mut self, arrival: usize, answer: Answer);
    /// Time passes: natively the clock is moved and timers fire, on Envoy it really passes.
    fn pass(&mut self, time: Duration);
    /// A counter or gauge by its full name without `wasmcustom.`, 0 where it does not exist; awaited until it has `value`.
    fn metric_becomes(&mut self, name: &str, value: u64);
    /// The `field` of the access log (`class`, `outcome`, `prompt_chars`, `prompt_tokens`, `max_tokens`, `queue_ms`,
    /// `details` for %RESPONSE_CODE_DETAILS%) of a request that has ended, awaited; `-` where not set.
    fn logged(&mut self, sent: Sent, field: &str) -> String;
    /// Another policy takes the place of the present one.
    fn reconfigure(&mut self, policy: &str);
    /// Whether the filter still lives and no VM has failed.
    fn healthy(&mut self) -> bool;
}
