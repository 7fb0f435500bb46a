//! The words the rest is said in.

use std::time::Duration;

/// A moment on the host's monotonic clock, in nanoseconds since an epoch that all workers of a process share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

impl Time {
    /// The moment `wait` later; the end of time where that would overflow.
    pub fn after(self, wait: Duration) -> Time {
        Time(self.0.saturating_add(u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX)))
    }

    /// How long ago `earlier` was; zero where it is not earlier.
    pub fn since(self, earlier: Time) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// The place of a class in the policy's list: 0 is the most urgent one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClassId(pub u8);

impl ClassId {
    /// As an index into per-class tables.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// A stream as the host numbers it; only valid within one VM, and only while the stream lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u32);

/// One request's claim on its class: given in order of arrival, never reused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// Whole milliseconds of a duration, saturating.
pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
