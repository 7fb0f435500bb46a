//! `pools`: slots that several classes share, as written, and whether the classes agree with them.

use std::fmt;

use super::limits::{MOST, MOST_TOKENS};
use super::mistakes::{Wrong, shown};
use super::near::nearest;
use super::node::Node;
use super::reader::Reader;
use super::values::{count, name, or_null, whole};
use crate::core::policy::{Class, Pool};

/// Most pools: no more than classes, since each has one at least.
const MOST_POOLS: usize = 32;

pub(super) fn pools(from: &mut Reader) -> Vec<Pool> {
    let pools = from.objects("pools", &Node::List(Vec::new()), 0..=MOST_POOLS, |from, _| Pool {
        name: from.require("name", name).unwrap_or_default(),
        concurrency: from.read("concurrency", None, or_null(count(1..=MOST))),
        concurrency_tokens: from.read("concurrency_tokens", None, or_null(whole(1..=MOST_TOKENS))),
    });
    for (place, pool) in pools.iter().enumerate() {
        let at = format!("pools[{place}]");
        let twin =
            pools.iter().take(place).position(|other| other.name == pool.name && !pool.name.is_empty());
        if let Some(twin) = twin {
            let what = format!("\"{}\" is the name of pools[{twin}] already", pool.name);
            from.wrong(&format!("{at}.name"), Wrong::new(what, "names must differ"));
        }
        if pool.concurrency.is_none() && pool.concurrency_tokens.is_none() && from.good(&[&at]) {
            let what = "has neither concurrency nor concurrency_tokens, so that it bounds nothing";
            from.wrong(&at, Wrong::new(what, "give one of them at least"));
        }
    }
    pools
}

/// Holds the classes against the pools that they name.
pub(super) fn agree(from: &mut Reader, pools: &[Pool], classes: &[Class]) {
    // A pool or class whose name could not be read may be any of those that others name.
    let listed =
        pools.iter().all(|pool| !pool.name.is_empty()) && (!pools.is_empty() || from.good(&["pools"]));
    let mut all_known = listed && !classes.is_empty();
    for (place, class) in classes.iter().enumerate() {
        let at = format!("classes[{place}]");
        let pool_at = format!("{at}.pool");
        let Some(named) = &class.pool else {
            all_known &= !class.name.is_empty() && from.good(&[&pool_at]);
            if class.reserved > 0 && from.good(&[&pool_at]) {
                let what = "keeps slots of a pool, and the class has none";
                from.wrong(&format!("{at}.reserved"), Wrong::new(what, "name its pool, or leave this out"));
            }
            continue;
        };
        match pools.iter().position(|pool| pool.name == *named) {
            Some(pool_place) => within(from, pools, pool_place, classes, place),
            None if listed => {
                all_known = false;
                from.wrong(&pool_at, unknown(named, pools));
            }
            None => all_known = false,
        }
    }
    for (place, pool) in pools.iter().enumerate().filter(|_| all_known) {
        if !classes.iter().any(|class| class.pool.as_ref() == Some(&pool.name)) {
            let what = "is the pool of no class";
            from.wrong(&format!("pools[{place}]"), Wrong::new(what, "name it in a class, or leave it out"));
        }
    }
}

/// Holds one class against its pool and the more urgent classes there.
fn within(from: &mut Reader, pools: &[Pool], pool_place: usize, classes: &[Class], place: usize) {
    let (Some(pool), Some(class)) = (pools.get(pool_place), classes.get(place)) else { return };
    let at = |key: &str| format!("classes[{place}].{key}");
    let pool_at = |key: &str| format!("pools[{pool_place}].{key}");
    let slots = pool.concurrency.filter(|_| from.good(&[&pool_at("concurrency")]));
    over(from, at("concurrency"), class.concurrency, pool, "concurrency", slots);
    let tokens = pool.concurrency_tokens;
    over(from, at("concurrency_tokens"), class.concurrency_tokens, pool, "concurrency_tokens", tokens);

    let reserved_at = at("reserved");
    if let Some(most) = class.concurrency.filter(|most| class.reserved > *most) {
        let what = format!(
            "{} is over concurrency, which is {most}: the class can never use all of them",
            class.reserved
        );
        from.wrong(&reserved_at, Wrong::new(what, "allowed is up to concurrency"));
    }
    let Some(slots) = slots else {
        if class.reserved > 0 && from.good(&[&pool_at("concurrency")]) {
            let what = format!("keeps slots, and pool \"{}\" does not count any", pool.name);
            from.wrong(&reserved_at, Wrong::new(what, "give the pool a concurrency, or leave this out"));
        }
        return;
    };
    let before = classes.iter().take(place).filter(|other| other.pool == class.pool);
    let before: usize = before.map(|other| other.reserved).sum();
    if before >= slots {
        let what = format!(
            "has no slot that it could get: more urgent classes reserve {before} of the {slots} slots of pool \"{}\"",
            pool.name
        );
        from.wrong(&format!("classes[{place}]"), Wrong::new(what, "leave at least one"));
    } else if before + class.reserved > slots {
        let what = format!(
            "{} is more than is left: pool \"{}\" has {slots} slots, of which more urgent classes reserve {before}",
            class.reserved, pool.name
        );
        from.wrong(&reserved_at, Wrong::new(what, format!("allowed is up to {}", slots - before)));
    }
}

/// A bound of a class over that of its pool does nothing, and whoever wrote it meant something.
fn over<T: PartialOrd + fmt::Display>(
    from: &mut Reader,
    at: String,
    own: Option<T>,
    pool: &Pool,
    key: &str,
    most: Option<T>,
) {
    if let (Some(own), Some(most)) = (own, most)
        && own > most
    {
        let what = format!("{own} is over that of pool \"{}\", which is {most}", pool.name);
        from.wrong(&at, Wrong::new(what, format!("allowed is up to the pool's {key}, or null for as much")));
    }
}

fn unknown(named: &str, pools: &[Pool]) -> Wrong {
    let names: Vec<&str> = pools.iter().map(|pool| pool.name.as_str()).collect();
    let allowed = match nearest(named, &names) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None if names.is_empty() => "there are none: add it, or leave this out".to_owned(),
        None => format!("pools are {}", names.join(", ")),
    };
    Wrong::new(format!("\"{}\" is none of pools", shown(named)), allowed)
}
