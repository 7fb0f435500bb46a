//! The simulated server in virtual time: the only place that knows how it is driven.

use crate::model::batch::Batch;
use crate::model::cost::Cost;
use std::time::Duration;

/// A server and the step that it is at.
#[derive(Debug)]
pub struct Server {
    batch: Batch<u32>,
    /// When the step ends that it is at; `None` while it has nothing to do.
    edge: Option<Duration>,
    /// The most requests that waited in its line.
    pub line_peak: usize,
    /// Output tokens made so far.
    pub tokens: u64,
}

/// What became of a request at the end of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Made {
    /// Its first token, and more to come.
    First(u32),
    /// Its last token, which may be its first.
    Last(u32),
}

impl Server {
    /// A server with nothing to do.
    pub fn new(cost: Cost) -> Server {
        Server { batch: Batch::new(cost), edge: None, line_peak: 0, tokens: 0 }
    }

    /// A request arrives. A server without work begins a step with it at once.
    pub fn push(&mut self, now: Duration, id: u32, prompt_tokens: u32, output_tokens: u32) {
        self.batch.push(id, prompt_tokens, output_tokens.max(1));
        if self.edge.is_none() {
            self.begin(now);
        }
    }

    /// A client has left.
    pub fn drop(&mut self, id: u32) {
        self.batch.retain(|&owner| owner != id);
    }

    /// When the present step ends.
    pub fn edge(&self) -> Option<Duration> {
        self.edge
    }

    /// Ends the present step and begins the next one. Tells first and last tokens.
    pub fn step(&mut self, mut tell: impl FnMut(Made)) {
        let Some(edge) = self.edge.take() else { return };
        let tokens = &mut self.tokens;
        self.batch.finish(|&id, token| {
            *tokens += 1;
            if token.last {
                tell(Made::Last(id));
            } else if token.index == 0 {
                tell(Made::First(id));
            }
        });
        self.begin(edge);
    }

    fn begin(&mut self, now: Duration) {
        self.edge = self.batch.begin().map(|lasts| now + lasts);
        self.line_peak = self.line_peak.max(self.batch.waiting());
    }
}
