//! Whether this worker has watched the others without a break: who was away cannot tell who else was.

use super::ledger::{LEASE, Row};
use crate::core::units::Time;
use std::time::Duration;

/// A worker is called every 250 ms at the least. One that is not for so long was stopped, with its process or by work.
const BREAK: Duration = Duration::from_secs(1);

/// When this worker was last away.
#[derive(Clone, Copy, Debug)]
pub struct Watch {
    seen: Time,
    left: Time,
    back: Time,
}

impl Watch {
    /// Watches from `now` on.
    pub fn new(now: Time) -> Watch {
        Watch { seen: now, left: Time::default(), back: Time::default() }
    }

    /// The worker has been called.
    pub fn note(&mut self, now: Time) {
        if now.since(self.seen) >= BREAK {
            (self.left, self.back) = (self.seen, now);
        }
        self.seen = now;
    }

    /// Gives a new lease to a row that had one when this worker left: its worker may have been away as long.
    pub fn forgive(&self, row: &mut Row) {
        if row.beat < self.back && row.beat.after(LEASE) > self.left {
            row.beat = self.back;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::default().after(Duration::from_millis(millis))
    }

    #[test]
    fn who_comes_back_gives_others_time_to_come_back_too() {
        let mut watch = Watch::new(at(10_000));
        (0..20).for_each(|n| watch.note(at(10_000 + n * 250)));
        let alive = Row { beat: at(14_700), ..Row::default() };
        let dead = Row { beat: at(11_000), ..Row::default() };
        let forgiven = |watch: &Watch, row: &Row| {
            let mut row = row.clone();
            watch.forgive(&mut row);
            row.beat
        };
        assert_eq!(forgiven(&watch, &alive), alive.beat, "nobody was away");
        watch.note(at(20_000));
        assert_eq!(forgiven(&watch, &alive), at(20_000));
        assert_eq!(forgiven(&watch, &dead), dead.beat, "it was dead before");
        watch.note(at(20_250));
        assert_eq!(forgiven(&watch, &Row { beat: at(20_100), ..Row::default() }), at(20_100));
    }
}
