//! Anything in any order: the promises that hold whatever clients and model server do.

use std::time::Duration;

use proptest::prelude::*;

use crate::harness::world::NativeWorld;
use crate::stories::words::{answer, long, short};
use crate::stories::{Answer, Body, Request, Sent, World};

const CONCURRENCY: usize = 2;
const CAPACITY: usize = 3;
const POLICY: &str = r#"{
    "limits": {"body_timeout": "3s"},
    "classes": [
        {"name": "short", "at_most": {"prompt_chars": 200, "max_tokens": 256}, "concurrency": 2,
         "queue": {"capacity": 3, "timeout": "1s"}},
        {"name": "long", "concurrency": 2, "queue": {"capacity": 3, "timeout": "2s"}}
    ]
}"#;
const CLUSTERS: [&str; 2] = ["llm_short", "llm_long"];
const CLASSES: [&str; 2] = ["short", "long"];

/// Something that happens; numbers choose among the requests that there are.
#[derive(Clone, Debug)]
enum Event {
    Send(Request),
    Leave(usize),
    LeaveSome(usize, usize),
    Answer(usize, Answer),
    EnvoyAnswers(usize),
    Pass(u64),
}

fn event() -> impl Strategy<Value = Event> {
    let request = prop_oneof![
        6 => Just(short()),
        3 => Just(long()),
        1 => Just(short().http2()),
        1 => Just(short().header("x-sluice-queue-timeout", "100ms")),
        1 => Just(short().header("x-sluice-queue-timeout", "0s")),
        1 => Just(short().body(Body::Withheld(b"{".to_vec()))),
        1 => Just(short().body(Body::Whole(b"{".to_vec()))),
        1 => Just(Request::get("/health")),
    ];
    let reply = prop_oneof![
        4 => Just(answer(200)),
        1 => Just(answer(500)),
        2 => Just(Answer::Begin(vec![b"data: 1\n\n".to_vec()])),
        2 => Just(Answer::End),
        1 => Just(Answer::Reset),
    ];
    prop_oneof![
        8 => request.prop_map(Event::Send),
        2 => any::<usize>().prop_map(Event::Leave),
        1 => any::<(usize, usize)>().prop_map(|(first, step)| Event::LeaveSome(first, step)),
        6 => (any::<usize>(), reply).prop_map(|(at, reply)| Event::Answer(at, reply)),
        1 => any::<usize>().prop_map(Event::EnvoyAnswers),
        2 => (1u64..1500).prop_map(Event::Pass),
    ]
}

fn happen(world: &mut NativeWorld, sent: &mut Vec<Sent>, event: Event) {
    match event {
        Event::Send(request) => sent.push(world.send(&request)),
        Event::Pass(millis) => {
            world.pass(Duration::from_millis(millis));
            if millis > 250 {
                inflight_is_shown(world);
            }
        }
        Event::Answer(at, reply) => {
            if let Some(at) = at.checked_rem(world.arrived()) {
                world.answer(at, reply);
            }
        }
        Event::Leave(at) => {
            if let Some(at) = at.checked_rem(sent.len()) {
                world.leave(sent[at]);
            }
        }
        Event::LeaveSome(first, step) => {
            let some: Vec<Sent> = sent.iter().skip(first % 3).step_by(1 + step % 3).copied().collect();
            world.leave_all(&some);
        }
        Event::EnvoyAnswers(at) => {
            if let Some(at) = at.checked_rem(sent.len()) {
                world.envoy_answers(sent[at], 504, "stream_idle_timeout");
            }
        }
    }
}

fn promises_hold(world: &mut NativeWorld) {
    for (cluster, class) in CLUSTERS.into_iter().zip(CLASSES) {
        let (running, waiting) = (world.running(cluster), world.waiting(class));
        assert!(running <= CONCURRENCY, "{running} in flight in {class}");
        assert!(waiting <= CAPACITY, "{waiting} wait in {class}");
        assert!(waiting == 0 || running == CONCURRENCY, "{waiting} wait for {running} in {class}");
    }
}

fn gauge(world: &NativeWorld, name: &str, class: &str) -> u64 {
    let name = format!("sluice.{name}.domain.default.class.{class}");
    world.process.metrics().value(&name).unwrap_or(0)
}

/// The main thread's timer shows what is in flight. (Nothing begins or ends by itself while time passes.)
fn inflight_is_shown(world: &NativeWorld) {
    for (cluster, class) in CLUSTERS.into_iter().zip(CLASSES) {
        assert_eq!(gauge(world, "inflight", class), world.running(cluster) as u64, "in flight in {class}");
    }
}

/// Tells what happens one after the other, and checks after each that the promises hold.
fn holds(workers: usize, events: Vec<Event>) {
    let mut world = NativeWorld::with_workers(workers, POLICY);
    let mut sent = Vec::new();
    for event in events {
        happen(&mut world, &mut sent, event);
        // As long as a slot may linger, and a tick may take.
        world.pass(Duration::from_millis(30));
        promises_hold(&mut world);
    }
    // Nobody waits longer than the longest timeout, though the model server never answers again.
    world.pass(Duration::from_millis(3300));
    assert_eq!(CLASSES.map(|class| world.waiting(class)), [0, 0], "waiting");
    assert_eq!(CLASSES.map(|class| gauge(&world, "queued", class)), [0, 0], "shown as waiting");
    inflight_is_shown(&world);
    world.close();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_slot_is_lost_or_lent_twice(events in prop::collection::vec(event(), 1..80)) {
        holds(1, events);
    }

    #[test]
    fn nor_is_one_over_several_workers(workers in 2..5usize, events in prop::collection::vec(event(), 1..80)) {
        holds(workers, events);
    }
}
