//! The way in: headers held, body read and judged, headers and body made ready to go on.

use std::rc::Rc;

use super::response::strip_ours;
use super::{Claim, Reading, State, Stream, header_hold_missing};
use crate::core::admission::{Ending, Request};
use crate::core::body::Dialect;
use crate::core::engine::{Gate, Judged};
use crate::core::head::Head;
use crate::core::policy::Fairness;
use crate::core::refusal::{Reason, Refusal};
use crate::core::units::Time;
use crate::host::{Event, Flow, Host, Measure, Section};
use crate::worker::{Admitted, HeaderHold, Worker};

/// Bodies from this size on take so long to read that a row of them could pass for a dead worker.
const LONG_WORK: usize = 256 * 1024;

impl Stream {
    /// The request's headers; `ended` tells that nothing follows.
    pub fn on_request_headers<H: Host>(&mut self, worker: &Worker<H>, ended: bool) -> Flow {
        // Held on to, since the host is called with the head open, and no borrow may live across such a call.
        let policy = Rc::clone(&worker.engine.borrow().policy);
        let mut head = Head::new(policy.fairness.as_ref().and_then(Fairness::header));
        worker.host.fields(Section::RequestHeaders, &mut |name, value| head.note(name, value));
        for name in &head.ours {
            worker.host.remove_field(Section::RequestHeaders, name);
        }
        let gate = worker.engine.borrow().gate(&head, ended);
        match gate {
            Gate::Pass => {
                worker.host.count(Event::PassedThrough);
                Flow::Continue
            }
            Gate::Refuse(family, refusal) => self.refuse(worker, refusal, family),
            Gate::Guard(dialect) => self.read(worker, &head, dialect, None),
            Gate::Doom(dialect, refusal) => self.read(worker, &head, dialect, Some(refusal)),
        }
    }

    /// The request's body has grown to `size` bytes; `ended` tells that it is whole.
    pub fn on_request_body<H: Host>(&mut self, worker: &Worker<H>, size: usize, ended: bool) -> Flow {
        let State::Reading(reading) = &mut self.state else { return self.rest() };
        worker.header_hold.set(HeaderHold::Works);
        reading.received = size;
        let family = reading.dialect.family;
        let now = worker.host.now();
        let received = worker.receive(now, self.id, size as u64);
        match received {
            Err(refusal) => self.refuse(worker, refusal, family),
            Ok(()) if ended => self.judge(worker, now),
            Ok(()) => Flow::Hold,
        }
    }

    /// The request's trailers: the body is whole, and no callback has said so.
    pub fn on_request_trailers<H: Host>(&mut self, worker: &Worker<H>) -> Flow {
        strip_ours(worker, Section::RequestTrailers);
        if self.is_held() { self.judge(worker, worker.host.now()) } else { self.rest() }
    }

    /// What remains to be said in callbacks of a request that is not being read.
    fn rest(&self) -> Flow {
        match self.state {
            State::Passing | State::Running(..) => Flow::Continue,
            State::Reading(_) | State::Parked(_) | State::Over | State::Gone => Flow::Hold,
        }
    }

    fn read<H: Host>(
        &mut self,
        worker: &Worker<H>,
        head: &Head,
        dialect: &'static Dialect,
        doom: Option<Refusal>,
    ) -> Flow {
        if worker.header_hold.get() == HeaderHold::Missing {
            return self.refuse(worker, header_hold_missing(), dialect.family);
        }
        worker.engine.borrow_mut().intake.begin(self.began, self.id);
        self.state = State::Reading(Reading {
            dialect,
            doom,
            has_length: head.has_length,
            patience: head.patience(),
            key: head.fair_key(),
            head_bytes: head.bytes,
            received: 0,
        });
        Flow::Hold
    }

    fn judge<H: Host>(&mut self, worker: &Worker<H>, now: Time) -> Flow {
        let State::Reading(reading) = &mut self.state else { return self.rest() };
        if let Some(refusal) = reading.doom.take() {
            let family = reading.dialect.family;
            return self.refuse(worker, refusal, family);
        }
        let (dialect, has_length, patience, size) =
            (reading.dialect, reading.has_length, reading.patience, reading.received);
        let key = reading.key;
        let body = if size == 0 { Some(Vec::new()) } else { worker.host.request_body(size) };
        let Some(body) = body else {
            return self.refuse(worker, unworkable("read the body"), dialect.family);
        };
        let judged = worker.engine.borrow().judge(dialect, &body);
        drop(body);
        if size >= LONG_WORK {
            worker.was_busy();
        }
        let judged = match judged {
            Ok(judged) => judged,
            Err(refusal) => return self.refuse(worker, refusal, dialect.family),
        };
        self.facts.judged(&judged);
        let request = Request {
            stream: self.id,
            class: judged.class,
            tokens: judged.tokens,
            key: key.or(judged.key),
            patience,
        };
        let admitted = match worker.admit(now, request) {
            Ok(admitted) => admitted,
            Err(refusal) => return self.refuse(worker, refusal, dialect.family),
        };
        let (Admitted::Now(ticket) | Admitted::Later(ticket)) = admitted;
        let Some(size) = rewrite(worker, &judged, size, has_length) else {
            worker.leave(now, ticket, Ending::Gone, false);
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
            streamed: judged.stream,
        };
        if admitted == Admitted::Now(ticket) {
            self.run(worker, claim, now);
            return Flow::Continue;
        }
        worker.engine.borrow_mut().intake.complete(self.id, size);
        self.state = State::Parked(claim);
        Flow::Hold
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

fn unworkable(what: &str) -> Refusal {
    Refusal::new(
        Reason::Misconfigured,
        format!("Envoy did not let the filter {what}; see the filter's settings"),
    )
}
