//! The limits of one pool, as they stand in its record: the newest configuration's hold for everybody.

use std::time::Duration;

/// A class by its name, so that reordering or reloading a policy keeps its counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClassKey(pub u32);

impl ClassKey {
    /// The key of a class name (FNV-1a).
    pub fn of(name: &str) -> ClassKey {
        ClassKey(
            name.bytes().fold(0x811C_9DC5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)),
        )
    }
}

/// The limits of a pool and of its classes. `MAX` = unbounded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// When the configuration was read; of two the newer one holds.
    pub generation: u64,
    /// Most requests in flight.
    pub concurrency: u32,
    /// Most estimated tokens in flight; one request over it runs alone.
    pub tokens: u64,
    /// The classes, most urgent first.
    pub classes: Vec<ClassRule>,
}

/// The limits of one class. `MAX` = unbounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassRule {
    /// Which class.
    pub class: ClassKey,
    /// Most requests in flight.
    pub concurrency: u32,
    /// Most estimated tokens in flight; one request over it runs alone.
    pub tokens: u64,
    /// Slots of the pool that less urgent classes may not take.
    pub reserved: u32,
    /// Most requests waiting.
    pub capacity: u32,
    /// After this wait a request goes before newer ones of more urgent classes; `None` = never.
    pub promote_after: Option<Duration>,
    /// After this wait a request that does not fit the token budget lets nobody past it.
    pub block_after: Duration,
}

impl Rules {
    /// The place of a class in the order of urgency; one that the newest policy does not know comes last.
    pub fn urgency(&self, class: ClassKey) -> usize {
        self.classes.iter().position(|rule| rule.class == class).unwrap_or(self.classes.len())
    }

    /// Whether `other` comes from a newer configuration.
    pub fn is_older(&self, other: &Rules) -> bool {
        self.generation < other.generation
    }

    /// The rule of a class, if the newest policy knows it.
    pub fn of(&self, class: ClassKey) -> Option<&ClassRule> {
        self.classes.iter().find(|rule| rule.class == class)
    }
}
