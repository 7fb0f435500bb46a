//! The record as bytes: little-endian numbers in a fixed order, lists behind their length. Written and read by one
//! version of the module; the key of the record names the version.

use std::time::Duration;

use super::record::Record;
use super::rules::Key;
use crate::core::units::{Ticket, Time};

const NEVER: u64 = u64::MAX;

impl Record {
    /// The record as bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.write(&mut bytes);
        bytes
    }

    /// The record in `bytes`; `None` where they hold none.
    pub fn decode(bytes: &[u8]) -> Option<Record> {
        let mut record = Record::default();
        record.read(bytes).then_some(record)
    }

    /// Writes the record in the place of what `to` held.
    pub fn write(&self, to: &mut Vec<u8>) {
        to.clear();
        let mut to = Writer(to);
        to.len(self.rules.pools.len());
        for rule in &self.rules.pools {
            to.u32(rule.pool.0);
            to.u64(rule.generation);
            to.u32(rule.concurrency);
            to.u64(rule.tokens);
        }
        to.len(self.rules.classes.len());
        for rule in &self.rules.classes {
            to.u32(rule.class.0);
            to.u64(rule.generation);
            to.u32(u32::from(rule.pool.is_some()));
            to.u32(rule.pool.unwrap_or_default().0);
            to.u32(rule.concurrency);
            to.u64(rule.tokens);
            to.u32(rule.reserved);
            to.u32(rule.capacity);
            to.u64(rule.promote_after.map_or(NEVER, nanos));
            to.u64(nanos(rule.block_after));
        }
        to.len(self.rows.len());
        for row in &self.rows {
            to.u64(row.uid);
            to.u64(row.beat.0);
            to.u32(row.queue);
            to.u32(u32::from(row.woken) | u32::from(row.slow) << 1);
            to.len(row.shares.len());
            for share in &row.shares {
                to.u32(share.class.0);
                to.u32(share.inflight);
                to.u64(share.tokens);
                to.u32(share.waiting);
                to.u32(share.per_second.to_bits());
                to.u64(share.since.0);
                to.len(share.heads.len());
                for head in &share.heads {
                    to.u64(head.ticket.0);
                    to.u64(head.since.0);
                    to.u64(head.tokens);
                    to.u32(head.turn);
                    to.u64(head.granted.map_or(NEVER, |at| at.0));
                }
            }
        }
    }

    /// Reads the record in `bytes` in the place of this one, whose lists are used again; false where they hold none,
    /// and then it is empty.
    pub fn read(&mut self, bytes: &[u8]) -> bool {
        let mut from = Reader(bytes);
        let good = self.read_all(&mut from).is_some() && from.0.is_empty();
        if !good {
            *self = Record::default();
        }
        good
    }

    fn read_all(&mut self, from: &mut Reader) -> Option<()> {
        from.list(&mut self.rules.pools, |from, rule| {
            rule.pool = Key(from.u32()?);
            rule.generation = from.u64()?;
            rule.concurrency = from.u32()?;
            rule.tokens = from.u64()?;
            Some(())
        })?;
        from.list(&mut self.rules.classes, |from, rule| {
            rule.class = Key(from.u32()?);
            rule.generation = from.u64()?;
            let (pooled, pool) = (from.u32()? != 0, Key(from.u32()?));
            rule.pool = pooled.then_some(pool);
            rule.concurrency = from.u32()?;
            rule.tokens = from.u64()?;
            rule.reserved = from.u32()?;
            rule.capacity = from.u32()?;
            rule.promote_after = from.moment()?.map(|time| Duration::from_nanos(time.0));
            rule.block_after = Duration::from_nanos(from.u64()?);
            Some(())
        })?;
        from.list(&mut self.rows, |from, row| {
            (row.uid, row.beat, row.queue) = (from.u64()?, Time(from.u64()?), from.u32()?);
            let flags = from.u32()?;
            (row.woken, row.slow) = (flags & 1 != 0, flags & 2 != 0);
            from.list(&mut row.shares, |from, share| {
                share.class = Key(from.u32()?);
                share.inflight = from.u32()?;
                share.tokens = from.u64()?;
                share.waiting = from.u32()?;
                share.per_second = f32::from_bits(from.u32()?);
                share.since = Time(from.u64()?);
                from.list(&mut share.heads, |from, head| {
                    head.ticket = Ticket(from.u64()?);
                    head.since = Time(from.u64()?);
                    head.tokens = from.u64()?;
                    head.turn = from.u32()?;
                    head.granted = from.moment()?;
                    Some(())
                })
            })
        })
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(NEVER - 1)
}

struct Writer<'a>(&'a mut Vec<u8>);

impl Writer<'_> {
    fn u32(&mut self, value: u32) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn u64(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn len(&mut self, len: usize) {
        self.u32(u32::try_from(len).unwrap_or(u32::MAX));
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn u32(&mut self) -> Option<u32> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*bytes))
    }

    fn u64(&mut self) -> Option<u64> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*bytes))
    }

    fn moment(&mut self) -> Option<Option<Time>> {
        self.u64().map(|value| (value != NEVER).then_some(Time(value)))
    }

    fn list<T: Default>(
        &mut self,
        list: &mut Vec<T>,
        mut item: impl FnMut(&mut Self, &mut T) -> Option<()>,
    ) -> Option<()> {
        let len = usize::try_from(self.u32()?).ok()?;
        // A broken length must not reserve what the bytes cannot hold: an item has four bytes at the least.
        if len > self.0.len() / 4 {
            return None;
        }
        list.resize_with(len, T::default);
        list.iter_mut().try_for_each(|into| item(self, into))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ClassRule, Head, PoolRule, Row, Rules, Share};
    use super::*;

    fn record() -> Record {
        let rule = ClassRule {
            class: Key::of("short"),
            generation: 6,
            pool: Some(Key::of("gpu")),
            concurrency: 4,
            tokens: u64::MAX,
            reserved: 1,
            capacity: 8,
            promote_after: Some(Duration::from_millis(2500)),
            block_after: Duration::from_millis(2500),
        };
        let long = ClassRule { class: Key::of("long"), pool: None, promote_after: None, ..rule };
        let pool = PoolRule { pool: Key::of("gpu"), generation: 6, concurrency: 5, tokens: 1000 };
        let head = Head { ticket: Ticket(7), since: Time(5), tokens: 300, turn: 2, granted: Some(Time(9)) };
        let share = Share {
            class: rule.class,
            inflight: 2,
            tokens: 99,
            waiting: 11,
            per_second: 1.5,
            since: Time(3),
            heads: vec![head, Head { granted: None, ..head }],
        };
        let row = Row { uid: 1, beat: Time(10), queue: 3, woken: true, slow: false, shares: vec![share] };
        let slow = Row { uid: 2, woken: false, slow: true, shares: vec![], ..row.clone() };
        let rules = Rules { pools: vec![pool], classes: vec![rule, long] };
        Record { rules, rows: vec![row, slow] }
    }

    #[test]
    fn a_record_comes_back_as_it_went() {
        assert_eq!(Record::decode(&record().encode()), Some(record()));
        assert_eq!(Record::decode(&Record::default().encode()), Some(Record::default()));
    }

    #[test]
    fn what_a_record_held_before_does_not_matter() {
        let (mut larger, mut smaller) = (record(), Record::default());
        larger.rows.push(larger.rows[0].clone());
        for target in [&mut larger, &mut smaller] {
            assert!(target.read(&record().encode()));
            assert_eq!(*target, record());
        }
        assert!(!larger.read(&[1, 2, 3]));
        assert_eq!(larger, Record::default());
    }

    #[test]
    fn broken_bytes_hold_no_record() {
        let bytes = record().encode();
        for end in 0..bytes.len() {
            assert_eq!(Record::decode(&bytes[..end]), None);
        }
        assert_eq!(Record::decode(&[&bytes[..], &[0]].concat()), None);
        assert_eq!(Record::decode(&[255; 40]), None);
    }
}
