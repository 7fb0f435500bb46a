//! What the server tells about itself, under vLLM's names and with its labels and buckets.

use super::http::MODEL;
use crate::sim::cluster::Cluster;
use crate::sim::job::Stats;
use anyhow::Result;
use prometheus::{
    Encoder as _, Gauge, Histogram, HistogramOpts, IntCounter, IntGauge, Opts, Registry, TextEncoder,
};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// Written by the engine alone, read by anybody.
#[derive(Debug)]
pub struct Gauges {
    /// The longest the waiting line has been.
    pub waiting_peak: AtomicU64,
    /// From a request's arrival to its leaving the line.
    pub queue_time: Histogram,
    /// From its arrival to its first token.
    pub first_token: Histogram,
    /// From one of its tokens to the next.
    pub inter_token: Histogram,
    /// From its arrival to its last token.
    pub whole: Histogram,
    running: IntGauge,
    waiting: IntGauge,
    kv_usage: Gauge,
    prompt_tokens: IntCounter,
    generation_tokens: IntCounter,
    preemptions: IntCounter,
    prefix_queries: IntCounter,
    prefix_hits: IntCounter,
    finished: IntCounter,
    /// What of the batch's own counts is in the counters already.
    counted: Mutex<Stats>,
    registry: Registry,
}

/// Upper bounds of vLLM's buckets, in seconds (`vllm/v1/metrics/loggers.py`).
const FIRST_TOKEN: [f64; 22] = [
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0,
    80.0, 160.0, 640.0, 2_560.0,
];
const INTER_TOKEN: [f64; 19] = [
    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0,
];
const REQUEST: [f64; 21] = [
    0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0, 480.0,
    960.0, 1_920.0, 7_680.0,
];

impl Gauges {
    /// All at zero. An error: a name or a label that Prometheus does not allow.
    pub fn new() -> Result<Gauges> {
        let registry = Registry::new();
        let gauge = |name: &str, help: &str| -> Result<IntGauge> {
            let gauge = IntGauge::with_opts(options(name, help))?;
            registry.register(Box::new(gauge.clone()))?;
            Ok(gauge)
        };
        let counter = |name: &str, help: &str| -> Result<IntCounter> {
            let counter = IntCounter::with_opts(options(name, help))?;
            registry.register(Box::new(counter.clone()))?;
            Ok(counter)
        };
        let histogram = |name: &str, help: &str, buckets: &[f64]| -> Result<Histogram> {
            let options = HistogramOpts { common_opts: options(name, help), buckets: buckets.to_vec() };
            let histogram = Histogram::with_opts(options)?;
            registry.register(Box::new(histogram.clone()))?;
            Ok(histogram)
        };
        let kv_usage =
            Gauge::with_opts(options("kv_cache_usage_perc", "KV-cache usage, 1 means all blocks"))?;
        registry.register(Box::new(kv_usage.clone()))?;
        let finished = options("request_success_total", "Requests answered to their end");
        let finished = IntCounter::with_opts(finished.const_label("finished_reason", "length"))?;
        registry.register(Box::new(finished.clone()))?;
        Ok(Gauges {
            waiting_peak: AtomicU64::new(0),
            queue_time: histogram("request_queue_time_seconds", "Time in the waiting line", &REQUEST)?,
            first_token: histogram("time_to_first_token_seconds", "Time to the first token", &FIRST_TOKEN)?,
            inter_token: histogram("inter_token_latency_seconds", "Time between two tokens", &INTER_TOKEN)?,
            whole: histogram("e2e_request_latency_seconds", "Time to the last token", &REQUEST)?,
            running: gauge("num_requests_running", "Requests in the batch")?,
            waiting: gauge("num_requests_waiting", "Requests in the waiting line")?,
            kv_usage,
            prompt_tokens: counter("prompt_tokens_total", "Tokens of prompts that entered the batch")?,
            generation_tokens: counter("generation_tokens_total", "Tokens made")?,
            preemptions: counter("num_preemptions_total", "Requests that lost their KV blocks to others")?,
            prefix_queries: counter("prefix_cache_queries_total", "Tokens looked for in the prefix cache")?,
            prefix_hits: counter("prefix_cache_hits_total", "Tokens found in the prefix cache")?,
            finished,
            counted: Mutex::default(),
            registry,
        })
    }

    /// Notes the state of the batches.
    pub fn note<T>(&self, cluster: &Cluster<T>) {
        self.running.set(cluster.running() as i64);
        self.waiting.set(cluster.waiting() as i64);
        self.waiting_peak.fetch_max(cluster.waiting() as u64, Relaxed);
        self.kv_usage.set(cluster.kv_usage());
        let stats = cluster.stats();
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        for (counter, now, before) in [
            (&self.prompt_tokens, stats.prompt_tokens, counted.prompt_tokens),
            (&self.generation_tokens, stats.generation_tokens, counted.generation_tokens),
            (&self.preemptions, stats.preemptions, counted.preemptions),
            (&self.prefix_queries, stats.prefix_queries, counted.prefix_queries),
            (&self.prefix_hits, stats.prefix_hits, counted.prefix_hits),
        ] {
            counter.inc_by(now - before);
        }
        *counted = stats;
    }

    /// Counts a request that was answered to its end.
    pub fn finish(&self) {
        self.finished.inc();
    }

    /// The text of `/metrics`, in the Prometheus exposition format.
    pub fn exposition(&self) -> Result<String> {
        let mut text = Vec::new();
        TextEncoder::new().encode(&self.registry.gather(), &mut text)?;
        Ok(String::from_utf8(text)?)
    }
}

fn options(name: &str, help: &str) -> Opts {
    Opts::new(format!("vllm:{name}"), help).const_label("model_name", MODEL).const_label("engine", "0")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::job::Job;
    use crate::sim::preset::Preset;
    use std::time::Duration;

    #[test]
    fn metrics_bear_the_names_of_vllm() {
        let gauges = Gauges::new().unwrap();
        let mut cluster = Cluster::new(Preset::Cpu.spec()).unwrap();
        for owner in 0..7 {
            cluster.push(owner, Job { prompt_tokens: 1_024, output_tokens: 9, ..Job::default() }).unwrap();
        }
        cluster.advance(Duration::ZERO, |_, _, _| {});
        gauges.note(&cluster);
        gauges.note(&cluster);
        gauges.first_token.observe(0.03);
        let text = gauges.exposition().unwrap();
        let labels = "{engine=\"0\",model_name=\"simulated\"}";
        for line in [
            "# TYPE vllm:num_requests_running gauge".to_owned(),
            format!("vllm:num_requests_running{labels} 2"),
            format!("vllm:num_requests_waiting{labels} 5"),
            format!("vllm:kv_cache_usage_perc{labels} 0.125"),
            "# TYPE vllm:prompt_tokens_total counter".to_owned(),
            format!("vllm:prompt_tokens_total{labels} 2048"),
            format!("vllm:num_preemptions_total{labels} 0"),
            "vllm:time_to_first_token_seconds_bucket{engine=\"0\",model_name=\"simulated\",le=\"0.04\"} 1"
                .to_owned(),
            format!("vllm:request_queue_time_seconds_count{labels} 0"),
        ] {
            assert!(text.contains(&format!("{line}\n")), "{line} is not in {text}");
        }
        assert_eq!(gauges.waiting_peak.load(Relaxed), 5);
    }
}
