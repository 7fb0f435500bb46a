//! The words the rest is said in.

use std::hash::{BuildHasherDefault, Hasher};
use std::time::Duration;

use hashbrown::HashMap;

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

/// A map by numbers that are counted up, such as streams and tickets: those that come together lie together, and
/// nothing has to be mixed. Not for numbers that a client can choose.
pub type Numbered<K, V> = HashMap<K, V, BuildHasherDefault<AsItIs>>;

/// The hash of a number that is counted up: the number.
#[derive(Debug, Default)]
pub struct AsItIs(u64);

impl Hasher for AsItIs {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(self.0 << 8 | u64::from(*byte)));
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }

    /// The map finds the place by the lowest bits, and tells what it finds there apart by the highest seven, of 64 bits
    /// or of 32.
    fn finish(&self) -> u64 {
        self.0 ^ self.0 << 25 ^ self.0 << 57
    }
}

/// Whole milliseconds of a duration, saturating.
pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hash::BuildHasher;

    #[test]
    fn neighbours_differ_in_place_and_in_tag() {
        let hashes: Vec<u64> = (7000..7128u64)
            .map(|number| BuildHasherDefault::<AsItIs>::default().hash_one(Ticket(number)))
            .collect();
        for part in [|hash: u64| hash & 127, |hash: u64| hash >> 57, |hash: u64| hash >> 25 & 127] {
            let parts: std::collections::BTreeSet<u64> = hashes.iter().map(|hash| part(*hash)).collect();
            assert_eq!(parts.len(), 128);
        }
    }
}
