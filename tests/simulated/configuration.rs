//! VMs and root contexts come and go.

use std::time::Duration;

use crate::harness::world::NativeWorld;
use crate::stories::World;
use crate::stories::policies::{ONE_SLOT, ROOMY};
use crate::stories::words::{exchange, ok, short, take_slot};

#[test]
fn a_vm_without_requests_claims_nothing() {
    let mut world = NativeWorld::new(ONE_SLOT);
    world.pass(Duration::from_secs(1));
    assert_eq!(world.process.queues().len(), 0, "queues");
    assert!(world.process.data().keys().is_empty(), "{:?}", world.process.data().keys());
    exchange(&mut world, &short());
    assert_eq!(world.process.queues().len(), 1, "queues");
    let keys = world.process.data().keys().len();
    assert!(world.accepts(ROOMY));
    world.pass(Duration::from_secs(1));
    assert_eq!(world.process.queues().len(), 1, "queues");
    assert_eq!(world.process.data().keys().len(), keys);
    let written = world.process.data().writes();
    world.pass(Duration::from_secs(60));
    assert_eq!(world.process.data().writes(), written, "new limits are announced once");
    world.close();
}

#[test]
fn limits_are_shown_before_any_request_and_follow_the_policy() {
    let mut world = NativeWorld::new(ONE_SLOT);
    let limit = "sluice.limit.domain.default.class.short";
    world.metric_becomes(limit, 1);
    exchange(&mut world, &short());
    assert!(world.accepts(ROOMY));
    world.metric_becomes(limit, 64);
    world.pass(Duration::from_secs(1));
    assert_eq!(world.process.metrics().value(limit), Some(64));
    world.close();
}

#[test]
fn a_refused_policy_leaves_the_present_one_in_force() {
    let mut world = NativeWorld::new(ONE_SLOT);
    take_slot(&mut world, &short());
    assert!(!world.accepts(r#"{"classes": [], "nonsense": 1}"#));
    assert!(!world.accepts("{"));
    let logs = world.process.logs().clone();
    assert!(logs.iter().any(|(level, line)| *level >= 4 && line.contains("nonsense")), "{logs:?}");
    assert_eq!(world.roots(), 1);
    let waiting = world.send(&short());
    assert_eq!(world.arrived(), 1);
    world.answer(0, ok());
    world.arrivals(2);
    world.answer(1, ok());
    assert_eq!(world.response(waiting).status, 200);
    world.close();
}

#[test]
fn draining_ends_who_still_waits_and_retires_the_root() {
    let mut world = NativeWorld::new(ONE_SLOT);
    let held = take_slot(&mut world, &short());
    let waiting = world.send(&short());
    assert!(world.accepts(ROOMY));
    assert_eq!(world.roots(), 2);
    world.drain();
    assert_eq!(world.roots(), 1);
    for sent in [held, waiting] {
        assert!(!world.response(sent).complete);
    }
    exchange_after(&mut world, 1);
    world.close();
}

#[test]
fn a_fresh_vm_serves_as_the_old_one_did() {
    let mut world = NativeWorld::new(ONE_SLOT);
    exchange(&mut world, &short());
    world.reload(0, ONE_SLOT);
    exchange_after(&mut world, 1);
    take_slot(&mut world, &short());
    let waiting = world.send(&short());
    world.answer(2, ok());
    world.arrivals(4);
    world.answer(3, ok());
    assert_eq!(world.response(waiting).status, 200);
    world.close();
}

/// One exchange, before which `arrived` requests had arrived: none of the old ones comes back.
fn exchange_after(world: &mut NativeWorld, arrived: usize) {
    assert_eq!(world.arrived(), arrived);
    exchange(world, &short());
}

#[test]
fn no_configuration_is_the_default_policy() {
    for nothing in ["", "{}", " \n"] {
        let mut world = NativeWorld::new(nothing);
        let (_, response) = exchange(&mut world, &short());
        assert_eq!(response.header("x-sluice-class"), Some("short"));
        world.close();
    }
}
