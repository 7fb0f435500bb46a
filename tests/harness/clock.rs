//! The clocks of a process, which only tests move.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Some date in 2026, in nanoseconds: wall and monotonic time must not be mistaken for each other.
const WALL_AT_START: u64 = 1_780_000_000_000_000_000;
/// The monotonic clock of a machine that has been up for a while, in nanoseconds.
const UPTIME_AT_START: u64 = 1_000_000_000_000;

/// Monotonic and wall time of one process.
#[derive(Default)]
pub struct Clock(AtomicU64);

impl Clock {
    /// Nanoseconds since the process started.
    pub fn elapsed(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    /// Monotonic nanoseconds, as WASI's clock 1 gives them.
    pub fn monotonic(&self) -> u64 {
        UPTIME_AT_START + self.elapsed()
    }

    /// Nanoseconds since 1970.
    pub fn wall(&self) -> u64 {
        WALL_AT_START + self.elapsed()
    }

    /// Moves on to `elapsed` nanoseconds since the start; never back.
    pub fn advance_to(&self, elapsed: u64) {
        self.0.fetch_max(elapsed, Ordering::SeqCst);
    }

    /// The moment `time` from now, in nanoseconds since the start.
    pub fn after(&self, time: Duration) -> u64 {
        self.elapsed() + u64::try_from(time.as_nanos()).expect("less than 584 years")
    }
}
