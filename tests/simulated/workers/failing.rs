//! A worker's VM fails, or its thread hangs: what it held comes back, and nobody waits for it.

use super::{CREWS, GAUGES, INFLIGHT, LEASE, LIMIT, PICKUP, QUEUED, TICK, arrived_in_order, millis, policy};
use crate::harness::world::NativeWorld;
use crate::stories::words::{ok, short, short_named};
use crate::stories::{Body, Request, Sent, World};

#[test]
fn a_lost_vm_gives_its_slots_back_within_its_lease() {
    for workers in CREWS {
        let mut world = NativeWorld::with_workers(workers, &policy(4, 100));
        for _ in 0..3 {
            world.send_on(1, &short());
        }
        world.send_on(0, &short());
        let parked = world.send_on(1, &short());
        let waiting: Vec<Sent> = (0..4).map(|_| world.send_on(0, &short())).collect();
        world.metric_becomes(INFLIGHT, 4);
        world.metric_becomes(QUEUED, 5);
        world.lose(1);
        world.pass(LEASE - millis(800));
        assert_eq!(world.arrived(), 4, "a slot was lent out before the lease was over");
        world.pass(millis(800) + TICK);
        assert_eq!(world.arrived(), 7, "{workers} workers");
        world.pass(GAUGES);
        world.metric_is(INFLIGHT, 4);
        world.metric_is(QUEUED, 1);
        assert!(!world.answered(parked));
        for arrival in [3, 4, 5, 6, 7] {
            world.answer(arrival, ok());
        }
        assert!(waiting.iter().all(|sent| world.response(*sent).status == 200));
        world.close();
    }
}

#[test]
fn a_slot_on_its_way_to_a_lost_vm_is_not_lost() {
    let mut world = NativeWorld::with_workers(2, &policy(1, 100));
    world.send_on(0, &short());
    let parked = world.send_on(1, &short_named("parked"));
    world.send_on(0, &short_named("waits"));
    world.lose(1);
    world.answer(0, ok());
    assert_eq!(world.arrived(), 1, "it went to the oldest, which nobody can tell");
    world.pass(PICKUP);
    arrived_in_order(&mut world, &["hi", "waits"]);
    assert!(!world.answered(parked));
    world.pass(LEASE + GAUGES);
    world.metric_is(QUEUED, 0);
    world.close();
}

#[test]
fn a_fresh_vm_takes_its_part_at_once() {
    let policy = policy(2, 100);
    let mut world = NativeWorld::with_workers(2, &policy);
    world.send_on(0, &short());
    world.send_on(1, &short());
    world.reload(1, &policy);
    // What its predecessor held is held until the lease is over.
    let waiting = world.send_on(1, &short());
    assert_eq!(world.arrived(), 2);
    world.pass(LEASE + TICK);
    assert_eq!(world.arrived(), 3);
    world.answer(2, ok());
    assert_eq!(world.response(waiting).status, 200);
    world.answer(0, ok());
    world.pass(GAUGES);
    world.metric_is(INFLIGHT, 0);
    world.close();
}

#[test]
fn a_fresh_vm_under_an_old_policy_does_not_bring_it_back() {
    let old = policy(2, 100);
    let mut world = NativeWorld::with_workers(2, &old);
    let earlier = world.send_on(1, &short());
    world.answer(0, ok());
    world.reconfigure(&policy(4, 100));
    world.send_on(0, &short());
    world.pass(GAUGES);
    world.metric_is(LIMIT, 4);
    // Its listener drains; requests come by the connections that there are.
    world.reload(1, &old);
    world.send_after(earlier, 1, &short());
    world.pass(GAUGES);
    world.metric_is(LIMIT, 4);
    for _ in 0..4 {
        world.send_on(0, &short());
    }
    assert_eq!(world.running("llm_short"), 4);
    world.close();
}

#[test]
fn a_worker_that_hangs_holds_up_nobody_and_does_no_harm_afterwards() {
    for workers in CREWS {
        let mut world = NativeWorld::with_workers(workers, &policy(1, 100));
        world.send_on(0, &short_named("first"));
        let hung = world.send_on(1, &short_named("hung"));
        for name in ["a", "b", "c"] {
            world.send_on(0, &short_named(name));
        }
        world.hang(1, true);
        world.answer(0, ok());
        assert_eq!(world.arrived(), 1, "the oldest is next, though its worker hangs");
        world.pass(PICKUP);
        arrived_in_order(&mut world, &["first", "a"]);
        // From now on it is known to hang: nobody waits for it.
        world.answer(1, ok());
        arrived_in_order(&mut world, &["first", "a", "b"]);
        world.pass(millis(500));
        world.hang(1, false);
        world.pass(millis(50));
        arrived_in_order(&mut world, &["first", "a", "b"]);
        world.answer(2, ok());
        arrived_in_order(&mut world, &["first", "a", "b", "hung"]);
        world.answer(3, ok());
        assert_eq!(world.response(hung).status, 200);
        world.pass(GAUGES);
        world.metric_is(INFLIGHT, 1);
        world.close();
    }
}

#[test]
fn who_is_taken_for_dead_and_comes_back_takes_no_slot_twice() {
    let mut world = NativeWorld::with_workers(2, &policy(1, 100));
    world.send_on(1, &short_named("first"));
    world.hang(1, true);
    world.send_on(0, &short_named("second"));
    world.pass(LEASE + TICK);
    arrived_in_order(&mut world, &["first", "second"]);
    world.hang(1, false);
    let late = world.send_on(1, &short_named("late"));
    // Both run now, since the first was never ended. Nobody else goes on until both have.
    world.answer(1, ok());
    assert_eq!(world.arrived(), 2);
    world.answer(0, ok());
    arrived_in_order(&mut world, &["first", "second", "late"]);
    world.answer(2, ok());
    assert_eq!(world.response(late).status, 200);
    world.close();
}

#[test]
fn a_stopped_process_lends_nothing_twice_when_it_goes_on() {
    for workers in CREWS {
        let mut world = NativeWorld::with_workers(workers, &policy(2, 100));
        for name in ["runs", "waits"] {
            for worker in 0..2 {
                world.send_on(worker, &short_named(name));
            }
        }
        (0..workers).for_each(|worker| world.hang(worker, true));
        world.pass(LEASE + millis(1000));
        (0..workers).for_each(|worker| world.hang(worker, false));
        world.pass(millis(500));
        assert_eq!(world.arrived(), 2, "{workers} workers");
        world.answer(0, ok());
        world.answer(1, ok());
        assert_eq!(world.arrived(), 4, "{workers} workers");
        world.close();
    }
}

#[test]
fn a_worker_that_reads_for_long_is_not_taken_for_dead() {
    let mut world = NativeWorld::with_workers(2, &policy(1, 100));
    world.send_on(0, &short_named("runs"));
    world.send_on(1, &short_named("waits"));
    // Its timer does not come, but bodies do, each of which takes it long.
    let large = Request { body: Body::Whole(vec![b'['; 300_000]), ..short() };
    world.hang(0, true);
    for _ in 0..4 {
        world.pass(LEASE - millis(500));
        world.send_on(0, &large);
    }
    assert_eq!(world.arrived(), 1);
    world.hang(0, false);
    world.answer(0, ok());
    assert_eq!(world.arrived(), 2);
    world.close();
}
