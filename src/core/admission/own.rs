//! What a policy has to say of its domain's record: under which key it stands, and which limits.

use std::rc::Rc;

use super::ledger::{ClassRule, Key, PoolRule, Rules};
use crate::core::policy::{Class, Policy};
use crate::core::units::Time;

/// The key of a domain's record in shared data. The number is the record's version.
pub fn record_key(policy: &Policy) -> Rc<str> {
    format!("sluice.4.{}.slots", policy.domain).into()
}

/// The limits of a policy that was read at `now`.
pub fn rules(policy: &Policy, now: Time) -> Rules {
    let generation = now.0;
    let pool = |pool: &crate::core::policy::Pool| PoolRule {
        pool: Key::of(&pool.name),
        generation,
        concurrency: bound(pool.concurrency),
        tokens: pool.concurrency_tokens.unwrap_or(u64::MAX),
    };
    let class = |class: &Class| ClassRule {
        class: Key::of(&class.name),
        generation,
        pool: class.pool.as_ref().map(|pool| Key::of(pool)),
        concurrency: bound(class.concurrency),
        tokens: class.concurrency_tokens.unwrap_or(u64::MAX),
        reserved: u32::try_from(class.reserved).unwrap_or(u32::MAX),
        capacity: u32::try_from(class.queue.capacity).unwrap_or(u32::MAX),
        promote_after: class.queue.promote_after,
        block_after: class.queue.promote_after.unwrap_or(class.queue.timeout / 2),
    };
    Rules {
        pools: policy.pools.iter().map(pool).collect(),
        classes: policy.classes.iter().map(class).collect(),
        ..Rules::default()
    }
}

fn bound(limit: Option<usize>) -> u32 {
    limit.and_then(|limit| u32::try_from(limit).ok()).unwrap_or(u32::MAX)
}
