//! What must hold whenever a record is written, and whenever somebody is put in line or refused.

use std::collections::HashMap;
use std::rc::Rc;

use sluice::core::admission::ledger::{HEADS, Head, Key, Record, Row, TURNS};
use sluice::core::policy::Policy;
use sluice::core::units::{Ticket, Time};

use crate::limits::{Fit, Limits, Usage};
use crate::parts::{Generations, Part, parts, wrong_rules};
use crate::referee::{LEASE, PICKUP, Waiter, counts, passed_over, usage, waiters};
use crate::turns::{Settled, Turns};
use crate::world::World;

pub struct Audit {
    pub found: Option<String>,
    /// Whether nothing fails and nothing is reloaded.
    pub calm: bool,
    /// The policies by the moment at which they were read.
    generations: Generations,
    pub keys: bool,
    /// When the limits in the record last became others: a slot may have been handed out under those before.
    changed: u64,
    /// The record as last written.
    pub record: Record,
    /// The record that a refused request was judged by; others may have written since.
    pub judged_by: Record,
    turns: Turns,
    /// Since when somebody could have gone who did not.
    pub idle: HashMap<String, u64>,
}

impl Audit {
    pub fn new(policies: &[Rc<Policy>], calm: bool) -> Audit {
        Audit {
            found: None,
            calm,
            generations: Generations::new(),
            keys: policies.iter().any(|policy| policy.fairness.is_some()),
            changed: 0,
            record: Record::default(),
            judged_by: Record::default(),
            turns: Turns::default(),
            idle: HashMap::new(),
        }
    }

    pub fn fault(&mut self, what: String) {
        self.found.get_or_insert(what);
    }

    pub fn configured(&mut self, generation: u64, policy: &Rc<Policy>) {
        self.generations.insert(generation, Rc::clone(policy));
    }

    /// The record as last written, taken apart.
    pub fn parts(&self) -> Vec<Part> {
        parts(&self.generations, &self.record).unwrap_or_default()
    }
}

/// A worker has settled: `found` became what the store holds now, and `starts` are its requests that got slots.
pub fn written(world: &mut World, node: usize, found: Option<&[u8]>, starts: &[Ticket], wake: &[u32]) {
    if let Err(what) = try_written(world, node, found, starts, wake) {
        world.audit.fault(format!("worker {node}: {what}"));
    }
}

fn try_written(
    world: &mut World,
    node: usize,
    found: Option<&[u8]>,
    starts: &[Ticket],
    wake: &[u32],
) -> Result<(), String> {
    let now = world.now;
    let before =
        found.map_or(Some(Record::default()), Record::decode).ok_or("a record that cannot be read")?;
    let bytes = world.store.as_ref().map_or(&[][..], |(bytes, _)| bytes);
    let after = Record::decode(bytes).ok_or("wrote a record that cannot be read")?;
    let known = bound_of_bytes(&after);
    if bytes.len() > known {
        return Err(format!("the record has {} bytes, more than {known}", bytes.len()));
    }
    let generation = world.nodes[node].generation;
    wrong_rules(&world.audit.generations, generation, &before, &after).map_or(Ok(()), Err)?;
    let uid = world.nodes[node].writer.map_or(0, |writer| writer.uid);
    others_untouched(&before, &after, uid, now)?;
    let told = |row: &&Row| before.rows.iter().any(|other| other.uid == row.uid && !other.woken);
    let woken: Vec<u32> =
        after.rows.iter().filter(|row| row.woken).filter(told).map(|row| row.queue).collect();
    if woken != wake {
        return Err(format!("wakes {wake:?} and says that it woke {woken:?}"));
    }
    own_row(world, node, &after)?;
    if before.rules != after.rules {
        world.audit.changed = now;
    }
    for part in parts(&world.audit.generations, &after)? {
        order(world, node, &before, &part, starts).map_err(|what| format!("{}: {what}", part.name))?;
    }
    world.audit.record = after;
    Ok(())
}

/// Those of one part that were let in were the right ones.
fn order(
    world: &mut World,
    node: usize,
    before: &Record,
    part: &Part,
    starts: &[Ticket],
) -> Result<(), String> {
    let now = world.now;
    let Part { limits, record: after, .. } = part;
    let here = |ticket: &Ticket| {
        let life = world.nodes[node].requests.get(ticket);
        life.is_some_and(|life| part.has(world.lives[*life].class))
    };
    let starts: Vec<Ticket> = starts.iter().copied().filter(here).collect();
    let served = served(world, node, before, after, limits, &starts)?;
    let in_use = usage(after, limits, now);
    for waiter in &served {
        if let Some(what) = in_use.broken(limits, waiter.class) {
            return Err(format!("{waiter:?} let in: {what}"));
        }
    }
    if let Some(waiter) = unfit(&served, &in_use, limits) {
        return Err(format!("{waiter:?} let in with {in_use:?} in use after it, of {limits:?}"));
    }
    let able = |waiter: &Waiter| !after.rows[waiter.row].slow;
    let waiting: Vec<Waiter> = waiters(after, limits, now).into_iter().filter(able).collect();
    let settled = Settled { before, after, limits, waiting: &waiting, served: &served, in_use: &in_use };
    let mut turns = world.audit.turns.clone();
    turns.note(world, &settled).map_or(Ok(()), Err)?;
    world.audit.turns = turns;
    // Who comes first where keys take turns is told by the turns alone, but within one line and key.
    let row = waiting.iter().chain(&served).map(|waiter| waiter.row).next();
    let one_line = waiting.iter().chain(&served).all(|waiter| Some(waiter.row) == row);
    if !world.audit.keys || one_line {
        passed_over(&waiting, &served, &in_use, limits, world.audit.keys).map_or(Ok(()), Err)?;
    }
    first_in_first_out(world, node, before, &starts, limits)
}

/// The ledger of n rows and m classes is that large and no larger.
fn bound_of_bytes(record: &Record) -> usize {
    let share = 40 + HEADS * 40;
    48 + record.rules.pools.len() * 24
        + record.rules.classes.len() * 56
        + record.rows.len() * (32 + 4 * share)
        + record.turns.len() * (16 + TURNS * 8)
}

fn others_untouched(before: &Record, after: &Record, uid: u64, now: u64) -> Result<(), String> {
    for row in before.rows.iter().filter(|row| row.uid != uid) {
        let Some(left) = after.rows.iter().find(|other| other.uid == row.uid) else {
            if now.saturating_sub(row.beat.0) < 3 * LEASE {
                return Err(format!("removed the row of another worker: {row:?}"));
            }
            continue;
        };
        let bare = |row: &Row| {
            let mut row = Row { beat: Time(0), woken: false, slow: false, ..row.clone() };
            row.shares.iter_mut().flat_map(|share| &mut share.heads).for_each(|head| head.granted = None);
            row
        };
        // A worker that was away gives the others a new lease.
        if bare(row) != bare(left) || left.beat < row.beat {
            return Err(format!("changed the row of another worker: {row:?} to {left:?}"));
        }
        let lies = |head: &Head| head.granted.is_some_and(|at| now.saturating_sub(at.0) >= PICKUP);
        let hangs = heads(row).any(lies);
        for (was, is) in heads(row).zip(heads(left)) {
            match (was.granted, is.granted) {
                (Some(_), None) if !hangs => {
                    return Err(format!("took {was:?} back too early"));
                }
                (None, Some(_)) if left.slow || !counts(left.beat, now) => {
                    return Err(format!("a slot for {is:?} of a worker that hangs"));
                }
                _ => {}
            }
        }
        if heads(left).any(|head| head.granted.is_some()) && !left.woken {
            return Err(format!("something was given and nobody told: {left:?}"));
        }
    }
    let news = after.rows.iter().filter(|row| before.rows.iter().all(|other| other.uid != row.uid));
    if news.filter(|row| row.uid != uid).count() > 0 {
        return Err("made up a worker".to_owned());
    }
    Ok(())
}

pub fn heads(row: &Row) -> impl Iterator<Item = &Head> {
    row.shares.iter().flat_map(|share| &share.heads)
}

/// The worker's row says what is true.
fn own_row(world: &World, node: usize, record: &Record) -> Result<(), String> {
    let at = &world.nodes[node];
    let Some(row) = record.rows.iter().find(|row| Some(row.uid) == at.writer.map(|writer| writer.uid)) else {
        return Err("no row of its own".to_owned());
    };
    for (class, part) in &at.parts {
        let share = row.share(*class);
        let said =
            share.map_or((0, 0, 0), |share| (share.inflight.into(), share.tokens, share.waiting as usize));
        let truth = (part.held, part.tokens, part.parked.len());
        if said != truth {
            return Err(format!(
                "says {said:?} of {class:?}, and {truth:?} is true (in flight, tokens, waiting)"
            ));
        }
        let shown: Vec<usize> = share
            .iter()
            .flat_map(|share| &share.heads)
            .map(|head| at.requests.get(&head.ticket).copied().unwrap_or(usize::MAX))
            .collect();
        let first: Vec<usize> = part.parked.iter().copied().take(HEADS).collect();
        let right = if world.audit.keys {
            shown.len() == first.len() && shown.iter().all(|life| part.parked.contains(life))
        } else {
            shown == first
        };
        if !right {
            return Err(format!("shows {shown:?} first in {class:?}, and {first:?} are"));
        }
    }
    Ok(())
}

/// Who was let in by this settlement, of this worker and of others.
fn served(
    world: &World,
    node: usize,
    before: &Record,
    after: &Record,
    limits: &Limits,
    starts: &[Ticket],
) -> Result<Vec<Waiter>, String> {
    let now = world.now;
    let uid = world.nodes[node].writer.map_or(0, |writer| writer.uid);
    let row = after.rows.iter().position(|row| row.uid == uid).unwrap_or(0);
    let was = before.rows.iter().find(|row| row.uid == uid).filter(|row| counts(row.beat, now));
    let mut served = Vec::new();
    for ticket in starts {
        let earlier =
            was.is_some_and(|row| heads(row).any(|head| head.ticket == *ticket && head.granted.is_some()));
        if earlier {
            continue;
        }
        let life = world.nodes[node].requests.get(ticket).ok_or("starts what is not there")?;
        let life = &world.lives[*life];
        let class = limits.place(life.class);
        let promote = limits.classes.get(class).and_then(|class| class.promote);
        let own = (life.since, promote.is_some_and(|after| now - life.since >= after));
        let parked = world.nodes[node].parts.get(&life.class).into_iter().flat_map(|part| &part.parked);
        // Those that got a slot with it may have stood behind it.
        let starting = starts.iter().filter_map(|ticket| world.nodes[node].requests.get(ticket));
        let alike = starting.filter(|other| world.lives[**other].class == life.class);
        let others = parked.chain(alike).map(|other| world.lives[*other].since);
        let lent = others.map(|since| (since, promote.is_some_and(|after| now - since >= after)));
        let promoted = lent.chain([own]).filter(|(_, promoted)| *promoted).map(|(since, _)| since).min();
        let (tokens, since) = (life.arrival.tokens, life.since);
        let ticket = *ticket;
        served.push(Waiter {
            row,
            class,
            place: 0,
            key: 0,
            ticket,
            tokens,
            since,
            promoted,
            blocks: false,
            granted: None,
        });
    }
    for waiter in waiters(after, limits, now).into_iter().filter(|waiter| waiter.granted.is_some()) {
        let uid = after.rows[waiter.row].uid;
        let earlier =
            before.rows.iter().filter(|row| row.uid == uid && counts(row.beat, now)).flat_map(heads);
        let known = |head: &Head| head.ticket == waiter.ticket && head.granted == waiter.granted;
        if !earlier.into_iter().any(known) {
            served.push(waiter);
        }
    }
    Ok(served)
}

/// One of those let in who could not have been, in whatever order they came: with what was in use before, the least
/// urgent ones first, since they are the ones whom slots are kept from.
fn unfit<'a>(served: &'a [Waiter], after: &Usage, limits: &Limits) -> Option<&'a Waiter> {
    let mut usage = after.clone();
    served.iter().for_each(|waiter| usage.sub(waiter.class, 1, waiter.tokens));
    let mut left: Vec<&Waiter> = served.iter().collect();
    left.sort_by_key(|waiter| std::cmp::Reverse(waiter.class));
    while !left.is_empty() {
        let fits = |waiter: &&Waiter| usage.fit(limits, waiter.class, waiter.tokens) == Fit::Yes;
        let Some(at) = left.iter().position(fits) else { return left.first().copied() };
        let waiter = left.remove(at);
        usage.add(waiter.class, 1, waiter.tokens);
    }
    None
}

/// Nobody of a class and key starts while an older one of them waits, unless that one did not fit a token budget and
/// was not due to block others.
fn first_in_first_out(
    world: &World,
    node: usize,
    before: &Record,
    starts: &[Ticket],
    limits: &Limits,
) -> Result<(), String> {
    let uid = world.nodes[node].writer.map(|writer| writer.uid);
    let row = before.rows.iter().find(|row| Some(row.uid) == uid);
    for ticket in starts {
        let at = world.nodes[node].requests[ticket];
        let life = &world.lives[at];
        // It was chosen when the slot was handed out, by the limits of that moment.
        let granted = row.into_iter().flat_map(heads).find(|head| head.ticket == *ticket);
        let earlier = granted.and_then(|head| head.granted);
        let chosen = earlier.map_or(world.now, |at| at.0);
        let known = earlier.is_none() || chosen > world.audit.changed;
        let class = limits.classes.get(limits.place(life.class)).filter(|_| known);
        let budget = class.is_none_or(|class| class.tokens.or(limits.tokens).is_some());
        let part = &world.nodes[node].parts[&life.class];
        for older in part.parked.iter().copied().take_while(|other| *other < at) {
            let other = &world.lives[older];
            if other.arrival.key != life.arrival.key {
                continue;
            }
            let may_block = class.map_or(u64::MAX, |class| class.block);
            if !budget || chosen.saturating_sub(other.since) >= may_block {
                return Err(format!("{life:?} starts before {other:?}"));
            }
        }
    }
    Ok(())
}

/// A request was put in line: there was a place for it.
pub fn parked(world: &mut World, life: usize) {
    let (waiting, capacity) = line(world, life);
    if waiting > capacity {
        world.audit.fault(format!("{waiting} wait, and {capacity} may: {:?}", world.lives[life]));
    }
    if world.lives[life].deadline <= world.now {
        world.audit.fault(format!("waits without patience: {:?}", world.lives[life]));
    }
}

/// A request was refused: it had no patience, or there was no place by the record that it was judged by.
pub fn refused(world: &mut World, life: usize) {
    let record = std::mem::take(&mut world.audit.judged_by);
    let (waiting, capacity) = line_in(world, life, &record);
    let it = &world.lives[life];
    if it.deadline > world.now && waiting < capacity {
        let what = format!("refused with {waiting} of {capacity} waiting: {it:?}");
        world.audit.fault(what);
        return;
    }
    let known = parts(&world.audit.generations, &record).unwrap_or_default();
    let newer = |part: &Part| {
        let rule = record.rules.of(it.class);
        part.has(it.class) && rule.is_some_and(|rule| rule.generation >= world.nodes[it.node].generation)
    };
    let Some(Part { limits, record: mut here, .. }) = known.into_iter().find(newer) else { return };
    // Its own worker's part by what is true; the row may be one that was not heard of for long.
    let node = &world.nodes[it.node];
    here.rows.retain(|row| node.writer.is_none_or(|writer| row.uid != writer.uid));
    let own =
        || node.parts.iter().filter(|(class, _)| limits.classes.iter().any(|other| other.key == **class));
    let alone = own().all(|(_, part)| part.parked.is_empty());
    let nobody = alone && here.rows.iter().flat_map(heads).count() == 0;
    let mut in_use = usage(&here, &limits, world.now);
    for (class, part) in own() {
        in_use.add(limits.place(*class), part.held, part.tokens);
    }
    let fits = in_use.fit(&limits, limits.place(it.class), it.arrival.tokens);
    if nobody && fits == Fit::Yes {
        let what = format!("refused with a free slot and nobody waiting: {it:?}, {record:?}");
        world.audit.fault(what);
    }
}

fn line(world: &World, life: usize) -> (u64, u64) {
    let record = world.store.as_ref().and_then(|(bytes, _)| Record::decode(bytes)).unwrap_or_default();
    line_in(world, life, &record)
}

/// How many of a request's class wait, and how many may.
fn line_in(world: &World, life: usize, record: &Record) -> (u64, u64) {
    let it = &world.lives[life];
    let own = world.nodes[it.node].generation;
    let generation = record.rules.of(it.class).map_or(own, |rule| rule.generation.max(own));
    let mut classes = world.audit.generations[&generation].classes.iter();
    let capacity =
        classes.find(|class| Key::of(&class.name) == it.class).map(|class| class.queue.capacity as u64);
    let own = world.nodes[it.node].writer.map_or(0, |writer| writer.uid);
    let rows = record.rows.iter().filter(|row| counts(row.beat, world.now) && row.uid != own);
    let here = world.nodes[it.node].parts.get(&it.class).map_or(0, |part| part.parked.len() as u64);
    let others: u64 = rows.filter_map(|row| row.share(it.class)).map(|share| u64::from(share.waiting)).sum();
    (here + others, capacity.unwrap_or(u64::MAX))
}
