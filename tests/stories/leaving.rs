//! A slot comes back exactly once, whatever ends the request; the next in line goes on, and only the next.

use super::words::{answer, exchange, ok, refused, short, short_named, take_slot};
use super::{Answer, Body, Sent, World};

const INFLIGHT: &str = "sluice.inflight.domain.default.class.short";
const QUEUED: &str = "sluice.queued.domain.default.class.short";

/// One holds the slot, two wait.
fn a_line(world: &mut dyn World) -> [Sent; 3] {
    [take_slot(world, &short()), world.send(&short_named("first")), world.send(&short_named("second"))]
}

/// After the holder's end: the first in line goes on and the second still waits; then both are served.
fn one_went_on(world: &mut dyn World, first: Sent, second: Sent) {
    world.arrivals(2);
    assert_eq!(world.arrived(), 2, "one slot was given back twice");
    world.metric_becomes(INFLIGHT, 1);
    world.metric_becomes(QUEUED, 1);
    world.answer(1, ok());
    assert_eq!(world.response(first).status, 200);
    world.arrivals(3);
    world.answer(2, ok());
    assert_eq!(world.response(second).status, 200);
    world.metric_becomes(INFLIGHT, 0);
    world.metric_becomes(QUEUED, 0);
    let again = a_line(world);
    world.arrivals(4);
    assert_eq!(world.arrived(), 4, "one slot was given back twice");
    again.into_iter().for_each(|sent| world.leave(sent));
    world.metric_becomes(INFLIGHT, 0);
    world.metric_becomes(QUEUED, 0);
    assert!(world.healthy());
}

pub fn a_client_gone_while_queued_leaves_its_place(world: &mut dyn World) {
    let [held, first, second] = a_line(world);
    refused(world, &short()).refused(429, "queue_full");
    world.leave(first);
    world.metric_becomes(QUEUED, 1);
    let third = world.send(&short_named("third"));
    assert!(!world.answered(third));
    world.answer(0, ok());
    assert_eq!(world.response(held).status, 200);
    one_went_on(world, second, third);
}

pub fn a_client_gone_before_headers_leaves_its_slot(world: &mut dyn World) {
    let [held, first, second] = a_line(world);
    world.leave(held);
    one_went_on(world, first, second);
}

pub fn a_client_gone_mid_stream_leaves_its_slot(world: &mut dyn World) {
    let [held, first, second] = a_line(world);
    world.answer(0, Answer::Begin(vec![b"data: 1\n\n".to_vec()]));
    world.leave(held);
    one_went_on(world, first, second);
}

pub fn a_client_gone_mid_body_leaves_nothing(world: &mut dyn World) {
    let sent = world.send(&short().body(Body::Withheld(br#"{"messages":"#.to_vec())));
    world.leave(sent);
    exchange(world, &short());
    world.metric_becomes(INFLIGHT, 0);
    world.metric_becomes("sluice.requests_total.domain.default.class.none.outcome.client_gone", 1);
}

pub fn an_upstream_reset_before_headers_frees_one_slot(world: &mut dyn World) {
    let [held, first, second] = a_line(world);
    world.answer(0, Answer::Reset);
    let response = world.response(held);
    assert_eq!((response.status, response.header("x-sluice-reason")), (503, None));
    one_went_on(world, first, second);
}

pub fn an_upstream_reset_mid_stream_frees_one_slot(world: &mut dyn World) {
    let [held, first, second] = a_line(world);
    world.answer(0, Answer::Begin(vec![b"data: 1\n\n".to_vec()]));
    world.answer(0, Answer::Reset);
    let response = world.response(held);
    assert_eq!((response.status, response.complete), (200, false));
    one_went_on(world, first, second);
}

pub fn an_upstream_error_frees_one_slot(world: &mut dyn World) {
    let [held, first, second] = a_line(world);
    world.answer(0, answer(500));
    let response = world.response(held);
    assert_eq!((response.status, response.header("x-sluice-class")), (500, Some("short")));
    one_went_on(world, first, second);
}

pub fn an_answer_frees_one_slot(world: &mut dyn World) {
    let [held, first, second] = a_line(world);
    world.answer(0, ok());
    assert_eq!(world.response(held).status, 200);
    one_went_on(world, first, second);
}

pub fn a_slot_is_held_to_the_end_of_a_stream(world: &mut dyn World) {
    let [held, first, second] = a_line(world);
    world.answer(0, Answer::Begin(vec![b"data: 1\n\n".to_vec()]));
    world.answer(0, Answer::More(vec![b"data: 2\n\n".to_vec(), b"data: 3\n\n".to_vec()]));
    assert_eq!(world.arrived(), 1);
    world.answer(0, Answer::End);
    let response = world.response(held);
    assert_eq!(response.body, b"data: 1\n\ndata: 2\n\ndata: 3\n\n");
    assert!(response.complete);
    one_went_on(world, first, second);
}

pub fn a_refusal_takes_no_slot(world: &mut dyn World) {
    for _ in 0..3 {
        refused(world, &short().header("content-encoding", "gzip")).refused(415, "unsupported_encoding");
    }
    world.metric_becomes(INFLIGHT, 0);
    let [held, first, second] = a_line(world);
    world.answer(0, ok());
    world.response(held);
    one_went_on(world, first, second);
}
