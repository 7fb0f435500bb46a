//! The pools of a policy: what shares one record of the ledger.

use std::rc::Rc;

use super::ledger::{BEAT, ClassKey, ClassRule, Rules};
use crate::core::policy::{Class, Policy};
use crate::core::units::{ClassId, Time};

/// The place of a pool in the worker's list. A class without a pool is one by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PoolId(pub(super) usize);

/// One pool.
#[derive(Debug)]
pub struct Pool {
    /// The key of its record in shared data. The number is the record's version.
    pub key: Rc<str>,
    /// Its limits under this policy.
    pub rules: Rules,
    /// Its classes, most urgent first.
    pub classes: Vec<ClassId>,
    /// When this worker's row was last written.
    pub beat: Time,
}

impl Pool {
    /// Whether the row has to be written again, so that others do not take the worker for dead.
    pub fn needs_beat(&self, now: Time) -> bool {
        now.since(self.beat) >= BEAT
    }
}

/// The pools of a policy, and the pool of each class.
pub fn pools(policy: &Policy, now: Time) -> (Vec<Pool>, Vec<PoolId>) {
    let mut pools: Vec<Pool> = policy
        .pools
        .iter()
        .map(|pool| {
            let key = format!("sluice.1.{}.pool.{}", policy.domain, pool.name);
            new(key, now, bound(pool.concurrency), pool.concurrency_tokens.unwrap_or(u64::MAX))
        })
        .collect();
    let mut of_class = Vec::new();
    for (place, class) in policy.classes.iter().enumerate() {
        let named = |name: &String| policy.pools.iter().position(|pool| pool.name == *name);
        let at = class.pool.as_ref().and_then(named).unwrap_or_else(|| {
            let key = format!("sluice.1.{}.class.{}", policy.domain, class.name);
            pools.push(new(key, now, u32::MAX, u64::MAX));
            pools.len() - 1
        });
        if let (Some(pool), Ok(id)) = (pools.get_mut(at), u8::try_from(place)) {
            pool.classes.push(ClassId(id));
            pool.rules.classes.push(rule(class));
        }
        of_class.push(PoolId(at));
    }
    (pools, of_class)
}

fn new(key: String, now: Time, concurrency: u32, tokens: u64) -> Pool {
    let rules = Rules { generation: now.0, concurrency, tokens, classes: Vec::new() };
    Pool { key: key.into(), rules, classes: Vec::new(), beat: Time::default() }
}

fn rule(class: &Class) -> ClassRule {
    ClassRule {
        class: ClassKey::of(&class.name),
        concurrency: bound(class.concurrency),
        tokens: class.concurrency_tokens.unwrap_or(u64::MAX),
        reserved: u32::try_from(class.reserved).unwrap_or(u32::MAX),
        capacity: u32::try_from(class.queue.capacity).unwrap_or(u32::MAX),
        promote_after: class.queue.promote_after,
        block_after: class.queue.promote_after.unwrap_or(class.queue.timeout / 2),
    }
}

fn bound(limit: Option<usize>) -> u32 {
    limit.and_then(|limit| u32::try_from(limit).ok()).unwrap_or(u32::MAX)
}
