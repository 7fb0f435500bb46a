//! One request's life: held while its body is read, judged, then on its way, in line or refused.

mod answer;
mod facts;

use std::time::Duration;

use crate::core::body::dialect::Dialect;
use crate::core::clamp::Action;
use crate::core::engine::{Gate, Judged};
use crate::core::head::{Head, OURS};
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
}

struct Reading {
    dialect: &'static Dialect,
    has_length: bool,
    patience: Option<Duration>,
    /// Bytes of the headers as they came, in which Envoy counts the whole request.
    head_bytes: u64,
    received: usize,
}

struct Claim {
    ticket: Ticket,
    class: ClassId,
    family: Family,
    arrived: Time,
    action: Action,
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

    /// The request's headers; `ended` tells that nothing follows.
    pub fn on_request_headers<H: Host>(&mut self, worker: &Worker<H>, ended: bool) -> Flow {
        let mut head = Head::default();
        worker.host.request_headers(&mut |name, value| head.note(name, value));
        for name in &head.ours {
            worker.host.remove_request_header(name);
        }
        let gate = worker.engine.borrow().gate(&head, ended);
        match gate {
            Gate::Pass => {
                worker.host.count(Event::PassedThrough);
                Flow::Continue
            }
            Gate::Refuse(refusal, family) => self.refuse(worker, refusal, family),
            Gate::Guard(dialect) if worker.header_hold.get() == HeaderHold::Missing => {
                self.refuse(worker, header_hold_missing(), dialect.family)
            }
            Gate::Guard(dialect) => {
                worker.engine.borrow_mut().intake.begin(self.began, self.id);
                self.state = State::Reading(Reading {
                    dialect,
                    has_length: head.has_length,
                    patience: head.patience(),
                    head_bytes: head.bytes,
                    received: 0,
                });
                Flow::Hold
            }
        }
    }

    /// The request's body has grown to `size` bytes; `ended` tells that it is whole.
    pub fn on_request_body<H: Host>(&mut self, worker: &Worker<H>, size: usize, ended: bool) -> Flow {
        let State::Reading(reading) = &mut self.state else { return self.rest() };
        worker.header_hold.set(HeaderHold::Works);
        reading.received = size;
        let family = reading.dialect.family;
        let now = worker.host.now();
        let received = worker.engine.borrow_mut().receive(now, self.id, size as u64);
        match received {
            Err(refusal) => self.refuse(worker, refusal, family),
            Ok(()) if ended => self.judge(worker, now),
            Ok(()) => Flow::Hold,
        }
    }

    /// The request's trailers: the body is whole, and no callback has said so.
    pub fn on_request_trailers<H: Host>(&mut self, worker: &Worker<H>) -> Flow {
        if self.is_held() { self.judge(worker, worker.host.now()) } else { self.rest() }
    }

    /// A slot has become free for it. Its headers and body were made ready before it was parked.
    pub fn release<H: Host>(&mut self, worker: &Worker<H>, now: Time) {
        let State::Parked(claim) = std::mem::replace(&mut self.state, State::Over) else { return };
        worker.host.count(Event::Queued(claim.class, -1));
        self.run(worker, claim, now);
        worker.host.resume();
    }

    /// Its patience has ended; the line has forgotten it.
    pub fn waited_in_vain<H: Host>(&mut self, worker: &Worker<H>, now: Time) {
        let State::Parked(claim) = &self.state else { return };
        let (class, family) = (claim.class, claim.family);
        self.facts.queue_ms = Some(millis(now.since(claim.arrived)));
        let refusal = worker.engine.borrow().queue_timeout(now, self.id, class);
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
            worker.header_hold.set(HeaderHold::Missing);
            self.refuse(worker, header_hold_missing(), family);
        }
    }

    /// The stream has ended, however. May be called again.
    pub fn on_end<H: Host>(&mut self, worker: &Worker<H>) {
        let now = worker.host.now();
        match std::mem::replace(&mut self.state, State::Over) {
            State::Passing => return,
            State::Over => {}
            State::Reading(_) => self.outcome(worker, Outcome::ClientGone),
            State::Parked(claim) => {
                self.facts.queue_ms = Some(millis(now.since(claim.arrived)));
                worker.host.count(Event::Queued(claim.class, -1));
                worker.engine.borrow_mut().admission.leave(now, claim.ticket, false);
                self.outcome(worker, Outcome::ClientGone);
            }
            State::Running(claim, answer) => {
                answer.close(worker, &claim, now);
                worker.host.count(Event::Inflight(claim.class, -1));
                worker.host.measure(claim.class, Measure::DurationMs, millis(now.since(self.began)));
                worker.engine.borrow_mut().admission.leave(now, claim.ticket, answer.ran_its_course());
            }
        }
        worker.engine.borrow_mut().intake.release(self.id);
        worker.forget(self.id);
        self.facts.publish(worker);
        worker.wake_if_ready();
    }

    /// The response's headers.
    pub fn on_response_headers<H: Host>(&mut self, worker: &Worker<H>, ended: bool) {
        match &mut self.state {
            State::Passing => {
                strip_ours(worker);
            }
            State::Over => {}
            State::Running(claim, answer) => {
                let status = strip_ours(worker);
                answer.begin(worker.host.now(), status, ended);
                if worker.engine.borrow().policy.response_headers {
                    answer.describe(worker, claim, &self.facts);
                }
            }
            State::Reading(_) | State::Parked(_) => self.answered_by_envoy(worker),
        }
    }

    /// A piece of the response, `size` bytes; `ended` tells that it is the last.
    pub fn on_response_body<H: Host>(&mut self, worker: &Worker<H>, size: usize, ended: bool) {
        if let State::Running(claim, answer) = &mut self.state {
            answer.piece(worker, claim, size, ended);
        }
    }

    /// The response's trailers: its body is whole.
    pub fn on_response_trailers(&mut self) {
        if let State::Running(_, answer) = &mut self.state {
            answer.end();
        }
    }

    /// What remains to be said in callbacks of a request that is not being read.
    fn rest(&self) -> Flow {
        match self.state {
            State::Passing | State::Running(..) => Flow::Continue,
            State::Reading(_) | State::Parked(_) | State::Over => Flow::Hold,
        }
    }

    fn judge<H: Host>(&mut self, worker: &Worker<H>, now: Time) -> Flow {
        let State::Reading(reading) = &self.state else { return self.rest() };
        let (dialect, has_length, patience, size) =
            (reading.dialect, reading.has_length, reading.patience, reading.received);
        let body = if size == 0 { Some(Vec::new()) } else { worker.host.request_body(size) };
        let Some(body) = body else {
            return self.refuse(worker, unworkable("read the body"), dialect.family);
        };
        let judged = worker.engine.borrow().judge(dialect, &body);
        drop(body);
        let judged = match judged {
            Ok(judged) => judged,
            Err(refusal) => return self.refuse(worker, refusal, dialect.family),
        };
        self.facts.judged(&judged);
        let arrival = worker.engine.borrow_mut().arrive(now, self.id, judged.class, patience);
        let (ticket, admitted) = match arrival {
            Ok(place) => place,
            Err(refusal) => return self.refuse(worker, refusal, dialect.family),
        };
        let Some(size) = rewrite(worker, &judged, size, has_length) else {
            worker.engine.borrow_mut().admission.leave(now, ticket, false);
            return self.refuse(worker, unworkable("change headers and body"), dialect.family);
        };
        worker.host.count(Event::MaxTokens(judged.class, judged.action));
        worker.host.measure(judged.class, Measure::PromptTokens, judged.prompt.tokens);
        worker.host.measure(judged.class, Measure::MaxTokensEffective, judged.max_tokens);
        let claim = Claim {
            ticket,
            class: judged.class,
            family: dialect.family,
            arrived: now,
            action: judged.action,
            streamed: judged.stream,
        };
        if admitted {
            self.run(worker, claim, now);
            return Flow::Continue;
        }
        worker.engine.borrow_mut().intake.complete(self.id, size);
        worker.host.count(Event::Queued(claim.class, 1));
        self.state = State::Parked(claim);
        worker.watch();
        Flow::Hold
    }

    fn run<H: Host>(&mut self, worker: &Worker<H>, claim: Claim, now: Time) {
        let waited = millis(now.since(claim.arrived));
        self.facts.queue_ms = Some(waited);
        worker.engine.borrow_mut().intake.release(self.id);
        worker.host.measure(claim.class, Measure::QueueMs, waited);
        worker.host.count(Event::Inflight(claim.class, 1));
        self.outcome(worker, Outcome::Admitted);
        self.state = State::Running(claim, Answer::new(now));
    }

    /// Refuses the request and lets go of all that it holds.
    fn refuse<H: Host>(&mut self, worker: &Worker<H>, refusal: Refusal, family: Family) -> Flow {
        if let State::Parked(claim) = &self.state {
            worker.host.count(Event::Queued(claim.class, -1));
        }
        self.state = State::Over;
        worker.engine.borrow_mut().intake.release(self.id);
        self.outcome(worker, Outcome::Refused(refusal.reason));
        let more = if worker.engine.borrow().policy.response_headers {
            self.facts.headers(worker)
        } else {
            Vec::new()
        };
        worker.host.refuse(&refusal, family, &more);
        Flow::Hold
    }

    /// Envoy has answered in our place: a limit or a timeout of its own, nearer than ours.
    fn answered_by_envoy<H: Host>(&mut self, worker: &Worker<H>) {
        let now = worker.host.now();
        let mut status = None;
        worker.host.response_headers(&mut |name, value| {
            if name == b":status" {
                status = answer::status(value);
            }
        });
        let reason = match (&self.state, status) {
            (_, Some(413)) => Reason::BodyTooLarge,
            (State::Parked(_), _) => Reason::QueueTimeout,
            _ => Reason::BodyTimeout,
        };
        if let State::Parked(claim) = std::mem::replace(&mut self.state, State::Over) {
            worker.host.count(Event::Queued(claim.class, -1));
            worker.engine.borrow_mut().admission.leave(now, claim.ticket, false);
        }
        worker.engine.borrow_mut().intake.release(self.id);
        self.outcome(worker, Outcome::Refused(reason));
    }

    fn outcome<H: Host>(&mut self, worker: &Worker<H>, outcome: Outcome) {
        self.facts.outcome = Some(outcome);
        worker.host.count(Event::Outcome(self.facts.class, outcome));
    }
}

/// Makes headers and body ready to go on: the body's new size, `None` where the host would not.
fn rewrite<H: Host>(worker: &Worker<H>, judged: &Judged, size: usize, has_length: bool) -> Option<u64> {
    let mut length = size;
    if let Some(edit) = &judged.edit {
        length = edit.body_len(size);
        let fits =
            !has_length || worker.host.set_request_header("content-length", length.to_string().as_bytes());
        if !fits || !worker.host.replace_body_prefix(edit.len, &edit.bytes) {
            return None;
        }
    }
    let class = worker.engine.borrow().class(judged.class).map(|class| class.name.clone())?;
    worker.host.set_request_header("x-sluice-class", class.as_bytes()).then_some(length as u64)
}

/// Removes response headers of ours that are not by us; the response's status.
fn strip_ours<H: Host>(worker: &Worker<H>) -> Option<u16> {
    let (mut status, mut ours) = (None, Vec::new());
    worker.host.response_headers(&mut |name, value| {
        if name == b":status" {
            status = answer::status(value);
        } else if name.starts_with(OURS) {
            ours.push(name.to_vec());
        }
    });
    for name in &ours {
        worker.host.remove_response_header(name);
    }
    status
}

fn header_hold_missing() -> Refusal {
    Refusal::new(
        Reason::Misconfigured,
        "Envoy does not hold request headers for the filter: set allow_on_headers_stop_iteration to true in the \
         filter's PluginConfig (Envoy 1.35 or newer)",
    )
}

fn unworkable(what: &str) -> Refusal {
    Refusal::new(
        Reason::Misconfigured,
        format!("Envoy did not let the filter {what}; see the filter's settings"),
    )
}
