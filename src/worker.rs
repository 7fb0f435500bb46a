//! One worker's share of the filter: its engine, the streams it holds, its timer and its wake-ups.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use hashbrown::HashMap;

use crate::core::admission::Leaving;
use crate::core::engine::Engine;
use crate::core::policy::Policy;
use crate::core::units::{StreamId, Time};
use crate::host::Host;
use crate::stream::Stream;

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

/// One worker under one policy.
pub struct Worker<H> {
    /// The way to the host.
    pub host: H,
    /// Decides.
    pub engine: RefCell<Engine>,
    /// What is known of Envoy's settings.
    pub header_hold: Cell<HeaderHold>,
    streams: RefCell<HashMap<StreamId, Rc<RefCell<Stream>>>>,
    woken: Cell<bool>,
    busy: Cell<bool>,
}

impl<H: Host> Worker<H> {
    /// A worker that has seen nothing yet.
    pub fn new(host: H, policy: Rc<Policy>) -> Worker<H> {
        let now = host.now();
        Worker {
            host,
            engine: RefCell::new(Engine::new(policy, now)),
            header_hold: Cell::new(HeaderHold::Unknown),
            streams: RefCell::default(),
            woken: Cell::new(false),
            busy: Cell::new(false),
        }
    }

    /// The first request has come: the timer starts.
    pub fn start(&self) {
        self.host.tick_every(IDLE_TICK);
    }

    /// Keeps a stream at hand for the timer and for wake-ups, until [`Worker::forget`].
    pub fn keep(&self, id: StreamId, stream: &Rc<RefCell<Stream>>) {
        self.streams.borrow_mut().insert(id, Rc::clone(stream));
    }

    /// Lets go of a stream that has ended.
    pub fn forget(&self, id: StreamId) {
        self.streams.borrow_mut().remove(&id);
    }

    /// The timer.
    pub fn on_tick(&self) {
        let now = self.host.now();
        self.look_for_header_hold();
        self.turn(now);
        if self.busy.get() && !self.engine.borrow().admission.is_waiting() {
            self.busy.set(false);
            self.host.tick_every(IDLE_TICK);
        }
    }

    /// The wake-up asked for by [`Worker::wake_if_ready`].
    pub fn on_wake(&self) {
        self.woken.set(false);
        self.turn(self.host.now());
    }

    /// A request waits: its deadline is to be watched closely.
    pub fn watch(&self) {
        if !self.busy.replace(true) {
            self.host.tick_every(BUSY_TICK);
        }
    }

    /// Something has ended: asks for a wake-up where somebody can go on now. Nobody is let go on from here, since the
    /// end of one stream may be the end of its siblings too, one by one.
    pub fn wake_if_ready(&self) {
        if !self.woken.get() && self.engine.borrow().admission.has_ready() {
            self.woken.set(self.host.wake());
        }
    }

    /// Refuses who has waited too long, lets go on who can; a bounded number, the rest in the next callback.
    fn turn(&self, now: Time) {
        let mut left = ACTIONS;
        let late = self.engine.borrow_mut().admission.expire(now, left);
        left -= late.len();
        for leaving in late {
            self.act(leaving.stream, |stream| stream.waited_in_vain(self, now));
        }
        let slow = self.engine.borrow_mut().intake.expire(now, left);
        left -= slow.len();
        for id in slow {
            self.act(id, |stream| stream.body_overdue(self));
        }
        let ready = self.engine.borrow_mut().admission.dispatch(left);
        for Leaving { ticket, stream } in ready {
            if !self.act(stream, |stream| stream.release(self, now)) {
                self.engine.borrow_mut().admission.leave(now, ticket, false);
            }
        }
        let more = {
            let engine = self.engine.borrow();
            engine.admission.has_ready()
                || engine.admission.has_overdue(now)
                || engine.intake.has_overdue(now)
        };
        if more && !self.woken.get() {
            self.woken.set(self.host.wake());
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
