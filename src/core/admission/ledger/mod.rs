//! The ledger: what all workers of the process know together about one domain. One record of shared data, changed by
//! compare-and-swap; each worker writes its own row from its own truth and hands free slots out to whoever is next.

mod codec;
mod handout;
mod record;
mod rules;
mod usage;

pub use handout::Handout;
pub use record::{Demand, Head, Record, Row, Share};
pub use rules::{ClassRule, Connection, Key, Limit, PoolRule, Rules};

use std::time::Duration;

/// A row whose worker has not been heard of for so long counts no more: its VM has failed, or its thread hangs.
pub const LEASE: Duration = Duration::from_secs(3);
/// How often a worker with something in flight or waiting is heard of.
pub const BEAT: Duration = Duration::from_millis(750);
/// A slot handed out and not taken for so long goes to somebody else.
pub const PICKUP: Duration = Duration::from_millis(20);
/// The most waiting requests of a class that a row shows, and so the most that can be handed to it at once.
pub const HEADS: usize = 8;
/// Of how many keys of a class it is known over all workers when they had their turn. Which of more than these comes
/// first is told by each worker's line.
pub const TURNS: usize = 32;
