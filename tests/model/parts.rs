//! A domain's record taken apart into what shares slots, each with the limits that the policies give it; and whether
//! the limits in the record are the right ones.

use std::collections::BTreeMap;
use std::rc::Rc;

use sluice::core::admission::ledger::{ClassRule, Key, Record};
use sluice::core::policy::{Class, Policy};

use crate::limits::{Limits, class_limits};

/// The policies by the moment at which they were read.
pub type Generations = BTreeMap<u64, Rc<Policy>>;

/// A pool, or a class that is in none: its part of the record, and its limits.
pub struct Part {
    pub name: String,
    pub limits: Limits,
    pub record: Record,
}

impl Part {
    /// Whether a class is in it.
    pub fn has(&self, class: Key) -> bool {
        self.limits.classes.iter().any(|other| other.key == class)
    }
}

/// The parts of a record.
pub fn parts(known: &Generations, record: &Record) -> Result<Vec<Part>, String> {
    let mut parts: Vec<Part> = Vec::new();
    for rule in &record.rules.classes {
        let (policy, class) = written(known, rule).ok_or("limits that nobody has")?;
        let name = class.pool.as_ref().map_or(format!("class {}", class.name), |pool| format!("pool {pool}"));
        let at = parts.iter().position(|part| part.name == name).unwrap_or(parts.len());
        if at == parts.len() {
            let mut limits = Limits::default();
            if let Some(pool) = &class.pool {
                let generation = record.rules.pool(Key::of(pool)).map(|rule| rule.generation);
                let policy =
                    generation.and_then(|generation| known.get(&generation)).map_or(policy, |known| known);
                let pool = policy.pools.iter().find(|other| other.name == *pool).ok_or("a pool of nobody")?;
                limits.slots = pool.concurrency.map(|slots| slots as u64);
                limits.tokens = pool.concurrency_tokens;
            }
            parts.push(Part { name, limits, record: record.clone() });
        }
        parts[at].limits.classes.push(class_limits(class));
    }
    for part in &mut parts {
        for row in &mut part.record.rows {
            row.shares.retain(|share| part.limits.classes.iter().any(|class| class.key == share.class));
        }
    }
    Ok(parts)
}

/// The policy that a rule was written by, and its class there.
fn written<'a>(known: &'a Generations, rule: &ClassRule) -> Option<(&'a Policy, &'a Class)> {
    let policy = known.get(&rule.generation)?;
    Some((policy, policy.classes.iter().find(|class| Key::of(&class.name) == rule.class)?))
}

/// What is wrong with the limits that a worker of `generation` has left in a record.
pub fn wrong_rules(known: &Generations, generation: u64, before: &Record, after: &Record) -> Option<String> {
    let own = &known[&generation];
    for class in &own.classes {
        let rule = after.rules.of(Key::of(&class.name));
        if rule.is_none_or(|rule| rule.generation < generation) {
            return Some(format!("{} is under limits older than its own: {rule:?}", class.name));
        }
    }
    for rule in &after.rules.classes {
        let (earlier, mine) = (before.rules.of(rule.class), rule.generation == generation);
        if written(known, rule).is_none() || !(mine || earlier.is_some_and(|it| it == rule)) {
            return Some(format!("{rule:?} after {earlier:?}"));
        }
        if earlier.is_some_and(|earlier| earlier.generation > rule.generation) {
            return Some(format!("an older one, {rule:?}, in the place of {earlier:?}"));
        }
        let limits = class_limits(written(known, rule)?.1);
        let said = (rule.concurrency, rule.tokens, u64::from(rule.reserved), u64::from(rule.capacity));
        let right = (
            limits.slots.map_or(u32::MAX, |slots| slots as u32),
            limits.tokens.unwrap_or(u64::MAX),
            limits.reserved,
            limits.capacity,
        );
        if said != right {
            return Some(format!("{rule:?} is not {limits:?}"));
        }
    }
    for earlier in &before.rules.classes {
        if after.rules.of(earlier.class).is_none()
            && (earlier.generation >= generation || after.mentions(earlier.class))
        {
            return Some(format!("{earlier:?} is forgotten"));
        }
    }
    let orphan =
        after.rows.iter().flat_map(|row| &row.shares).find(|share| after.rules.of(share.class).is_none());
    if orphan.is_some() {
        return Some(format!("no limits for {orphan:?}"));
    }
    for rule in &after.rules.classes {
        let Some(pool) = &written(known, rule)?.1.pool else { continue };
        let of_pool = after.rules.pool(Key::of(pool));
        if of_pool.is_none_or(|it| it.generation < rule.generation || !known.contains_key(&it.generation)) {
            return Some(format!("{rule:?} in pool {pool} of older limits: {of_pool:?}"));
        }
    }
    let place = |rule: &ClassRule| {
        let (policy, class) = written(known, rule)?;
        let place = policy.classes.iter().position(|other| other.name == class.name)?;
        Some((std::cmp::Reverse(rule.generation), place))
    };
    let order: Vec<_> = after.rules.classes.iter().map(place).collect();
    (!order.is_sorted()).then(|| format!("not in the order of urgency: {:?}", after.rules.classes))
}
