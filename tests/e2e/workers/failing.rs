//! A worker's VM fails under load, or its thread hangs.

use std::time::{Duration, Instant};

use super::{
    INFLIGHT, QUEUED, RealWorld, chat, named, names, ok, park_on, policy, run_on, start_fallible, with,
};
use crate::e2e::watched::poll;
use crate::stories::World;

/// Within this the slots of a VM that has failed come back.
const RECOVERY: Duration = Duration::from_secs(5);

#[test]
fn the_slots_of_a_vm_that_failed_come_back_and_its_worker_too() {
    let mut world = start_fallible(2, &policy(4, 100), |_| ());
    let lost = [run_on(&mut world, 0, &chat(1)), run_on(&mut world, 0, &chat(1))];
    let mut served = vec![run_on(&mut world, 1, &chat(1)), run_on(&mut world, 1, &chat(1))];
    park_on(&mut world, 0, &chat(1));
    served.extend([0; 4].map(|_| park_on(&mut world, 1, &chat(1))));

    let trap = world.launch_on(0, &with("x-sluice-test-trap", "now"));
    assert_eq!(world.response(trap).status, 503);
    let failed = Instant::now();
    world.arrivals(6);
    let recovered = failed.elapsed();
    println!("the slots of a VM that failed are lent out again after {recovered:?}");
    assert!(recovered < RECOVERY, "{recovered:?}");
    world.metric_becomes(INFLIGHT, 4);
    world.metric_becomes(QUEUED, 2);

    // The worker has a VM again with its next request, and that one waits as any other.
    served.push(park_on(&mut world, 0, &chat(1)));
    assert_eq!(world.failures().iter().filter(|line| line.contains("vm_reload_success: 1")).count(), 1);
    // What the dead VM had sent on runs still; nobody but the model server knows.
    for place in 0..9 {
        world.answer(place, ok());
        world.arrivals((place + 5).min(9));
    }
    for sent in served {
        assert_eq!(world.response(sent).status, 200);
    }
    for sent in lost {
        assert_eq!(world.response(sent).status, 503);
    }
    serves(&mut world);
}

#[test]
fn a_vm_that_fails_again_and_again_takes_no_slot_along() {
    let mut world = start_fallible(2, &policy(4, 400), |_| ());
    world.answer_at_once(ok());
    for round in 0..3 {
        let crowd: Vec<_> = (0..60).map(|_| world.launch(&chat(10))).collect();
        let trap = world.launch_on(round % 2, &with("x-sluice-test-trap", "now"));
        assert_eq!(world.response(trap).status, 503);
        poll(
            || "each worker to serve".to_owned(),
            || {
                let both = [0, 1].map(|worker| {
                    let sent = world.launch_on(worker, &chat(1));
                    world.response(sent).status
                });
                (both == [200; 2]).then_some(())
            },
        );
        // Those of the dead VM that had not been answered never are; their clients go.
        for sent in crowd {
            if !world.answered(sent) {
                world.leave(sent);
            }
        }
    }
    serves(&mut world);
}

#[test]
fn a_worker_that_hangs_does_not_hold_up_the_other() {
    let mut world = start_fallible(2, &policy(1, 100), |_| ());
    let mut sent = vec![run_on(&mut world, 1, &named("held"))];
    sent.push(park_on(&mut world, 0, &named("older")));
    sent.push(park_on(&mut world, 1, &named("newer")));
    let read = |world: &RealWorld| {
        world.envoy.stats().expect("stats").get("http.clients.downstream_cx_rx_bytes_total")
    };
    let before = read(&world);
    let mut stall = with("x-sluice-test-stall", "1000");
    stall.headers.push(("x-name".to_owned(), b"stall".to_vec()));
    sent.push(world.launch_on(0, &stall));
    poll(|| "the worker to hang".to_owned(), || (read(&world) > before).then_some(()));
    let freed = Instant::now();
    world.answer(0, ok());
    assert_eq!(names(&mut world, 2), ["held", "newer"]);
    println!("while the worker of the oldest hangs, the next goes on after {:?}", freed.elapsed());
    for place in 1..4 {
        world.arrivals(place + 1);
        world.answer(place, ok());
    }
    assert_eq!(names(&mut world, 4), ["held", "newer", "older", "stall"]);
    for sent in sent {
        assert_eq!(world.response(sent).status, 200);
    }
    assert_eq!(world.open(), (0, 1));
    serves(&mut world);
    world.close();
}

#[test]
fn what_waits_in_a_vm_that_failed_is_ended_by_the_idle_timeout_of_the_first_route() {
    let mut world = start_fallible(1, &policy(1, 100), |config| {
        config.idle_timeouts = vec![("held".to_owned(), Duration::from_secs(2))];
    });
    run_on(&mut world, 0, &chat(1));
    let parked = world.launch(&chat(1));
    world.metric_becomes(QUEUED, 1);
    let trap = world.launch(&with("x-sluice-test-trap", "now"));
    assert_eq!(world.response(trap).status, 503);
    assert!(!world.answered(parked));
    let response = world.response(parked);
    assert!(matches!(response.status, 503 | 504), "{response:?}");
    let line = world.logged(parked, "flags");
    assert!(line.contains("SI"), "{line}");
}

/// Nothing is held any more, and both workers serve.
fn serves(world: &mut RealWorld) {
    world.metric_becomes(QUEUED, 0);
    world.metric_becomes(INFLIGHT, 0);
    world.answer_at_once(ok());
    for worker in [0, 1] {
        let sent = world.launch_on(worker, &chat(1));
        assert_eq!(world.response(sent).status, 200);
    }
}
