//! Several workers of a real Envoy: one limit, one queue, whatever happens to a worker.

mod bursts;
mod failing;
mod together;

use rig::envoy::Config;

use super::{RealWorld, chat, ok};
use crate::stories::{Request, Sent, World};

const INFLIGHT: &str = "sluice.inflight.domain.default.class.short";
const QUEUED: &str = "sluice.queued.domain.default.class.short";

fn policy(concurrency: usize, capacity: usize) -> String {
    format!(
        r#"{{"classes": [{{"name": "short", "concurrency": {concurrency},
            "queue": {{"capacity": {capacity}, "timeout": "60s"}}}}]}}"#
    )
}

fn start(workers: u32, policy: &str) -> RealWorld {
    RealWorld::start_with(policy, |config| config.concurrency = workers)
}

/// With the twin of the module that can be told to fail.
fn start_fallible(workers: u32, policy: &str, adapt: impl FnOnce(&mut Config)) -> RealWorld {
    RealWorld::start_with(policy, |config| {
        config.concurrency = workers;
        config.module = Config::trap_module().expect("the twin for tests");
        adapt(config);
    })
}

fn with(name: &str, value: &str) -> Request {
    let mut request = chat(10);
    request.headers.push((name.to_owned(), value.as_bytes().to_vec()));
    request
}

/// A chat that can be told from others by the header `x-name`.
fn named(name: &str) -> Request {
    with("x-name", name)
}

/// The names of the first `count` that have arrived, awaited.
fn names(world: &mut RealWorld, count: usize) -> Vec<String> {
    let name = |arrival: &crate::stories::Arrival| {
        let value = arrival.header("x-name").unwrap_or_default();
        String::from_utf8_lossy(value).into_owned()
    };
    world.arrivals(count).iter().map(name).collect()
}

/// Sends a request on a worker's connection and waits until it runs.
fn run_on(world: &mut RealWorld, worker: usize, request: &Request) -> Sent {
    let before = world.arrivals.look(|desk| desk.held.len());
    let sent = world.launch_on(worker, request);
    world.arrivals(before + 1);
    sent
}

/// The same for one that has to wait.
fn park_on(world: &mut RealWorld, worker: usize, request: &Request) -> Sent {
    let before = world.metric(QUEUED);
    let sent = world.launch_on(worker, request);
    world.metric_becomes(QUEUED, before + 1);
    sent
}

/// Nothing is held any more, each worker serves the next one, and all VMs live.
fn empty(mut world: RealWorld, workers: usize) {
    world.metric_becomes(QUEUED, 0);
    world.metric_becomes(INFLIGHT, 0);
    world.answer_at_once(ok());
    for worker in 0..workers {
        let sent = world.launch_on(worker, &chat(1));
        assert_eq!(world.response(sent).status, 200);
    }
    world.close();
}
