//! The filter itself, as it runs in Envoy's workers, called in virtual time.

use super::ask::Ask;
use super::host::{Effect, Process, VirtualHost};
use sluice::core::policy::Policy;
use sluice::core::units::{StreamId, Time};
use sluice::host::{Flow, Host};
use sluice::stream::Stream;
use sluice::worker::Worker;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

/// The filter in one Envoy with some workers.
pub struct Filter {
    process: Rc<Process>,
    workers: Vec<Worker<VirtualHost>>,
    streams: HashMap<u32, Rc<RefCell<Stream>>>,
}

impl Filter {
    /// A filter under this policy that nothing has passed through yet.
    pub fn new(policy: &Policy, workers: u32) -> Filter {
        let process = Rc::new(Process::default());
        process.now.set(clock(Duration::ZERO));
        let policy = Rc::new(policy.clone());
        let worker = |worker| Worker::new(VirtualHost::new(Rc::clone(&process), worker), Rc::clone(&policy));
        let workers = (0..workers).map(worker).collect();
        Filter { process, workers, streams: HashMap::new() }
    }

    /// A whole request has come.
    pub fn receive(&mut self, now: Duration, id: u32, ask: &Ask) {
        let stream = Rc::new(RefCell::new(Stream::new(StreamId(id), clock(now))));
        self.streams.insert(id, Rc::clone(&stream));
        let worker = self.call(now, id);
        worker.start();
        let body = ask.body();
        let size = body.len();
        worker.host.body.replace(body);
        let held = stream.borrow_mut().on_request_headers(worker, false);
        worker.keep(StreamId(id), &stream);
        let held =
            if held == Flow::Hold { stream.borrow_mut().on_request_body(worker, size, true) } else { held };
        worker.host.body.take();
        if held == Flow::Continue {
            worker.host.resume();
        }
    }

    /// The first token of an answer has come.
    pub fn answer_begins(&mut self, now: Duration, id: u32) {
        let Some(stream) = self.streams.get(&id) else { return };
        let worker = self.call(now, id);
        let mut stream = stream.borrow_mut();
        stream.on_response_headers(worker, false);
        stream.on_response_body(worker, 1, false);
    }

    /// An answer has come to its end.
    pub fn answer_ends(&mut self, now: Duration, id: u32) {
        if let Some(stream) = self.streams.get(&id) {
            stream.borrow_mut().on_response_body(self.call(now, id), 1, true);
        }
        self.end(now, id);
    }

    /// A stream ends, whatever has become of it: its client has left, or the filter has answered.
    pub fn end(&mut self, now: Duration, id: u32) {
        if let Some(stream) = self.streams.remove(&id) {
            stream.borrow_mut().on_end(self.call(now, id));
        }
    }

    /// A worker's timer.
    pub fn tick(&self, now: Duration, worker: u32) {
        self.process.now.set(clock(now));
        self.workers[worker as usize].on_tick();
    }

    /// A worker was woken.
    pub fn wake(&self, now: Duration, worker: u32) {
        self.process.now.set(clock(now));
        self.workers[worker as usize].on_wake();
    }

    /// What the filter has done since this was last called, in order.
    pub fn effects(&self) -> Vec<Effect> {
        self.process.effects.take()
    }

    /// The worker of a stream, made ready for a callback of that stream. Connections are spread evenly.
    fn call(&self, now: Duration, id: u32) -> &Worker<VirtualHost> {
        self.process.now.set(clock(now));
        let worker = &self.workers[id as usize % self.workers.len()];
        worker.host.act_for(StreamId(id));
        worker
    }
}

/// The filter's clock. It does not start at its epoch, as no machine's does: that moment means "never" in places.
fn clock(since_start: Duration) -> Time {
    Time::default().after(Duration::from_secs(1_000) + since_start)
}
