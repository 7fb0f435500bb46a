//! Admission over all workers in virtual time: random histories, and what must hold after every event.
//!
//! `SLUICE_SEEDS=n` runs n seeds of each kind instead of the fixed few, `SLUICE_SEED=s` that one alone. A seed that
//! fails is shrunk to the shortest history that does.

mod audit;
mod chance;
mod history;
mod layout;
mod life;
mod limits;
mod parts;
mod promises;
mod referee;
mod rest;
mod shrink;
mod turns;
mod worker;
mod world;

use std::rc::Rc;

use chance::Chance;
use history::{Op, Plan, history};
use layout::{Kind, policy};
use sluice::core::policy::Policy;
use world::{Fault, Seen, World};

/// Arrivals a run; each makes about four events.
const ARRIVALS: usize = 40_000;
const SEEDS: u64 = 8;

fn seeds() -> Vec<u64> {
    let number = |name| std::env::var(name).ok().and_then(|value: String| value.parse().ok());
    match number("SLUICE_SEED") {
        Some(seed) => vec![seed],
        None => (1..=number("SLUICE_SEEDS").unwrap_or(SEEDS)).collect(),
    }
}

struct Setting {
    plan: Plan,
    policies: Vec<Rc<Policy>>,
    ops: Vec<Op>,
}

fn setting(kind: Kind, seed: u64) -> Setting {
    let mut chance = Chance::new(seed.wrapping_mul(31).wrapping_add(kind as u64));
    let policies: Vec<_> = (0..3).map(|_| Rc::new(policy(kind, &mut chance))).collect();
    let first = &policies[0];
    let pools: usize = first.pools.iter().filter_map(|pool| pool.concurrency).sum();
    let classes: usize = first.classes.iter().filter_map(|class| class.concurrency).sum();
    let plan = Plan {
        kind,
        threads: chance.of(&[1, 2, 4, 16]),
        policies: policies.len(),
        rough: seed.is_multiple_of(2),
        length: ARRIVALS,
        // Work is spread unevenly over classes, and most of it does not weigh much.
        slots: if kind == Kind::Budgets { 3.0 } else { pools.max(classes).max(2) as f64 * 0.6 },
    };
    let ops = history(&plan, &mut chance);
    Setting { plan, policies, ops }
}

fn run(setting: &Setting, seed: u64, ops: &[Op]) -> Result<Seen, Fault> {
    World::new(seed, setting.plan.threads, &setting.policies, ops, !setting.plan.rough).run()
}

fn all_seeds(kind: Kind) {
    for seed in seeds() {
        let setting = setting(kind, seed);
        match run(&setting, seed, &setting.ops) {
            Ok(seen) => println!("{kind:?} {seed}: {} workers, {seen:?}", setting.plan.threads),
            Err(fault) => fail(&setting, seed, fault),
        }
    }
}

fn fail(setting: &Setting, seed: u64, fault: Fault) -> ! {
    let (ops, fault) = shrink::shrink(&setting.ops, fault, &|ops| run(setting, seed, ops).err());
    let lines: Vec<String> = ops.iter().map(|op| format!("  {op:?}")).collect();
    let policies: Vec<String> = setting.policies.iter().map(|policy| brief(policy)).collect();
    panic!(
        "seed {seed} of {:?}, {} workers: at {} ns {}\nafter {} of {} entries:\n{}\nunder\n{}",
        setting.plan.kind,
        setting.plan.threads,
        fault.at,
        fault.what,
        ops.len(),
        setting.ops.len(),
        lines.join("\n"),
        policies.join("\n"),
    );
}

fn brief(policy: &Policy) -> String {
    let mut lines = format!("  {:?}\n", policy.pools);
    for class in &policy.classes {
        let (slots, tokens, reserved) = (class.concurrency, class.concurrency_tokens, class.reserved);
        let queue = (class.queue.capacity, class.queue.timeout, class.queue.promote_after);
        lines += &format!(
            "    {}: {slots:?} slots, {tokens:?} tokens, {reserved} reserved, {queue:?}\n",
            class.name
        );
    }
    lines
}

#[test]
fn one_class_alone() {
    all_seeds(Kind::Alone);
}

#[test]
fn several_classes_each_its_own() {
    all_seeds(Kind::Apart);
}

#[test]
fn a_shared_pool() {
    all_seeds(Kind::Shared);
}

#[test]
fn token_budgets() {
    all_seeds(Kind::Budgets);
}

#[test]
fn keys_that_take_turns() {
    all_seeds(Kind::Keys);
}
