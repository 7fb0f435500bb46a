//! Settling with the ledger: the worker's own row rewritten from its own truth, slots handed out, what fell to this
//! worker taken. Proposing changes nothing here, since the record may have changed meanwhile and it has to be done
//! again; committing follows once the record has been written.

use std::rc::Rc;

use super::claims::Place;
use super::ledger::{Demand, HEADS, Head, LEASE, Record, Row, Share, hand_out};
use super::{Admission, PoolId};
use crate::core::units::{ClassId, Ticket, Time};

/// Most requests taken at once: they are told one by one, and the rest of the time belongs to others.
const MOST: usize = 32;

/// Who writes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Writer {
    /// The row's own number.
    pub uid: u64,
    /// The queue that wakes this worker.
    pub queue: u32,
}

/// What settling would come to.
#[derive(Debug)]
pub struct Settlement {
    /// The record to write.
    pub record: Vec<u8>,
    /// The queues of other workers that were given something.
    pub wake: Vec<u32>,
    /// Whether nothing has changed that anybody would have to know of now.
    idle: bool,
    /// Whether the request that arrives finds neither a slot nor a place in line.
    full: bool,
    pool: PoolId,
    arriving: Option<Ticket>,
    taken: Vec<Ticket>,
    demands: Vec<(ClassId, Demand)>,
}

impl Settlement {
    /// Whether the record has to be written; `changed` tells that the worker's own truth has changed since it last was.
    pub fn is_due(&self, changed: bool) -> bool {
        !self.full && (changed || !self.idle)
    }

    /// The requests that would get a slot.
    pub fn starts(&self) -> &[Ticket] {
        &self.taken
    }
}

impl Admission {
    /// The key of a pool's record.
    pub fn record_key(&self, pool: PoolId) -> Option<Rc<str>> {
        self.pools.get(pool.0).map(|pool| Rc::clone(&pool.key))
    }

    /// The pools with which there is something to settle: somebody waits, or others have to hear of this worker.
    pub fn unsettled(&self, now: Time) -> Vec<PoolId> {
        let due = |pool: &super::Pool| {
            let classes = pool.classes.iter().filter_map(|class| self.classes.get(class.index()));
            let (mut waiting, mut inflight) = (false, false);
            for class in classes {
                waiting |= class.line.len() > 0;
                inflight |= class.inflight > 0;
            }
            waiting || (inflight && pool.needs_beat(now))
        };
        let all = self.pools.iter().enumerate();
        all.filter(|(_, pool)| due(pool)).map(|(place, _)| PoolId(place)).collect()
    }

    /// What settling `pool` comes to, given its record as `found`; `arriving` is the request it is done for.
    pub fn propose(
        &self,
        now: Time,
        writer: Writer,
        pool: PoolId,
        found: Option<&[u8]>,
        arriving: Option<Ticket>,
    ) -> Settlement {
        let mut record = found.and_then(Record::decode).unwrap_or_default();
        let mut taken = Vec::new();
        let Some(own) = self.pools.get(pool.0) else {
            let (wake, demands, record) = (Vec::new(), Vec::new(), Vec::new());
            return Settlement { record, wake, idle: true, full: true, pool, arriving, taken, demands };
        };
        if record.rules.generation < own.rules.generation {
            record.rules = own.rules.clone();
        }
        record.rows.retain(|row| row.uid == writer.uid || now.since(row.beat) < LEASE * 3);
        let known = record.rows.iter().position(|row| row.uid == writer.uid);
        let at = known.unwrap_or(record.rows.len());
        if known.is_none() {
            record.rows.push(Row { uid: writer.uid, ..Row::default() });
        }
        let before = record.rows.get(at);
        let heard_of =
            before.is_some_and(|row| row.is_fresh(now) && !row.slow && !row.woken) && !own.needs_beat(now);
        // What was handed to a worker that is taken for dead has been handed to others since.
        if let Some(row) = before.filter(|row| row.is_fresh(now)) {
            self.take(row, &mut taken);
        }
        loop {
            if let Some(row) = record.rows.get_mut(at) {
                *row = self.row(now, writer, own, &taken);
            }
            hand_out(&mut record, now);
            let so_far = taken.len();
            if let Some(row) = record.rows.get(at).filter(|_| so_far < MOST) {
                self.take(row, &mut taken);
            }
            if taken.len() == so_far {
                break;
            }
        }
        let mut wake = Vec::new();
        for (place, row) in record.rows.iter_mut().enumerate() {
            let given = row.shares.iter().any(|share| share.granted().next().is_some());
            if place != at && given && !std::mem::replace(&mut row.woken, true) {
                wake.push(row.queue);
            }
        }
        let demand = |class: &ClassId| {
            let key = self.classes.get(class.index())?.key;
            Some((*class, record.demand(now, key)))
        };
        let demands: Vec<_> = own.classes.iter().filter_map(demand).collect();
        let full = arriving
            .is_some_and(|ticket| !taken.contains(&ticket) && self.finds_no_place(now, ticket, &record));
        let idle = heard_of && taken.is_empty() && wake.is_empty();
        Settlement { record: record.encode(), wake, idle, full, pool, arriving, taken, demands }
    }

    /// Carries out a settlement, `written` or not; whether the request it was done for may go on.
    pub fn commit(&mut self, now: Time, settlement: Settlement, written: bool) -> bool {
        for (class, demand) in settlement.demands {
            if let Some(class) = self.classes.get_mut(class.index()) {
                class.demand = demand;
            }
        }
        if !written {
            if let Some(ticket) = settlement.arriving {
                self.forget(now, ticket);
            }
            return false;
        }
        if let Some(pool) = self.pools.get_mut(settlement.pool.0) {
            pool.beat = now;
        }
        let mut admitted = false;
        for ticket in settlement.taken {
            if !self.start(now, ticket) {
                continue;
            }
            if settlement.arriving == Some(ticket) {
                admitted = true;
            } else {
                self.ready.push_back(ticket);
            }
        }
        admitted
    }

    /// A waiting request gets a slot.
    fn start(&mut self, now: Time, ticket: Ticket) -> bool {
        let Some(claim) = self.claims.get_mut(ticket) else { return false };
        let Some(class) = self.classes.get_mut(claim.class.index()) else { return false };
        let Place::Waiting { place, deadline } = claim.place else { return false };
        claim.place = Place::Running;
        class.line.serve(place);
        self.deadlines.remove(&(deadline, ticket));
        class.inflight += 1;
        class.tokens = class.tokens.saturating_add(claim.tokens);
        class.rate.note(now, true);
        true
    }

    /// Requests of this worker that a slot was handed to, and that still wait for one.
    fn take(&self, row: &Row, taken: &mut Vec<Ticket>) {
        let waits = |ticket: Ticket| {
            self.claims.get(ticket).is_some_and(|claim| matches!(claim.place, Place::Waiting { .. }))
        };
        for head in row.shares.iter().flat_map(Share::granted) {
            if waits(head.ticket) && !taken.contains(&head.ticket) {
                taken.push(head.ticket);
            }
        }
    }

    /// This worker's row by its own truth, `taken` being in flight already.
    fn row(&self, now: Time, writer: Writer, pool: &super::Pool, taken: &[Ticket]) -> Row {
        let mut shares = Vec::with_capacity(pool.classes.len());
        for id in &pool.classes {
            let Some(class) = self.classes.get(id.index()) else { continue };
            let taken_here =
                taken.iter().filter_map(|ticket| self.claims.get(*ticket)).filter(|c| c.class == *id);
            let (count, tokens) =
                taken_here.fold((0u32, 0u64), |(n, sum), c| (n + 1, sum.saturating_add(c.tokens)));
            let inflight = class.inflight + count;
            let waiting = u32::try_from(class.line.len()).unwrap_or(u32::MAX).saturating_sub(count);
            let mut rate = class.rate.clone();
            rate.note(now, inflight > 0);
            if inflight == 0 && waiting == 0 && rate.per_second() == 0.0 {
                continue;
            }
            let heads = class.line.tickets().filter(|ticket| !taken.contains(ticket)).take(HEADS);
            shares.push(Share {
                class: class.key,
                inflight,
                tokens: class.tokens.saturating_add(tokens),
                waiting,
                #[expect(clippy::cast_possible_truncation, reason = "a rate needs no more digits")]
                per_second: rate.per_second() as f32,
                since: rate.since(),
                heads: heads.filter_map(|ticket| self.head(ticket)).collect(),
            });
        }
        Row { uid: writer.uid, beat: now, queue: writer.queue, woken: false, slow: false, shares }
    }

    fn head(&self, ticket: Ticket) -> Option<Head> {
        let claim = self.claims.get(ticket)?;
        Some(Head { ticket, since: claim.since, tokens: claim.tokens, granted: None })
    }

    /// Whether a request that got no slot may not wait for one either.
    fn finds_no_place(&self, now: Time, ticket: Ticket, record: &Record) -> bool {
        let Some(claim) = self.claims.get(ticket) else { return true };
        let Some(class) = self.classes.get(claim.class.index()) else { return true };
        let impatient = matches!(claim.place, Place::Waiting { deadline, .. } if deadline <= now);
        let capacity = record.rules.of(class.key).map_or(u32::MAX, |rule| rule.capacity);
        impatient || record.demand(now, class.key).waiting > capacity
    }
}
