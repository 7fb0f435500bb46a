//! Classes that share a model server: slots and tokens of one pool, urgency, and no end of waiting.

use std::time::Duration;

use super::words::{CHAT, chat_body, exchange, long, ok, refused, short_named};
use super::{Request, Sent, World};

/// Longer than the wait after which a request is promoted, in the policies that promote early.
const PROMOTED: Duration = Duration::from_millis(500);

fn inflight(class: &str) -> String {
    format!("sluice.inflight.domain.default.class.{class}")
}

fn queued(class: &str) -> String {
    format!("sluice.queued.domain.default.class.{class}")
}

/// A request of class `short` that weighs some 30 tokens and may be told from others.
fn light(name: &str) -> Request {
    Request::post(CHAT, chat_body(name, r#","max_tokens":30"#))
}

/// A long request that may be told from others.
fn long_named(name: &str) -> Request {
    let prompt = format!("{name} {}", "long ".repeat(100));
    Request::post(CHAT, chat_body(&prompt, r#","max_tokens":1000"#))
}

/// The first words of what has arrived, once so many have and no more.
fn arrived(world: &mut dyn World, count: usize) -> Vec<String> {
    let arrivals = world.arrivals(count);
    assert_eq!(world.arrived(), count);
    arrivals
        .iter()
        .map(|arrival| {
            let body: serde_json::Value = serde_json::from_slice(&arrival.body).expect("JSON");
            let prompt = body["messages"][0]["content"].as_str().expect("a prompt");
            prompt.split(' ').next().unwrap_or_default().to_owned()
        })
        .collect()
}

/// The name of what arrives as the next one after `place` has been answered.
fn next_after(world: &mut dyn World, place: usize) -> String {
    world.answer(place, ok());
    arrived(world, place + 2).pop().expect("one")
}

/// Answers what is still held, from the `first`, and checks that everybody gets an answer.
fn finish(world: &mut dyn World, first: usize, sent: &[Sent]) {
    for place in first..sent.len() {
        world.arrivals(place + 1);
        world.answer(place, ok());
    }
    for sent in sent {
        assert_eq!(world.response(*sent).status, 200);
    }
    for class in ["short", "long"] {
        world.metric_becomes(&inflight(class), 0);
        world.metric_becomes(&queued(class), 0);
    }
    assert!(world.healthy());
}

pub fn the_more_urgent_goes_first(world: &mut dyn World) {
    let sent = [&short_named("held"), &long_named("long"), &short_named("a"), &short_named("b")]
        .map(|request| world.send(request));
    assert_eq!(next_after(world, 0), "a");
    assert_eq!(next_after(world, 1), "b");
    assert_eq!(next_after(world, 2), "long");
    finish(world, 3, &sent);
}

pub fn the_older_goes_first_within_a_class(world: &mut dyn World) {
    let sent = [&short_named("held"), &long_named("a"), &long_named("b"), &long_named("c")]
        .map(|request| world.send(request));
    for (place, name) in ["a", "b", "c"].into_iter().enumerate() {
        assert_eq!(next_after(world, place), name);
    }
    finish(world, 3, &sent);
}

pub fn both_share_the_slots(world: &mut dyn World) {
    let sent = [&long_named("long"), &short_named("short")].map(|request| world.send(request));
    assert_eq!(arrived(world, 1), ["long"]);
    assert_eq!(next_after(world, 0), "short");
    finish(world, 1, &sent);
    let (arrival, _) = exchange(world, &long());
    assert_eq!(arrival.cluster, "llm_long");
}

pub fn queues_are_the_classes_own(world: &mut dyn World) {
    let mut sent = vec![world.send(&short_named("held"))];
    sent.extend((0..8).map(|_| world.send(&long())));
    refused(world, &long()).refused(429, "queue_full");
    let urgent = world.send(&short_named("short"));
    sent.insert(1, urgent);
    assert_eq!(next_after(world, 0), "short");
    finish(world, 1, &sent);
}

pub fn the_pools_gauges_are_right(world: &mut dyn World) {
    let sent = [short_named("held"), short_named("a"), long(), long()].map(|request| world.send(&request));
    for class in ["short", "long"] {
        world.metric_becomes(&format!("sluice.limit.domain.default.class.{class}"), 1);
    }
    world.metric_becomes(&inflight("short"), 1);
    world.metric_becomes(&queued("short"), 1);
    world.metric_becomes(&queued("long"), 2);
    world.answer(0, ok());
    world.arrivals(2);
    world.answer(1, ok());
    world.metric_becomes(&inflight("long"), 1);
    world.metric_becomes(&inflight("short"), 0);
    world.metric_becomes(&queued("long"), 1);
    finish(world, 2, &sent);
}

pub fn a_reserved_slot_is_kept(world: &mut dyn World) {
    let mut sent = ["a", "b"].map(|name| let_in(world, &long_named(name))).to_vec();
    sent.push(world.send(&long_named("c")));
    assert_eq!(arrived(world, 2), ["a", "b"]);
    sent.push(world.send(&short_named("first")));
    assert_eq!(arrived(world, 3)[2], "first");
    world.answer(2, ok());
    assert_eq!(world.response(sent[3]).status, 200);
    assert_eq!(world.arrived(), 3, "the slot that is kept went to the one that waits");
    sent.push(world.send(&short_named("second")));
    assert_eq!(arrived(world, 4)[3], "second");
    world.answer(0, ok());
    assert_eq!(arrived(world, 5)[4], "c");
    world.answer(1, ok());
    finish(world, 3, &sent);
}

pub fn a_class_has_its_share_at_most(world: &mut dyn World) {
    let mut sent = vec![world.send(&long_named("a")), world.send(&long_named("b"))];
    assert_eq!(arrived(world, 1), ["a"]);
    sent.extend(["c", "d"].map(|name| let_in(world, &short_named(name))));
    sent.push(world.send(&short_named("e")));
    assert_eq!(arrived(world, 3), ["a", "c", "d"]);
    assert_eq!(next_after_any(world, 0, 4), "e", "the more urgent is first");
    assert_eq!(next_after_any(world, 1, 5), "b");
    finish(world, 2, &sent);
}

/// Sends a request that goes on at once, and waits until it is there: two on their way together may change places.
fn let_in(world: &mut dyn World, request: &Request) -> Sent {
    let before = world.arrived();
    let sent = world.send(request);
    world.arrivals(before + 1);
    sent
}

/// The name of the `count`-th arrival, once `place` has been answered.
fn next_after_any(world: &mut dyn World, place: usize, count: usize) -> String {
    world.answer(place, ok());
    arrived(world, count).pop().expect("one")
}

pub fn who_has_waited_long_goes_before_newer_ones(world: &mut dyn World) {
    let mut sent = vec![world.send(&short_named("held")), world.send(&long_named("patient"))];
    world.pass(PROMOTED);
    sent.push(world.send(&short_named("newer")));
    assert_eq!(next_after(world, 0), "patient");
    assert_eq!(next_after(world, 1), "newer");
    finish(world, 2, &sent);
}

pub fn who_has_waited_long_goes_after_older_ones(world: &mut dyn World) {
    let sent = ["held", "older"].map(|name| world.send(&short_named(name)));
    let sent = [sent[0], sent[1], world.send(&long_named("patient"))];
    world.pass(PROMOTED);
    assert_eq!(next_after(world, 0), "older");
    assert_eq!(next_after(world, 1), "patient");
    finish(world, 2, &sent);
}

pub fn a_budget_is_kept(world: &mut dyn World) {
    let mut sent = ["a", "b", "c"].map(|name| let_in(world, &light(name))).to_vec();
    sent.push(world.send(&light("d")));
    assert_eq!(arrived(world, 3), ["a", "b", "c"]);
    world.answer(1, ok());
    assert_eq!(arrived(world, 4)[3], "d");
    world.answer(0, ok());
    finish(world, 2, &sent);
}

pub fn a_giant_runs_alone(world: &mut dyn World) {
    let mut sent = vec![world.send(&long_named("giant"))];
    assert_eq!(arrived(world, 1), ["giant"], "it is over the budget, and yet it runs");
    sent.extend(["a", "b"].map(|name| world.send(&light(name))));
    assert_eq!(world.arrived(), 1);
    world.answer(0, ok());
    world.arrivals(3);
    sent.push(world.send(&long_named("another")));
    world.answer(1, ok());
    assert_eq!(world.arrived(), 3, "not alone");
    assert_eq!(next_after(world, 2), "another");
    finish(world, 3, &sent);
}

pub fn a_giant_is_not_passed_for_ever(world: &mut dyn World) {
    let mut sent = vec![let_in(world, &light("a")), world.send(&long_named("giant"))];
    sent.push(let_in(world, &light("b")));
    assert_eq!(arrived(world, 2), ["a", "b"], "as yet it may be passed");
    world.pass(PROMOTED);
    sent.push(world.send(&light("c")));
    assert_eq!(world.arrived(), 2, "no longer");
    world.answer(0, ok());
    assert_eq!(world.arrived(), 2);
    assert_eq!(next_after(world, 1), "giant");
    assert_eq!(next_after(world, 2), "c");
    finish(world, 3, &sent);
}
