//! Order, limits and their replacement over two workers.

use super::{INFLIGHT, QUEUED, chat, empty, named, names, ok, park_on, policy, run_on, start};
use crate::stories::words::{long, short};
use crate::stories::{Sent, World};

#[test]
fn the_oldest_goes_first_wherever_it_waits() {
    let mut world = start(2, &policy(1, 8));
    let mut sent = vec![run_on(&mut world, 0, &named("held"))];
    let order = [(1, "a"), (0, "b"), (0, "c"), (1, "d"), (0, "e")];
    sent.extend(order.map(|(worker, name)| park_on(&mut world, worker, &named(name))));
    for place in 0..sent.len() {
        world.arrivals(place + 1);
        world.answer(place, ok());
    }
    assert_eq!(names(&mut world, 6), ["held", "a", "b", "c", "d", "e"]);
    for sent in sent {
        assert_eq!(world.response(sent).status, 200);
    }
    empty(world, 2);
}

#[test]
fn the_more_urgent_of_a_pool_goes_first_wherever_it_waits() {
    let policy = crate::stories::policies::POOL;
    let mut world = start(2, policy);
    let mut sent = vec![run_on(&mut world, 0, &short())];
    sent.push(world.launch_on(0, &long()));
    world.metric_becomes("sluice.queued.domain.default.class.long", 1);
    sent.push(park_on(&mut world, 1, &short()));
    sent.push(park_on(&mut world, 1, &short()));
    for place in 0..sent.len() {
        world.arrivals(place + 1);
        world.answer(place, ok());
    }
    let clusters: Vec<String> = world.arrivals(4).into_iter().map(|arrival| arrival.cluster).collect();
    assert_eq!(clusters, ["llm_short", "llm_short", "llm_short", "llm_long"]);
    for sent in sent {
        assert_eq!(world.response(sent).status, 200);
    }
    assert_eq!(world.open(), (0, 1));
    world.metric_becomes("sluice.inflight.domain.default.class.long", 0);
    empty(world, 2);
}

#[test]
fn a_queue_is_bounded_over_both() {
    let mut world = start(2, &policy(1, 3));
    run_on(&mut world, 0, &chat(1));
    for worker in [0, 1, 1] {
        park_on(&mut world, worker, &chat(1));
    }
    for worker in [0, 1] {
        let sent = world.launch_on(worker, &chat(1));
        let response = world.response(sent);
        response.refused(429, "queue_full");
        response.says_when_to_retry();
    }
    world.answer_at_once(ok());
    world.answer(0, ok());
    empty(world, 2);
}

#[test]
fn a_new_limit_holds_for_those_on_their_way_and_all_are_answered() {
    const OLD: usize = 30;
    const NEW: usize = 20;
    let mut world = start(2, &policy(6, 100));
    let mut sent: Vec<Sent> = (0..OLD).map(|_| world.launch(&chat(10))).collect();
    world.arrivals(6);
    world.metric_becomes(QUEUED, u64::try_from(OLD - 6).unwrap());
    world.reconfigure(&policy(2, 100));
    for worker in [0, 1] {
        sent.push(world.launch_on(worker, &chat(10)));
    }
    sent.extend((2..NEW).map(|_| world.launch(&chat(10))));
    world.metric_becomes(QUEUED, u64::try_from(OLD + NEW - 6).unwrap());
    world.metric_becomes(INFLIGHT, 6);
    world.metric_becomes("sluice.limit.domain.default.class.short", 2);
    // Four have to end before the next one goes on.
    for answered in 0..4 {
        assert_eq!(world.arrived(), 6, "after {answered} answers");
        world.answer(answered, ok());
    }
    world.arrivals.wait(|desk| format!("two, not {}", desk.open()), |desk| (desk.open() == 2).then_some(()));
    world.arrivals.change(|desk| desk.peak = 0);
    let all = sent.len();
    for answered in 4..all {
        world.answer(answered, ok());
        world.arrivals((answered + 3).min(all));
    }
    for sent in sent {
        assert_eq!(world.response(sent).status, 200);
    }
    assert_eq!(world.open(), (0, 2));
    empty(world, 2);
}

#[test]
fn a_policy_that_comes_back_while_it_still_drains_holds_again() {
    const EACH: usize = 12;
    let mut world = start(2, &policy(3, 100));
    for (round, limit) in [3, 6, 3, 2, 6].into_iter().enumerate() {
        let before = round * EACH;
        if round > 0 {
            // Envoy tells no VM of one that it had before: its root is still there.
            world.reconfigure(&policy(limit, 100));
        }
        let sent: Vec<Sent> = (0..EACH).map(|n| world.launch_on(n % 2, &chat(1))).collect();
        world.metric_becomes(QUEUED, u64::try_from(EACH - limit).unwrap());
        world.metric_becomes("sluice.limit.domain.default.class.short", u64::try_from(limit).unwrap());
        assert_eq!(world.arrived(), before + limit, "round {round}");
        (before..before + EACH).for_each(|place| world.answer(place, ok()));
        for sent in sent {
            assert_eq!(world.response(sent).status, 200);
        }
    }
    empty(world, 2);
}
