//! Settling with the ledger: the worker's own row rewritten from its own truth, slots handed out, what fell to this
//! worker taken. Proposing changes nothing here, since the record may have changed meanwhile and it has to be done
//! again; committing follows once the record has been written.

use std::rc::Rc;

use super::Admission;
use super::claims::Place;
use super::drain::Busy;
use super::ledger::{Connection, Demand, HEADS, Handout, LEASE, Record, Row, Rules, Share};
use crate::core::units::{Ticket, Time};

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

/// What settling would come to. Its lists are used again for the next one once it has been committed: a request is
/// settled for twice, and most of the time that takes would be spent on allocating them.
#[derive(Debug, Default)]
pub struct Settlement {
    bytes: Vec<u8>,
    /// The queues of other workers that were given something.
    pub wake: Vec<u32>,
    /// Whether nothing has changed that anybody would have to know of now.
    idle: bool,
    /// Whether the request that arrives finds neither a slot nor a place in line.
    full: bool,
    arriving: Option<Ticket>,
    /// Where other limits than this worker's are in force: the latest connection that came under them.
    replaced: Option<Connection>,
    taken: Vec<Ticket>,
    /// By class.
    demands: Vec<Demand>,
    /// The record, to be written as bytes where it has to be.
    draft: Record,
    handout: Handout,
}

impl Settlement {
    /// Whether the record has to be written; `changed` tells that the worker's own truth has changed since it last was.
    pub fn is_due(&self, changed: bool) -> bool {
        !self.full && (changed || !self.idle)
    }

    /// The record to write.
    pub fn record(&mut self) -> &[u8] {
        self.draft.write(&mut self.bytes);
        &self.bytes
    }

    /// Where a request arrives and other limits than this worker's are in force: the latest connection known that came
    /// under them.
    pub fn replaced(&self) -> Option<Connection> {
        self.replaced
    }

    /// The requests that would get a slot.
    pub fn starts(&self) -> &[Ticket] {
        &self.taken
    }
}

impl Admission {
    /// The key of the domain's record.
    pub fn record_key(&self) -> Rc<str> {
        Rc::clone(&self.key)
    }

    /// Whether there is something to settle: somebody waits, or others have to hear of this worker.
    pub fn is_unsettled(&self, now: Time) -> bool {
        self.classes.iter().any(|class| class.line.len() > 0) || self.is_unheard(now)
    }

    /// Whether others would soon take this worker for dead, and it has something to lose by that.
    pub fn is_unheard(&self, now: Time) -> bool {
        let busy = |class: &super::Class| class.line.len() > 0 || class.inflight > 0;
        self.needs_beat(now) && self.classes.iter().any(busy)
    }

    /// What settling comes to, given the domain's record as `found`; `arriving` is the request it is done for. Nothing
    /// changes by it but which memory is free.
    pub fn propose(
        &mut self,
        now: Time,
        writer: Writer,
        found: Option<&[u8]>,
        arriving: Option<Ticket>,
    ) -> Settlement {
        self.watch.note(now);
        let mut to = std::mem::take(&mut self.spare);
        (to.arriving, to.idle, to.full) = (arriving, true, true);
        to.wake.clear();
        to.taken.clear();
        to.demands.clear();
        if !found.is_some_and(|found| to.draft.read(found)) {
            to.draft = Record::default();
        }
        self.give_way(&to.draft.rules);
        self.settle(now, writer, &mut to);
        to
    }

    /// A VM that takes the place of one that failed reads its configuration anew, and that may be an old one: then its
    /// first connection is older than those that came under the newest one.
    fn give_way(&mut self, found: &Rules) {
        let older = self.connection.is_some_and(|connection| found.latest.is_after(connection));
        if older && self.rules.newest() > found.newest() {
            self.rules.date(found.newest().saturating_sub(1));
        }
    }

    fn settle(&self, now: Time, writer: Writer, to: &mut Settlement) {
        let Settlement { draft: record, taken, wake, demands, handout, replaced, .. } = to;
        self.bring_in(record);
        *replaced = to.arriving.and_then(|_| self.compare(&mut record.rules));
        record.rows.retain(|row| row.uid == writer.uid || now.since(row.beat) < LEASE * 3);
        for row in record.rows.iter_mut().filter(|row| row.uid != writer.uid) {
            self.watch.forgive(row);
        }
        let known = record.rows.iter().position(|row| row.uid == writer.uid);
        let at = known.unwrap_or(record.rows.len());
        if known.is_none() {
            record.rows.push(Row { uid: writer.uid, ..Row::default() });
        }
        let before = record.rows.get(at);
        let heard_of =
            before.is_some_and(|row| row.is_fresh(now) && !row.slow && !row.woken) && !self.needs_beat(now);
        // What was handed to a worker that is taken for dead has been handed to others since.
        if let Some(row) = before.filter(|row| row.is_fresh(now)) {
            self.take(row, taken);
        }
        let mut more = true;
        while more {
            if let Some(row) = record.rows.get_mut(at) {
                self.rewrite(now, writer, taken, row);
            }
            handout.run(record, now);
            let so_far = taken.len();
            if let Some(row) = record.rows.get_mut(at).filter(|_| so_far < MOST) {
                self.take(row, taken);
                more = taken.len() > so_far && !absorb(row);
            } else {
                more = false;
            }
        }
        for (place, row) in record.rows.iter_mut().enumerate() {
            let given = row.shares.iter().any(|share| share.granted().next().is_some());
            if place != at && given && !std::mem::replace(&mut row.woken, true) {
                wake.push(row.queue);
            }
        }
        demands.extend(self.classes.iter().map(|class| record.demand(now, class.key)));
        to.full = to
            .arriving
            .is_some_and(|ticket| !taken.contains(&ticket) && self.finds_no_place(now, ticket, record));
        to.idle = heard_of && taken.is_empty() && wake.is_empty();
    }

    /// Tells of the latest connection that came under these limits, where they are in force; otherwise which one came
    /// under those that are.
    fn compare(&self, rules: &mut Rules) -> Option<Connection> {
        if rules.newest() != self.rules.newest() && !rules.agree(&self.rules) {
            return Some(rules.latest);
        }
        let newer = |own: &Connection| own.to != rules.latest.to || own.is_after(rules.latest);
        rules.latest = self.connection.filter(newer).unwrap_or(rules.latest);
        None
    }

    /// Carries out a settlement, `written` or not; whether the request it was done for may go on.
    pub fn commit(&mut self, now: Time, settlement: Settlement, written: bool) -> bool {
        let admitted = self.carry_out(now, &settlement, written);
        self.spare = settlement;
        admitted
    }

    fn carry_out(&mut self, now: Time, settlement: &Settlement, written: bool) -> bool {
        for (class, demand) in self.classes.iter_mut().zip(&settlement.demands) {
            class.demand = *demand;
        }
        if !written {
            if let Some(ticket) = settlement.arriving {
                self.forget(now, ticket);
            }
            return false;
        }
        self.beat = now;
        let mut admitted = false;
        for ticket in settlement.taken.iter().copied() {
            if !self.start(now, ticket) {
                continue;
            }
            if settlement.arriving == Some(ticket) {
                admitted = true;
            } else {
                self.ready.push_back(ticket);
            }
        }
        for class in &mut self.classes {
            class.elsewhere = class.demand.inflight > class.inflight;
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
        class.rate.note(now, Busy::Here);
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

    /// Writes this worker's row by its own truth, `taken` being in flight already.
    fn rewrite(&self, now: Time, writer: Writer, taken: &[Ticket], row: &mut Row) {
        (row.uid, row.beat, row.queue) = (writer.uid, now, writer.queue);
        (row.woken, row.slow) = (false, false);
        let mut len = 0;
        for (place, class) in self.classes.iter().enumerate() {
            let claims = taken.iter().filter_map(|ticket| self.claims.get(*ticket));
            let taken_here = claims.filter(|claim| claim.class.index() == place);
            let (count, tokens) =
                taken_here.fold((0u32, 0u64), |(n, sum), c| (n + 1, sum.saturating_add(c.tokens)));
            let inflight = class.inflight + count;
            let waiting = u32::try_from(class.line.len()).unwrap_or(u32::MAX).saturating_sub(count);
            let mut rate = class.rate.clone();
            rate.note(now, class.busy(inflight));
            let per_second = rate.per_second();
            if inflight == 0 && waiting == 0 && !rate.is_known() {
                continue;
            }
            if len == row.shares.len() {
                row.shares.push(Share::default());
            }
            let Some(share) = row.shares.get_mut(len) else { continue };
            len += 1;
            (share.class, share.inflight, share.waiting) = (class.key, inflight, waiting);
            share.tokens = class.tokens.saturating_add(tokens);
            #[expect(clippy::cast_possible_truncation, reason = "a rate needs no more digits")]
            let rounded = per_second as f32;
            (share.per_second, share.since) = (rounded, rate.since());
            share.heads.clear();
            if waiting > 0 {
                class.line.show(HEADS, taken, &mut share.heads);
            }
        }
        row.shares.truncate(len);
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

/// Counts what was handed to this worker as in flight, where all who wait are shown: then nobody new comes into view
/// by it, and nothing more can be handed out. False where the row has to be rewritten.
fn absorb(row: &mut Row) -> bool {
    if row.shares.iter().any(|share| usize::try_from(share.waiting).is_ok_and(|n| n > share.heads.len())) {
        return false;
    }
    for share in &mut row.shares {
        let Share { inflight, tokens, waiting, heads, .. } = share;
        heads.retain(|head| {
            if head.granted.is_some() {
                *inflight += 1;
                *tokens = tokens.saturating_add(head.tokens);
                *waiting = waiting.saturating_sub(1);
            }
            head.granted.is_none()
        });
    }
    true
}
