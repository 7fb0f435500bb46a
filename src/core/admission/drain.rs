//! How fast a class is served, and what follows from it for those who are refused.

use std::time::Duration;

use crate::core::units::Time;

/// Over how long the rate is averaged.
const WINDOW: Duration = Duration::from_secs(10);
/// Below so many answers in the window there is no rate to speak of.
const TOO_FEW: f64 = 0.5;
/// The advice while no answer has been seen; it grows by the time since the last one.
const UNKNOWN: Duration = Duration::from_secs(5);
/// SDKs obey the advice exactly: 0 makes one of them spin, and over a minute some give up.
const LEAST: Duration = Duration::from_secs(1);
const MOST: Duration = Duration::from_secs(60);

/// Answers that ran their course, as an exponentially decaying count.
#[derive(Clone, Debug)]
pub struct DrainRate {
    answers: f64,
    seen: Time,
    /// The last answer, or when counting began.
    last: Time,
}

impl DrainRate {
    /// Nothing counted yet.
    pub fn new(now: Time) -> DrainRate {
        DrainRate { answers: 0.0, seen: now, last: now }
    }

    /// Counts one answer below 500 that ran its course; others say nothing about how fast work is done.
    pub fn answered(&mut self, now: Time) {
        self.answers = self.decayed(now) + 1.0;
        self.seen = now;
        self.last = now;
    }

    /// When a place behind `ahead` waiting requests will be free: 1 to 60 s, spread by `chance` (any value), since a
    /// refused burst that obeyed one number would come back as a burst.
    pub fn retry_after(&self, now: Time, ahead: usize, chance: u64) -> Duration {
        let answers = self.decayed(now);
        let wait = if answers < TOO_FEW {
            UNKNOWN.saturating_add(now.since(self.last))
        } else {
            #[expect(clippy::cast_precision_loss, reason = "queue lengths are far below 2^52")]
            let seconds = (ahead as f64 + 1.0) * WINDOW.as_secs_f64() / answers;
            Duration::from_secs_f64(seconds.min(MOST.as_secs_f64()))
        };
        let wait = wait.clamp(LEAST, MOST);
        let spread = (wait / 2).max(LEAST);
        let share = Duration::from_nanos(chance % u64::try_from(spread.as_nanos()).unwrap_or(1).max(1));
        if wait + spread > MOST { MOST - share } else { wait + share }
    }

    fn decayed(&self, now: Time) -> f64 {
        self.answers * (-now.since(self.seen).as_secs_f64() / WINDOW.as_secs_f64()).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: f64) -> Time {
        Time::default().after(Duration::from_secs_f64(seconds))
    }

    #[test]
    fn a_steady_drain_predicts_the_wait() {
        let mut rate = DrainRate::new(at(0.0));
        for n in 0..600 {
            rate.answered(at(f64::from(n) / 10.0));
        }
        let wait = rate.retry_after(at(60.0), 99, 0).as_secs_f64();
        assert!((9.0..11.0).contains(&wait), "100 places at 10 a second: {wait}");
    }

    #[test]
    fn without_answers_the_advice_grows_to_a_minute() {
        let rate = DrainRate::new(at(0.0));
        assert_eq!(rate.retry_after(at(0.0), 8, 0), Duration::from_secs(5));
        assert_eq!(rate.retry_after(at(20.0), 8, 0), Duration::from_secs(25));
        assert_eq!(rate.retry_after(at(500.0), 8, 0), Duration::from_secs(60));
    }

    #[test]
    fn the_advice_is_spread_and_stays_within_a_second_and_a_minute() {
        for ahead in [0, 1, 10, 1000] {
            let mut rate = DrainRate::new(at(0.0));
            rate.answered(at(1.0));
            let waits: Vec<_> = (0..50u64)
                .map(|n| rate.retry_after(at(1.0), ahead, n.wrapping_mul(0x9E37_79B9_7F4A_7C15)))
                .collect();
            assert!(waits.iter().all(|w| (LEAST..=MOST).contains(w)), "{waits:?}");
            let (first, last) = (waits.iter().min().unwrap(), waits.iter().max().unwrap());
            assert!(*last - *first > Duration::from_millis(500), "{waits:?}");
        }
    }
}
