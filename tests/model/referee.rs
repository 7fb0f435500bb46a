//! Who should have gone first: the order of service, said as naively as can be.

use sluice::core::admission::ledger::{HEADS, Record};
use sluice::core::units::{Ticket, Time};

use crate::limits::{Fit, Limits, Usage};

/// What the referee takes for the life of a row that is not heard of, and of a slot handed out.
pub const LEASE: u64 = 3_000_000_000;
pub const PICKUP: u64 = 20_000_000;

/// A request that stands in the record.
#[derive(Clone, Debug)]
pub struct Waiter {
    pub row: usize,
    pub class: usize,
    pub place: usize,
    /// Whose turn it takes, as its row says; 0 where it is not known.
    pub key: u32,
    pub ticket: Ticket,
    pub tokens: u64,
    /// Since when, or since when those wait that its worker serves before it.
    pub since: u64,
    /// Since when a promoted request waits that it stands before, or is.
    pub promoted: Option<u64>,
    pub blocks: bool,
    pub granted: Option<Time>,
}

/// Whether a row counts.
pub fn counts(beat: Time, now: u64) -> bool {
    now.saturating_sub(beat.0) < LEASE
}

/// All that wait in a record, in rows that count.
pub fn waiters(record: &Record, limits: &Limits, now: u64) -> Vec<Waiter> {
    let mut all = Vec::new();
    for (row_at, row) in record.rows.iter().enumerate().filter(|(_, row)| counts(row.beat, now)) {
        for share in &row.shares {
            let class = limits.place(share.class);
            let rule = limits.classes.get(class);
            let age = |since: Time| now.saturating_sub(since.0);
            let mut since = 0;
            let mut here: Vec<Waiter> = Vec::new();
            for (place, head) in share.heads.iter().enumerate() {
                // Who has a slot stands before nobody any more.
                let own = since.max(head.since.0);
                if head.granted.is_none() {
                    since = own;
                }
                let promoted =
                    rule.and_then(|rule| rule.promote).is_some_and(|after| age(head.since) >= after);
                here.push(Waiter {
                    row: row_at,
                    class,
                    place,
                    key: head.key,
                    ticket: head.ticket,
                    tokens: head.tokens,
                    since: if head.granted.is_none() { own } else { head.since.0 },
                    promoted: promoted.then_some(head.since.0),
                    blocks: rule.is_some_and(|rule| age(head.since) >= rule.block),
                    granted: head.granted,
                });
            }
            let mut oldest: Option<u64> = None;
            for waiter in here.iter_mut().rev() {
                oldest = [oldest, waiter.promoted].into_iter().flatten().min();
                waiter.promoted = oldest;
            }
            all.extend(here);
        }
    }
    all
}

/// Whether `a` is to be served before `b`. Where keys take turns, requests of two keys cannot be compared by this.
pub fn precedes(a: &Waiter, b: &Waiter, keys: bool) -> bool {
    if a.class == b.class {
        if a.row == b.row {
            return (!keys || a.key == b.key) && a.place < b.place;
        }
        return !keys && (a.since, a.row) < (b.since, b.row);
    }
    // Of two promoted ones the older one goes first, and the more urgent one where they are equally old.
    let passes = |low: &Waiter, high: &Waiter| {
        low.promoted
            .is_some_and(|since| since < high.since && high.promoted.is_none_or(|other| since < other))
    };
    if a.class < b.class { !passes(b, a) } else { passes(a, b) }
}

/// Whether a waiting request may have a slot, given all that wait with it in rows that can be served.
pub fn may_go(next: &Waiter, all: &[Waiter], usage: &Usage, limits: &Limits, keys: bool) -> bool {
    if usage.fit(limits, next.class, next.tokens) != Fit::Yes {
        return false;
    }
    !all.iter().any(|other| {
        if other.granted.is_some() || !other.blocks {
            return false;
        }
        let stands_in_the_way = match usage.fit(limits, other.class, other.tokens) {
            Fit::NoTokensOfPool => true,
            Fit::NoTokensOfClass => other.class == next.class,
            Fit::Yes | Fit::NoSlot => false,
        };
        // The order is no chain: an old promoted request is before a new urgent one, that before one of a class in
        // between, and that before the promoted one where it is older. Whichever goes, another one is passed over.
        let round = || all.iter().any(|third| precedes(other, third, keys) && precedes(third, next, keys));
        let turns = keys && other.class == next.class;
        stands_in_the_way && (precedes(other, next, keys) || turns || round())
    })
}

/// What is in use by a record.
pub fn usage(record: &Record, limits: &Limits, now: u64) -> Usage {
    let mut usage = Usage::none(limits);
    for share in record.rows.iter().filter(|row| counts(row.beat, now)).flat_map(|row| &row.shares) {
        let class = limits.place(share.class);
        usage.add(class, u64::from(share.inflight), share.tokens);
        share
            .heads
            .iter()
            .filter(|head| head.granted.is_some())
            .for_each(|head| usage.add(class, 1, head.tokens));
    }
    usage
}

/// Whether somebody was passed over: a request that still waits although it is before one that was let in, and could
/// have gone in its place. `served` are those let in at once, with how many of the same row and class; `free` is the
/// usage after it.
pub fn passed_over(
    waiting: &[Waiter],
    served: &[Waiter],
    after: &Usage,
    limits: &Limits,
    keys: bool,
) -> Option<String> {
    for next in waiting.iter().filter(|waiter| waiter.granted.is_none()) {
        let ahead = || served.iter().filter(|other| (other.row, other.class) == (next.row, next.class));
        if next.place + ahead().count() >= HEADS {
            // It was not shown when they were chosen.
            continue;
        }
        // Where keys take turns, younger ones may have stood before it then, and may still.
        let alike = waiting.iter().filter(|other| keys && (other.row, other.class) == (next.row, next.class));
        let since = ahead().chain(alike).map(|other| other.since).max().unwrap_or_default().max(next.since);
        // And who lends it its age may not have been shown yet.
        let lent = ahead().count() > 0 && next.promoted.is_some_and(|promoted| promoted < next.since);
        let promoted = next.promoted.filter(|_| !lent);
        let next = &Waiter { since, promoted, ..next.clone() };
        let mut usage = after.clone();
        let mut passed = Vec::new();
        for other in served {
            let round = || {
                let everybody = || waiting.iter().chain(served);
                everybody().any(|third| precedes(other, third, keys) && precedes(third, next, keys))
            };
            if precedes(next, other, keys) && !round() {
                usage.sub(other.class, 1, other.tokens);
                passed.push(other);
            }
        }
        if may_go(next, waiting, &usage, limits, keys) {
            return Some(format!(
                "{next:?} may go and was passed over by {passed:?}; in use {usage:?} of {limits:?}; waiting {waiting:#?}"
            ));
        }
    }
    None
}
