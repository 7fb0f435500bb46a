//! One worker's share of the filter: its engine, the streams it holds, its timer and its wake-ups.

mod shared;
mod written;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use crate::core::admission::{Demand, Ending, Leaving, Limit, Request, Writer};
use crate::core::engine::Engine;
use crate::core::policy::Policy;
use crate::core::refusal::Refusal;
use crate::core::units::{Numbered, StreamId, Ticket, Time};
use crate::host::Host;
use crate::stream::Stream;
use written::Written;

/// Most resumes and refusals in one callback: the host runs them nested, and hundreds overflow its stack.
pub const ACTIONS: usize = 32;
/// The timer while somebody waits, and otherwise.
const BUSY_TICK: Duration = Duration::from_millis(10);
const IDLE_TICK: Duration = Duration::from_millis(250);

/// Whether Envoy holds a request's headers until its body has been read, as the filter needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderHold {
    /// No request has shown it yet.
    Unknown,
    /// A body came while its headers were held.
    Works,
    /// Body bytes came and the filter was not told.
    Missing,
}

/// What became of a request that asked for a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admitted {
    /// It has one.
    Now(Ticket),
    /// It waits in line.
    Later(Ticket),
}

/// One worker under one policy.
pub struct Worker<H> {
    /// The way to the host.
    pub host: H,
    /// Decides.
    pub engine: RefCell<Engine>,
    /// What is known of Envoy's settings.
    pub header_hold: Cell<HeaderHold>,
    /// Whether Envoy has answered in the filter's place, and operators were told.
    pub preempted: Cell<bool>,
    /// Who this worker is to the others; `None` before its first request.
    writer: Cell<Option<Writer>>,
    /// Whether the engine knows a connection by which a request came lately.
    met: Cell<bool>,
    streams: RefCell<Numbered<StreamId, Rc<RefCell<Stream>>>>,
    written: RefCell<Written>,
    woken: Cell<bool>,
    busy: Cell<bool>,
}

impl<H: Host> Worker<H> {
    /// A worker that has seen nothing yet. Until its first request it only looks on: that is all that the VM on
    /// Envoy's main thread ever does.
    pub fn new(host: H, policy: Rc<Policy>) -> Worker<H> {
        let now = host.now();
        host.tick_every(IDLE_TICK);
        Worker {
            host,
            engine: RefCell::new(Engine::new(policy, now)),
            header_hold: Cell::new(HeaderHold::Unknown),
            preempted: Cell::new(false),
            writer: Cell::new(None),
            met: Cell::new(false),
            streams: RefCell::default(),
            written: RefCell::default(),
            woken: Cell::new(false),
            busy: Cell::new(false),
        }
    }

    /// A request has come: this is a worker, and others have to know of it.
    pub fn start(&self) {
        if self.writer.get().is_none() {
            self.writer.set(Some(self.host.listen()));
        }
    }

    /// Keeps a stream at hand for the timer and for wake-ups, until [`Worker::forget`].
    pub fn keep(&self, id: StreamId, stream: &Rc<RefCell<Stream>>) {
        self.streams.borrow_mut().insert(id, Rc::clone(stream));
    }

    /// Lets go of a stream that has ended.
    pub fn forget(&self, id: StreamId) {
        self.streams.borrow_mut().remove(&id);
    }

    /// Takes note of `size` bytes of a body so far; refuses what is too large, or more than fits beside the others of
    /// all workers.
    pub fn receive(&self, now: Time, stream: StreamId, size: u64) -> Result<(), Refusal> {
        let grown = self.engine.borrow_mut().receive(stream, size)?;
        self.share_buffered(now);
        let engine = self.engine.borrow();
        if grown && engine.intake.buffered.is_over() { Err(engine.overloaded(now, stream)) } else { Ok(()) }
    }

    /// A body is held no more.
    pub fn release_body(&self, stream: StreamId) {
        self.engine.borrow_mut().intake.release(stream);
        if self.engine.borrow().intake.buffered.has_changed() {
            self.share_buffered(self.host.now());
        }
    }

    /// Finds a slot or a place in line for a request, or refuses it.
    pub fn admit(&self, now: Time, request: Request) -> Result<Admitted, Refusal> {
        let entered = self.engine.borrow_mut().admission.enter(now, request);
        let settled = entered.and_then(|ticket| {
            let admitted = self.settle(now, Some(ticket), true)?;
            self.wake_if_ready();
            Some(if admitted { Admitted::Now(ticket) } else { Admitted::Later(ticket) })
        });
        match settled {
            Some(Admitted::Later(ticket)) => {
                self.watch();
                Ok(Admitted::Later(ticket))
            }
            Some(admitted) => Ok(admitted),
            None => {
                if let Some(ticket) = entered {
                    self.engine.borrow_mut().admission.leave(now, ticket, Ending::Gone, false);
                }
                Err(self.engine.borrow().queue_full(now, request.stream, request.class))
            }
        }
    }

    /// A request ends; see `Admission::leave`.
    pub fn leave(&self, now: Time, ticket: Ticket, ending: Ending, broken: bool) {
        let changed = self.engine.borrow_mut().admission.leave(now, ticket, ending, broken);
        if changed {
            self.settle(now, None, true);
            self.wake_if_ready();
        }
        if self.engine.borrow().admission.is_waiting() {
            self.watch();
        }
    }

    /// The timer.
    pub fn on_tick(&self) {
        let now = self.host.now();
        self.engine.borrow_mut().admission.note(now);
        if self.writer.get().is_none() {
            self.observe(now);
            return;
        }
        self.look_for_header_hold();
        self.met.set(false);
        self.turn(now, true);
        if self.busy.get() && !self.engine.borrow().admission.is_waiting() {
            self.busy.set(false);
            self.host.tick_every(IDLE_TICK);
        }
    }

    /// A wake-up, by this worker itself or by one that has given something to it.
    pub fn on_wake(&self) {
        let by_itself = self.woken.replace(false);
        self.turn(self.host.now(), !by_itself);
    }

    /// The configuration is done with and its streams have ended. There is no timer any more that would give back what
    /// lingers; and nothing has to, as Envoy has closed the connections behind it by now. What was shown of classes is
    /// taken back: those of the next configuration are shown by it, others are no more.
    pub fn retire(&self) {
        let now = self.host.now();
        if self.writer.get().is_none() {
            let engine = self.engine.borrow();
            for (class, _, limit) in engine.admission.observe(now, None) {
                let none = Limit { slots: limit.slots.map(|_| 0), tokens: limit.tokens.map(|_| 0) };
                self.host.show(class, &Demand::default(), none);
            }
        }
        let changed = self.engine.borrow_mut().admission.end_lingering(now.after(IDLE_TICK));
        if changed {
            self.settle(now, None, true);
        }
    }

    /// Time has to be watched closely.
    fn watch(&self) {
        if !self.busy.replace(true) {
            self.host.tick_every(BUSY_TICK);
        }
    }

    /// Nobody is let go on from where slots are given back, since the end of one stream may be the end of its siblings
    /// too, one by one: what has to be done is done in a callback of its own.
    fn wake_self(&self) {
        if let Some(writer) = self.writer.get().filter(|_| !self.woken.get()) {
            self.woken.set(self.host.wake(writer.queue));
        }
    }

    /// The same for those that were given a slot outside of [`Worker::turn`], which looks for them itself.
    fn wake_if_ready(&self) {
        if self.engine.borrow().admission.has_ready() {
            self.wake_self();
        }
    }

    /// Refuses who has waited too long, lets go on who can; a bounded number, the rest in the next callback. `look` tells
    /// that others may have given something to this worker: before it wakes itself it has settled.
    fn turn(&self, now: Time, look: bool) {
        let mut left = ACTIONS;
        let late = self.engine.borrow_mut().admission.expire(now, left);
        let mut changed = !late.is_empty();
        left -= late.len();
        for leaving in late {
            self.act(leaving.stream, |stream| stream.waited_in_vain(self, now));
        }
        let slow = self.engine.borrow_mut().intake.expire(now, left);
        left -= slow.len();
        for id in slow {
            self.act(id, |stream| stream.body_overdue(self));
        }
        changed |= self.engine.borrow_mut().admission.end_lingering(now);
        if changed || look && self.engine.borrow().admission.is_unsettled(now) {
            self.settle(now, None, changed);
        }
        self.share_buffered(now);
        let ready = self.engine.borrow_mut().admission.take_ready(left);
        for Leaving { ticket, stream } in ready {
            if !self.act(stream, |stream| stream.release(self, now)) {
                self.leave(now, ticket, Ending::Gone, false);
            }
        }
        let more = {
            let engine = self.engine.borrow();
            engine.admission.has_ready()
                || engine.admission.has_overdue(now)
                || engine.intake.has_overdue(now)
        };
        if more {
            self.wake_self();
        }
    }

    /// Until a body callback has shown that headers are held: has a body come without one?
    fn look_for_header_hold(&self) {
        if self.header_hold.get() == HeaderHold::Works {
            return;
        }
        let waiting: Vec<_> = self.engine.borrow().intake.unfinished().take(ACTIONS).collect();
        for id in waiting {
            self.act(id, |stream| stream.look_for_header_hold(self));
        }
    }

    /// Does something for a stream outside of its own callbacks; false where the stream is gone.
    fn act(&self, id: StreamId, action: impl FnOnce(&mut Stream)) -> bool {
        let Some(stream) = self.streams.borrow().get(&id).map(Rc::clone) else { return false };
        // A failed call leaves the stream chosen before in force: nothing may be done then.
        if !self.host.act_for(id) {
            return false;
        }
        action(&mut stream.borrow_mut());
        true
    }
}
