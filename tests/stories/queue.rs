//! Who finds no free slot waits in line, for a bounded time, in a bounded line.

use std::time::Duration;

use super::words::{
    LONG_ENOUGH, arrival, chat_body, exchange, long, ok, refused, short, short_named, take_slot,
};
use super::{Sent, World};

/// Takes the only slot and fills the queue behind it.
fn fill(world: &mut dyn World) -> [Sent; 3] {
    [take_slot(world, &short()), world.send(&short_named("first")), world.send(&short_named("second"))]
}

pub fn first_come_first_served(world: &mut dyn World) {
    let sent = fill(world);
    assert_eq!(world.arrived(), 1);
    for (index, name) in ["hi", "first", "second"].into_iter().enumerate() {
        arrival(world, index).has_body(chat_body(name, r#","max_tokens":10"#));
        assert_eq!(world.arrived(), index + 1);
        world.answer(index, ok());
        assert_eq!(world.response(sent[index]).status, 200);
    }
}

pub fn one_beyond_capacity_is_refused_at_once(world: &mut dyn World) {
    fill(world);
    let response = refused(world, &short());
    response.refused(429, "queue_full");
    response.says_when_to_retry();
    assert_eq!(response.header("x-sluice-class"), Some("short"));
}

pub fn who_waits_too_long_is_refused(world: &mut dyn World) {
    let held = take_slot(world, &short());
    let waiting = world.send(&short());
    assert!(!world.answered(waiting));
    world.pass(LONG_ENOUGH);
    let response = world.response(waiting);
    response.refused(503, "queue_timeout");
    response.says_when_to_retry();
    assert_eq!(world.arrived(), 1);
    world.answer(0, ok());
    assert_eq!(world.response(held).status, 200);
    exchange(world, &short());
}

pub fn statuses_follow_the_policy(world: &mut dyn World) {
    take_slot(world, &short());
    let waiting = world.send(&short());
    let full = refused(world, &short());
    full.refused(503, "queue_full");
    full.says_when_to_retry();
    world.pass(LONG_ENOUGH);
    let late = world.response(waiting);
    late.refused(429, "queue_timeout");
    late.says_when_to_retry();
}

pub fn capacity_zero_never_waits(world: &mut dyn World) {
    let held = take_slot(world, &short());
    refused(world, &short()).refused(429, "queue_full");
    world.answer(0, ok());
    world.response(held);
    exchange(world, &short());
}

pub fn a_client_may_have_less_patience(world: &mut dyn World) {
    take_slot(world, &short());
    let patient = world.send(&short());
    let hasty = world.send(&short().header("x-sluice-queue-timeout", "300ms"));
    world.pass(LONG_ENOUGH);
    world.response(hasty).refused(503, "queue_timeout");
    assert!(!world.answered(patient));
    world.answer(0, ok());
    world.arrivals(2);
    world.answer(1, ok());
    assert_eq!(world.response(patient).status, 200);
}

pub fn a_client_may_not_have_more_patience(world: &mut dyn World) {
    take_slot(world, &short());
    let waiting = world.send(&short().header("x-sluice-queue-timeout", "60s"));
    world.pass(LONG_ENOUGH);
    assert!(world.answered(waiting));
    world.response(waiting).refused(503, "queue_timeout");
}

pub fn a_client_without_patience_never_waits(world: &mut dyn World) {
    take_slot(world, &short());
    let sent = world.send(&short().header("x-sluice-queue-timeout", "0s"));
    let response = world.response(sent);
    let reason = response.header("x-sluice-reason").expect("a reason").to_owned();
    assert!(matches!(reason.as_str(), "queue_full" | "queue_timeout"), "{reason}");
    response.refused(if reason == "queue_full" { 429 } else { 503 }, &reason);
    response.says_when_to_retry();
    assert!(String::from_utf8_lossy(&response.body).contains("was not to wait"), "{response:?}");
    assert_eq!(response.header("x-sluice-max-tokens-action"), Some("kept"));
    assert_eq!(world.arrived(), 1);
}

pub fn a_client_without_patience_takes_a_free_slot(world: &mut dyn World) {
    exchange(world, &short().header("x-sluice-queue-timeout", "0s"));
}

pub fn the_wait_is_told(world: &mut dyn World) {
    let [held, waiting, _] = fill(world);
    world.pass(Duration::from_millis(200));
    world.answer(0, ok());
    world.response(held);
    world.arrivals(2);
    world.answer(1, ok());
    let response = world.response(waiting);
    let told = response.header("x-sluice-queue-ms").and_then(|value| value.parse::<u64>().ok());
    assert!(told.is_some_and(|millis| (200..5000).contains(&millis)), "x-sluice-queue-ms: {told:?}");
    let logged: u64 = world.logged(waiting, "queue_ms").parse().expect("a number");
    assert_eq!(Some(logged), told);
}

pub fn classes_wait_apart(world: &mut dyn World) {
    fill(world);
    refused(world, &short()).refused(429, "queue_full");
    let (arrival, response) = exchange(world, &long());
    assert_eq!(arrival.cluster, "llm_long");
    assert_eq!(response.header("x-sluice-class"), Some("long"));
}

pub fn a_freed_place_can_be_taken(world: &mut dyn World) {
    let [held, first, second] = fill(world);
    world.answer(0, ok());
    world.response(held);
    world.arrivals(2);
    let third = world.send(&short_named("third"));
    for (index, sent) in [(1, first), (2, second), (3, third)] {
        world.arrivals(index + 1);
        world.answer(index, ok());
        assert_eq!(world.response(sent).status, 200);
    }
}

pub fn patience_that_cannot_be_read_is_the_policys(world: &mut dyn World) {
    take_slot(world, &short());
    for patience in ["", "soon", "-1s", "99999999999999999999999s", "1"] {
        let waiting = world.send(&short().header("x-sluice-queue-timeout", patience));
        assert!(!world.answered(waiting), "{patience}");
        world.leave(waiting);
        world.metric_becomes("sluice.queued.domain.default.class.short", 0);
    }
}
