//! Hundreds of clients at once: never too many at the model server, and never too few while somebody waits.

use fastrand::Rng;

use super::{QUEUED, chat, empty, ok, policy, start};
use crate::stories::{Answer, Sent, World};

const CROWD: usize = 400;
const LIMIT: usize = 4;

#[test]
fn a_burst_is_served_by_one_worker() {
    burst(1);
}

#[test]
fn a_burst_is_served_by_two_workers() {
    burst(2);
}

#[test]
fn a_burst_is_served_by_four_workers() {
    burst(4);
}

fn burst(workers: u32) {
    let mut world = start(workers, &policy(LIMIT, CROWD));
    let sent: Vec<Sent> = (0..CROWD).map(|_| world.launch(&chat(10))).collect();
    for answered in 0..CROWD {
        // All slots are taken again after each answer, as long as there is anybody to take them.
        world.arrivals((answered + LIMIT).min(CROWD));
        world.answer(answered, ok());
    }
    for sent in sent {
        assert_eq!(world.response(sent).status, 200);
    }
    assert_eq!(world.open(), (0, LIMIT));
    let full = world.arrivals.look(|desk| desk.held[LIMIT - 1].came - desk.held[0].came);
    println!("{workers} workers: all slots taken {full:?} after the first");
    empty(world, usize::try_from(workers).unwrap());
}

#[test]
fn clients_that_leave_never_let_in_one_too_many() {
    for (workers, seed) in [(2, 1), (4, 2)] {
        let mut random = Rng::with_seed(seed);
        let mut world = start(workers, &policy(LIMIT, CROWD));
        let mut clients: Vec<Sent> = (0..CROWD / 2).map(|_| world.launch(&chat(10))).collect();
        world.arrivals(LIMIT);
        for _ in 0..CROWD / 2 {
            let arrived = world.arrivals.look(|desk| desk.held.len());
            let latest = arrived - 1 - random.usize(..LIMIT.min(arrived));
            match random.u8(..10) {
                0..5 => {
                    if !clients.is_empty() {
                        let client = clients.swap_remove(random.usize(..clients.len()));
                        world.leave(client);
                    }
                }
                5..7 => clients.push(world.launch(&chat(10))),
                7 => world.answer(latest, Answer::Begin(vec![b"data: 1\n\n".to_vec()])),
                8 => world.answer(latest, Answer::Reset),
                _ => world.answer(latest, ok()),
            }
        }
        let half = clients.split_off(clients.len() / 2);
        half.into_iter().for_each(|client| world.leave(client));
        world.answer_at_once(ok());
        let held = world.arrivals.look(|desk| desk.held.len());
        for place in 0..held {
            // Whatever has begun ends, and what has not is answered.
            world.answer(place, Answer::Reset);
        }
        for client in clients {
            world.response(client);
        }
        world.metric_becomes(QUEUED, 0);
        let (open, peak) = world.open();
        assert_eq!(open, 0);
        assert!(peak <= LIMIT, "{peak} at once");
        empty(world, usize::try_from(workers).unwrap());
    }
}

#[test]
fn clients_that_all_leave_at_once_leave_nothing() {
    let mut world = start(2, &policy(LIMIT, CROWD));
    let sent: Vec<Sent> = (0..CROWD / 2).map(|_| world.launch(&chat(10))).collect();
    world.arrivals(LIMIT);
    let queued = u64::try_from(CROWD / 2 - LIMIT).unwrap();
    world.metric_becomes(QUEUED, queued);
    sent.into_iter().for_each(|sent| world.leave(sent));
    world.metric_becomes(QUEUED, 0);
    assert!(world.open().1 <= LIMIT, "{} at once", world.open().1);
    empty(world, 2);
}
