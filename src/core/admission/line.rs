//! A class's waiting line on one worker: first in first out, or in turns where requests have keys.

use std::collections::BTreeMap;

use hashbrown::HashMap;

use super::ledger::Head;
use crate::core::units::{Ticket, Time};

/// Most keys that have turns of their own; the rest share one.
const KEYS: usize = 1024;
/// The key of those who have none, and of those that are too many.
const SHARED: u64 = 0;

/// Where a request stands: requests of one turn go by age, and a key has one request a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    turn: u64,
    ticket: Ticket,
    key: u64,
}

/// Who waits. Every operation is logarithmic in their number; who leaves is gone at once.
#[derive(Debug, Default)]
pub struct Line {
    /// What the ledger shows of a request stands here and not with its claim, so that the first of a long line are
    /// found together.
    order: BTreeMap<Place, Weight>,
    /// The turn of the last one served: no newcomer stands before it.
    turn: u64,
    keys: HashMap<u64, Key>,
}

/// Since when a request waits, and its tokens.
#[derive(Debug)]
struct Weight {
    since: Time,
    tokens: u64,
}

#[derive(Debug)]
struct Key {
    last_turn: u64,
    waiting: usize,
}

impl Line {
    /// Puts a request at the end of the line; with a key, at the end of its key's turns.
    pub fn push(&mut self, head: Head, key: Option<u64>) -> Place {
        let ticket = head.ticket;
        let place = match key {
            None => Place { turn: self.turn, ticket, key: SHARED },
            Some(key) => {
                let known = self.keys.contains_key(&key) || self.keys.len() < KEYS;
                let key = if known { key } else { SHARED };
                let (turn, waiting) = match self.keys.get(&key) {
                    Some(known) => (self.turn.max(known.last_turn + 1), known.waiting + 1),
                    None => (self.turn, 1),
                };
                self.keys.insert(key, Key { last_turn: turn, waiting });
                Place { turn, ticket, key }
            }
        };
        self.order.insert(place, Weight { since: head.since, tokens: head.tokens });
        place
    }

    /// Takes a request out because it goes on.
    pub fn serve(&mut self, place: Place) {
        if place.turn > self.turn {
            self.turn = place.turn;
            self.keys.retain(|_, key| key.waiting > 0 || key.last_turn >= place.turn);
        }
        self.remove(place);
    }

    /// Takes a request out, wherever it stands.
    pub fn remove(&mut self, place: Place) {
        if self.order.remove(&place).is_none() {
            return;
        }
        let Some(key) = self.keys.get_mut(&place.key) else { return };
        key.waiting = key.waiting.saturating_sub(1);
        if key.waiting == 0 {
            // Who has had the present turn waits for the next one; turns that were never had do not count.
            key.last_turn = key.last_turn.min(self.turn);
            if key.last_turn < self.turn || place.turn > self.turn {
                self.keys.remove(&place.key);
            }
        }
    }

    /// Who waits, in the order in which they are to be served.
    pub fn heads(&self) -> impl Iterator<Item = Head> {
        let head = |(place, weight): (&Place, &Weight)| Head {
            ticket: place.ticket,
            since: weight.since,
            tokens: weight.tokens,
            turn: u32::try_from(place.turn.saturating_sub(self.turn)).unwrap_or(u32::MAX),
            granted: None,
        };
        self.order.iter().map(head)
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.order.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(ticket: u64) -> Head {
        Head { ticket: Ticket(ticket), ..Head::default() }
    }

    fn order(line: &Line) -> Vec<u64> {
        line.heads().map(|head| head.ticket.0).collect()
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
    fn keys_take_turns_and_a_newcomer_waits_for_one_turn_at_most() {
        let mut line = Line::default();
        let mut places: Vec<_> = (0..6).map(|n| line.push(head(n), Some(1))).collect();
        places.push(line.push(head(6), Some(2)));
        places.push(line.push(head(7), Some(2)));
        assert_eq!(order(&line), [0, 6, 1, 7, 2, 3, 4, 5]);
        for n in [0, 6, 1] {
            line.serve(places[n]);
        }
        line.push(head(8), Some(3));
        assert_eq!(order(&line), [7, 8, 2, 3, 4, 5]);
    }

    #[test]
    fn keys_beyond_the_bound_share_one_and_none_is_kept_for_nothing() {
        let mut line = Line::default();
        let places: Vec<_> = (1..3000).map(|n| line.push(head(n), Some(n))).collect();
        assert!(line.keys.len() <= KEYS + 1);
        places.into_iter().for_each(|place| line.serve(place));
        line.push(head(3000), Some(1));
        let place = line.push(head(3001), Some(1));
        line.serve(place);
        assert_eq!(line.keys.len(), 1);
    }

    #[test]
    fn a_key_that_comes_again_and_again_has_one_turn_as_others_do() {
        let mut line = Line::default();
        let mut flood: Vec<_> = (0..10).map(|n| line.push(head(n), Some(1))).collect();
        flood.reverse();
        let mut served = Vec::new();
        let mut next = 10;
        let mut again = line.push(head(next), Some(2));
        for _ in 0..8 {
            let first = line.heads().next().unwrap().ticket;
            served.push(if first == again.ticket { 2 } else { 1 });
            if first == again.ticket {
                line.serve(again);
                next += 1;
                again = line.push(head(next), Some(2));
            } else {
                line.serve(flood.pop().unwrap());
            }
        }
        assert_eq!(served, [1, 2, 1, 2, 1, 2, 1, 2]);
    }
}
