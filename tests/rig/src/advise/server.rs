//! The simulated server in virtual time: the only place that knows how it is driven.

use crate::sim::cluster::{Cluster, Event};
use crate::sim::job::Job;
use crate::sim::spec::Spec;
use anyhow::Result;
use std::time::Duration;

/// A server and the steps that it is at.
#[derive(Debug)]
pub struct Server {
    cluster: Cluster<u32>,
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
    ///
    /// # Errors
    /// Where `spec` describes no server that could be started.
    pub fn new(spec: Spec) -> Result<Server> {
        Ok(Server { cluster: Cluster::new(spec)?, line_peak: 0, tokens: 0 })
    }

    /// A request arrives. A server without work begins a step with it at once.
    ///
    /// # Errors
    /// Where it is longer than the model takes; the server answers 400 then.
    pub fn push(&mut self, now: Duration, id: u32, prompt_tokens: u32, output_tokens: u32) -> Result<()> {
        self.cluster.push(id, Job { prompt_tokens, output_tokens, ..Job::default() })?;
        self.cluster.wake(now, |_, _, _| {});
        self.line_peak = self.line_peak.max(self.cluster.waiting());
        Ok(())
    }

    /// A client has left.
    pub fn drop(&mut self, id: u32) {
        self.cluster.retain(|&owner| owner != id);
    }

    /// When the next step ends; `None` while there is nothing to do.
    pub fn edge(&self) -> Option<Duration> {
        self.cluster.due()
    }

    /// Ends the steps that end next and begins those after them. Tells first and last tokens.
    pub fn step(&mut self, mut tell: impl FnMut(Made)) {
        let Some(edge) = self.edge() else { return };
        let tokens = &mut self.tokens;
        self.cluster.advance(edge, |&id, _, event| {
            let Event::Token(token) = event else { return };
            *tokens += 1;
            if token.last {
                tell(Made::Last(id));
            } else if token.index == 0 {
                tell(Made::First(id));
            }
        });
        self.line_peak = self.line_peak.max(self.cluster.waiting());
    }
}
