//! The world of a history in virtual time: threads with their workers, clients, the shared store, the queues.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::rc::Rc;
use std::time::Duration;

use sluice::core::admission::{Admission, Ending, Request, Writer};
use sluice::core::policy::Policy;
use sluice::core::units::{ClassId, StreamId, Time};

use crate::audit::Audit;
use crate::chance::mix;
use crate::history::{Arrival, MS, Op, What};
use crate::life::{Life, Node, State, Thread};

pub const IDLE_TICK: u64 = 250 * MS;
pub const BUSY_TICK: u64 = 10 * MS;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    Op(usize),
    Tick {
        node: usize,
        epoch: u64,
    },
    Wake(usize),
    /// The model server has done with a request.
    End(usize),
    ClientLeaves(usize),
    /// A thread gets a policy; `None` = a new VM after a failure, under the newest one.
    Configure {
        thread: usize,
        policy: Option<usize>,
    },
}

/// What went wrong, and when.
#[derive(Clone, Debug)]
pub struct Fault {
    pub at: u64,
    pub what: String,
}

/// How much a run has seen.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    pub events: u64,
    pub admitted: u64,
    pub waited: u64,
    pub refused: u64,
    pub expired: u64,
    pub left: u64,
    pub races: u64,
}

pub struct World<'a> {
    pub now: u64,
    pub seed: u64,
    pub ops: &'a [Op],
    pub policies: &'a [Rc<Policy>],
    pub policy: usize,
    pub threads: Vec<Thread>,
    pub nodes: Vec<Node>,
    pub lives: Vec<Life>,
    /// The record and its version.
    pub store: Option<(Vec<u8>, u32)>,
    pub audit: Audit,
    pub seen: Seen,
    pub racing: bool,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    sequence: u64,
    version: u32,
}

impl<'a> World<'a> {
    pub fn new(seed: u64, threads: u64, policies: &'a [Rc<Policy>], ops: &'a [Op], calm: bool) -> World<'a> {
        let mut world = World {
            now: MS,
            seed,
            ops,
            policies,
            policy: 0,
            threads: (0..threads).map(|_| Thread::default()).collect(),
            nodes: Vec::new(),
            lives: Vec::new(),
            store: None,
            audit: Audit::new(policies, calm),
            seen: Seen::default(),
            racing: false,
            events: BinaryHeap::new(),
            sequence: 0,
            version: 0,
        };
        (0..world.threads.len()).for_each(|thread| world.configure(thread, 0));
        for (place, op) in ops.iter().enumerate() {
            world.schedule(op.at, Event::Op(place));
        }
        world
    }

    /// Runs the history and the time after it until all is quiet.
    pub fn run(mut self) -> Result<Seen, Fault> {
        let mut end = self.ops.last().map_or(0, |op| op.at) + 20_000 * MS;
        while let Some(Reverse((at, _, event))) = self.events.pop() {
            if at > end {
                if self.lives.iter().all(|life| matches!(life.state, State::Over | State::Orphan)) {
                    break;
                }
                end = at + 1000 * MS;
                if at > self.ops.last().map_or(0, |op| op.at) + 120_000 * MS {
                    self.audit.fault("not quiet two minutes after the last event".to_string());
                }
            }
            self.now = at;
            self.seen.events += 1;
            if self.seen.events > 20_000 + 40 * self.ops.len() as u64 {
                self.audit.fault("more callbacks than anybody has reason for".to_owned());
            }
            self.handle(event);
            crate::rest::after_event(&mut self);
            self.check()?;
        }
        crate::rest::at_the_end(&mut self);
        self.check()?;
        Ok(self.seen)
    }

    fn check(&mut self) -> Result<(), Fault> {
        match self.audit.found.take() {
            Some(what) => Err(Fault { at: self.now, what }),
            None => Ok(()),
        }
    }

    pub fn time(&self) -> Time {
        Time(self.now)
    }

    fn schedule(&mut self, at: u64, event: Event) {
        self.sequence += 1;
        self.events.push(Reverse((at, self.sequence, event)));
    }

    /// A number that depends on the moment and on `salt` alone.
    pub fn chance(&self, salt: u64) -> u64 {
        mix(self.seed ^ mix(self.now ^ salt.wrapping_mul(0x9E37_79B9)))
    }

    fn thread_of(&self, event: Event) -> Option<usize> {
        match event {
            Event::Op(op) => match &self.ops[op].what {
                What::Arrive(arrival) => Some(arrival.thread as usize % self.threads.len()),
                _ => None,
            },
            Event::Tick { node, .. } | Event::Wake(node) => Some(self.nodes[node].thread),
            Event::End(life) | Event::ClientLeaves(life) => Some(self.nodes[self.lives[life].node].thread),
            Event::Configure { thread, .. } => Some(thread),
        }
    }

    fn handle(&mut self, event: Event) {
        if let Some(thread) = self.thread_of(event)
            && self.threads[thread].stalled > self.now
        {
            self.schedule(self.threads[thread].stalled, event);
            return;
        }
        match event {
            Event::Op(op) => match self.ops[op].what.clone() {
                What::Arrive(arrival) => self.arrive(arrival),
                What::Crash { thread, gone } => self.crash(thread as usize % self.threads.len(), gone),
                What::Stall { thread, time } => {
                    let thread = thread as usize % self.threads.len();
                    let until = self.now + time;
                    self.threads[thread].stalled = self.threads[thread].stalled.max(until);
                }
                What::Reload { policy, skew } => {
                    self.policy = policy;
                    for thread in 0..self.threads.len() {
                        self.schedule(
                            self.now + skew * thread as u64,
                            Event::Configure { thread, policy: Some(policy) },
                        );
                    }
                }
            },
            Event::Tick { node, epoch } => {
                if self.nodes[node].alive && self.nodes[node].epoch == epoch {
                    self.on_tick(node);
                    if self.nodes[node].alive && self.nodes[node].epoch == epoch {
                        let period = if self.nodes[node].busy { BUSY_TICK } else { IDLE_TICK };
                        self.schedule(self.now + period, event);
                    }
                }
            }
            Event::Wake(node) => {
                if self.nodes[node].alive {
                    self.nodes[node].woken = false;
                    self.turn(node);
                }
            }
            Event::End(life) => self.end(life),
            Event::ClientLeaves(life) => self.client_leaves(life),
            Event::Configure { thread, policy } => self.configure(thread, policy.unwrap_or(self.policy)),
        }
    }

    /// A thread gets a policy: a new worker takes its requests, the old one goes on until it has none.
    fn configure(&mut self, thread: usize, policy: usize) {
        let at = self.nodes.len();
        let policy = Rc::clone(&self.policies[policy]);
        // The clock tells nanoseconds apart.
        let latest = self.nodes.iter().map(|node| node.generation).max().unwrap_or(0);
        let generation = self.now.max(latest + 1);
        self.audit.configured(generation, &policy);
        self.nodes.push(Node {
            thread,
            admission: Admission::new(&policy, Time(generation)),
            policy,
            writer: None,
            generation,
            alive: true,
            woken: false,
            busy: false,
            epoch: 0,
            requests: HashMap::new(),
            parts: HashMap::new(),
        });
        self.threads[thread].newest = Some(at);
        self.tick_every(at, IDLE_TICK);
    }

    pub fn tick_every(&mut self, node: usize, period: u64) {
        self.nodes[node].epoch += 1;
        let epoch = self.nodes[node].epoch;
        self.schedule(self.now + period, Event::Tick { node, epoch });
    }

    /// A message to a queue arrives after a while, if the worker that listens to it still lives.
    pub fn wake(&mut self, queue: u32) {
        let delay = 50_000 + self.chance(u64::from(queue)) % 550_000;
        self.schedule(self.now + delay, Event::Wake(queue as usize));
    }

    fn arrive(&mut self, arrival: Arrival) {
        let thread = arrival.thread as usize % self.threads.len();
        // Without a VM Envoy answers by itself.
        let Some(node) = self.threads[thread].newest else { return };
        if self.nodes[node].writer.is_none() {
            let uid = mix(node as u64);
            self.nodes[node].writer = Some(Writer { uid, queue: node as u32 });
        }
        let life = self.lives.len();
        let place = arrival.class as usize % self.nodes[node].policy.classes.len();
        let request = Request {
            stream: StreamId(life as u32),
            class: ClassId(place as u8),
            tokens: arrival.tokens,
            key: arrival.key.map(mix),
            patience: arrival.patience.map(Duration::from_nanos),
        };
        if let Some(after) = arrival.leaves {
            self.schedule(self.now + after, Event::ClientLeaves(life));
        }
        self.admit(node, place, arrival, request);
    }

    /// A request goes to the model server.
    pub fn tell(&mut self, life: usize) {
        self.enter(life, State::Running);
        self.schedule(self.now + self.lives[life].arrival.service, Event::End(life));
    }

    pub fn enter(&mut self, life: usize, state: State) {
        let now = self.now;
        let life = &mut self.lives[life];
        (life.state, life.entered) = (state, now);
    }

    fn end(&mut self, life: usize) {
        if self.lives[life].state == State::Running {
            let served = self.lives[life].arrival.served;
            self.leave(life, if served { Ending::Served } else { Ending::Failed }, false);
        }
    }

    fn client_leaves(&mut self, life: usize) {
        let Some(state) = self.lives.get(life).map(|life| life.state) else { return };
        match state {
            State::Parked | State::Held => {
                self.seen.left += 1;
                self.leave(life, Ending::Gone, false);
            }
            State::Running => self.leave(life, Ending::Gone, true),
            State::Lingering(_) | State::Over | State::Orphan => {}
        }
    }

    fn crash(&mut self, thread: usize, gone: u64) {
        self.threads[thread].newest = None;
        for node in 0..self.nodes.len() {
            if self.nodes[node].thread != thread || !self.nodes[node].alive {
                continue;
            }
            self.nodes[node].alive = false;
            let requests: Vec<usize> = self.nodes[node].requests.values().copied().collect();
            requests.into_iter().for_each(|life| self.enter(life, State::Orphan));
        }
        self.schedule(self.now + gone, Event::Configure { thread, policy: None });
    }

    pub fn put(&mut self, bytes: Vec<u8>, version: Option<u32>) -> bool {
        if self.store.as_ref().map(|(_, version)| *version) != version {
            return false;
        }
        self.version += 1;
        self.store = Some((bytes, self.version));
        true
    }
}
