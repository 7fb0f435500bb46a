//! Requests by their tickets, from arrival to end.

use std::time::Duration;

use super::line;
use crate::core::units::{ClassId, Numbered, StreamId, Ticket, Time};

/// A request that arrives.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// The stream to act on when it may go on.
    pub stream: StreamId,
    /// Its class.
    pub class: ClassId,
    /// What it weighs in token budgets: prompt and output, estimated.
    pub tokens: u64,
    /// Whose turn it takes, where keys take turns.
    pub key: Option<u64>,
    /// How long it would wait; it can only shorten the class's queue timeout.
    pub patience: Option<Duration>,
}

/// How a request ended, as far as it tells how fast work is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// An answer below 500 ran its course.
    Served,
    /// It was answered with 500 or more, by the model server or in its place.
    Failed,
    /// It tells nothing: its client left, or it never had a slot.
    Gone,
}

/// A request that leaves the line, to go on or to be refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaving {
    /// Its claim.
    pub ticket: Ticket,
    /// The stream to act on.
    pub stream: StreamId,
}

/// One request.
#[derive(Debug)]
pub struct Claim {
    pub class: ClassId,
    pub stream: StreamId,
    pub tokens: u64,
    pub place: Place,
}

/// Where a request stands.
#[derive(Debug)]
pub enum Place {
    Waiting {
        place: line::Place,
        deadline: Time,
    },
    Running,
    /// Its client has left; the slot stays taken for a little while.
    Lingering,
}

/// All requests of one worker.
#[derive(Debug, Default)]
pub struct Claims {
    by_ticket: Numbered<Ticket, Claim>,
    next: u64,
}

impl Claims {
    /// A request arrives; `line` puts it in line.
    pub fn enter(
        &mut self,
        request: &Request,
        deadline: Time,
        line: impl FnOnce(Ticket) -> line::Place,
    ) -> Ticket {
        let ticket = Ticket(self.next);
        self.next += 1;
        let place = Place::Waiting { place: line(ticket), deadline };
        let Request { class, stream, tokens, .. } = *request;
        self.by_ticket.insert(ticket, Claim { class, stream, tokens, place });
        ticket
    }

    pub fn get(&self, ticket: Ticket) -> Option<&Claim> {
        self.by_ticket.get(&ticket)
    }

    pub fn get_mut(&mut self, ticket: Ticket) -> Option<&mut Claim> {
        self.by_ticket.get_mut(&ticket)
    }

    pub fn remove(&mut self, ticket: Ticket) -> Option<Claim> {
        self.by_ticket.remove(&ticket)
    }

    /// What is needed to act on a request that is still there.
    pub fn leaving(&self, ticket: Ticket) -> Option<Leaving> {
        self.get(ticket).map(|claim| Leaving { ticket, stream: claim.stream })
    }
}
