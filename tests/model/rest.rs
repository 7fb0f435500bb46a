//! What must hold after every event, whether anything was written or not: nobody waits for nothing or for too long.

use std::collections::HashMap;

use sluice::core::admission::ledger::Row;
use sluice::core::units::Time;

use crate::audit::heads;
use crate::history::MS;
use crate::life::State;
use crate::limits::{Fit, Usage};
use crate::parts::Part;
use crate::referee::{PICKUP, Waiter, counts, may_go, usage, waiters};
use crate::world::World;

/// A timer of 10 ms and a little more: after so long a worker that does not hang has looked at what time has changed.
pub const TICK: u64 = 11 * MS;
/// A worker tells 32 requests in a callback and then wakes itself, which takes 0.6 ms: 20 ms are enough for 1000.
const TOLD: u64 = 20 * MS;

/// After an event: nobody waits for nothing, nobody waits too long.
pub fn after_event(world: &mut World) {
    if world.seen.events.is_multiple_of(4) {
        nobody_waits_too_long(world);
        who_lives_is_heard_of(world);
    }
    if world.audit.calm {
        upstream_within_limits(world);
    }
    let mut idle = HashMap::new();
    for part in world.audit.parts() {
        let Some(what) = slot_lies_idle(world, &part) else { continue };
        let since = world.audit.idle.get(&part.name).copied().unwrap_or(world.now);
        if world.now - since > TICK {
            world.audit.fault(format!("{}: since {since} {what}", part.name));
        }
        idle.insert(part.name, since);
    }
    world.audit.idle = idle;
}

/// Whether somebody could go by what is true at this moment. What was handed to a worker that hangs, or is in the
/// hands of one that is not heard of, is free again after its time; who waits on a worker that hangs cannot go.
fn slot_lies_idle(world: &World, part: &Part) -> Option<String> {
    let now = world.now;
    let Part { limits, record, .. } = part;
    if !record.rows.iter().any(|row| heads(row).any(|head| head.granted.is_none())) {
        return None;
    }
    let mut in_use: Usage = usage(record, limits, now);
    let all = waiters(record, limits, now);
    for waiter in &all {
        if waiter.granted.is_some_and(|at: Time| now.saturating_sub(at.0) > PICKUP) {
            in_use.sub(waiter.class, 1, waiter.tokens);
        }
    }
    let awake = |waiter: &&Waiter| {
        let uid = record.rows[waiter.row].uid;
        let node = world.nodes.iter().find(|node| node.writer.is_some_and(|writer| writer.uid == uid));
        node.is_some_and(|node| node.alive && world.threads[node.thread].stalled + TICK <= now)
    };
    let next = all
        .iter()
        .filter(|waiter| waiter.granted.is_none())
        .filter(|waiter| in_use.fit(limits, waiter.class, waiter.tokens) == Fit::Yes)
        .filter(awake)
        .find(|waiter| may_go(waiter, &all, &in_use, limits, world.audit.keys))?;
    Some(format!("{next:?} could go; in use {in_use:?}"))
}

/// A worker that has anything to do with a record is not taken for dead while it does not hang.
fn who_lives_is_heard_of(world: &mut World) {
    let now = world.now;
    let hangs = |thread: usize| world.threads[thread].stalled + crate::world::IDLE_TICK + TICK > now;
    for node in world.nodes.iter().filter(|node| node.alive && !hangs(node.thread)) {
        let busy = node.parts.values().find(|part| part.held > 0 || !part.parked.is_empty());
        let row = |row: &&Row| node.writer.is_some_and(|writer| writer.uid == row.uid);
        let heard_of = world.audit.record.rows.iter().find(row).is_some_and(|row| counts(row.beat, now));
        if let Some(part) = busy.filter(|_| !heard_of) {
            world.audit.found = Some(format!("a worker with {part:?} is taken for dead"));
            return;
        }
    }
}

fn nobody_waits_too_long(world: &mut World) {
    let now = world.now;
    for node in world.nodes.iter().filter(|node| node.alive) {
        let awake = world.threads[node.thread].stalled;
        for part in node.parts.values() {
            let mut lives = part.parked.iter().map(|life| &world.lives[*life]);
            let late = lives.find(|life| now > life.deadline.max(awake) + TICK + TOLD);
            if let Some(life) = late {
                world.audit.found = Some(format!("waits past its deadline: {life:?}"));
                return;
            }
        }
        let untold = |life: &&usize| {
            let life = &world.lives[**life];
            life.state == State::Held && now > life.entered.max(awake) + TOLD
        };
        if let Some(life) = node.requests.values().find(untold) {
            world.audit.found = Some(format!("has a slot and is not told: {:?}", world.lives[*life]));
            return;
        }
    }
}

/// Where no VM fails and nothing is reloaded, what runs is within the limits at every moment.
fn upstream_within_limits(world: &mut World) {
    let mut found = None;
    for Part { limits, .. } in &world.audit.parts() {
        let mut usage = Usage::none(limits);
        for (class, part) in world.nodes.iter().flat_map(|node| &node.parts) {
            if limits.place(*class) < limits.classes.len() {
                usage.add(limits.place(*class), part.held, part.tokens);
            }
        }
        found = found.or_else(|| (0..limits.classes.len()).find_map(|class| usage.broken(limits, class)));
    }
    if let Some(what) = found {
        world.audit.fault(what);
    }
}

/// When all is over nothing is in use any more, and everybody has had an answer.
pub fn at_the_end(world: &mut World) {
    let open = world.lives.iter().find(|life| !matches!(life.state, State::Over | State::Orphan));
    if let Some(life) = open {
        let what = format!("neither served nor answered: {life:?}");
        world.audit.fault(what);
    }
    let fresh = world.audit.record.rows.iter().filter(|row| counts(row.beat, world.now));
    let left: Vec<_> =
        fresh.flat_map(|row| &row.shares).filter(|share| share.inflight + share.waiting > 0).collect();
    if !left.is_empty() {
        let what = format!("slots are lost: {left:?}");
        world.audit.fault(what);
    }
}
