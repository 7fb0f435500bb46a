//! What test builds do on demand: kill their VM, or hang. Only with the feature `trap`, which no shipped module has.

use super::map;
use super::raw::{self, Map};

/// Obeys `x-sluice-test-trap: now` and `x-sluice-test-stall: <milliseconds>`. To be called first of all, since headers
/// of ours are removed and so that a dead VM has nothing half done.
#[allow(clippy::panic, reason = "to make the VM trap is the point")]
pub fn obey() {
    for (name, value) in map::pairs(&raw::headers(Map::Request).unwrap_or_default()) {
        match name {
            // The header's name in full, as it may not stand in a shipped module: the one compared with ends up as numbers.
            b"x-sluice-test-trap" if value == b"now" => panic!("x-sluice-test-trap: now"),
            b"x-sluice-test-stall" => {
                let text = std::str::from_utf8(value).unwrap_or_default();
                let nanos = text.parse::<u64>().unwrap_or_default().saturating_mul(1_000_000);
                let until = raw::monotonic_nanos().saturating_add(nanos);
                while raw::monotonic_nanos() < until {}
            }
            _ => {}
        }
    }
}
