//! The policies of a history: classes alone, pools with caps and reserved slots, token budgets, keys.

use std::time::Duration;

use sluice::core::config;
use sluice::core::policy::{Class, Fairness, Policy, Pool, Queue};

use crate::chance::Chance;

/// What a policy is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One class with slots of its own.
    Alone,
    /// Several classes, each with slots of its own.
    Apart,
    /// A shared pool with caps, reserved slots and promotion.
    Shared,
    /// Budgets in tokens, of classes and of a pool, and requests larger than they are.
    Budgets,
    /// A shared pool where keys take turns, with budgets now and then.
    Keys,
}

impl Kind {
    /// Whether requests have keys.
    pub fn has_keys(self) -> bool {
        self == Kind::Keys
    }
}

/// A policy of a kind; each call another one.
pub fn policy(kind: Kind, chance: &mut Chance) -> Policy {
    let mut policy = config::parse(b"{}").unwrap();
    let model = policy.classes[0].clone();
    let shared = matches!(kind, Kind::Shared | Kind::Keys) || (kind == Kind::Budgets && chance.one_in(2));
    let count = match kind {
        Kind::Alone => 1,
        _ => chance.between(2, 4),
    };
    let mut names = vec!["a", "b", "c", "d"];
    names.truncate(count as usize);
    if chance.one_in(4) {
        names.reverse();
    }
    let slots = chance.between(2, 12) as usize;
    let budget = chance.between(1000, 6000);
    if shared {
        policy.pools = vec![Pool {
            name: chance.of(&["gpu", "gpu", "tpu"]).to_owned(),
            concurrency: (kind != Kind::Budgets || chance.one_in(2)).then_some(slots),
            concurrency_tokens: (kind == Kind::Budgets || chance.one_in(5)).then_some(budget),
        }];
    }
    let mut free = slots.saturating_sub(1);
    policy.classes = Vec::new();
    for (place, name) in names.iter().enumerate() {
        let mut class = Class { name: (*name).to_owned(), ..model.clone() };
        // Policies after one another move classes into pools and out of them.
        let shared = shared && !chance.one_in(6);
        class.pool = policy.pools.first().filter(|_| shared).map(|pool| pool.name.clone());
        class.concurrency = (!shared || chance.one_in(2)).then(|| chance.between(1, slots as u64) as usize);
        if kind == Kind::Budgets && (!shared || chance.one_in(3)) {
            class.concurrency_tokens = Some(chance.between(500, 3000));
            class.concurrency = class.concurrency.filter(|_| chance.one_in(2));
        }
        class.reserved =
            if shared && chance.one_in(2) { chance.between(0, free.min(3) as u64) as usize } else { 0 };
        free -= class.reserved;
        class.queue = queue(place, chance);
        policy.classes.push(class);
    }
    policy.fairness = kind.has_keys().then_some(Fairness::User);
    policy
}

fn queue(place: usize, chance: &mut Chance) -> Queue {
    let timeout = chance.of(&[100, 500, 2000, 8000]);
    Queue {
        capacity: chance.of(&[0, 1, 8, 60, 400]),
        timeout: Duration::from_millis(timeout),
        overflow_status: 429,
        timeout_status: 503,
        promote_after: (place > 0 && !chance.one_in(5))
            .then(|| Duration::from_millis(timeout / chance.between(2, 4))),
    }
}
