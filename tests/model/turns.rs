//! Keys take turns, whichever worker they wait on: counted by who is let in while somebody else could have been.

use std::collections::BTreeMap;

use sluice::core::admission::ledger::{HEADS, Key, Record};

use crate::audit::heads;
use crate::chance::mix;
use crate::life::Life;
use crate::limits::{Limits, Usage};
use crate::referee::{Waiter, may_go};
use crate::world::World;

/// By class, a key that waits and another one: how often the latter was let in since the former last was.
#[derive(Clone, Debug, Default)]
pub struct Turns(BTreeMap<(Key, u32, u32), u32>);

/// One settlement, as far as it concerns what shares slots.
pub struct Settled<'a> {
    pub before: &'a Record,
    pub after: &'a Record,
    pub limits: &'a Limits,
    /// Who waits, in rows that can be served.
    pub waiting: &'a [Waiter],
    /// Who was let in.
    pub served: &'a [Waiter],
    /// What is in use after it.
    pub in_use: &'a Usage,
}

impl Turns {
    /// Notes who was let in; a key that had two turns while another could have had one, if there is one.
    pub fn note(&mut self, world: &World, settled: &Settled) -> Option<String> {
        let Settled { limits, waiting, served, in_use, .. } = settled;
        let keyed = |waiters: &[&Waiter]| -> Vec<(Key, u32, Waiter)> {
            let keyed = |waiter: &&Waiter| {
                // As its row says: a slot may go to one that has just left, and is its key's turn all the same.
                let key = match waiter.key {
                    0 => short(mix(settled.life(world, waiter)?.arrival.key?)),
                    key => key,
                };
                Some((limits.classes.get(waiter.class)?.key, key, (*waiter).clone()))
            };
            waiters.iter().filter_map(keyed).collect()
        };
        let served = keyed(&served.iter().collect::<Vec<_>>());
        let shown = waiting.iter().filter(|waiter| waiter.granted.is_none() && settled.was_shown(waiter));
        let mut waits = keyed(&shown.collect::<Vec<_>>());
        waits.retain(|(class, key, _)| served.iter().all(|other| (other.0, other.1) != (*class, *key)));
        self.0.retain(|(class, key, _), _| {
            let here = limits.classes.iter().any(|other| other.key == *class);
            !here || waits.iter().any(|other| (other.0, other.1) == (*class, *key))
        });
        // Of several that wait with one key, one that could go stands for all.
        waits.sort_by_key(|(class, key, _)| (*class, *key));
        for (class, had, other) in &served {
            let mut usage = (*in_use).clone();
            usage.sub(other.class, 1, other.tokens);
            let mut able = waits.clone();
            able.retain(|(of, _, next)| of == class && may_go(next, waiting, &usage, limits, true));
            able.dedup_by_key(|(_, key, _)| *key);
            for (_, key, next) in able {
                let times = self.0.entry((*class, key, *had)).or_default();
                *times += 1;
                // Of a longer line the record shows the first only, and it may have been another's turn among those.
                let most = if settled.shows_all(&next) { 1 } else { 2 };
                if *times > most {
                    return Some(format!("key {had} had {times} turns while {key} waited: {next:?}"));
                }
            }
        }
        None
    }
}

/// A key as rows show it.
fn short(key: u64) -> u32 {
    ((key ^ key >> 32) as u32).max(1)
}

impl Settled<'_> {
    fn life<'a>(&self, world: &'a World, waiter: &Waiter) -> Option<&'a Life> {
        let uid = self.after.rows.get(waiter.row)?.uid;
        let node = world.nodes.iter().find(|node| node.writer.is_some_and(|writer| writer.uid == uid))?;
        node.requests.get(&waiter.ticket).and_then(|life| world.lives.get(*life))
    }

    /// Whether the record shows all that wait in a request's line.
    fn shows_all(&self, waiter: &Waiter) -> bool {
        let shares = self.after.rows.get(waiter.row).map(|row| &row.shares);
        shares.into_iter().flatten().all(|share| share.waiting as usize <= HEADS)
    }

    /// Whether a request stood in the record already.
    fn was_shown(&self, waiter: &Waiter) -> bool {
        let uid = self.after.rows.get(waiter.row).map(|row| row.uid);
        let row = self.before.rows.iter().find(|row| Some(row.uid) == uid);
        row.is_some_and(|row| heads(row).any(|head| head.ticket == waiter.ticket))
    }
}
