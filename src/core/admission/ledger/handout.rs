//! Who is next: free slots go to waiting requests, whichever worker they wait on.

use super::record::{Head, Record, Row, Share};
use super::usage::{Usage, Verdict};
use super::{HEADS, PICKUP};
use crate::core::units::Time;

/// Hands out slots; what it needs for that is kept and used again.
#[derive(Debug, Default)]
pub struct Handout {
    usage: Usage,
    fronts: Vec<Front>,
}

impl Handout {
    /// Takes back what was handed out and not taken in time, then hands every free slot to the next request that fits.
    pub fn run(&mut self, record: &mut Record, now: Time) {
        if record.rows.iter().flat_map(|row| &row.shares).all(|share| share.heads.is_empty()) {
            record.turns.clear();
            return;
        }
        let Record { rows, turns, .. } = record;
        let shares = || rows.iter().flat_map(|row| &row.shares);
        turns.retain(|turns| shares().any(|share| share.class == turns.class && !share.heads.is_empty()));
        take_back(record, now);
        let Handout { usage, fronts } = self;
        usage.count(record, now);
        if usage.is_all_full(&record.rules) {
            return;
        }
        find_fronts(fronts, record, now, usage);
        while let Some(at) = next(fronts) {
            let Some(front) = fronts.get_mut(at) else { return };
            let mut served = None;
            match usage.verdict(&record.rules, front.urgency, front.tokens, front.blocks) {
                Verdict::Fits => {
                    usage.add(front.urgency, 1, front.tokens);
                    served = front.grant(record, now);
                }
                Verdict::NotNow => front.passed |= 1 << front.head,
                Verdict::Closes => {
                    let closed = front.urgency;
                    fronts.retain(|front| front.urgency != closed);
                    continue;
                }
                Verdict::ClosesPool => {
                    let closed = front.pool;
                    fronts.retain(|front| front.pool != closed);
                    continue;
                }
            }
            let urgency = front.urgency;
            if !front.find(record, now) {
                fronts.swap_remove(at);
            }
            if served.is_some() {
                // Whose turn it is has changed, on all workers.
                fronts.retain_mut(|front| front.urgency != urgency || front.find(record, now));
            }
        }
    }
}

/// A worker that lets a slot lie for long hangs; what it holds in hand goes to others, until it is heard of again. All
/// of it: were only the oldest slots taken back, it would find the others and serve its line out of order.
fn take_back(record: &mut Record, now: Time) {
    for row in &mut record.rows {
        let granted = || row.shares.iter().flat_map(Share::granted).filter_map(|head| head.granted);
        let hangs = granted().any(|at| now.since(at) >= PICKUP);
        if !hangs {
            continue;
        }
        row.slow = true;
        for head in row.shares.iter_mut().flat_map(|share| &mut share.heads) {
            head.granted = None;
        }
    }
}

/// The first request of a row's share of a class that no slot has been handed to: a worker's line keeps its order,
/// whatever is waited for, but where another key's turn comes first.
#[derive(Debug)]
struct Front {
    row: usize,
    share: usize,
    head: usize,
    /// The heads that were passed by, as bits.
    passed: u32,
    urgency: usize,
    /// What it shares slots with: the place of its pool, or behind those its own.
    pool: usize,
    /// When its key has its turn, see [`Record::turn`].
    turn: usize,
    /// Since when it waits.
    since: Time,
    /// Since when a request waits that goes before newer ones of more urgent classes: it or one behind it, since that
    /// one cannot pass.
    promoted: Option<Time>,
    tokens: u64,
    /// Whether it lets nobody past it while the budget is short.
    blocks: bool,
}

impl Front {
    /// Looks for the next head without a slot; false where there is none.
    fn find(&mut self, record: &Record, now: Time) -> bool {
        let share = record.rows.get(self.row).and_then(|row| row.shares.get(self.share));
        let Some(share) = share else { return false };
        let passed = self.passed;
        let left = || {
            let left = move |(at, head): &(usize, &Head)| head.granted.is_none() && passed >> at & 1 == 0;
            share.heads.iter().take(HEADS).enumerate().filter(left)
        };
        let mut turns = left().map(|(at, head)| (record.turn(share.class, head.key), at, head));
        // Where nobody has had a turn lately, the line's own order holds.
        let first = if record.turns.is_empty() {
            turns.next()
        } else {
            turns.min_by_key(|(turn, at, _)| (*turn, *at))
        };
        let Some((turn, at, head)) = first else { return false };
        let rule = record.rules.classes.get(self.urgency);
        let promoted = rule.and_then(|rule| rule.promote_after).and_then(|after| {
            left().map(|(_, head)| head.since).filter(|since| now.since(*since) >= after).min()
        });
        self.head = at;
        self.since = head.since;
        self.turn = turn;
        self.promoted = promoted;
        self.tokens = head.tokens;
        self.blocks = rule.is_some_and(|rule| now.since(head.since) >= rule.block_after);
        true
    }

    /// Hands a slot to it; the key that has had its turn by that, if it has one.
    fn grant(&self, record: &mut Record, now: Time) -> Option<u32> {
        let share = record.rows.get_mut(self.row)?.shares.get_mut(self.share)?;
        let (class, head) = (share.class, share.heads.get_mut(self.head)?);
        head.granted = Some(now);
        let key = Some(head.key).filter(|key| *key != 0)?;
        record.take_turn(class, key);
        Some(key)
    }
}

/// The fronts of all lines that a slot could be handed to.
fn find_fronts(fronts: &mut Vec<Front>, record: &Record, now: Time, usage: &Usage) {
    fronts.clear();
    let able = |row: &Row| row.is_fresh(now) && !row.slow;
    for (row, at) in record.rows.iter().enumerate().filter(|(_, row)| able(row)) {
        for (share, at) in at.shares.iter().enumerate().filter(|(_, share)| !share.heads.is_empty()) {
            let urgency = record.rules.urgency(at.class);
            if usage.is_full(&record.rules, urgency) {
                continue;
            }
            let since = Time::default();
            let pool = usage.pool(urgency).unwrap_or(record.rules.pools.len() + urgency);
            let mut front = Front {
                row,
                share,
                head: 0,
                passed: 0,
                urgency,
                pool,
                turn: 0,
                since,
                promoted: None,
                tokens: 0,
                blocks: false,
            };
            if front.find(record, now) {
                fronts.push(front);
            }
        }
    }
}

/// Which front is to be served next, one pool after the other: that of the most urgent class, or of the one with the
/// oldest promoted request where that is older.
fn next(fronts: &[Front]) -> Option<usize> {
    let pool = fronts.first()?.pool;
    let beside = || fronts.iter().filter(|front| front.pool == pool);
    let urgency = beside().map(|front| front.urgency).min()?;
    let urgent = first_of(fronts, urgency)?;
    let age = |front: &Front| front.promoted.map_or(front.since, |promoted| promoted.min(front.since));
    let since = beside().filter(|front| front.urgency == urgency).map(age).min()?;
    let lesser = beside().filter(|front| front.urgency > urgency);
    let promoted = lesser.filter_map(|front| Some((front.promoted?, front.urgency))).min();
    match promoted.filter(|(promoted, _)| *promoted < since) {
        Some((_, urgency)) => first_of(fronts, urgency),
        None => Some(urgent),
    }
}

/// The front of a class over all workers: whose turn comes first, and of those the oldest.
fn first_of(fronts: &[Front], urgency: usize) -> Option<usize> {
    let class = fronts.iter().enumerate().filter(|(_, front)| front.urgency == urgency);
    class.min_by_key(|(_, front)| (front.turn, front.since, front.row)).map(|(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::super::{ClassRule, Key, PoolRule, Rules};
    use super::*;
    use crate::core::units::Ticket;
    use std::time::Duration;

    const NOW: Time = Time(10_000_000_000);

    /// A pool of `slots` with classes `a`, `b` and `c`; who waits for 5 s in the latter is promoted.
    fn rules(slots: u32, change: impl Fn(&mut [ClassRule])) -> Rules {
        let rule = |name: &str| ClassRule {
            class: Key::of(name),
            generation: 1,
            pool: Some(Key::of("gpu")),
            concurrency: u32::MAX,
            tokens: u64::MAX,
            reserved: 0,
            capacity: 100,
            promote_after: (name != "a").then_some(Duration::from_secs(5)),
            block_after: Duration::from_secs(5),
        };
        let mut classes = vec![rule("a"), rule("b"), rule("c")];
        change(&mut classes);
        let pool = PoolRule { pool: Key::of("gpu"), generation: 1, concurrency: slots, tokens: 1000 };
        Rules { pools: vec![pool], classes, ..Rules::default() }
    }

    /// Requests by class, seconds waited and tokens, in the order of their line.
    fn row(uid: u64, waiting: &[(&str, u64, u64)]) -> Row {
        let mut row = Row { uid, beat: NOW, ..Row::default() };
        for (at, (class, waited, tokens)) in waiting.iter().enumerate() {
            let class = Key::of(class);
            if row.share(class).is_none() {
                row.shares.push(Share { class, ..Share::default() });
            }
            let share = row.shares.iter_mut().find(|share| share.class == class).unwrap();
            let since = Time(NOW.0 - waited * 1_000_000_000);
            share.waiting += 1;
            let ticket = Ticket(uid * 100 + at as u64);
            share.heads.push(Head { ticket, since, tokens: *tokens, ..Head::default() });
        }
        row
    }

    /// Who gets a slot, by ticket.
    fn served(rules: Rules, rows: Vec<Row>) -> Vec<u64> {
        let mut record = Record { rules, rows, ..Record::default() };
        Handout::default().run(&mut record, NOW);
        let shares = record.rows.iter().flat_map(|row| &row.shares);
        let mut served: Vec<u64> = shares.flat_map(Share::granted).map(|head| head.ticket.0).collect();
        served.sort_unstable();
        served
    }

    #[test]
    fn slots_go_in_the_order_of_urgency_age_and_promotion() {
        let none = |_: &mut [ClassRule]| ();
        let cases: [(&str, u32, Vec<Row>, &[u64]); 6] = [
            ("the most urgent", 1, vec![row(1, &[("b", 3, 1)]), row(2, &[("a", 1, 1)])], &[200]),
            (
                "the oldest, on whichever worker",
                1,
                vec![row(1, &[("a", 1, 1)]), row(2, &[("a", 2, 1)])],
                &[200],
            ),
            (
                "a promoted one before a newer urgent one",
                1,
                vec![row(1, &[("a", 1, 1), ("b", 6, 1)])],
                &[101],
            ),
            (
                "no promoted one before an older urgent one",
                1,
                vec![row(1, &[("a", 7, 1), ("b", 6, 1)])],
                &[100],
            ),
            ("of two promoted ones the older", 1, vec![row(1, &[("b", 6, 1), ("c", 7, 1)])], &[101]),
            (
                "who stands before a promoted one",
                1,
                vec![row(1, &[("a", 3, 1), ("b", 1, 1), ("b", 6, 1)])],
                &[101],
            ),
        ];
        for (what, slots, rows, expected) in cases {
            assert_eq!(served(rules(slots, none), rows), expected, "{what}");
        }
    }

    /// Lets one go on at a time, as slots become free; the tickets in that order.
    fn one_by_one(mut rows: Vec<Row>) -> Vec<u64> {
        let count = rows.iter().flat_map(|row| &row.shares).map(|share| share.heads.len()).sum();
        let (mut handout, mut turns) = (Handout::default(), Vec::new());
        let mut next = || {
            let mut record = Record { rules: rules(1, |_| ()), rows: rows.clone(), turns: turns.clone() };
            handout.run(&mut record, NOW);
            let shares = record.rows.iter_mut().flat_map(|row| &mut row.shares);
            let granted: Vec<_> =
                shares.flat_map(|s| s.heads.extract_if(.., |h| h.granted.is_some())).collect();
            (rows, turns) = (record.rows, record.turns);
            granted[0].ticket.0
        };
        (0..count).map(|_| next()).collect()
    }

    /// Requests of one class by key and seconds waited.
    fn keyed(uid: u64, waiting: &[(u32, u64)]) -> Row {
        let plain: Vec<_> = waiting.iter().map(|(_, waited)| ("a", *waited, 1)).collect();
        let mut row = row(uid, &plain);
        for (head, (key, _)) in row.shares[0].heads.iter_mut().zip(waiting) {
            head.key = *key;
        }
        row
    }

    #[test]
    fn keys_take_turns_over_all_workers() {
        let flood = || keyed(1, &[(1, 9), (1, 9), (1, 9), (1, 9)]);
        let too = |uid| keyed(uid, &[(1, 8), (1, 8)]);
        let light = keyed(9, &[(2, 3), (2, 2), (2, 1)]);
        assert_eq!(one_by_one(vec![flood(), light.clone()]), [100, 900, 101, 901, 102, 902, 103]);
        assert_eq!(
            one_by_one(vec![too(2), too(3), flood(), light]),
            [100, 900, 101, 901, 102, 902, 103, 200, 201, 300, 301]
        );
        let mixed = keyed(2, &[(1, 7), (2, 1), (3, 2), (1, 7)]);
        assert_eq!(one_by_one(vec![flood(), mixed]), [100, 201, 202, 101, 102, 103, 200, 203]);
    }

    #[test]
    fn a_key_that_comes_again_has_one_turn_as_others_do() {
        let mut record = Record { rules: rules(1, |_| ()), ..Record::default() };
        record.rows = vec![keyed(1, &[(1, 9), (1, 9), (1, 9), (1, 9)])];
        let mut served = Vec::new();
        for _ in 0..3 {
            record.rows.push(keyed(2, &[(2, 0)]));
            for _ in 0..2 {
                Handout::default().run(&mut record, NOW);
                let shares = record.rows.iter_mut().flat_map(|row| &mut row.shares);
                served.extend(
                    shares.flat_map(|s| s.heads.extract_if(.., |h| h.granted.is_some())).map(|h| h.key),
                );
            }
            record.rows.pop();
        }
        assert_eq!(served, [1, 2, 1, 2, 1, 2]);
    }

    #[test]
    fn what_is_known_of_turns_is_bounded_and_forgotten_where_nobody_waits() {
        let mut record = Record { rules: rules(100, |_| ()), ..Record::default() };
        record.rows = (0..50).map(|n| keyed(n, &[(n as u32 + 1, 1)])).collect();
        Handout::default().run(&mut record, NOW);
        assert_eq!(record.turns[0].had, (19..=50).collect::<Vec<u32>>());
        record.rows = vec![row(1, &[("b", 1, 1)])];
        Handout::default().run(&mut record, NOW);
        assert!(record.turns.is_empty());
    }

    #[test]
    fn pools_do_not_stand_in_each_others_way() {
        let mut rules = rules(1, |classes| classes[1].pool = None);
        rules.pools[0].tokens = 10;
        let rows = vec![row(1, &[("a", 9, 1), ("a", 8, 1), ("b", 1, 500), ("b", 1, 500), ("c", 9, 1)])];
        assert_eq!(served(rules, rows), [100, 102, 103]);
    }

    #[test]
    fn caps_reserved_slots_and_budgets_keep_some_back() {
        let cap = |rules: &mut [ClassRule]| rules[0].concurrency = 1;
        let waiting = [("a", 3, 1), ("a", 2, 1), ("c", 1, 1)];
        assert_eq!(served(rules(2, cap), vec![row(1, &waiting)]), [100, 102]);
        let reserved = |rules: &mut [ClassRule]| rules[0].reserved = 2;
        assert_eq!(served(rules(3, reserved), vec![row(1, &[("b", 9, 1), ("b", 8, 1)])]), [100]);
        let none = |_: &mut [ClassRule]| ();
        // Too large for what is left: passed by, until it has waited for long; alone, whatever its size.
        assert_eq!(
            served(rules(9, none), vec![row(1, &[("a", 3, 600), ("a", 2, 600), ("a", 1, 9)])]),
            [100, 102]
        );
        assert_eq!(served(rules(9, none), vec![row(1, &[("a", 8, 600), ("a", 7, 600), ("b", 1, 9)])]), [100]);
        assert_eq!(served(rules(9, none), vec![row(1, &[("a", 3, 5000), ("a", 2, 1)])]), [100]);
    }

    #[test]
    fn a_worker_that_hangs_keeps_no_slot_that_it_was_given_later() {
        let none = |_: &mut [ClassRule]| ();
        let mut hangs = row(1, &[("a", 3, 1), ("a", 2, 1)]);
        hangs.shares[0].heads[0].granted = Some(Time(NOW.0 - 20_000_000));
        hangs.shares[0].heads[1].granted = Some(Time(NOW.0 - 1_000_000));
        assert!(served(rules(2, none), vec![hangs]).is_empty());
    }

    #[test]
    fn nothing_goes_to_who_is_not_heard_of_or_lets_it_lie() {
        let none = |_: &mut [ClassRule]| ();
        let dead = Row { beat: Time(0), ..row(1, &[("a", 3, 1)]) };
        let mut hangs = row(2, &[("a", 2, 1)]);
        hangs.shares[0].heads[0].granted = Some(Time(NOW.0 - 20_000_000));
        assert_eq!(served(rules(1, none), vec![dead, hangs, row(3, &[("a", 1, 1)])]), [300]);
    }
}
