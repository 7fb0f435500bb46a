//! The stats of a process by their full names, as all its VMs share them.

use std::collections::BTreeMap;

use super::abi::Status;

/// What a stat is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Counter,
    Gauge,
    Histogram,
}

/// One stat of a VM: the id that the guest holds stands for this.
#[derive(Clone, Debug)]
pub struct Metric {
    pub kind: Kind,
    pub name: String,
}

/// Values of counters and gauges, samples of histograms.
#[derive(Default)]
pub struct Metrics {
    values: BTreeMap<String, u64>,
    samples: BTreeMap<String, Vec<u64>>,
}

impl Metrics {
    /// A counter's or gauge's value; `None` where it was never defined.
    pub fn value(&self, name: &str) -> Option<u64> {
        self.values.get(name).copied()
    }

    /// A histogram's samples in order.
    pub fn samples(&self, name: &str) -> &[u64] {
        self.samples.get(name).map_or(&[], Vec::as_slice)
    }

    /// Every counter and gauge, for a failed test's message.
    pub fn values(&self) -> impl Iterator<Item = (&str, u64)> {
        self.values.iter().map(|(name, value)| (name.as_str(), *value))
    }

    /// Makes the stat exist.
    pub fn define(&mut self, metric: &Metric) {
        match metric.kind {
            Kind::Counter | Kind::Gauge => {
                self.values.entry(metric.name.clone()).or_default();
            }
            Kind::Histogram => {
                self.samples.entry(metric.name.clone()).or_default();
            }
        }
    }

    /// Adds to a counter (over 0 only) or moves a gauge.
    pub fn increment(&mut self, metric: &Metric, offset: i64) -> Status {
        let Some(value) = self.values.get_mut(&metric.name) else { return Status::BadArgument };
        match metric.kind {
            Kind::Counter if offset > 0 => *value += offset.unsigned_abs(),
            Kind::Gauge => *value = value.wrapping_add_signed(offset),
            Kind::Counter | Kind::Histogram => return Status::BadArgument,
        }
        Status::Ok
    }

    /// Adds to a counter, sets a gauge, takes a histogram's sample.
    pub fn record(&mut self, metric: &Metric, value: u64) {
        match metric.kind {
            Kind::Counter => *self.values.entry(metric.name.clone()).or_default() += value,
            Kind::Gauge => {
                self.values.insert(metric.name.clone(), value);
            }
            Kind::Histogram => self.samples.entry(metric.name.clone()).or_default().push(value),
        }
    }
}
