//! Envoy's idle timer against waiting: it is that of the route in force, and waiting does not count for the answer.

use std::time::Duration;

use super::{RealWorld, chat, ok};
use crate::stories::{Sent, World};

const POLICY: &str = r#"{
    "classes": [{"name": "short", "concurrency": 1, "queue": {"capacity": 8, "timeout": "60s"}}]
}"#;
const QUEUED: &str = "sluice.queued.domain.default.class.short";
const INFLIGHT: &str = "sluice.inflight.domain.default.class.short";

/// One holds the slot and one waits, with such idle timeouts of the first route and of the class's.
fn a_line(held: u64, class: u64) -> (RealWorld, Sent, Sent) {
    let mut world = RealWorld::start_with(POLICY, |config| {
        let routes = [("held", held), ("short", class)];
        config.idle_timeouts =
            routes.map(|(route, seconds)| (route.to_owned(), Duration::from_secs(seconds))).to_vec();
    });
    let holder = world.send(&chat(1));
    world.arrivals(1);
    let waiting = world.launch(&chat(1));
    world.metric_becomes(QUEUED, 1);
    (world, holder, waiting)
}

#[test]
fn an_answer_may_be_silent_for_longer_than_a_request_may_wait() {
    // Sent on by a message, and by the timer.
    for by_timer in [false, true] {
        let (mut world, holder, waiting) = a_line(2, 60);
        if by_timer {
            world.leave(holder);
        } else {
            world.answer(0, ok());
        }
        world.arrivals(2);
        world.pass(Duration::from_millis(3000));
        assert!(!world.answered(waiting));
        world.answer(1, ok());
        assert_eq!(world.response(waiting).status, 200);
        world.close();
    }
}

#[test]
fn the_class_routes_timer_ends_an_answer_that_does_not_come() {
    let (mut world, _, waiting) = a_line(60, 1);
    // Longer than the class's route would bear: it does not count yet. The holder is ended by it.
    world.arrivals(2);
    let response = world.response(waiting);
    assert_eq!(response.status, 504, "{response:?}");
    assert_eq!(world.logged(waiting, "flags"), "SI");
    world.metric_becomes(INFLIGHT, 0);
    world.close();
}

#[test]
fn the_first_routes_timer_ends_a_wait() {
    let (mut world, holder, waiting) = a_line(1, 60);
    let response = world.response(waiting);
    assert_eq!(response.status, 504, "{response:?}");
    assert_eq!(world.logged(waiting, "outcome"), "queue_timeout");
    world.metric_becomes(QUEUED, 0);
    world.answer(0, ok());
    assert_eq!(world.response(holder).status, 200);
    world.metric_becomes(INFLIGHT, 0);
    world.close();
}
