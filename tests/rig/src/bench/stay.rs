//! A request's stay in a slot.

use std::time::Duration;

/// From when to when a slot was used, by whoever's clock.
#[derive(Clone, Copy, Debug)]
pub struct Stay {
    /// Its place among all that came.
    pub turn: usize,
    pub from: Duration,
    pub to: Duration,
}
