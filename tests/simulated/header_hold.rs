//! Envoy does not hold request headers: no body callback ever comes, and the filter says so.

use std::time::Duration;

use crate::harness::process::Settings;
use crate::harness::world::NativeWorld;
use crate::stories::policies::HASTY;
use crate::stories::words::{exchange, refused, short};
use crate::stories::{Body, Request, World};

fn misconfigured() -> NativeWorld {
    NativeWorld::with(Settings { hold_headers: false, ..Settings::default() }, HASTY)
}

#[test]
fn the_first_body_is_the_evidence() {
    let mut world = misconfigured();
    let sent = world.send(&short());
    let error = world.response(sent).refused(500, "misconfigured");
    let message = error["message"].as_str().expect("a message");
    assert!(message.contains("allow_on_headers_stop_iteration"), "{message}");
    assert_eq!(world.logged(sent, "details"), "sluice_misconfigured");
    assert_eq!(world.arrived(), 0);
    world.close();
}

#[test]
fn once_seen_later_requests_are_refused_at_once() {
    let mut world = misconfigured();
    let sent = world.send(&short());
    world.response(sent).refused(500, "misconfigured");
    let later = world.send(&short());
    assert!(world.answered(later));
    world.response(later).refused(500, "misconfigured");
    exchange(&mut world, &Request::get("/health"));
    exchange(&mut world, &Request::post("/v1/embeddings", "{}"));
    world.close();
}

#[test]
fn several_that_came_before_the_evidence_are_all_answered() {
    let mut world = misconfigured();
    let sent: Vec<_> = (0..50).map(|_| world.send(&short())).collect();
    for sent in sent {
        assert!(matches!(world.response(sent).status, 408 | 500));
    }
    world.close();
}

#[test]
fn a_body_that_is_late_is_no_evidence() {
    let mut world = misconfigured();
    let sent = world.send(&short().body(Body::Withheld(Vec::new())));
    world.pass(Duration::from_millis(280));
    assert!(!world.answered(sent));
    world.response(sent).refused(408, "body_timeout");
    world.close();
}

#[test]
fn where_headers_are_held_a_slow_body_is_no_evidence() {
    let mut world = NativeWorld::new(HASTY);
    let response = refused(&mut world, &short().body(Body::Withheld(vec![b' '; 10])));
    response.refused(408, "body_timeout");
    exchange(&mut world, &short());
    world.close();
}

#[test]
fn headers_that_the_filter_removed_hide_no_evidence() {
    let mut world = misconfigured();
    let sent = world.send(&short().header("x-sluice-spoofed", "x".repeat(1000)));
    world.response(sent).refused(500, "misconfigured");
    world.close();
}
