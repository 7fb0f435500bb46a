//! The filter's host in virtual time: what Envoy does for it, as far as admission needs it. What the filter does comes
//! out as [`Effect`]s, for the run to carry out.

use sluice::core::admission::{Connection, Demand, Limit, Writer};
use sluice::core::refusal::{Family, Refusal};
use sluice::core::units::{ClassId, StreamId, Time};
use sluice::host::{Event, Host, Measure, Section};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

/// What the workers of one Envoy share.
#[derive(Default)]
pub struct Process {
    /// The clock.
    pub now: Cell<Time>,
    /// What the filter has done since this was last emptied, in order.
    pub effects: RefCell<Vec<Effect>>,
    records: RefCell<HashMap<String, (Vec<u8>, u32)>>,
}

/// Something that the filter does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It has read a request and keeps its output within this many tokens.
    Bounds(StreamId, u64),
    /// It lets a request go on that was held.
    Resumes(StreamId),
    /// It answers a request in the server's place, with this status and reason.
    Refuses(StreamId, u16, &'static str),
    /// It asks that this worker be called right after the present callback.
    Wakes(u32),
    /// It sets the period of this worker's timer.
    TicksEvery(u32, Duration),
}

/// One worker's host.
pub struct VirtualHost {
    process: Rc<Process>,
    worker: u32,
    /// The stream whose callback runs.
    pub stream: Cell<StreamId>,
    /// The body of that stream's request, while it is being read.
    pub body: RefCell<Vec<u8>>,
}

impl VirtualHost {
    /// The host of the worker with this number.
    pub fn new(process: Rc<Process>, worker: u32) -> VirtualHost {
        VirtualHost { process, worker, stream: Cell::new(StreamId(0)), body: RefCell::default() }
    }

    fn effect(&self, effect: Effect) {
        self.process.effects.borrow_mut().push(effect);
    }
}

impl Host for VirtualHost {
    fn now(&self) -> Time {
        self.process.now.get()
    }

    fn fields(&self, of: Section, each: &mut dyn FnMut(&[u8], &[u8])) {
        match of {
            Section::RequestHeaders => {
                each(b":method", b"POST");
                each(b":path", b"/v1/chat/completions");
                each(b"content-type", b"application/json");
                each(b"content-length", self.body.borrow().len().to_string().as_bytes());
            }
            Section::ResponseHeaders => each(b":status", b"200"),
            Section::RequestTrailers | Section::ResponseTrailers => {}
        }
    }

    fn remove_field(&self, _: Section, _: &[u8]) -> bool {
        true
    }

    fn set_request_header(&self, _: &str, _: &[u8]) -> bool {
        true
    }

    fn request_body(&self, _: usize) -> Option<Vec<u8>> {
        Some(self.body.borrow().clone())
    }

    /// The one edit that matters here, that of the output limit, comes out as [`Effect::Bounds`].
    fn replace_body_prefix(&self, _: usize, _: &[u8]) -> bool {
        true
    }

    fn request_bytes(&self) -> Option<u64> {
        None
    }

    fn connection(&self) -> Option<Connection> {
        None
    }

    fn resume(&self) -> bool {
        self.effect(Effect::Resumes(self.stream.get()));
        true
    }

    fn refuse(&self, refusal: &Refusal, _: Family, _: &[(&str, String)]) -> bool {
        self.effect(Effect::Refuses(self.stream.get(), refusal.status, refusal.reason.name()));
        true
    }

    fn add_response_header(&self, _: &str, _: &[u8]) -> bool {
        true
    }

    fn is_from_upstream(&self) -> bool {
        true
    }

    fn warn(&self, _: &str) {}

    fn publish(&self, _: &str, _: &str) {}

    fn show(&self, _: ClassId, _: &Demand, _: Limit) {}

    fn count(&self, _: Event) {}

    fn measure(&self, _: ClassId, measure: Measure, value: u64) {
        if measure == Measure::MaxTokensEffective {
            self.effect(Effect::Bounds(self.stream.get(), value));
        }
    }

    fn act_for(&self, stream: StreamId) -> bool {
        self.stream.set(stream);
        true
    }

    fn listen(&self) -> Writer {
        Writer { uid: u64::from(self.worker) + 1, queue: self.worker }
    }

    fn wake(&self, queue: u32) -> bool {
        self.effect(Effect::Wakes(queue));
        true
    }

    fn read_shared(&self, key: &str) -> Option<(Vec<u8>, u32)> {
        self.process.records.borrow().get(key).cloned()
    }

    fn write_shared(&self, key: &str, record: &[u8], version: Option<u32>) -> bool {
        let mut records = self.process.records.borrow_mut();
        match (records.get_mut(key), version) {
            (Some((bytes, current)), Some(version)) if *current == version => {
                record.clone_into(bytes);
                *current += 1;
                true
            }
            (None, None) => {
                records.insert(key.to_owned(), (record.to_vec(), 1));
                true
            }
            _ => false,
        }
    }

    fn tick_every(&self, period: Duration) {
        self.effect(Effect::TicksEvery(self.worker, period));
    }
}
