//! Several workers: one limit, one queue, one order, whichever worker a request meets and whatever becomes of it.

mod ending;
mod failing;
mod together;

use std::time::Duration;

use crate::harness::world::NativeWorld;
use crate::stories::World;

const CREWS: [usize; 3] = [2, 4, 16];

const INFLIGHT: &str = "sluice.inflight.domain.default.class.short";
const QUEUED: &str = "sluice.queued.domain.default.class.short";
const LIMIT: &str = "sluice.limit.domain.default.class.short";

/// A slot handed out and not taken goes to somebody else after this time and the next turn of a timer.
const PICKUP: Duration = Duration::from_millis(30);
/// A slot whose client has left is kept for 20 ms, and given back by a timer.
const LINGER: Duration = Duration::from_millis(20);
/// A worker that is not heard of for this long is taken for dead.
const LEASE: Duration = Duration::from_secs(3);
const TICK: Duration = Duration::from_millis(10);
/// The longest that gauges take to follow.
const GAUGES: Duration = Duration::from_millis(250);

fn policy(concurrency: usize, capacity: usize) -> String {
    format!(
        r#"{{"classes": [{{"name": "short", "concurrency": {concurrency},
            "queue": {{"capacity": {capacity}, "timeout": "30s"}}}}]}}"#
    )
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Asserts by what the model server got that exactly these have arrived, in this order.
fn arrived_in_order(world: &mut NativeWorld, names: &[&str]) {
    let count = world.arrived();
    let prompts: Vec<String> = world.arrivals(count).iter().map(|arrival| prompt(&arrival.body)).collect();
    assert_eq!(prompts, names);
}

fn prompt(body: &[u8]) -> String {
    let body: serde_json::Value = serde_json::from_slice(body).expect("JSON");
    body["messages"][0]["content"].as_str().expect("a prompt").to_owned()
}
