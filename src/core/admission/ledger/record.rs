//! The record: the domain's rules and a row for every worker that has something to do with it.

use super::rules::{Key, Rules};
use super::{LEASE, TURNS};
use crate::core::units::{Ticket, Time};

/// What the workers know together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Record {
    /// The limits in force.
    pub rules: Rules,
    /// The workers.
    pub rows: Vec<Row>,
    /// The classes in which keys take turns and somebody waits.
    pub turns: Vec<Turns>,
}

/// The turns that were had lately in one class, on whichever worker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Turns {
    /// Which class.
    pub class: Key,
    /// The keys whose requests were let go on last, each once, the latest at the end.
    pub had: Vec<u32>,
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
    /// Whose turn it takes; 0 where there are no turns.
    pub key: u32,
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

    /// Which of the waiting keys of `class` comes first: 0 where it had no turn lately, and the higher the later it had
    /// one.
    pub fn turn(&self, class: Key, key: u32) -> usize {
        let turns = self.turns.iter().find(|turns| turns.class == class);
        turns.and_then(|turns| turns.had.iter().position(|had| *had == key)).map_or(0, |at| at + 1)
    }

    /// `key` has its turn.
    pub fn take_turn(&mut self, class: Key, key: u32) {
        let known = self.turns.iter().position(|turns| turns.class == class);
        let at = known.unwrap_or(self.turns.len());
        if known.is_none() {
            self.turns.push(Turns { class, had: Vec::new() });
        }
        let Some(Turns { had, .. }) = self.turns.get_mut(at) else { return };
        had.retain(|other| *other != key);
        if had.len() >= TURNS {
            had.remove(0);
        }
        had.push(key);
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
