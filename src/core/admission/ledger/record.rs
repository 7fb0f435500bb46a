//! The record: the domain's rules and a row for every worker that has something to do with it.

use super::LEASE;
use super::rules::{Key, Rules};
use crate::core::units::{Ticket, Time};

/// What the workers know together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Record {
    /// The limits in force.
    pub rules: Rules,
    /// The workers.
    pub rows: Vec<Row>,
}

/// One worker, under one configuration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// Which one; drawn at random, since neither threads nor VMs have numbers that outlive a reload.
    pub uid: u64,
    /// When it was last heard of.
    pub beat: Time,
    /// The queue that wakes it.
    pub queue: u32,
    /// Whether a wake-up is on its way to it.
    pub woken: bool,
    /// Whether it has let a slot lie; nothing more is handed to it until it is heard of.
    pub slow: bool,
    /// Its part in each class.
    pub shares: Vec<Share>,
}

/// One worker's part in one class.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Share {
    /// Which class.
    pub class: Key,
    /// Requests in flight.
    pub inflight: u32,
    /// Their estimated tokens.
    pub tokens: u64,
    /// Requests waiting, shown or not.
    pub waiting: u32,
    /// Answers a second while busy; 0 where not known.
    pub per_second: f32,
    /// Since when no answer has come.
    pub since: Time,
    /// The first of those that wait, in the order in which this worker would serve them.
    pub heads: Vec<Head>,
}

/// A waiting request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// Which one of its row's.
    pub ticket: Ticket,
    /// Since when it waits.
    pub since: Time,
    /// Its estimated tokens.
    pub tokens: u64,
    /// How many turns of its line come before its own; 0 where there are none.
    pub turn: u32,
    /// When a slot was handed to it.
    pub granted: Option<Time>,
}

/// What a class is up against, over all workers: the ground for telling a refused client when to come back.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Demand {
    /// Requests in flight.
    pub inflight: u32,
    /// Their estimated tokens.
    pub tokens: u64,
    /// Requests waiting.
    pub waiting: u32,
    /// Answers a second; 0 where not known.
    pub per_second: f64,
    /// Since when no answer has come.
    pub since: Time,
}

impl Row {
    /// Whether its worker was heard of lately enough to count.
    pub fn is_fresh(&self, now: Time) -> bool {
        now.since(self.beat) < LEASE
    }

    /// Its part in a class.
    pub fn share(&self, class: Key) -> Option<&Share> {
        self.shares.iter().find(|share| share.class == class)
    }
}

impl Share {
    /// Waiting requests that a slot was handed to: they hold it already, as far as others are concerned.
    pub fn granted(&self) -> impl Iterator<Item = &Head> {
        self.heads.iter().filter(|head| head.granted.is_some())
    }
}

impl Record {
    /// Rows that count.
    pub fn fresh(&self, now: Time) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(move |row| row.is_fresh(now))
    }

    /// Whether some row still has to do with `class`.
    pub fn mentions(&self, class: Key) -> bool {
        self.rows.iter().any(|row| row.share(class).is_some())
    }

    /// What `class` is up against.
    pub fn demand(&self, now: Time, class: Key) -> Demand {
        self.fresh(now).filter_map(|row| row.share(class)).fold(Demand::default(), |sum, share| Demand {
            inflight: sum.inflight.saturating_add(share.inflight),
            tokens: sum.tokens.saturating_add(share.tokens),
            waiting: sum.waiting.saturating_add(share.waiting),
            per_second: sum.per_second + f64::from(share.per_second),
            since: sum.since.max(share.since),
        })
    }
}
