//! Slots, places and order are counted over all workers.

use std::time::Duration;

use super::{CREWS, GAUGES, INFLIGHT, LIMIT, LINGER, QUEUED, TICK, arrived_in_order, policy, prompt};
use crate::harness::world::NativeWorld;
use crate::stories::words::{long, ok, short, short_named};
use crate::stories::{Sent, World};

#[test]
fn the_limit_holds_over_all_and_no_slot_lies_idle() {
    for workers in CREWS {
        let mut world = NativeWorld::with_workers(workers, &policy(4, 100));
        let sent: Vec<Sent> = (0..40).map(|_| world.send(&short())).collect();
        for ended in 0..40 {
            assert_eq!(world.running("llm_short"), 4.min(40 - ended), "{workers} workers, {ended} answers");
            // Not in the order in which they came.
            world.answer(next_to_answer(&world, ended), ok());
        }
        assert!(sent.iter().all(|sent| world.response(*sent).status == 200));
        world.close();
    }
}

/// Among those that run, one that depends on how many have ended.
fn next_to_answer(world: &NativeWorld, ended: usize) -> usize {
    let open = world.open();
    open[(ended * 7) % open.len()]
}

#[test]
fn the_oldest_over_all_goes_first() {
    for workers in CREWS {
        let mut world = NativeWorld::with_workers(workers, &policy(1, 100));
        let names: Vec<String> = (0..50).map(|place| place.to_string()).collect();
        for (place, name) in names.iter().enumerate() {
            world.send_on(place * 5 % 7 % workers, &short_named(name));
        }
        for served in 0..50 {
            let names: Vec<&str> = names[..=served].iter().map(String::as_str).collect();
            arrived_in_order(&mut world, &names);
            world.answer(served, ok());
        }
        world.close();
    }
}

#[test]
fn a_slot_freed_on_one_wakes_who_waits_on_another() {
    for workers in CREWS {
        let mut world = NativeWorld::with_workers(workers, &policy(1, 100));
        world.send_on(0, &short());
        for worker in 1..workers {
            world.send_on(worker, &short());
        }
        // No time passes: nobody waits for a timer.
        for served in 1..workers {
            world.answer(served - 1, ok());
            assert_eq!(world.arrived(), served + 1);
        }
        world.close();
    }
}

#[test]
fn the_queue_is_bounded_over_all() {
    for workers in CREWS {
        let mut world = NativeWorld::with_workers(workers, &policy(2, 5));
        let sent: Vec<Sent> = (0..7).map(|_| world.send(&short())).collect();
        assert!(!sent.iter().any(|sent| world.answered(*sent)));
        for worker in 0..workers {
            let refused = world.send_on(worker, &short());
            world.response(refused).refused(429, "queue_full");
        }
        world.metric_becomes(QUEUED, 5);
        world.metric_becomes(INFLIGHT, 2);
        // One place is free again, for anybody.
        world.leave(sent[6]);
        let last = world.send_on(workers - 1, &short());
        assert!(!world.answered(last));
        let refused = world.send_on(0, &short());
        world.response(refused).refused(429, "queue_full");
        world.close();
    }
}

#[test]
fn workers_that_write_at_the_same_moment_lose_nothing() {
    for workers in CREWS {
        let each = 48 / workers;
        let mut world = NativeWorld::with_workers(workers, &policy(8, 100));
        let sent = world.send_at_once(each, &short());
        assert_eq!((world.running("llm_short"), world.waiting("short")), (8, 40), "{workers} workers");
        for _ in 0..48 {
            let first = world.open()[0];
            world.answer(first, ok());
        }
        assert!(sent.iter().all(|sent| world.response(*sent).status == 200));
        world.close();
    }
}

#[test]
fn a_crowd_that_can_go_on_at_once_goes_on_in_small_steps() {
    const CROWD: usize = 200;
    let mut world = NativeWorld::with_workers(4, &policy(CROWD, CROWD));
    let holding: Vec<Sent> = (0..CROWD).map(|_| world.send(&short())).collect();
    let waiting: Vec<Sent> = (0..CROWD).map(|_| world.send(&short())).collect();
    world.process.set_endpoints(false);
    world.leave_all(&holding);
    world.pass(LINGER + TICK);
    for sent in waiting {
        assert_eq!(world.response(sent).status, 503);
    }
    assert!((2..=32).contains(&world.process.deepest()), "nested {} deep", world.process.deepest());
    world.close();
}

#[test]
fn who_has_no_work_writes_nothing() {
    for workers in CREWS {
        let mut world = NativeWorld::with_workers(workers, &policy(2, 100));
        let sent: Vec<Sent> = (0..3 * workers).map(|_| world.send(&short())).collect();
        world.leave_all(&sent);
        world.pass(Duration::from_secs(1));
        let written = world.process.data().writes();
        world.pass(Duration::from_secs(20));
        assert_eq!(world.process.data().writes(), written, "{workers} workers");
        // Who has work is heard of, and nobody else: once every 750 ms and a tick.
        world.send_on(0, &short());
        let written = world.process.data().writes();
        world.pass(Duration::from_secs(20));
        let beats = world.process.data().writes() - written;
        assert!((20..=27).contains(&beats), "{workers} workers: {beats} writes");
        assert_eq!(world.process.data().keys().len(), 1);
        world.close();
    }
}

#[test]
fn the_more_urgent_goes_first_over_all() {
    const POOL: &str = r#"{
        "pools": [{"name": "gpu", "concurrency": 1}],
        "classes": [
            {"name": "short", "at_most": {"prompt_chars": 200, "max_tokens": 256}, "pool": "gpu",
             "queue": {"timeout": "30s"}},
            {"name": "long", "pool": "gpu", "queue": {"timeout": "30s"}}
        ]
    }"#;
    for workers in CREWS {
        let mut world = NativeWorld::with_workers(workers, POOL);
        world.send_on(0, &short());
        world.send_on(0, &long());
        for worker in 1..workers {
            world.send_on(worker, &short());
        }
        for served in 0..workers {
            let last = world.arrivals(served + 1).pop().expect("one");
            assert_eq!(last.cluster, "llm_short", "{workers} workers, {served} served");
            world.answer(served, ok());
        }
        assert_eq!(world.arrivals(workers + 1).pop().expect("one").cluster, "llm_long");
        world.close();
    }
}

#[test]
fn a_policy_that_comes_back_while_it_is_still_at_work_holds_again() {
    for workers in CREWS {
        let mut world = NativeWorld::with_workers(workers, &policy(2, 100));
        let under = |world: &mut NativeWorld, limit: usize| {
            let sent: Vec<Sent> = (0..30).map(|_| world.send(&short())).collect();
            assert_eq!(world.running("llm_short"), limit, "{workers} workers");
            world.pass(GAUGES);
            world.metric_is(LIMIT, limit as u64);
            for _ in 0..sent.len() {
                let first = world.open()[0];
                world.answer(first, ok());
            }
            assert!(sent.iter().all(|sent| world.response(*sent).status == 200));
        };
        under(&mut world, 2);
        for limit in [5, 2, 3, 5, 2] {
            world.reconfigure(&policy(limit, 100));
            under(&mut world, limit);
        }
        // The same, with nobody there in between.
        world.reconfigure(&policy(6, 100));
        world.pass(GAUGES);
        world.metric_is(LIMIT, 6);
        world.reconfigure(&policy(2, 100));
        under(&mut world, 2);
        world.close();
    }
}

#[test]
fn who_is_left_under_the_old_policy_does_not_bring_it_back() {
    let mut world = NativeWorld::with_workers(2, &policy(2, 100));
    let old = [world.send_on(0, &short()), world.send_on(1, &short())];
    (0..2).for_each(|arrival| world.answer(arrival, ok()));
    world.pass(GAUGES);
    let parked = [world.send_after(old[0], 0, &short()), world.send_after(old[1], 1, &short())];
    world.reconfigure(&policy(4, 100));
    world.send_on(0, &short());
    world.pass(GAUGES);
    world.metric_is(LIMIT, 4);
    assert_eq!(world.running("llm_short"), 3);
    (2..5).for_each(|arrival| world.answer(arrival, ok()));
    assert!(parked.iter().all(|sent| world.response(*sent).status == 200));
    world.pass(GAUGES);
    world.metric_is(LIMIT, 4);
    world.close();
}

#[test]
fn a_flood_on_all_workers_delays_another_key_by_one_turn_each_time() {
    for workers in CREWS {
        let mut world = NativeWorld::with_workers(workers, &policy(1, 200).replacen('{', FAIR, 1));
        let from = |tenant: &str| short_named(tenant).header("x-tenant", tenant);
        for n in 0..=6 * workers {
            world.send_on(n % workers, &from("flood"));
        }
        // Three at once, and then one whenever the last one was served.
        for _ in 0..3 {
            world.send_on(1, &from("light"));
        }
        for served in 0.. {
            let arrivals = world.arrivals(served + 1);
            let light = arrivals.iter().filter(|arrival| prompt(&arrival.body) == "light").count();
            assert!(light >= served / 2, "{workers} workers: {light} of {served}");
            if light == 8 {
                break;
            }
            if light >= 3 && prompt(&arrivals[served].body) == "light" {
                world.send_on(1, &from("light"));
            }
            world.answer(served, ok());
        }
        world.close();
    }
}

const FAIR: &str = r#"{"fairness": {"key": "header:x-tenant"}, "#;
