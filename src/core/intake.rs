//! Bodies on their way in: how many bytes they hold together, and which of them take too long.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::core::buffered::Buffered;
use crate::core::units::{Numbered, StreamId, Time};

/// Bodies being read or parked, and their bytes in Envoy's buffers.
#[derive(Debug)]
pub struct Intake {
    /// What they hold, over all workers.
    pub buffered: Buffered,
    timeout: Duration,
    bodies: Numbered<StreamId, Body>,
    deadlines: BTreeSet<(Time, StreamId)>,
}

#[derive(Debug)]
struct Body {
    bytes: u64,
    /// When it must have ended; `None` once it has.
    until: Option<Time>,
}

impl Intake {
    /// Nothing on its way; at most `limit` bytes together over all workers, `timeout` for one body.
    pub fn new(limit: u64, timeout: Duration) -> Intake {
        Intake {
            buffered: Buffered::new(limit),
            timeout,
            bodies: Numbered::default(),
            deadlines: BTreeSet::new(),
        }
    }

    /// A body is to come.
    pub fn begin(&mut self, now: Time, stream: StreamId) {
        let until = now.after(self.timeout);
        self.bodies.insert(stream, Body { bytes: 0, until: Some(until) });
        self.deadlines.insert((until, stream));
    }

    /// A body has come to `bytes`; whether it has grown.
    pub fn grow(&mut self, stream: StreamId, bytes: u64) -> bool {
        let Some(body) = self.bodies.get_mut(&stream) else { return false };
        let before = std::mem::replace(&mut body.bytes, bytes);
        self.buffered.change(before, bytes);
        bytes > before
    }

    /// A body has ended and will be held, while its request waits, at `bytes`.
    pub fn complete(&mut self, stream: StreamId, bytes: u64) {
        let Some(body) = self.bodies.get_mut(&stream) else { return };
        self.buffered.change(std::mem::replace(&mut body.bytes, bytes), bytes);
        if let Some(until) = body.until.take() {
            self.deadlines.remove(&(until, stream));
        }
    }

    /// A body is held no more: it went on, or was refused. Without effect on one that has left.
    pub fn release(&mut self, stream: StreamId) {
        let Some(body) = self.bodies.remove(&stream) else { return };
        self.buffered.change(body.bytes, 0);
        if let Some(until) = body.until {
            self.deadlines.remove(&(until, stream));
        }
    }

    /// At most `most` bodies that have taken too long; they are forgotten.
    pub fn expire(&mut self, now: Time, most: usize) -> Vec<StreamId> {
        let late: Vec<_> = self.late(now).take(most).collect();
        late.iter().for_each(|stream| self.release(*stream));
        late
    }

    /// Whether [`Intake::expire`] would find something to do.
    pub fn has_overdue(&self, now: Time) -> bool {
        self.late(now).next().is_some()
    }

    /// Streams whose body has not ended, in the order in which they began.
    pub fn unfinished(&self) -> impl Iterator<Item = StreamId> + '_ {
        self.deadlines.iter().map(|(_, stream)| *stream)
    }

    fn late(&self, now: Time) -> impl Iterator<Item = StreamId> + '_ {
        self.deadlines.iter().take_while(move |(until, _)| *until <= now).map(|(_, stream)| *stream)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: StreamId = StreamId(1);
    const B: StreamId = StreamId(2);

    fn at(seconds: u64) -> Time {
        Time::default().after(Duration::from_secs(seconds))
    }

    #[test]
    fn bytes_are_counted_together_and_come_back() {
        let mut intake = Intake::new(100, Duration::from_secs(30));
        intake.begin(at(0), A);
        intake.begin(at(0), B);
        assert!(intake.grow(A, 60));
        assert!(intake.grow(B, 40) && !intake.buffered.is_over());
        assert!(intake.grow(B, 41) && intake.buffered.is_over());
        assert!(!intake.grow(B, 41));
        intake.complete(A, 50);
        assert!(!intake.buffered.is_over());
        intake.release(A);
        intake.release(A);
        assert!(intake.grow(B, 100) && !intake.buffered.is_over());
        intake.release(B);
        assert!(!intake.grow(B, 101) && !intake.buffered.is_over());
    }

    #[test]
    fn only_unfinished_bodies_are_late() {
        let mut intake = Intake::new(100, Duration::from_secs(30));
        intake.begin(at(0), A);
        intake.begin(at(1), B);
        intake.complete(A, 1);
        assert_eq!(intake.unfinished().collect::<Vec<_>>(), [B]);
        assert!(intake.expire(at(30), 32).is_empty());
        assert!(intake.has_overdue(at(31)));
        assert_eq!(intake.expire(at(31), 32), [B]);
        assert!(!intake.has_overdue(at(31)));
    }
}
