//! The sweep over `max_batch` and `max_wait`.

use super::knee::{Trade, knee, largest_within};
use super::{Options, digits, p99, poisson};
use crate::sim::dynamic::Spec;
use anyhow::Result;
use indicatif::ProgressBar;
use std::time::Duration;

/// The table's columns.
pub const HEAD: [&str; 6] =
    ["max_batch", "max_wait, ms", "at most, requests/s", "times single", "load", "P99, ms"];

/// All runs.
pub struct Sweep {
    /// By load, then by `max_wait`, then by `max_batch`.
    pub runs: Vec<Vec<Vec<Run>>>,
}

/// One pair under one load.
pub struct Run {
    pub max_batch: usize,
    pub max_wait_ms: f64,
    /// Requests a second that this batch size can do at most.
    pub capacity: f64,
    /// The load, as a share of that.
    pub share: f64,
    /// In seconds.
    pub p99: f64,
}

/// Tries every pair under every load.
pub fn sweep(options: &Options, bar: &ProgressBar) -> Result<Sweep> {
    let (base, per_item) = options.model.costs();
    let run = |share: f64, max_wait_ms: f64, max_batch: usize| -> Result<Run> {
        let max_wait = Duration::from_secs_f64(max_wait_ms / 1e3);
        let spec = Spec { max_batch, max_wait, waits: options.waits, base, per_item };
        let capacity = spec.capacity();
        let arrivals = poisson(capacity * share, options.requests, options.seed)?;
        Ok(Run { max_batch, max_wait_ms, capacity, share, p99: p99(spec.latencies(&arrivals)?) })
    };
    let mut runs = Vec::new();
    for &share in &options.shares {
        let by_wait = options.max_wait_ms.iter().map(|&wait| {
            options.max_batch.iter().map(|&size| run(share, wait, size)).collect::<Result<Vec<Run>>>()
        });
        runs.push(by_wait.collect::<Result<_>>()?);
        bar.inc(1);
    }
    Ok(Sweep { runs })
}

impl Sweep {
    /// The runs under the highest load, by `max_wait`.
    pub fn highest(&self) -> &[Vec<Run>] {
        self.runs.last().map_or(&[], Vec::as_slice)
    }

    /// The place of the knee between requests a second and P99, for one `max_wait`.
    pub fn knee(runs: &[Run]) -> Option<usize> {
        knee(&trades(runs))
    }

    /// The table, by `max_batch`, then `max_wait`, then load.
    pub fn rows(&self) -> Vec<Vec<String>> {
        let all = || self.runs.iter().flatten().flatten();
        let single = all().next().map_or(f64::NAN, |run| run.capacity);
        let mut runs: Vec<&Run> = all().collect();
        runs.sort_by(|one, other| {
            let order = |run: &Run| (run.max_batch, run.max_wait_ms, run.share);
            order(one).partial_cmp(&order(other)).unwrap_or(std::cmp::Ordering::Equal)
        });
        runs.into_iter().map(|run| run.row(single)).collect()
    }

    /// What the sweep says about the choice.
    pub fn verdict(&self, options: &Options) -> String {
        let lines = self.highest().iter().map(|runs| {
            let wait = runs.first().map_or(f64::NAN, |run| run.max_wait_ms);
            let knee = match Sweep::knee(runs) {
                Some(place) => format!("the knee is at {}", runs[place].max_batch),
                None => "there is no knee".to_owned(),
            };
            let slo = options.model_slo_ms;
            let within = match largest_within(&trades(runs), slo / 1e3) {
                Some(place) => {
                    format!("the largest batch with a P99 within {slo} ms is {}", runs[place].max_batch)
                }
                None => format!("no batch has a P99 within {slo} ms"),
            };
            format!("Holding {wait} ms, {knee}; {within}.")
        });
        let share = options.highest_share() * 100.0;
        format!("At {share:.0} % of what each batch size can do:\n{}", lines.collect::<Vec<_>>().join("\n"))
    }
}

fn trades(runs: &[Run]) -> Vec<Trade> {
    runs.iter().map(|run| Trade { throughput: run.capacity * run.share, p99: run.p99 }).collect()
}

impl Run {
    fn row(&self, single: f64) -> Vec<String> {
        vec![
            self.max_batch.to_string(),
            digits(self.max_wait_ms),
            digits(self.capacity),
            digits(self.capacity / single),
            format!("{:.0} %", self.share * 100.0),
            digits(self.p99 * 1e3),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::options;
    use super::*;

    #[test]
    fn at_low_load_waiting_is_all_that_a_batch_costs() {
        let options = options("rig --shares 0.05 --max-wait-ms 0,20 --max-batch 1,64 --requests 2000");
        let sweep = sweep(&options, &ProgressBar::hidden()).unwrap();
        let [at_once, held] = sweep.highest() else { panic!("two values of max_wait") };
        assert!(held[1].p99 > at_once[1].p99 + 0.015, "{} {}", held[1].p99, at_once[1].p99);
        // A batch of one is full at once.
        assert_eq!(held[0].p99, at_once[0].p99);
        assert_eq!((sweep.rows().len(), sweep.rows()[0].len()), (4, HEAD.len()));
        assert!(sweep.verdict(&options).contains("Holding 20 ms"));
    }
}
