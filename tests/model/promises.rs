//! Promises that random histories do not ask for by name.

use std::time::Duration;

use sluice::core::admission::{Admission, Ending, Request, Settlement, Writer};
use sluice::core::policy::{Policy, Pool};
use sluice::core::units::{ClassId, StreamId, Ticket, Time};

use crate::history::MS;

const WRITER: Writer = Writer { uid: 1, queue: 1 };

/// One worker and its record.
struct One {
    admission: Admission,
    store: Vec<u8>,
    now: u64,
}

impl One {
    fn new(policy: &Policy) -> One {
        One { admission: Admission::new(policy, Time(MS)), store: Vec::new(), now: MS }
    }

    fn propose(&mut self, arriving: Option<Ticket>) -> Settlement {
        let found = (!self.store.is_empty()).then_some(&self.store[..]);
        self.admission.propose(Time(self.now), WRITER, found, arriving)
    }

    fn settle(&mut self, arriving: Option<Ticket>) -> (bool, Vec<Ticket>) {
        let mut settlement = self.propose(arriving);
        assert!(settlement.is_due(true));
        self.store = settlement.record().to_vec();
        let starts = settlement.starts().to_vec();
        (self.admission.commit(Time(self.now), settlement, true), starts)
    }

    fn enter(&mut self, class: u8, tokens: u64, key: Option<u64>) -> (Ticket, bool) {
        let request = Request { stream: StreamId(0), class: ClassId(class), tokens, key, patience: None };
        let ticket = self.admission.enter(Time(self.now), request).unwrap();
        let admitted = self.settle(Some(ticket)).0;
        (ticket, admitted)
    }

    /// A request ends: who starts by it.
    fn leave(&mut self, ticket: Ticket) -> Vec<Ticket> {
        let changed = self.admission.leave(Time(self.now), ticket, Ending::Served, false);
        if changed { self.settle(None).1 } else { Vec::new() }
    }
}

fn policy(change: impl FnOnce(&mut Policy)) -> Policy {
    let mut policy = sluice::core::config::parse(b"{}").unwrap();
    for class in &mut policy.classes {
        class.queue.capacity = 1000;
        class.queue.timeout = Duration::from_secs(10);
    }
    policy.classes[0].queue.promote_after = None;
    policy.classes[1].queue.promote_after = Some(Duration::from_secs(5));
    change(&mut policy);
    policy
}

/// Small requests come all the time and fill the budget; a large one comes once, and gets its turn when its promotion
/// is due, plus the time that the small ones in flight take.
fn giant_waits(mut one: One, class: u8, small: u8, tokens: u64) -> u64 {
    let mut running = std::collections::VecDeque::new();
    let mut giant = None;
    for step in 0..20_000u64 {
        one.now += 5 * MS;
        if step == 100 {
            let (ticket, admitted) = one.enter(class, tokens, None);
            assert!(!admitted);
            giant = Some((ticket, one.now));
        }
        let (ticket, admitted) = one.enter(small, 100, None);
        let mut starts = if admitted { vec![ticket] } else { Vec::new() };
        while running.front().is_some_and(|(_, until)| *until <= one.now) {
            let (ended, _) = running.pop_front().unwrap();
            starts.extend(one.leave(ended));
        }
        for ticket in starts {
            if let Some((_, since)) = giant.filter(|(giant, _)| *giant == ticket) {
                return one.now - since;
            }
            running.push_back((ticket, one.now + 50 * MS));
        }
    }
    panic!("the large one starves");
}

#[test]
fn a_large_request_has_its_turn_under_constant_small_load() {
    for tokens in [900, 5000] {
        let own = policy(|policy| {
            policy.classes[0].concurrency = None;
            policy.classes[0].concurrency_tokens = Some(1000);
        });
        let waited = giant_waits(One::new(&own), 0, 0, tokens);
        assert!(waited <= 5100 * MS, "{waited}");
        let shared = policy(|policy| {
            let name = "gpu".to_owned();
            policy.pools = vec![Pool { name, concurrency: None, concurrency_tokens: Some(1000) }];
            for class in &mut policy.classes {
                (class.pool, class.concurrency) = (Some("gpu".to_owned()), None);
            }
        });
        let waited = giant_waits(One::new(&shared), 1, 0, tokens);
        assert!(waited <= 5100 * MS, "{waited}");
    }
}

#[test]
fn a_flood_of_one_key_delays_another_key_by_one_turn() {
    let policy = policy(|policy| policy.classes[0].concurrency = Some(1));
    for promoted in [false, true] {
        let mut one = One::new(&policy);
        let (mut running, _) = one.enter(0, 1, Some(1));
        (0..200).for_each(|_| assert!(!one.enter(0, 1, Some(1)).1));
        one.now += if promoted { 6000 * MS } else { MS };
        let (single, _) = one.enter(0, 1, Some(2));
        let mut before = 0;
        loop {
            let starts = one.leave(running);
            running = starts[0];
            if running == single {
                break;
            }
            before += 1;
        }
        assert!(before <= 1, "{before}");
    }
}

#[test]
fn promotion_does_not_let_a_flood_past_another_key() {
    let policy = policy(|policy| {
        let name = "gpu".to_owned();
        policy.pools = vec![Pool { name, concurrency: Some(1), concurrency_tokens: None }];
        policy.classes.iter_mut().for_each(|class| class.pool = Some("gpu".to_owned()));
    });
    let mut one = One::new(&policy);
    let (mut running, _) = one.enter(1, 1, Some(1));
    (0..50).for_each(|_| assert!(!one.enter(1, 1, Some(1)).1));
    one.now += 6000 * MS;
    let (single, _) = one.enter(1, 1, Some(2));
    // Urgent ones come all the time, so that none of the other class goes but by promotion.
    let mut others = 0;
    loop {
        one.now += MS;
        one.enter(0, 1, None);
        running = one.leave(running)[0];
        if running == single {
            break;
        }
        others += 1;
        assert!(others <= 1, "the flood goes first");
    }
}

#[test]
fn proposing_changes_nothing() {
    let policy = policy(|policy| policy.classes[0].concurrency = Some(2));
    let mut one = One::new(&policy);
    let tickets: Vec<_> = (0..20).map(|_| one.enter(0, 1, None).0).collect();
    one.now += MS;
    assert!(one.admission.leave(Time(one.now), tickets[0], Ending::Served, false));
    let mut first = one.propose(None);
    let mut second = one.propose(None);
    assert_eq!(first.record(), second.record());
    assert_eq!(first.starts(), second.starts());
    assert_eq!(first.starts(), [tickets[2]]);
    drop(first);
    one.admission.commit(Time(one.now), second, true);
    let third = one.propose(None);
    assert!(third.starts().is_empty());
}
