//! A history: what the world does to the workers. Each entry stands for itself, so that any part of a history is one.

use crate::chance::Chance;
use crate::layout::Kind;

pub const MS: u64 = 1_000_000;
const US: u64 = 1_000;

/// Something that happens.
#[derive(Clone, Debug)]
pub struct Op {
    /// When, in nanoseconds.
    pub at: u64,
    pub what: What,
}

/// What happens. Threads and classes are taken modulo those that there are.
#[derive(Clone, Debug)]
pub enum What {
    /// A request, with all that will become of it.
    Arrive(Arrival),
    /// The VM of a thread fails; a new one comes that much later.
    Crash { thread: u64, gone: u64 },
    /// A thread does nothing for so long.
    Stall { thread: u64, time: u64 },
    /// All threads get another policy, one after the other.
    Reload { policy: usize, skew: u64 },
}

#[derive(Clone, Debug)]
pub struct Arrival {
    pub thread: u64,
    pub class: u64,
    pub tokens: u64,
    pub key: Option<u64>,
    pub patience: Option<u64>,
    /// How long the model server works on it.
    pub service: u64,
    /// After which time its client leaves.
    pub leaves: Option<u64>,
    /// Whether its answer counts as one.
    pub served: bool,
}

/// What a run is made of.
#[derive(Clone, Debug)]
pub struct Plan {
    pub kind: Kind,
    pub threads: u64,
    pub policies: usize,
    /// Whether VMs fail, threads hang for longer than a lease and policies change.
    pub rough: bool,
    /// Arrivals.
    pub length: usize,
    /// Slots that there are, roughly: how much work comes follows from it.
    pub slots: f64,
}

/// A history of a plan.
pub fn history(plan: &Plan, chance: &mut Chance) -> Vec<Op> {
    let mut ops = Vec::new();
    let mut at = 10 * MS;
    let mut arrivals = 0;
    while arrivals < plan.length {
        let service = chance.of(&[2.0, 10.0, 40.0, 150.0]) * MS as f64;
        let load = chance.of(&[0.2, 0.5, 0.8, 1.0, 2.0]);
        let gap = service / plan.slots / load;
        let end = at + chance.between(50 * MS, 1500 * MS);
        let few = (plan.threads / 2).max(1);
        let threads = if chance.one_in(3) { few } else { plan.threads };
        while at < end && arrivals < plan.length {
            let burst = if chance.one_in(500) { chance.between(5, 200) } else { 1 };
            for _ in 0..burst {
                ops.push(Op { at, what: What::Arrive(arrival(plan, threads, service, chance)) });
                at += chance.between(0, 2) * US;
                arrivals += 1;
            }
            at += chance.exponential(gap) + US;
            if chance.one_in(400) {
                let time = chance.between(0, 700 * MS);
                ops.push(Op { at, what: What::Stall { thread: chance.any(), time } });
            }
            if plan.rough && chance.one_in(1500) {
                ops.push(Op { at, what: rough(plan, chance) });
            }
        }
        if chance.one_in(12) {
            at += chance.between(4, 12) * 1000 * MS;
        }
    }
    ops
}

fn rough(plan: &Plan, chance: &mut Chance) -> What {
    let thread = chance.any();
    match chance.between(0, 2) {
        0 => What::Crash { thread, gone: chance.between(MS, 5000 * MS) },
        1 => What::Stall { thread, time: chance.between(2500 * MS, 12_000 * MS) },
        _ => What::Reload {
            policy: chance.between(0, plan.policies as u64 - 1) as usize,
            skew: chance.between(0, 5 * MS),
        },
    }
}

fn arrival(plan: &Plan, threads: u64, service: f64, chance: &mut Chance) -> Arrival {
    let tokens = match chance.between(0, 60) {
        0 => chance.between(2000, 9000),
        1..=8 => chance.between(500, 2000),
        _ => chance.between(1, 400),
    };
    let patience = match chance.between(0, 19) {
        0 => Some(0),
        1 => Some(chance.between(MS, 20 * MS)),
        2 => Some(chance.between(20 * MS, 1000 * MS)),
        _ => None,
    };
    let class = if chance.one_in(3) { 0 } else { chance.between(0, 3) };
    let key = if chance.one_in(2) { 1 } else { chance.between(2, 12) };
    Arrival {
        thread: chance.between(0, threads - 1),
        class,
        tokens,
        key: plan.kind.has_keys().then_some(key),
        patience,
        service: chance.exponential(service) + if chance.one_in(400) { 6000 * MS } else { 100 * US },
        leaves: chance.one_in(6).then(|| chance.exponential(service * 2.0)),
        served: !chance.one_in(10),
    }
}
