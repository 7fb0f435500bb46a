//! The bytes of bodies in Envoy's buffers, over all workers: a row each in one record of shared data.
//!
//! A worker writes its row when its bytes have changed by a step, and reads the others' then; so the sum is right to a
//! step a worker, and small bodies cost nothing.

use crate::core::admission::ledger::{BEAT, LEASE};
use crate::core::units::Time;

/// A worker's row is rewritten at every such part of the limit.
const STEPS: u64 = 64;
/// A row's bytes in the record: uid, beat, bytes held, each little-endian.
const ROW: usize = 24;

/// One worker's view.
#[derive(Debug)]
pub struct Buffered {
    limit: u64,
    held: u64,
    others: u64,
    published: u64,
    beat: Time,
}

impl Buffered {
    /// Nothing held; at most `limit` bytes over all workers.
    pub fn new(limit: u64) -> Buffered {
        Buffered { limit, held: 0, others: 0, published: 0, beat: Time::default() }
    }

    /// One body went from `before` bytes to `after`.
    pub fn change(&mut self, before: u64, after: u64) {
        self.held = self.held.saturating_sub(before).saturating_add(after);
    }

    /// Whether more is held than may be.
    pub fn is_over(&self) -> bool {
        self.held.saturating_add(self.others) > self.limit
    }

    /// Whether the bytes have changed by a step since the row was written.
    pub fn has_changed(&self) -> bool {
        self.held.abs_diff(self.published) >= (self.limit / STEPS).max(1)
    }

    /// Whether the row has to be written: the bytes have changed, or others might take the worker for dead.
    pub fn is_due(&self, now: Time) -> bool {
        self.has_changed() || (self.published > 0 && now.since(self.beat) >= BEAT)
    }

    /// The record to write in the place of the one `found`, and what others hold.
    pub fn propose(&self, now: Time, uid: u64, found: &[u8]) -> (Vec<u8>, u64) {
        let mut record = Vec::with_capacity(found.len() + ROW);
        let mut others = 0u64;
        for row in rows(found).filter(|row| row.uid != uid && now.since(row.beat) < LEASE) {
            others = others.saturating_add(row.bytes);
            row.write(&mut record);
        }
        Row { uid, beat: now, bytes: self.held }.write(&mut record);
        (record, others)
    }

    /// The row has been written.
    pub fn commit(&mut self, now: Time, others: u64) {
        self.others = others;
        self.published = self.held;
        self.beat = now;
    }
}

struct Row {
    uid: u64,
    beat: Time,
    bytes: u64,
}

impl Row {
    fn write(&self, record: &mut Vec<u8>) {
        for word in [self.uid, self.beat.0, self.bytes] {
            record.extend_from_slice(&word.to_le_bytes());
        }
    }
}

fn rows(record: &[u8]) -> impl Iterator<Item = Row> + '_ {
    record.chunks_exact(ROW).filter_map(|mut row| {
        let mut word = || {
            let (bytes, rest) = row.split_first_chunk()?;
            row = rest;
            Some(u64::from_le_bytes(*bytes))
        };
        Some(Row { uid: word()?, beat: Time(word()?), bytes: word()? })
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(millis: u64) -> Time {
        Time(0).after(Duration::from_millis(millis))
    }

    fn settle(worker: &mut Buffered, uid: u64, now: Time, record: &mut Vec<u8>) {
        let (written, others) = worker.propose(now, uid, record);
        *record = written;
        worker.commit(now, others);
    }

    #[test]
    fn workers_know_what_others_hold() {
        let (mut one, mut two, mut record) = (Buffered::new(6400), Buffered::new(6400), Vec::new());
        one.change(0, 99);
        assert!(!one.is_due(at(0)), "less than a step");
        one.change(99, 6000);
        assert!(one.is_due(at(0)));
        settle(&mut one, 1, at(0), &mut record);
        assert!(!one.is_due(at(1)) && !one.is_over());
        two.change(0, 500);
        settle(&mut two, 2, at(1), &mut record);
        assert!(two.is_over());
        one.change(6000, 0);
        settle(&mut one, 1, at(2), &mut record);
        settle(&mut two, 2, at(2), &mut record);
        assert!(!two.is_over());
    }

    #[test]
    fn who_is_not_heard_of_holds_nothing() {
        let (mut one, mut two, mut record) = (Buffered::new(100), Buffered::new(100), Vec::new());
        one.change(0, 100);
        settle(&mut one, 1, at(0), &mut record);
        assert!(one.is_due(at(750)), "it has to be heard of");
        two.change(0, 100);
        settle(&mut two, 2, at(2999), &mut record);
        assert!(two.is_over());
        settle(&mut two, 2, at(3000), &mut record);
        assert!(!two.is_over());
        assert_eq!(record.len(), ROW);
    }

    #[test]
    fn a_broken_record_is_an_empty_one() {
        assert_eq!(Buffered::new(1).propose(at(0), 1, &[7; 23]).1, 0);
    }
}
