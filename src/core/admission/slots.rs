//! Who holds what: requests in flight by class.
//!
//! The count is this worker's own. It is the seam at which a count over all workers takes its place: everything
//! else asks only [`Slots::take`], [`Slots::give_back`] and [`Slots::free`].

use crate::core::units::ClassId;

/// Requests in flight, by class, and how many there may be.
#[derive(Debug)]
pub struct Slots {
    classes: Vec<Share>,
}

#[derive(Debug)]
struct Share {
    inflight: usize,
    limit: usize,
}

impl Slots {
    /// Slots of classes with these limits; `None` = unbounded.
    pub fn new(limits: impl IntoIterator<Item = Option<usize>>) -> Slots {
        let share = |limit: Option<usize>| Share { inflight: 0, limit: limit.unwrap_or(usize::MAX) };
        Slots { classes: limits.into_iter().map(share).collect() }
    }

    /// Whether a slot of `class` is free.
    pub fn free(&self, class: ClassId) -> bool {
        self.classes.get(class.index()).is_some_and(|share| share.inflight < share.limit)
    }

    /// Takes a slot of `class`; false where none is free.
    pub fn take(&mut self, class: ClassId) -> bool {
        let free = self.classes.get_mut(class.index()).filter(|share| share.inflight < share.limit);
        free.map(|share| share.inflight += 1).is_some()
    }

    /// Gives a slot of `class` back.
    pub fn give_back(&mut self, class: ClassId) {
        if let Some(share) = self.classes.get_mut(class.index()) {
            share.inflight = share.inflight.saturating_sub(1);
        }
    }

    /// Requests of `class` in flight.
    pub fn inflight(&self, class: ClassId) -> usize {
        self.classes.get(class.index()).map_or(0, |share| share.inflight)
    }
}
