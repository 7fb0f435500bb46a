//! One request's life: held while its body is read, judged, then on its way, in line or refused.

mod answer;
mod facts;
mod request;
mod response;

use std::time::Duration;

use crate::core::admission::Ending;
use crate::core::body::dialect::Dialect;
use crate::core::refusal::{Family, Reason, Refusal};
use crate::core::units::{ClassId, StreamId, Ticket, Time, millis};
use crate::host::{Event, Flow, Host, Measure, Outcome};
use crate::worker::{HeaderHold, Worker};
use answer::Answer;
use facts::Facts;

/// One request.
pub struct Stream {
    id: StreamId,
    began: Time,
    state: State,
    facts: Facts,
}

enum State {
    /// Not ours, or nothing known of it yet.
    Passing,
    /// Its headers are held while its body comes in.
    Reading(Reading),
    /// It waits in line.
    Parked(Claim),
    /// It holds a slot.
    Running(Claim, Answer),
    /// Refused by us or answered by Envoy: it holds nothing.
    Over,
    /// Ended, and counted.
    Gone,
}

struct Reading {
    dialect: &'static Dialect,
    /// What it will be refused with, whatever its body holds.
    doom: Option<Refusal>,
    has_length: bool,
    patience: Option<Duration>,
    /// Whose turn it takes by its headers; `None` where they have no say in that.
    key: Option<u64>,
    /// Bytes of the headers as they came, in which Envoy counts the whole request.
    head_bytes: u64,
    received: usize,
}

struct Claim {
    ticket: Ticket,
    class: ClassId,
    family: Family,
    arrived: Time,
    streamed: bool,
}

impl Stream {
    /// A stream of which nothing is known yet.
    pub fn new(id: StreamId, began: Time) -> Stream {
        Stream { id, began, state: State::Passing, facts: Facts::default() }
    }

    /// Whether the stream has to be at hand outside of its own callbacks.
    pub fn is_held(&self) -> bool {
        matches!(self.state, State::Reading(_))
    }

    /// A slot has become free for it. Its headers and body were made ready before it was parked.
    pub fn release<H: Host>(&mut self, worker: &Worker<H>, now: Time) {
        let State::Parked(claim) = std::mem::replace(&mut self.state, State::Over) else { return };
        self.run(worker, claim, now);
        worker.host.resume();
    }

    /// Its patience has ended; the line has forgotten it.
    pub fn waited_in_vain<H: Host>(&mut self, worker: &Worker<H>, now: Time) {
        let State::Parked(claim) = &self.state else { return };
        let (class, family) = (claim.class, claim.family);
        let waited = now.since(claim.arrived);
        self.facts.queue_ms = Some(millis(waited));
        let refusal = worker.engine.borrow().queue_timeout(now, self.id, class, waited);
        self.refuse(worker, refusal, family);
    }

    /// Its body did not end in time.
    pub fn body_overdue<H: Host>(&mut self, worker: &Worker<H>) {
        let State::Reading(reading) = &self.state else { return };
        let family = reading.dialect.family;
        let refusal = worker.engine.borrow().body_timeout();
        self.refuse(worker, refusal, family);
    }

    /// Body bytes that Envoy has and the filter was not told of are the evidence that headers are not held.
    pub fn look_for_header_hold<H: Host>(&mut self, worker: &Worker<H>) {
        let State::Reading(reading) = &self.state else { return };
        let family = reading.dialect.family;
        let unseen = worker.host.request_bytes().is_some_and(|bytes| bytes > reading.head_bytes);
        if unseen && reading.received == 0 {
            let refusal = header_hold_missing();
            if worker.header_hold.replace(HeaderHold::Missing) != HeaderHold::Missing {
                worker.host.warn(&refusal.message);
            }
            self.refuse(worker, refusal, family);
        }
    }

    /// The stream has ended, however. May be called again.
    pub fn on_end<H: Host>(&mut self, worker: &Worker<H>) {
        let state = std::mem::replace(&mut self.state, State::Gone);
        if matches!(state, State::Passing | State::Gone) {
            return;
        }
        match state {
            State::Passing | State::Gone | State::Over => {}
            State::Reading(_) => self.outcome(worker, Outcome::ClientGone),
            State::Parked(claim) => {
                let now = worker.host.now();
                self.facts.queue_ms = Some(millis(now.since(claim.arrived)));
                worker.leave(now, claim.ticket, Ending::Gone, false);
                self.outcome(worker, Outcome::ClientGone);
            }
            State::Running(claim, answer) => {
                // One that was served has given its slot back.
                let end = answer.served().unwrap_or_else(|| {
                    let now = worker.host.now();
                    worker.leave(now, claim.ticket, answer.ending(), answer.broke_off(worker));
                    now
                });
                answer.close(worker, &claim);
                worker.host.measure(claim.class, Measure::DurationMs, millis(end.since(self.began)));
            }
        }
        worker.release_body(self.id);
        worker.forget(self.id);
        self.facts.publish(worker);
    }

    fn run<H: Host>(&mut self, worker: &Worker<H>, claim: Claim, now: Time) {
        let waited = millis(now.since(claim.arrived));
        self.facts.queue_ms = Some(waited);
        worker.release_body(self.id);
        worker.host.measure(claim.class, Measure::QueueMs, waited);
        self.outcome(worker, Outcome::Admitted);
        self.state = State::Running(claim, Answer::new(now));
    }

    /// Refuses the request and lets go of all that it holds.
    fn refuse<H: Host>(&mut self, worker: &Worker<H>, refusal: Refusal, family: Family) -> Flow {
        self.state = State::Over;
        worker.release_body(self.id);
        self.outcome(worker, Outcome::Refused(refusal.reason));
        let more = if worker.engine.borrow().policy.response_headers {
            self.facts.headers(worker)
        } else {
            Vec::new()
        };
        worker.host.refuse(&refusal, family, &more);
        Flow::Hold
    }

    fn outcome<H: Host>(&mut self, worker: &Worker<H>, outcome: Outcome) {
        self.facts.outcome = Some(outcome);
        worker.host.count(Event::Outcome(self.facts.class, outcome));
    }
}

/// The refusal of everything while Envoy is set up in a way that the filter cannot work in.
fn header_hold_missing() -> Refusal {
    Refusal::new(
        Reason::Misconfigured,
        "Envoy does not hold request headers for the filter: set allow_on_headers_stop_iteration to true in the \
         filter's PluginConfig (Envoy 1.35 or newer)",
    )
}
