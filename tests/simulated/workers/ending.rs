//! When a slot comes back, and what becomes of it when the policy is replaced.

use super::{CREWS, GAUGES, INFLIGHT, LIMIT, LINGER, QUEUED, TICK, millis, policy};
use crate::harness::world::NativeWorld;
use crate::stories::words::{answer, long, ok, short};
use crate::stories::{Answer, Sent, World};

#[test]
fn the_slot_of_a_client_that_left_is_not_lent_out_at_once() {
    for workers in CREWS {
        let mut world = NativeWorld::with_workers(workers, &policy(1, 100));
        let held = world.send_on(0, &short());
        world.send_on(1, &short());
        world.leave(held);
        world.pass(LINGER - millis(1));
        assert_eq!(world.arrived(), 1, "the model server does not know yet");
        world.pass(TICK + millis(1));
        assert_eq!(world.arrived(), 2);
        world.close();
    }
}

#[test]
fn an_answer_that_ran_its_course_frees_its_slot_at_once() {
    for status in [200, 404, 500] {
        let mut world = NativeWorld::with_workers(2, &policy(1, 100));
        world.send_on(0, &short());
        world.send_on(1, &short());
        world.answer(0, Answer::Begin(vec![b"data: 1\n\n".to_vec()]));
        assert_eq!(world.arrived(), 1);
        world.answer(0, Answer::End);
        assert_eq!(world.arrived(), 2);
        world.send_on(0, &short());
        world.answer(1, answer(status));
        assert_eq!(world.arrived(), 3, "{status}");
        world.close();
    }
}

#[test]
fn new_limits_hold_for_those_that_run_and_wait_under_the_old_ones() {
    for workers in CREWS {
        let mut world = NativeWorld::with_workers(workers, &policy(4, 100));
        let old: Vec<Sent> = (0..12).map(|_| world.send(&short())).collect();
        world.reconfigure(&policy(2, 100));
        let new: Vec<Sent> = (0..4).map(|_| world.send(&short())).collect();
        assert_eq!(world.running("llm_short"), 4);
        let mut running = 4;
        for ended in 1..=16 {
            let first = world.open()[0];
            world.answer(first, ok());
            let left = 16 - ended;
            running = left.min(2).max(running - 1);
            running = running.min(left);
            assert_eq!(world.running("llm_short"), running, "{workers} workers, {ended} answers");
        }
        assert!(old.iter().chain(&new).all(|sent| world.response(*sent).status == 200));
        world.pass(GAUGES);
        world.metric_is(LIMIT, 2);
        world.metric_is(INFLIGHT, 0);
        world.close();
    }
}

#[test]
fn higher_limits_let_in_who_waits_under_the_old_ones() {
    for workers in CREWS {
        let mut world = NativeWorld::with_workers(workers, &policy(2, 100));
        (0..8).for_each(|_| {
            world.send(&short());
        });
        world.reconfigure(&policy(6, 100));
        world.send(&short());
        // The first to come under the new policy is what tells the others of it.
        assert_eq!(world.running("llm_short"), 6);
        assert_eq!(world.waiting("short"), 3);
        world.pass(GAUGES);
        world.metric_is(LIMIT, 6);
        world.metric_is(INFLIGHT, 6);
        world.metric_is(QUEUED, 3);
        world.close();
    }
}

#[test]
fn a_retired_configuration_keeps_no_slot() {
    for workers in CREWS {
        let mut world = NativeWorld::with_workers(workers, &policy(2, 100));
        let old: Vec<Sent> = (0..6).map(|_| world.send(&short())).collect();
        world.reconfigure(&policy(2, 101));
        world.drain();
        assert!(old.iter().all(|sent| !world.response(*sent).complete));
        let new = [world.send(&short()), world.send(&short())];
        assert_eq!(world.running("llm_short"), 2);
        assert!(!new.into_iter().any(|sent| world.answered(sent)));
        world.close();
    }
}

/// `short` and `long` in a pool, or each by itself where there is none.
fn pooled(pool: Option<(&str, usize)>) -> String {
    let pools = pool
        .map_or(String::new(), |(name, slots)| format!(r#"{{"name": "{name}", "concurrency": {slots}}}"#));
    let place = pool.map_or(r#""concurrency": 4"#.to_owned(), |(name, _)| format!(r#""pool": "{name}""#));
    format!(
        r#"{{"pools": [{pools}], "classes": [
            {{"name": "short", "at_most": {{"prompt_chars": 200, "max_tokens": 256}}, {place}, "queue": {{"timeout": "30s"}}}},
            {{"name": "long", {place}, "queue": {{"timeout": "30s"}}}}]}}"#
    )
}

#[test]
fn a_class_that_moves_into_a_pool_or_whose_pool_is_renamed_keeps_its_counts() {
    for workers in CREWS {
        let mut world = NativeWorld::with_workers(workers, &pooled(None));
        for _ in 0..8 {
            world.send(&short());
            world.send(&long());
        }
        let running = |world: &NativeWorld| world.running("llm_short") + world.running("llm_long");
        assert_eq!(running(&world), 8);
        world.reconfigure(&pooled(Some(("gpu", 3))));
        (0..4).for_each(|_| {
            world.send(&long());
        });
        let mut most = 8;
        for ended in 1..=20 {
            if ended == 8 {
                world.reconfigure(&pooled(Some(("renamed", 3))));
                world.send(&short());
            }
            let first = world.open()[0];
            world.answer(first, ok());
            most = (most - 1).max(3);
            assert!(running(&world) <= most, "{workers} workers, {ended} answers: {}", running(&world));
        }
        world.reconfigure(&pooled(None));
        world.pass(GAUGES);
        world.metric_is(INFLIGHT, u64::try_from(world.running("llm_short")).unwrap());
        while let Some(first) = world.open().first().copied() {
            world.answer(first, ok());
        }
        world.pass(GAUGES);
        world.metric_is(INFLIGHT, 0);
        world.metric_is(QUEUED, 0);
        world.close();
    }
}

#[test]
fn filters_of_one_domain_with_classes_of_their_own_keep_their_limits() {
    let one = r#"{"classes": [{"name": "chat", "concurrency": 2}]}"#;
    let mut world = NativeWorld::with_workers(2, one);
    (0..6).for_each(|_| {
        world.send(&short());
    });
    world.reconfigure(r#"{"classes": [{"name": "batch", "concurrency": 3}]}"#);
    (0..6).for_each(|_| {
        world.send(&short());
    });
    // What the newest configuration does not know goes on under the limits that it came under.
    let mut running = world.open().len();
    assert_eq!(running, 5);
    while running > 0 {
        let first = world.open()[0];
        world.answer(first, ok());
        assert!(world.open().len() <= running);
        running = world.open().len();
    }
    world.close();
}
