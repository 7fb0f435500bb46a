//! What a worker does in its callbacks: the same steps as the filter's, without its streams.

use sluice::core::admission::ledger::Record;
use sluice::core::admission::{Ending, Leaving, Request};
use sluice::core::units::Ticket;

use crate::audit;
use crate::history::Arrival;
use crate::life::{Life, State};
use crate::world::{BUSY_TICK, IDLE_TICK, World};

const ACTIONS: usize = 32;

impl World<'_> {
    pub fn admit(&mut self, node: usize, place: usize, arrival: Arrival, request: Request) {
        let now = self.time();
        let at = &mut self.nodes[node];
        let Some(ticket) = at.admission.enter(now, request) else { return };
        let class = &at.policy.classes[place];
        let wait = request.patience.map_or(class.queue.timeout, |patience| patience.min(class.queue.timeout));
        let key = sluice::core::admission::ledger::Key::of(&class.name);
        let life = self.lives.len();
        at.requests.insert(ticket, life);
        at.parts.entry(key).or_default().parked.insert(life);
        self.lives.push(Life {
            arrival,
            node,
            ticket,
            class: key,
            since: now.0,
            deadline: now.after(wait).0,
            state: State::Parked,
            entered: now.0,
        });
        match self.settle(node, Some(ticket), true) {
            Some(true) => {
                self.seen.admitted += 1;
                self.tell(life);
            }
            Some(false) => {
                self.seen.waited += 1;
                self.watch(node);
                audit::parked(self, life);
            }
            None => {
                let now = self.time();
                self.nodes[node].admission.leave(now, ticket, Ending::Gone, false);
                self.seen.refused += 1;
                self.drop_parked(life);
                self.over(life, ticket);
                audit::refused(self, life);
            }
        }
    }

    fn drop_parked(&mut self, life: usize) {
        let Life { node, class, .. } = self.lives[life];
        self.nodes[node].parts.entry(class).or_default().parked.remove(&life);
    }

    fn drop_held(&mut self, life: usize) {
        let Life { node, class, .. } = self.lives[life];
        let part = self.nodes[node].parts.entry(class).or_default();
        part.held -= 1;
        part.tokens -= self.lives[life].arrival.tokens;
    }

    fn over(&mut self, life: usize, ticket: Ticket) {
        let node = self.lives[life].node;
        self.nodes[node].requests.remove(&ticket);
        self.enter(life, State::Over);
    }

    pub fn leave(&mut self, life: usize, ending: Ending, broken: bool) {
        let now = self.time();
        let Life { node, ticket, .. } = self.lives[life];
        match self.lives[life].state {
            State::Running if broken => self.enter(life, State::Lingering(now.0 + 20_000_000)),
            State::Parked => {
                self.drop_parked(life);
                self.over(life, ticket);
            }
            _ => {
                self.drop_held(life);
                self.over(life, ticket);
            }
        }
        // Leaving twice is leaving once.
        if self.nodes[node].admission.leave(now, ticket, ending, broken) {
            if self.nodes[node].admission.leave(now, ticket, ending, broken) {
                self.audit.fault(format!("{ticket:?} could be released twice"));
            }
            self.settle(node, None, true);
        }
        if self.nodes[node].admission.is_waiting() {
            self.watch(node);
        }
    }

    pub fn on_tick(&mut self, node: usize) {
        let now = self.time();
        self.nodes[node].admission.note(now);
        if self.nodes[node].writer.is_some() {
            self.turn(node);
            if self.nodes[node].busy && !self.nodes[node].admission.is_waiting() {
                self.nodes[node].busy = false;
                self.tick_every(node, IDLE_TICK);
            }
        }
        let replaced = self.threads[self.nodes[node].thread].newest != Some(node);
        if replaced && self.nodes[node].requests.is_empty() {
            self.nodes[node].alive = false;
        }
    }

    fn watch(&mut self, node: usize) {
        if !std::mem::replace(&mut self.nodes[node].busy, true) {
            self.tick_every(node, BUSY_TICK);
        }
    }

    fn wake_self(&mut self, node: usize) {
        if !std::mem::replace(&mut self.nodes[node].woken, true) {
            self.wake(node as u32);
        }
    }

    pub fn turn(&mut self, node: usize) {
        if self.nodes[node].writer.is_none() {
            return;
        }
        let now = self.time();
        let mut left = ACTIONS;
        let late = self.nodes[node].admission.expire(now, left);
        let mut changed = !late.is_empty();
        left -= late.len();
        for Leaving { ticket, stream } in late {
            let life = stream.0 as usize;
            self.seen.expired += 1;
            if self.lives[life].state != State::Parked || self.lives[life].deadline > now.0 {
                self.audit.fault(format!("expired out of turn: {:?}", self.lives[life]));
            }
            self.drop_parked(life);
            self.over(life, ticket);
        }
        self.end_lingering(node);
        changed |= self.nodes[node].admission.end_lingering(now);
        if changed || self.nodes[node].admission.is_unsettled(now) {
            self.settle(node, None, changed);
        }
        let ready = self.nodes[node].admission.take_ready(left);
        for Leaving { stream, .. } in ready {
            let life = stream.0 as usize;
            if self.lives[life].state != State::Held {
                self.audit.fault(format!("told without a slot: {:?}", self.lives[life]));
            }
            self.tell(life);
        }
        let admission = &self.nodes[node].admission;
        if admission.has_ready() || admission.has_overdue(now) {
            self.wake_self(node);
        }
    }

    fn end_lingering(&mut self, node: usize) {
        let now = self.now;
        let ended = |life: &usize| matches!(self.lives[*life].state, State::Lingering(until) if until <= now);
        let requests = self.nodes[node].requests.iter().map(|(ticket, life)| (*ticket, *life));
        let done: Vec<_> = requests.filter(|(_, life)| ended(life)).collect();
        for (ticket, life) in done {
            self.drop_held(life);
            self.over(life, ticket);
        }
    }

    pub fn settle(&mut self, node: usize, arriving: Option<Ticket>, changed: bool) -> Option<bool> {
        let writer = self.nodes[node].writer?;
        let now = self.time();
        for again in 0..1000 {
            let found = self.store.clone();
            let (bytes, version) =
                (found.as_ref().map(|found| &found.0[..]), found.as_ref().map(|found| found.1));
            let propose =
                |world: &mut World| world.nodes[node].admission.propose(now, writer, bytes, arriving);
            let mut settlement = propose(self);
            if self.chance(3).is_multiple_of(16) {
                let mut twin = propose(self);
                let same = twin.record() == settlement.record()
                    && twin.wake == settlement.wake
                    && twin.starts() == settlement.starts();
                if !same {
                    self.audit.fault("proposing twice gives two results".to_owned());
                }
            }
            if again < 3 && !self.racing && self.chance(7 + again).is_multiple_of(8) {
                self.race(node);
            }
            let due = settlement.is_due(changed);
            if due && !self.put(settlement.record().to_vec(), version) {
                self.seen.races += 1;
                continue;
            }
            let starts = settlement.starts().to_vec();
            if due {
                for queue in &settlement.wake {
                    self.wake(*queue);
                }
                self.start(node, &starts);
                audit::written(self, node, bytes, &starts, &settlement.wake);
            } else if arriving.is_some() {
                // As it was found, but for new leases that were given.
                let mut found = bytes.and_then(Record::decode).unwrap_or_default();
                let judged = Record::decode(settlement.record()).unwrap_or_default();
                for row in &mut found.rows {
                    let beat = judged.rows.iter().find(|other| other.uid == row.uid).map(|other| other.beat);
                    row.beat = beat.unwrap_or(row.beat);
                }
                self.audit.judged_by = found;
            }
            let admitted = self.nodes[node].admission.commit(now, settlement, due);
            if self.nodes[node].admission.has_ready() {
                self.wake_self(node);
            }
            return due.then_some(admitted);
        }
        self.audit.fault("a thousand lost races".to_owned());
        None
    }

    fn start(&mut self, node: usize, tickets: &[Ticket]) {
        for ticket in tickets {
            let life = self.nodes[node].requests.get(ticket).copied();
            let Some(life) = life.filter(|life| self.lives[*life].state == State::Parked) else {
                self.audit.fault(format!("{ticket:?} starts and does not wait"));
                return;
            };
            self.drop_parked(life);
            let (class, tokens) = (self.lives[life].class, self.lives[life].arrival.tokens);
            let part = self.nodes[node].parts.entry(class).or_default();
            part.held += 1;
            part.tokens += tokens;
            self.enter(life, State::Held);
        }
    }

    /// Another worker is faster: it settles the same record, and one of its requests may end meanwhile.
    fn race(&mut self, node: usize) {
        let able = |at: &usize| {
            let other = &self.nodes[*at];
            other.alive && other.writer.is_some() && self.threads[other.thread].stalled <= self.now
        };
        let others: Vec<usize> = (0..self.nodes.len()).filter(|at| *at != node).filter(able).collect();
        let Some(other) = others.get(self.chance(11) as usize % others.len().max(1)).copied() else { return };
        if self.nodes[other].thread == self.nodes[node].thread {
            return;
        }
        self.racing = true;
        let runs = |life: &&usize| self.lives[**life].state == State::Running;
        let running = self.nodes[other].requests.values().filter(runs).min().copied();
        match running.filter(|_| self.chance(13).is_multiple_of(2)) {
            Some(life) => self.leave(life, Ending::Served, false),
            None => {
                self.settle(other, None, true);
            }
        }
        self.racing = false;
    }
}
