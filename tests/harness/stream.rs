//! One stream as Envoy's filter manager and wasm context hold it.

use std::collections::{BTreeMap, VecDeque};

use super::headers::Headers;
use super::upstream::Forwarded;

/// Where the iteration of the request through the filter chain stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Iteration {
    /// Nothing is held.
    Going,
    /// The headers are held and body callbacks come (`StopIteration`).
    Held,
    /// Everything is held and no callback comes (`StopAllIterationAndWatermark`).
    HeldAll,
}

/// A piece of a request body as the client sent it.
#[derive(Clone, Debug)]
pub enum Piece {
    Data(Vec<u8>, bool),
    Trailers(Headers),
}

/// The request's side.
#[derive(Debug)]
pub struct Request {
    pub headers: Headers,
    pub trailers: Option<Headers>,
    /// Whether the guest may touch headers; a resume ends it, and so does `Continue` from the header callback.
    pub open: bool,
    pub iteration: Iteration,
    /// Whether the last body callback asked to keep the body (`StopIterationAndBuffer`).
    pub buffering: bool,
    /// The body kept so far.
    pub body: Vec<u8>,
    /// The data of the present body callback where nothing is kept.
    pub chunk: Option<Vec<u8>>,
    /// Body bytes received from the client.
    pub received: usize,
    /// Whether the client has sent everything.
    pub ended: bool,
    /// What came while everything was held.
    pub backlog: VecDeque<Piece>,
    /// Whether a request callback of this stream runs.
    pub in_call: bool,
    /// Whether a resume came during that callback.
    pub resumed: bool,
    /// Whether the body has outgrown the limit.
    pub overflown: bool,
    /// What has gone to the router.
    pub forwarded: Option<Forwarded>,
}

/// The response's side.
#[derive(Debug, Default)]
pub struct Response {
    pub headers: Headers,
    /// Whether the guest may touch headers.
    pub open: bool,
    pub chunk: Option<Vec<u8>>,
    /// 0 before the response headers.
    pub status: u16,
    pub details: String,
    pub flags: u64,
    pub started: bool,
    pub size: usize,
}

/// A stream between its context's creation and deletion.
#[derive(Debug)]
pub struct Stream {
    pub root: u32,
    /// Its place among the exchanges of the process.
    pub exchange: usize,
    pub request: Request,
    pub response: Response,
    /// Filter state by the name that the guest gave.
    pub state: BTreeMap<String, Vec<u8>>,
    /// Whether the guest has asked for a local reply.
    pub replied: bool,
    /// Whether the access log is being written: headers are readable again.
    pub logging: bool,
    /// Whether the end has begun.
    pub ending: bool,
    /// Nanoseconds since the process started.
    pub since: u64,
}

impl Stream {
    pub fn new(root: u32, exchange: usize, headers: Headers, since: u64) -> Stream {
        Stream {
            root,
            exchange,
            request: Request {
                headers,
                trailers: None,
                open: true,
                iteration: Iteration::Going,
                buffering: false,
                body: Vec::new(),
                chunk: None,
                received: 0,
                ended: false,
                backlog: VecDeque::new(),
                in_call: false,
                resumed: false,
                overflown: false,
                forwarded: None,
            },
            response: Response::default(),
            state: BTreeMap::new(),
            replied: false,
            logging: false,
            ending: false,
            since,
        }
    }

    /// A header map by its ABI number as the guest may read it; `None` where it may not now.
    pub fn map(&self, kind: u32) -> Option<&Headers> {
        match kind {
            0 if self.request.open || self.logging => Some(&self.request.headers),
            1 if self.request.open || self.logging => self.request.trailers.as_ref(),
            2 if self.response.open || self.logging => Some(&self.response.headers),
            _ => None,
        }
    }

    /// The same to write.
    pub fn map_mut(&mut self, kind: u32) -> Option<&mut Headers> {
        match kind {
            0 if self.request.open => Some(&mut self.request.headers),
            1 if self.request.open => self.request.trailers.as_mut(),
            2 if self.response.open => Some(&mut self.response.headers),
            _ => None,
        }
    }

    /// A body by its ABI number as the guest may see it now.
    pub fn body_mut(&mut self, kind: u32) -> Option<&mut Vec<u8>> {
        match kind {
            0 if self.request.buffering => Some(&mut self.request.body),
            0 => self.request.chunk.as_mut(),
            1 => self.response.chunk.as_mut(),
            _ => None,
        }
    }
}
