//! When refused clients are told to come back: by how fast work is really done, over all workers.

use std::time::Duration;

use crate::harness::world::NativeWorld;
use crate::stories::policies::HASTY;
use crate::stories::words::{answer, ok, short};
use crate::stories::{Answer, Sent, World};

/// One at a time, and nobody waits.
const ALONE: &str = r#"{"classes": [{"name": "short", "concurrency": 1, "queue": {"capacity": 0}}]}"#;

/// Milliseconds that a request refused now is told to wait.
fn advice(world: &mut NativeWorld) -> u64 {
    let refused = world.send_on(1, &short());
    let response = world.response(refused);
    response.says_when_to_retry();
    response.header("retry-after-ms").and_then(|wait| wait.parse().ok()).expect("a number")
}

/// Requests that come one after the other, each with this answer after 100 ms; then one that runs.
fn after(world: &mut NativeWorld, count: usize, with: Answer) -> Sent {
    let from = world.arrived();
    for arrival in from..from + count {
        let sent = world.send_on(0, &short());
        world.pass(Duration::from_millis(100));
        world.answer(arrival, with.clone());
        world.response(sent);
        // A slot lingers where the model server may still be at it.
        world.pass(Duration::from_millis(50));
    }
    world.send_on(0, &short())
}

#[test]
fn a_class_that_is_served_fast_is_worth_coming_back_to_soon() {
    let mut world = NativeWorld::with_workers(2, ALONE);
    after(&mut world, 40, ok());
    let waits: Vec<u64> = (0..20).map(|_| advice(&mut world)).collect();
    assert!(waits.iter().all(|wait| (1000..=2000).contains(wait)), "{waits:?}");
    let (least, most) = (waits.iter().min(), waits.iter().max());
    assert!(most > least, "a burst would come back as a burst: {waits:?}");
    world.close();
}

#[test]
fn failures_are_no_drain_and_the_advice_grows() {
    for failure in [answer(500), Answer::Reset] {
        let mut world = NativeWorld::with_workers(2, ALONE);
        after(&mut world, 40, failure);
        let first = advice(&mut world);
        assert!(first >= 5000, "{first}");
        world.pass(Duration::from_secs(20));
        let later = advice(&mut world);
        assert!(later >= 20_000, "{later}");
        world.pass(Duration::from_secs(100));
        let last = advice(&mut world);
        assert!((30_000..=60_000).contains(&last), "{last}");
        world.close();
    }
}

#[test]
fn requests_that_fail_at_once_are_an_outage_too() {
    let mut world = NativeWorld::with_workers(2, ALONE);
    world.process.set_endpoints(false);
    for _ in 0..40 {
        let sent = world.send_on(0, &short());
        assert_eq!(world.response(sent).status, 503);
        world.pass(Duration::from_millis(500));
    }
    world.process.set_endpoints(true);
    world.send_on(0, &short());
    let wait = advice(&mut world);
    assert!(wait >= 24_000, "{wait}");
    world.close();
}

#[test]
fn a_model_server_that_stops_answering_is_noticed() {
    let mut world = NativeWorld::with_workers(2, ALONE);
    after(&mut world, 40, ok());
    assert!(advice(&mut world) <= 2000);
    world.pass(Duration::from_secs(10));
    let later = advice(&mut world);
    assert!(later >= 10_000, "{later}");
    world.close();
}

#[test]
fn idleness_is_no_outage() {
    let mut world = NativeWorld::with_workers(2, ALONE);
    world.pass(Duration::from_secs(3600));
    after(&mut world, 0, ok());
    let wait = advice(&mut world);
    assert!((5000..=7500).contains(&wait), "{wait}");
    world.close();
}

#[test]
fn who_has_waited_in_vain_is_told_too() {
    let mut world = NativeWorld::with_workers(2, HASTY);
    after(&mut world, 40, ok());
    let late = world.send_on(1, &short());
    world.pass(Duration::from_millis(400));
    let response = world.response(late);
    response.refused(503, "queue_timeout");
    response.says_when_to_retry();
    world.close();
}
