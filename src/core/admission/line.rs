//! A class's waiting line on one worker: first in first out, or in turns where requests have keys.

use std::collections::{BTreeMap, VecDeque};

use hashbrown::HashMap;

use super::ledger::Head;
use crate::core::units::{Ticket, Time};

/// Most keys that have turns of their own; the rest share one.
const KEYS: usize = 1024;
/// The key of all where there are no turns.
const NONE: u64 = 0;
/// The key of those that are too many.
const SHARED: u64 = 1;

/// Where a request stands: behind the older ones of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    key: u64,
    ticket: Ticket,
}

/// Who waits. Every operation is logarithmic in their number; who leaves is gone at once.
#[derive(Debug, Default)]
pub struct Line {
    /// What the ledger shows of a request stands here and not with its claim, so that the first of a long line are
    /// found together.
    order: BTreeMap<Place, Weight>,
    /// The keys of those who wait: who comes anew, and whose turn it was, goes to the end.
    ring: BTreeMap<u64, u64>,
    keys: HashMap<u64, Key>,
    /// The place behind the last one of the ring.
    end: u64,
}

/// Since when a request waits, and its tokens.
#[derive(Debug)]
struct Weight {
    since: Time,
    tokens: u64,
}

#[derive(Debug)]
struct Key {
    /// Its place in the ring.
    place: u64,
    waiting: usize,
}

impl Line {
    /// Puts a request at the end of the line; with a key, at the end of its key's.
    pub fn push(&mut self, head: Head, key: Option<u64>) -> Place {
        let key = key.map_or(NONE, |key| self.enlist(key));
        let place = Place { key, ticket: head.ticket };
        self.order.insert(place, Weight { since: head.since, tokens: head.tokens });
        place
    }

    /// Takes a request out because it goes on: its key's next one waits until all other keys have had a turn.
    pub fn serve(&mut self, place: Place) {
        self.remove(place);
        if let Some(key) = self.keys.get_mut(&place.key) {
            self.ring.remove(&key.place);
            key.place = self.end;
            self.ring.insert(self.end, place.key);
            self.end += 1;
        }
    }

    /// Takes a request out, wherever it stands.
    pub fn remove(&mut self, place: Place) {
        if self.order.remove(&place).is_none() {
            return;
        }
        let Some(key) = self.keys.get_mut(&place.key) else { return };
        key.waiting = key.waiting.saturating_sub(1);
        if key.waiting == 0 {
            self.ring.remove(&key.place);
            self.keys.remove(&place.key);
        }
    }

    /// Shows `most` of those who wait and are not `left_out`: of each key the oldest, then of each the next, and so on.
    pub fn show(&self, most: usize, left_out: &[Ticket], to: &mut Vec<Head>) {
        let seen = |head: &Head| !left_out.contains(&head.ticket);
        to.extend(self.queue(NONE).filter(seen).take(most));
        let (mut keys, mut begun) = (self.ring.values(), VecDeque::new());
        while to.len() < most {
            let queue = keys.next().map(|key| self.queue(*key)).or_else(|| begun.pop_front());
            let Some(mut queue) = queue else { return };
            if let Some(head) = queue.find(seen) {
                to.push(head);
                begun.push_back(queue);
            }
        }
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Counts one more of `key`; the key under which it waits.
    fn enlist(&mut self, key: u64) -> u64 {
        let known = self.keys.contains_key(&key) || self.keys.len() < KEYS;
        let key = if known { key } else { SHARED };
        let known = self.keys.entry(key).or_insert_with(|| {
            self.ring.insert(self.end, key);
            self.end += 1;
            Key { place: self.end - 1, waiting: 0 }
        });
        known.waiting += 1;
        key
    }

    /// Those of one key, the oldest first.
    fn queue(&self, key: u64) -> impl Iterator<Item = Head> {
        let place = |ticket| Place { key, ticket: Ticket(ticket) };
        // The two halves put together, since the ledger has room for one; 0 stands for no turns there.
        let short = u32::try_from((key ^ key >> 32) & u64::from(u32::MAX)).unwrap_or_default();
        let short = short.max(u32::from(key != NONE));
        self.order.range(place(0)..=place(u64::MAX)).map(move |(place, weight)| Head {
            ticket: place.ticket,
            since: weight.since,
            tokens: weight.tokens,
            key: short,
            granted: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(ticket: u64) -> Head {
        Head { ticket: Ticket(ticket), ..Head::default() }
    }

    fn shown(line: &Line) -> Vec<Head> {
        let mut heads = Vec::new();
        line.show(usize::MAX, &[], &mut heads);
        heads
    }

    fn order(line: &Line) -> Vec<u64> {
        shown(line).iter().map(|head| head.ticket.0).collect()
    }

    #[test]
    fn without_keys_it_is_first_in_first_out() {
        let mut line = Line::default();
        let places: Vec<_> = (0..5).map(|n| line.push(head(n), None)).collect();
        line.remove(places[2]);
        line.serve(places[0]);
        line.push(head(5), None);
        assert_eq!(order(&line), [1, 3, 4, 5]);
    }

    #[test]
    fn keys_take_turns() {
        let mut line = Line::default();
        let mut places: Vec<_> = (0..6).map(|n| line.push(head(n), Some(1))).collect();
        places.push(line.push(head(6), Some(2)));
        places.push(line.push(head(7), Some(2)));
        assert_eq!(order(&line), [0, 6, 1, 7, 2, 3, 4, 5]);
        line.serve(places[0]);
        line.push(head(8), Some(3));
        assert_eq!(order(&line), [6, 1, 8, 7, 2, 3, 4, 5]);
        line.serve(places[6]);
        line.remove(places[2]);
        assert_eq!(order(&line), [1, 8, 7, 3, 4, 5]);
        assert_eq!(line.len(), 6);
    }

    #[test]
    fn keys_beyond_the_bound_share_one_and_none_is_kept_for_nothing() {
        let mut line = Line::default();
        let places: Vec<_> = (10..3000).map(|n| line.push(head(n), Some(n))).collect();
        assert!(line.keys.len() <= KEYS + 1);
        let keys: std::collections::BTreeSet<_> = shown(&line).iter().map(|head| head.key).collect();
        assert_eq!((keys.len(), shown(&line).len()), (KEYS + 1, 2990));
        places.into_iter().for_each(|place| line.serve(place));
        assert!(line.keys.is_empty() && line.ring.is_empty() && line.len() == 0);
    }
}
