//! How fast a class is served, and what follows from it for those who are refused.

use std::time::Duration;

use super::ledger::Demand;
use crate::core::units::Time;

/// Over how much busy time the rate is averaged.
const WINDOW: Duration = Duration::from_secs(20);
/// What is not worth reckoning anew for: a thousandth of the window changes nothing.
const GRAIN: Duration = Duration::from_millis(20);
/// Below so many answers in the window there is no rate to speak of.
const TOO_FEW: f64 = 0.5;
/// The advice where nothing is known; it grows by the time for which nothing has come.
const UNKNOWN: Duration = Duration::from_secs(5);
/// So many times the usual time between two answers without any, and the rate is not believed.
const SILENCE: f64 = 5.0;
/// SDKs obey the advice exactly: 0 makes one of them spin, and over a minute some give up.
const LEAST: Duration = Duration::from_secs(1);
const MOST: Duration = Duration::from_secs(60);

/// For how long others are taken to be at work still, when this worker last heard of it and has nothing in flight.
const HEARSAY: Duration = Duration::from_secs(1);

/// Whether a class has requests in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Busy {
    /// It has none.
    #[default]
    No,
    /// On other workers only.
    Elsewhere,
    /// On this one.
    Here,
}

/// One worker's answers that ran their course, against the time in which its class had requests in flight, on whichever
/// worker: so the rates of several add up. Both decay alike, so that the rate is that of the last busy time, however
/// long ago.
#[derive(Clone, Debug, Default)]
pub struct DrainRate {
    answers: f64,
    busy_seconds: f64,
    busy: Busy,
    seen: Time,
    /// Whether what ended last had failed.
    failing: bool,
    /// Since when nothing has come: the last answer, or the end of idleness where that is later and work went well
    /// before it. Requests that fail at once leave nothing but idleness behind, and that does not end an outage.
    since: Time,
}

impl DrainRate {
    /// Takes note of whether requests are in flight from `now` on.
    pub fn note(&mut self, now: Time, busy: Busy) {
        let passed = now.since(self.seen);
        if busy == self.busy && passed < GRAIN {
            return;
        }
        let decay = |time: Duration| (-time.as_secs_f64() / WINDOW.as_secs_f64()).exp();
        let kept = decay(passed);
        self.answers *= kept;
        self.busy_seconds *= kept;
        let busy_kept = match self.busy {
            Busy::No => 1.0,
            Busy::Elsewhere if passed > HEARSAY => decay(HEARSAY),
            Busy::Elsewhere | Busy::Here => kept,
        };
        self.busy_seconds += WINDOW.as_secs_f64() * (1.0 - busy_kept);
        let begins = self.busy != Busy::Here && busy == Busy::Here;
        if begins && !(self.failing && passed < MOST) {
            self.since = now;
        }
        self.busy = busy;
        self.seen = now;
    }

    /// Counts one answer below 500 that ran its course; others say nothing about how fast work is done.
    pub fn answered(&mut self, now: Time) {
        self.note(now, self.busy);
        self.answers += 1.0;
        self.failing = false;
        self.since = now;
    }

    /// A request has failed: until one is answered, it is an outage.
    pub fn failed(&mut self) {
        self.failing = true;
    }

    /// Whether others have to know of it although nothing is in flight.
    pub fn is_known(&self) -> bool {
        self.failing || self.per_second() > 0.0
    }

    /// Answers a second as of the last note; 0 where too few have come to tell.
    pub fn per_second(&self) -> f64 {
        if self.answers < TOO_FEW { 0.0 } else { self.answers / self.busy_seconds.max(0.001) }
    }

    /// Since when nothing has come.
    pub fn since(&self) -> Time {
        self.since
    }
}

/// When a newcomer should come back: 1 to 60 s, spread by `chance` (any value), since a refused burst that obeyed one
/// number would come back as a burst.
pub fn retry_after(demand: &Demand, now: Time, chance: u64) -> Duration {
    // Who has never served anything may have been idle all the time.
    let silence = if demand.since == Time::default() { Duration::ZERO } else { now.since(demand.since) };
    let wait = if demand.per_second > 0.0 {
        let seconds = (f64::from(demand.waiting) + 1.0) / demand.per_second;
        let wait = Duration::from_secs_f64(seconds.min(MOST.as_secs_f64()));
        // Far beyond the usual time between two answers, the rate is that of a server that does not answer any more.
        let usual = Duration::from_secs_f64((SILENCE / demand.per_second).min(MOST.as_secs_f64()));
        if silence > usual { wait.max(silence) } else { wait }
    } else {
        UNKNOWN.saturating_add(silence)
    };
    let wait = wait.clamp(LEAST, MOST);
    let spread = (wait / 2).max(LEAST);
    let share = Duration::from_nanos(chance % u64::try_from(spread.as_nanos()).unwrap_or(1).max(1));
    if wait + spread > MOST { MOST - share } else { wait + share }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: f64) -> Time {
        Time::default().after(Duration::from_secs_f64(seconds))
    }

    fn steady(seconds: u32) -> DrainRate {
        let mut rate = DrainRate::default();
        rate.note(at(0.0), Busy::Here);
        (1..=seconds * 10).for_each(|n| rate.answered(at(f64::from(n) / 10.0)));
        rate
    }

    #[test]
    fn a_steady_drain_is_known_early_and_after_idleness() {
        for seconds in [2, 20, 100] {
            let mut rate = steady(seconds);
            assert!((9.0..11.5).contains(&rate.per_second()), "{seconds} s: {}", rate.per_second());
            rate.note(at(f64::from(seconds)), Busy::No);
            rate.note(at(f64::from(seconds) + 15.0), Busy::Here);
            assert!((9.0..11.5).contains(&rate.per_second()) || seconds == 2, "{}", rate.per_second());
        }
    }

    #[test]
    fn rates_of_workers_that_are_busy_by_turns_add_up() {
        let mut workers = [DrainRate::default(), DrainRate::default(), DrainRate::default()];
        for n in 0..600u32 {
            // One request at a time, for a tenth of a second each, on one worker after the other.
            let (begin, end) = (f64::from(n) / 10.0, f64::from(n + 1) / 10.0);
            let here = &mut workers[n as usize % 3];
            here.note(at(begin), Busy::Here);
            here.answered(at(end));
            here.note(at(end), Busy::Elsewhere);
        }
        let sum: f64 = workers.iter().map(DrainRate::per_second).sum();
        assert!((9.0..11.5).contains(&sum), "{sum}");
        workers[0].note(at(75.0), Busy::Here);
        assert!((2.5..4.0).contains(&workers[0].per_second()), "{}", workers[0].per_second());
    }

    #[test]
    fn an_outage_is_no_drain() {
        let mut rate = steady(20);
        rate.note(at(60.0), Busy::Here);
        assert!(rate.per_second() < 2.0, "{}", rate.per_second());
        rate.note(at(200.0), Busy::Here);
        assert_eq!(rate.per_second(), 0.0);
        assert_eq!(rate.since(), at(20.0));
    }

    #[test]
    fn an_outage_is_one_however_fast_requests_fail() {
        let mut rate = DrainRate::default();
        for n in 0..40 {
            rate.note(at(f64::from(n)), Busy::Here);
            rate.failed();
            rate.note(at(f64::from(n) + 0.001), Busy::No);
        }
        assert_eq!(rate.since(), at(0.0));
        rate.note(at(39.0 + 61.0), Busy::Here);
        assert_eq!(rate.since(), at(100.0), "nobody has tried for a minute");
        rate.answered(at(101.0));
        rate.note(at(102.0), Busy::No);
        rate.note(at(103.0), Busy::Here);
        assert_eq!(rate.since(), at(103.0), "all is well again");
    }

    #[test]
    fn without_answers_the_advice_grows_from_5_to_60_seconds() {
        let demand = Demand { since: at(100.0), ..Demand::default() };
        assert_eq!(retry_after(&demand, at(100.0), 0), Duration::from_secs(5));
        assert_eq!(retry_after(&demand, at(120.0), 0), Duration::from_secs(25));
        assert_eq!(retry_after(&demand, at(900.0), 0), Duration::from_secs(60));
    }

    #[test]
    fn who_never_served_anything_is_not_taken_for_broken() {
        assert_eq!(retry_after(&Demand::default(), at(5000.0), 0), Duration::from_secs(5));
    }

    #[test]
    fn a_silence_much_longer_than_usual_is_an_outage() {
        let demand = Demand { waiting: 9, per_second: 10.0, since: at(100.0), ..Demand::default() };
        assert_eq!(retry_after(&demand, at(100.4), 0), Duration::from_secs(1));
        assert_eq!(retry_after(&demand, at(108.0), 0), Duration::from_secs(8));
    }

    #[test]
    fn the_advice_is_spread_and_stays_within_a_second_and_a_minute() {
        for waiting in [0, 1, 10, 1000] {
            let demand = Demand { waiting, per_second: 2.0, since: at(1.0), ..Demand::default() };
            let advice = |n: u64| retry_after(&demand, at(1.0), n.wrapping_mul(0x9E37_79B9_7F4A_7C15));
            let waits: Vec<_> = (0..50).map(advice).collect();
            assert!(waits.iter().all(|wait| (LEAST..=MOST).contains(wait)), "{waits:?}");
            let (first, last) = (waits.iter().min().unwrap(), waits.iter().max().unwrap());
            assert!(*last - *first > Duration::from_millis(500), "{waits:?}");
        }
    }
}
