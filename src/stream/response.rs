//! The way out: the answer streams through, ours are told apart from the model server's and Envoy's.

use super::{State, Stream, answer};
use crate::core::admission::Ending;
use crate::core::head::OURS;
use crate::core::refusal::Reason;
use crate::host::{Host, Outcome, Section};
use crate::worker::Worker;

impl Stream {
    /// The response's headers.
    pub fn on_response_headers<H: Host>(&mut self, worker: &Worker<H>, ended: bool) {
        match &mut self.state {
            State::Passing => {
                strip_ours(worker, Section::ResponseHeaders);
            }
            State::Over | State::Gone => {}
            State::Running(_, answer) => {
                let status = strip_ours(worker, Section::ResponseHeaders);
                answer.begin(worker.host.now(), status, ended);
                if worker.engine.borrow().policy.response_headers {
                    answer.describe(worker, &self.facts);
                }
                self.give_back(worker);
            }
            State::Reading(_) | State::Parked(_) => self.answered_by_envoy(worker),
        }
    }

    /// A piece of the response, `size` bytes; `ended` tells that it is the last.
    pub fn on_response_body<H: Host>(&mut self, worker: &Worker<H>, size: usize, ended: bool) {
        if let State::Running(claim, answer) = &mut self.state {
            answer.piece(worker, claim, size, ended);
        }
        self.give_back(worker);
    }

    /// The response's trailers: its body is whole.
    pub fn on_response_trailers<H: Host>(&mut self, worker: &Worker<H>) {
        strip_ours(worker, Section::ResponseTrailers);
        if let State::Running(_, answer) = &mut self.state {
            answer.end(worker.host.now());
        }
        self.give_back(worker);
    }

    /// The model server is done with an answer that has come whole: the slot is free now. The stream may last, where a
    /// client of HTTP/2 takes its time to read.
    fn give_back<H: Host>(&self, worker: &Worker<H>) {
        let State::Running(claim, answer) = &self.state else { return };
        if let Some(now) = answer.served() {
            worker.leave(now, claim.ticket, Ending::Served, false);
        }
    }

    /// Envoy has answered in our place: a limit or a timeout of its own, nearer than ours.
    fn answered_by_envoy<H: Host>(&mut self, worker: &Worker<H>) {
        let now = worker.host.now();
        let mut status = None;
        worker.host.fields(Section::ResponseHeaders, &mut |name, value| {
            if name == b":status" {
                status = answer::status(value);
            }
        });
        let (reason, setting) = match (&self.state, status) {
            (_, Some(413)) => (Reason::BodyTooLarge, "request_body_buffer_limit of the virtual host"),
            (State::Parked(_), _) => (Reason::QueueTimeout, "the route's timeout or idle_timeout"),
            _ => (Reason::BodyTimeout, "request_timeout, or the route's timeout or idle_timeout"),
        };
        if !worker.preempted.replace(true) {
            let status = status.unwrap_or_default();
            worker.host.warn(&format!(
                "Envoy itself ended a request that the filter held, with {status}: a limit or timeout of Envoy's is \
                 nearer than the policy's, likely {setting}; see docs/envoy.md; this is said once"
            ));
        }
        if let State::Parked(claim) = std::mem::replace(&mut self.state, State::Over) {
            worker.leave(now, claim.ticket, Ending::Gone, false);
        }
        worker.release_body(self.id);
        self.outcome(worker, Outcome::Refused(reason));
    }
}

/// Removes what bears our name and is not by us; the status, where there is one.
pub fn strip_ours<H: Host>(worker: &Worker<H>, section: Section) -> Option<u16> {
    let (mut status, mut ours) = (None, Vec::new());
    worker.host.fields(section, &mut |name, value| {
        if name == b":status" {
            status = answer::status(value);
        } else if name.starts_with(OURS) {
            ours.push(name.to_vec());
        }
    });
    for name in &ours {
        worker.host.remove_field(section, name);
    }
    status
}
