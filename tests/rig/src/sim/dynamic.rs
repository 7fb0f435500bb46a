//! Dynamic batching, as classifier and embedding servers do it: requests are collected for a while, run as one batch and
//! end together. No clock.

use anyhow::{Result, ensure};
use clap::ValueEnum;
use std::time::Duration;

/// One server with one instance of its model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Most requests in a batch (Triton's `max_batch_size`, TorchServe's `batch_size`).
    pub max_batch: usize,
    /// How long requests are held for others to join (Triton's `max_queue_delay_microseconds`, TorchServe's
    /// `max_batch_delay`).
    pub max_wait: Duration,
    /// From when on that counts.
    pub waits: Waits,
    /// What every batch costs.
    pub base: Duration,
    /// What each request adds to it.
    pub per_item: Duration,
}

/// When the wait for others begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Waits {
    /// When the oldest request came, as in Triton: after a long batch nobody waits again.
    SinceArrival,
    /// When the idle server takes it out of the queue, as in TorchServe.
    SinceTaken,
}

/// A model whose batches were timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Model {
    /// BERT Base, FP16, sequences of 384 tokens, on an A100 (40 GB): 1.31 ms for one, 51.26 ms for 128.
    BertA100,
    /// The same on a T4: 4.04 ms for one, 458.76 ms for 128.
    BertT4,
}

/// Batch sizes that were timed, and the average latency of each on an A100 and on a T4, in milliseconds. Source: NVIDIA
/// TensorRT, `demo/BERT/README.md`, "Inference performance", BERT Base, sequence length 384, FP16, average.
pub const TIMED: [(usize, f64, f64); 10] = [
    (1, 1.31, 4.04),
    (2, 1.64, 6.61),
    (4, 2.31, 13.02),
    (8, 3.62, 27.81),
    (12, 5.03, 41.84),
    (16, 6.72, 55.31),
    (24, 9.79, 84.11),
    (32, 13.51, 114.90),
    (64, 26.11, 227.73),
    (128, 51.26, 458.76),
];

impl Model {
    /// What a batch costs, and each request in it: the straight line with the least relative error through [`TIMED`].
    pub fn costs(self) -> (Duration, Duration) {
        match self {
            Model::BertA100 => (Duration::from_micros(877), Duration::from_micros(374)),
            Model::BertT4 => (Duration::from_micros(287), Duration::from_micros(3_448)),
        }
    }
}

impl Spec {
    /// How long a batch of this size runs.
    pub fn lasts(&self, size: usize) -> Duration {
        self.base + self.per_item * u32::try_from(size).unwrap_or(u32::MAX)
    }

    /// Requests a second that the server can do when its batches are always full.
    pub fn capacity(&self) -> f64 {
        self.max_batch as f64 / self.lasts(self.max_batch).as_secs_f64()
    }

    /// How long each request takes, from its arrival to the end of its batch. `arrivals` must be in order; an error says
    /// what is wrong with them or with this.
    pub fn latencies(&self, arrivals: &[Duration]) -> Result<Vec<Duration>> {
        ensure!(self.max_batch > 0, "max_batch must be at least 1");
        ensure!(!self.lasts(1).is_zero(), "a batch must cost something");
        ensure!(arrivals.is_sorted(), "the arrivals are not in order of time");
        let mut latencies = Vec::with_capacity(arrivals.len());
        let mut free = Duration::ZERO;
        let mut waiting = arrivals;
        while let Some(&oldest) = waiting.first() {
            let since = match self.waits {
                Waits::SinceArrival => oldest,
                Waits::SinceTaken => oldest.max(free),
            };
            let given_up = since + self.max_wait;
            let full = waiting.get(self.max_batch - 1).copied().unwrap_or(Duration::MAX);
            let begins = given_up.min(full).max(free);
            let come = waiting.iter().take(self.max_batch).take_while(|arrival| **arrival <= begins).count();
            let (batch, rest) = waiting.split_at(come);
            free = begins + self.lasts(come);
            latencies.extend(batch.iter().map(|arrival| free - *arrival));
            waiting = rest;
        }
        Ok(latencies)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPEC: Spec = Spec {
        max_batch: 3,
        max_wait: Duration::from_millis(5),
        waits: Waits::SinceArrival,
        base: Duration::from_millis(10),
        per_item: Duration::from_millis(1),
    };

    fn latencies(spec: Spec, arrivals: &[u64]) -> Vec<u128> {
        let arrivals: Vec<Duration> = arrivals.iter().copied().map(Duration::from_millis).collect();
        spec.latencies(&arrivals).unwrap().iter().map(Duration::as_millis).collect()
    }

    #[test]
    fn a_batch_begins_when_it_is_full_or_its_oldest_has_waited_long_enough() {
        assert_eq!(latencies(SPEC, &[0]), [5 + 11]);
        assert_eq!(latencies(SPEC, &[0, 2]), [5 + 12, 3 + 12]);
        assert_eq!(latencies(SPEC, &[0, 1, 2, 100]), [2 + 13, 1 + 13, 13, 5 + 11]);
        // The fourth comes while the first three run, and has waited long enough when they end.
        assert_eq!(latencies(SPEC, &[0, 1, 2, 3])[3], 12 + 11);
    }

    #[test]
    fn whoever_was_taken_late_waits_once_more_where_that_counts_anew() {
        let spec = Spec { waits: Waits::SinceTaken, ..SPEC };
        assert_eq!(latencies(spec, &[0, 1, 2, 3])[3], 12 + 5 + 11);
    }

    #[test]
    fn without_waiting_or_batching_it_is_a_plain_queue() {
        let spec = Spec { max_batch: 1, max_wait: Duration::ZERO, ..SPEC };
        assert_eq!(latencies(spec, &[0, 1, 50]), [11, 21, 11]);
    }

    #[test]
    fn nobody_is_left_behind_and_batches_pay() {
        let arrivals: Vec<u64> = (0..3_000).map(|n| n * 9 / 2).collect();
        let batched = latencies(SPEC, &arrivals);
        assert_eq!(batched.len(), arrivals.len());
        let single = latencies(Spec { max_batch: 1, ..SPEC }, &arrivals);
        assert!(batched.iter().max().unwrap() * 100 < *single.iter().max().unwrap());
    }

    #[test]
    fn the_costs_are_near_what_was_timed() {
        for (size, a100, t4) in TIMED {
            for (model, timed) in [(Model::BertA100, a100), (Model::BertT4, t4)] {
                let (base, per_item) = model.costs();
                let model_ms = Spec { base, per_item, ..SPEC }.lasts(size).as_secs_f64() * 1e3;
                assert!((model_ms / timed - 1.0).abs() < 0.09, "{model:?} {size}: {model_ms} {timed}");
            }
        }
    }
}
