//! The record as bytes: little-endian numbers in a fixed order, lists behind their length. Written and read by one
//! version of the module; the key of the record names the version.

use std::time::Duration;

use super::record::{Head, Record, Row, Share};
use super::rules::{ClassKey, ClassRule, Rules};
use crate::core::units::{Ticket, Time};

const NEVER: u64 = u64::MAX;
/// A rough size of a row, to make room for it at once.
const ROW_BYTES: usize = 256;

impl Record {
    /// The record as bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut to =
            Writer(Vec::with_capacity(64 + self.rules.classes.len() * 48 + self.rows.len() * ROW_BYTES));
        to.u64(self.rules.generation);
        to.u32(self.rules.concurrency);
        to.u64(self.rules.tokens);
        to.len(self.rules.classes.len());
        for rule in &self.rules.classes {
            to.u32(rule.class.0);
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
                    to.u64(head.granted.map_or(NEVER, |at| at.0));
                }
            }
        }
        to.0
    }

    /// The record in `bytes`; `None` where they hold none.
    pub fn decode(bytes: &[u8]) -> Option<Record> {
        let mut from = Reader(bytes);
        let rules = Rules {
            generation: from.u64()?,
            concurrency: from.u32()?,
            tokens: from.u64()?,
            classes: from.list(|from| {
                Some(ClassRule {
                    class: ClassKey(from.u32()?),
                    concurrency: from.u32()?,
                    tokens: from.u64()?,
                    reserved: from.u32()?,
                    capacity: from.u32()?,
                    promote_after: from.moment()?.map(|time| Duration::from_nanos(time.0)),
                    block_after: Duration::from_nanos(from.u64()?),
                })
            })?,
        };
        let rows = from.list(|from| {
            let (uid, beat, queue, flags) = (from.u64()?, Time(from.u64()?), from.u32()?, from.u32()?);
            let shares = from.list(|from| {
                Some(Share {
                    class: ClassKey(from.u32()?),
                    inflight: from.u32()?,
                    tokens: from.u64()?,
                    waiting: from.u32()?,
                    per_second: f32::from_bits(from.u32()?),
                    since: Time(from.u64()?),
                    heads: from.list(|from| {
                        Some(Head {
                            ticket: Ticket(from.u64()?),
                            since: Time(from.u64()?),
                            tokens: from.u64()?,
                            granted: from.moment()?,
                        })
                    })?,
                })
            })?;
            Some(Row { uid, beat, queue, woken: flags & 1 != 0, slow: flags & 2 != 0, shares })
        })?;
        from.0.is_empty().then_some(Record { rules, rows })
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(NEVER - 1)
}

struct Writer(Vec<u8>);

impl Writer {
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

    fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let len = usize::try_from(self.u32()?).ok()?;
        // A broken length must not reserve what the bytes cannot hold.
        let mut list = Vec::with_capacity(len.min(self.0.len() / 4));
        for _ in 0..len {
            list.push(item(self)?);
        }
        Some(list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        let rule = ClassRule {
            class: ClassKey::of("short"),
            concurrency: 4,
            tokens: u64::MAX,
            reserved: 1,
            capacity: 8,
            promote_after: Some(Duration::from_millis(2500)),
            block_after: Duration::from_millis(2500),
        };
        let long = ClassRule { class: ClassKey::of("long"), promote_after: None, ..rule };
        let head = Head { ticket: Ticket(7), since: Time(5), tokens: 300, granted: Some(Time(9)) };
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
        let rules = Rules { generation: 6, concurrency: 5, tokens: 1000, classes: vec![rule, long] };
        Record { rules, rows: vec![row, slow] }
    }

    #[test]
    fn a_record_comes_back_as_it_went() {
        assert_eq!(Record::decode(&record().encode()), Some(record()));
        assert_eq!(Record::decode(&Record::default().encode()), Some(Record::default()));
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
