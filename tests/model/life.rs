//! What is true of requests and of workers, whatever the ledger says.

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use sluice::core::admission::ledger::Key;
use sluice::core::admission::{Admission, Writer};
use sluice::core::policy::Policy;
use sluice::core::units::Ticket;

use crate::history::Arrival;

/// Where a request stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Parked,
    /// It has a slot and has not been told.
    Held,
    Running,
    /// Its client has left; its slot is taken until then.
    Lingering(u64),
    Over,
    /// Its worker's VM has failed.
    Orphan,
}

/// One request.
#[derive(Debug)]
pub struct Life {
    pub arrival: Arrival,
    pub node: usize,
    pub ticket: Ticket,
    pub class: Key,
    pub since: u64,
    pub deadline: u64,
    pub state: State,
    /// Since when it is in that state.
    pub entered: u64,
}

/// One worker under one policy.
pub struct Node {
    pub thread: usize,
    pub policy: Rc<Policy>,
    pub admission: Admission,
    pub writer: Option<Writer>,
    pub generation: u64,
    pub alive: bool,
    pub woken: bool,
    pub busy: bool,
    /// Timers of an earlier period do not count.
    pub epoch: u64,
    pub requests: HashMap<Ticket, usize>,
    /// Its part in each class that it has dealt with.
    pub parts: HashMap<Key, Part>,
}

/// A worker's part in a class.
#[derive(Default, Debug)]
pub struct Part {
    pub parked: BTreeSet<usize>,
    pub held: u64,
    pub tokens: u64,
}

/// One of Envoy's threads.
#[derive(Default)]
pub struct Thread {
    /// It does nothing until then.
    pub stalled: u64,
    /// The worker that new requests go to; none while its VM is gone.
    pub newest: Option<usize>,
}
