//! Hundreds of requests that can go on, or have waited too long, at the same moment.

use std::time::Duration;

use crate::harness::world::NativeWorld;
use crate::stories::words::{chat_body, ok, short, short_named};
use crate::stories::{Sent, World};

const CROWD: usize = 400;

/// Half of what Envoy's stack is sure to bear: the filter acts for this many streams in one callback.
const ACTIONS: usize = 32;

/// A crowd holds all slots and a second crowd waits.
fn crowded() -> (NativeWorld, Vec<Sent>, Vec<Sent>) {
    let policy = format!(
        r#"{{"classes":[{{"name":"short","concurrency":{CROWD},"queue":{{"capacity":{CROWD},"timeout":"5s"}}}}]}}"#
    );
    let mut world = NativeWorld::new(&policy);
    let holding = (0..CROWD).map(|_| world.send(&short())).collect();
    let waiting = (0..CROWD).map(|place| world.send(&short_named(&place.to_string()))).collect();
    assert_eq!(world.arrived(), CROWD);
    (world, holding, waiting)
}

#[test]
fn all_that_can_go_on_at_once_go_on_in_order() {
    let (mut world, holding, _) = crowded();
    world.leave_all(&holding);
    for (place, arrival) in world.arrivals(2 * CROWD).iter().skip(CROWD).enumerate() {
        arrival.has_body(chat_body(&place.to_string(), r#","max_tokens":10"#));
    }
    assert!(world.process.deepest() <= ACTIONS, "nested {} deep", world.process.deepest());
    world.close();
}

#[test]
fn all_that_go_on_and_fail_at_once_are_answered() {
    let (mut world, holding, waiting) = crowded();
    world.process.set_endpoints(false);
    world.leave_all(&holding);
    for sent in waiting {
        let response = world.response(sent);
        assert_eq!((response.status, response.header("x-sluice-reason")), (503, None));
    }
    assert!((2..=ACTIONS).contains(&world.process.deepest()), "nested {} deep", world.process.deepest());
    world.close();
}

#[test]
fn all_that_time_out_at_once_are_answered_in_one_tick() {
    let (mut world, _, waiting) = crowded();
    world.pass(Duration::from_millis(5020));
    assert!(waiting.iter().all(|sent| world.answered(*sent)));
    for sent in waiting {
        world.response(sent).refused(503, "queue_timeout");
    }
    assert!((2..=ACTIONS).contains(&world.process.deepest()), "nested {} deep", world.process.deepest());
    world.close();
}

#[test]
fn the_next_goes_on_without_waiting_for_the_timer() {
    let mut world = NativeWorld::new(
        r#"{"classes":[{"name":"short","concurrency":1,"queue":{"capacity":50,"timeout":"5s"}}]}"#,
    );
    for _ in 0..50 {
        world.send(&short());
    }
    for served in 1..=49 {
        world.answer(served - 1, ok());
        assert_eq!(world.arrived(), served + 1);
    }
    world.close();
}
