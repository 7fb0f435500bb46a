//! Who may go on, who waits and who is refused. Time and streams come as arguments, decisions go out as data.

mod drain;
mod line;
mod slots;

use std::time::Duration;

use hashbrown::HashMap;

use crate::core::policy::Class;
use crate::core::units::{ClassId, StreamId, Ticket, Time};
use drain::DrainRate;
use line::Lines;
use slots::Slots;

/// The answer to a request that arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// A slot is its own: go on.
    Admitted(Ticket),
    /// It waits in line.
    Parked(Ticket),
    /// The line is full.
    Full,
}

/// A request that leaves the line, to go on or to be refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaving {
    /// Its claim.
    pub ticket: Ticket,
    /// The stream to act on.
    pub stream: StreamId,
}

/// The classes' slots and lines.
#[derive(Debug)]
pub struct Admission {
    slots: Slots,
    lines: Lines,
    rates: Vec<DrainRate>,
    rules: Vec<Rule>,
    claims: HashMap<Ticket, Claim>,
    next: u64,
}

#[derive(Debug)]
struct Rule {
    capacity: usize,
    timeout: Duration,
}

#[derive(Debug)]
struct Claim {
    class: ClassId,
    stream: StreamId,
    /// When its patience ends; `None` once it holds a slot.
    waits_until: Option<Time>,
}

impl Admission {
    /// Free slots and empty lines for `classes`.
    pub fn new(classes: &[Class], now: Time) -> Admission {
        Admission {
            slots: Slots::new(classes.iter().map(|class| class.concurrency)),
            lines: Lines::new(classes.len()),
            rates: vec![DrainRate::new(now); classes.len()],
            rules: classes
                .iter()
                .map(|class| Rule { capacity: class.queue.capacity, timeout: class.queue.timeout })
                .collect(),
            claims: HashMap::new(),
            next: 0,
        }
    }

    /// A request of `class` arrives; `patience` can only shorten the class's queue timeout.
    ///
    /// A free slot goes to those who wait first: a newcomer takes one only while its line is empty.
    pub fn arrive(
        &mut self,
        now: Time,
        stream: StreamId,
        class: ClassId,
        patience: Option<Duration>,
    ) -> Arrival {
        let ticket = Ticket(self.next);
        let waiting = self.lines.len(class);
        if waiting == 0 && self.slots.take(class) {
            self.next += 1;
            self.claims.insert(ticket, Claim { class, stream, waits_until: None });
            return Arrival::Admitted(ticket);
        }
        let rule = self.rules.get(class.index());
        let wait = rule.map_or(Duration::ZERO, |rule| patience.map_or(rule.timeout, |p| p.min(rule.timeout)));
        if rule.is_none_or(|rule| waiting >= rule.capacity) || wait.is_zero() {
            return Arrival::Full;
        }
        self.next += 1;
        let deadline = now.after(wait);
        self.lines.push(class, ticket, deadline);
        self.claims.insert(ticket, Claim { class, stream, waits_until: Some(deadline) });
        Arrival::Parked(ticket)
    }

    /// A request ends, wherever it stood: its slot is free or its place in line gone. `served` tells that an answer
    /// below 500 ran its course. Without effect on a ticket that has already left.
    pub fn leave(&mut self, now: Time, ticket: Ticket, served: bool) {
        let Some(claim) = self.claims.remove(&ticket) else { return };
        match claim.waits_until {
            Some(deadline) => self.lines.remove(claim.class, ticket, deadline),
            None => self.slots.give_back(claim.class),
        }
        if served && let Some(rate) = self.rates.get_mut(claim.class.index()) {
            rate.answered(now);
        }
    }

    /// Hands free slots to at most `most` waiting requests, the most urgent classes and the oldest requests first.
    pub fn dispatch(&mut self, most: usize) -> Vec<Leaving> {
        let mut leaving = Vec::new();
        for class in self.classes() {
            while leaving.len() < most
                && let Some(ticket) = self.lines.first(class)
                && self.slots.take(class)
            {
                let Some(claim) = self.claims.get_mut(&ticket) else {
                    self.slots.give_back(class);
                    break;
                };
                if let Some(deadline) = claim.waits_until.take() {
                    self.lines.remove(class, ticket, deadline);
                }
                leaving.push(Leaving { ticket, stream: claim.stream });
            }
        }
        leaving
    }

    /// Takes at most `most` requests out of the lines whose patience has ended.
    pub fn expire(&mut self, now: Time, most: usize) -> Vec<Leaving> {
        let mut leaving = Vec::new();
        while leaving.len() < most
            && let Some(ticket) = self.lines.overdue(now)
            && let Some(claim) = self.claims.remove(&ticket)
        {
            if let Some(deadline) = claim.waits_until {
                self.lines.remove(claim.class, ticket, deadline);
            }
            leaving.push(Leaving { ticket, stream: claim.stream });
        }
        leaving
    }

    /// Whether [`Admission::dispatch`] would find something to do.
    pub fn has_ready(&self) -> bool {
        self.classes().any(|class| self.lines.len(class) > 0 && self.slots.free(class))
    }

    /// Whether [`Admission::expire`] would find something to do.
    pub fn has_overdue(&self, now: Time) -> bool {
        self.lines.overdue(now).is_some()
    }

    /// Whether anybody waits.
    pub fn is_waiting(&self) -> bool {
        !self.lines.is_empty()
    }

    /// When a refused request of `class` should come back; `chance` is any number that differs between requests.
    pub fn retry_after(&self, now: Time, class: ClassId, chance: u64) -> Option<Duration> {
        let waiting = self.lines.len(class);
        self.rates.get(class.index()).map(|rate| rate.retry_after(now, waiting, chance))
    }

    /// Requests of `class` in flight and waiting.
    pub fn load(&self, class: ClassId) -> (usize, usize) {
        (self.slots.inflight(class), self.lines.len(class))
    }

    fn classes(&self) -> impl Iterator<Item = ClassId> + use<> {
        (0..self.rules.len()).filter_map(|n| u8::try_from(n).ok()).map(ClassId)
    }
}

#[cfg(test)]
mod tests;
