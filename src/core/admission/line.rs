//! The waiting lines: one a class, first in first out, each request with a deadline of its own.

use std::collections::BTreeSet;

use crate::core::units::{ClassId, Ticket, Time};

/// Requests that wait. Every operation is logarithmic in their number; who leaves is gone at once.
#[derive(Debug, Default)]
pub struct Lines {
    classes: Vec<BTreeSet<Ticket>>,
    deadlines: BTreeSet<(Time, Ticket)>,
}

impl Lines {
    /// Empty lines of `classes` classes.
    pub fn new(classes: usize) -> Lines {
        Lines { classes: vec![BTreeSet::new(); classes], deadlines: BTreeSet::new() }
    }

    /// Puts a request at the end of its class's line: tickets are given in order of arrival.
    pub fn push(&mut self, class: ClassId, ticket: Ticket, deadline: Time) {
        if let Some(line) = self.classes.get_mut(class.index()) {
            line.insert(ticket);
            self.deadlines.insert((deadline, ticket));
        }
    }

    /// Takes a request out, wherever it stands.
    pub fn remove(&mut self, class: ClassId, ticket: Ticket, deadline: Time) {
        if let Some(line) = self.classes.get_mut(class.index()) {
            line.remove(&ticket);
        }
        self.deadlines.remove(&(deadline, ticket));
    }

    /// The request of `class` that waits longest.
    pub fn first(&self, class: ClassId) -> Option<Ticket> {
        self.classes.get(class.index()).and_then(BTreeSet::first).copied()
    }

    /// The request whose deadline comes first, where it has come.
    pub fn overdue(&self, now: Time) -> Option<Ticket> {
        self.deadlines.first().filter(|(deadline, _)| *deadline <= now).map(|(_, ticket)| *ticket)
    }

    /// Requests of `class` that wait.
    pub fn len(&self, class: ClassId) -> usize {
        self.classes.get(class.index()).map_or(0, BTreeSet::len)
    }

    /// Whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.deadlines.is_empty()
    }
}
