//! The record as bytes: little-endian words of 64 bits in a fixed order, two smaller numbers in one. Written and read by
//! one version of the module; the key of the record names the version.

use std::time::Duration;

use super::record::{Head, Record};
use super::rules::{ClassRule, Connection, Key, PoolRule};
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
        let latest = self.rules.latest;
        to.words([len(&self.rules.pools), len(&self.rules.classes), len(&self.rows), len(&self.turns)]);
        to.words([latest.id, u64::from(latest.to.0)]);
        for rule in &self.rules.pools {
            to.words([pair(rule.pool.0, rule.concurrency), rule.generation, rule.tokens]);
        }
        for rule in &self.rules.classes {
            to.words([
                pair(rule.class.0, u32::from(rule.pool.is_some())),
                pair(rule.pool.unwrap_or_default().0, rule.concurrency),
                rule.generation,
                rule.tokens,
                pair(rule.reserved, rule.capacity),
                rule.promote_after.map_or(NEVER, nanos),
                nanos(rule.block_after),
            ]);
        }
        for row in &self.rows {
            let flags = u32::from(row.woken) | u32::from(row.slow) << 1;
            to.words([row.uid, row.beat.0, pair(row.queue, flags), len(&row.shares)]);
            for share in &row.shares {
                to.words([
                    pair(share.class.0, share.inflight),
                    share.tokens,
                    pair(share.waiting, share.per_second.to_bits()),
                    share.since.0,
                    len(&share.heads),
                ]);
                for head in &share.heads {
                    let granted = head.granted.map_or(NEVER, |at| at.0);
                    to.words([head.ticket.0, head.since.0, head.tokens, u64::from(head.key), granted]);
                }
            }
        }
        for turns in &self.turns {
            to.words([u64::from(turns.class.0), len(&turns.had)]);
            turns.had.iter().for_each(|key| to.words([u64::from(*key)]));
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
        let [pools, classes, rows, turns] = from.words()?;
        let [id, to] = from.words()?;
        self.rules.latest = Connection { id, to: Key(low(to)) };
        from.list(pools, &mut self.rules.pools, |from, rule| {
            let [first, generation, tokens] = from.words()?;
            let (pool, concurrency) = (Key(low(first)), high(first));
            *rule = PoolRule { pool, generation, concurrency, tokens };
            Some(())
        })?;
        from.list(classes, &mut self.rules.classes, |from, rule| {
            let [class, pool, generation, tokens, lines, promote_after, block_after] = from.words()?;
            *rule = ClassRule {
                class: Key(low(class)),
                generation,
                pool: (high(class) != 0).then_some(Key(low(pool))),
                concurrency: high(pool),
                tokens,
                reserved: low(lines),
                capacity: high(lines),
                promote_after: moment(promote_after).map(|time| Duration::from_nanos(time.0)),
                block_after: Duration::from_nanos(block_after),
            };
            Some(())
        })?;
        from.list(rows, &mut self.rows, |from, row| {
            let [uid, beat, queue, shares] = from.words()?;
            (row.uid, row.beat, row.queue) = (uid, Time(beat), low(queue));
            (row.woken, row.slow) = (high(queue) & 1 != 0, high(queue) & 2 != 0);
            from.list(shares, &mut row.shares, |from, share| {
                let [class, tokens, waiting, since, heads] = from.words()?;
                (share.class, share.inflight, share.tokens) = (Key(low(class)), high(class), tokens);
                (share.waiting, share.per_second) = (low(waiting), f32::from_bits(high(waiting)));
                share.since = Time(since);
                from.list(heads, &mut share.heads, |from, head| {
                    let [ticket, since, tokens, key, granted] = from.words()?;
                    let (ticket, since, key) = (Ticket(ticket), Time(since), low(key));
                    *head = Head { ticket, since, tokens, key, granted: moment(granted) };
                    Some(())
                })
            })
        })?;
        from.list(turns, &mut self.turns, |from, turns| {
            let [class, had] = from.words()?;
            turns.class = Key(low(class));
            from.list(had, &mut turns.had, |from, key| {
                let [word] = from.words()?;
                *key = low(word);
                Some(())
            })
        })
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(NEVER - 1)
}

fn moment(word: u64) -> Option<Time> {
    (word != NEVER).then_some(Time(word))
}

fn len<T>(list: &[T]) -> u64 {
    u64::try_from(list.len()).unwrap_or(u64::MAX)
}

fn pair(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

#[expect(clippy::cast_possible_truncation, reason = "the other half is read by itself")]
fn low(word: u64) -> u32 {
    word as u32
}

fn high(word: u64) -> u32 {
    low(word >> 32)
}

struct Writer<'a>(&'a mut Vec<u8>);

impl Writer<'_> {
    fn words<const N: usize>(&mut self, words: [u64; N]) {
        self.0.extend_from_slice(words.map(u64::to_le_bytes).as_flattened());
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn words<const N: usize>(&mut self) -> Option<[u64; N]> {
        let (words, rest) = self.0.split_at_checked(N * 8)?;
        self.0 = rest;
        let (words, _) = words.as_chunks::<8>();
        Some((*words.first_chunk::<N>()?).map(u64::from_le_bytes))
    }

    fn list<T: Default>(
        &mut self,
        len: u64,
        list: &mut Vec<T>,
        mut item: impl FnMut(&mut Self, &mut T) -> Option<()>,
    ) -> Option<()> {
        let len = usize::try_from(len).ok()?;
        // A broken length must not reserve what the bytes cannot hold: an item has one word at the least.
        if len > self.0.len() / 8 {
            return None;
        }
        list.resize_with(len, T::default);
        list.iter_mut().try_for_each(|into| item(self, into))
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::Turns;
    use super::super::{Row, Rules, Share};
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
        let head = Head { ticket: Ticket(7), since: Time(5), tokens: 300, key: 2, granted: Some(Time(9)) };
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
        let latest = Connection { id: 4, to: Key(8) };
        let rules = Rules { pools: vec![pool], classes: vec![rule, long], latest };
        let turns = vec![Turns { class: rule.class, had: vec![2, 1] }];
        Record { rules, rows: vec![row, slow], turns }
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
