//! What the server tells about itself, under vLLM's names.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Written by the engine alone, read by anybody.
#[derive(Debug, Default)]
pub struct Gauges {
    /// Sequences in the batch.
    pub running: AtomicU64,
    /// Sequences in the waiting line.
    pub waiting: AtomicU64,
    /// The longest the waiting line has been.
    pub waiting_peak: AtomicU64,
    /// Prompt tokens taken in since the start.
    pub prompt_tokens: AtomicU64,
    /// Output tokens made since the start.
    pub generation_tokens: AtomicU64,
}

impl Gauges {
    /// Notes the state of the batch.
    pub fn note(&self, running: usize, waiting: usize) {
        self.running.store(running as u64, Relaxed);
        self.waiting.store(waiting as u64, Relaxed);
        self.waiting_peak.fetch_max(waiting as u64, Relaxed);
    }

    /// The text of `/metrics`, in the Prometheus exposition format.
    pub fn exposition(&self, model: &str) -> String {
        let mut text = String::new();
        for (name, kind, value) in [
            ("num_requests_running", "gauge", &self.running),
            ("num_requests_waiting", "gauge", &self.waiting),
            ("prompt_tokens_total", "counter", &self.prompt_tokens),
            ("generation_tokens_total", "counter", &self.generation_tokens),
        ] {
            // Writing into a String cannot fail.
            let _ = writeln!(text, "# TYPE vllm:{name} {kind}");
            let _ = writeln!(text, "vllm:{name}{{model_name=\"{model}\"}} {}", value.load(Relaxed));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_bear_the_names_of_vllm() {
        let gauges = Gauges::default();
        gauges.note(2, 7);
        gauges.note(3, 1);
        let text = gauges.exposition("sim");
        assert!(text.contains("# TYPE vllm:num_requests_running gauge\n"));
        assert!(text.contains("vllm:num_requests_running{model_name=\"sim\"} 3\n"));
        assert!(text.contains("vllm:num_requests_waiting{model_name=\"sim\"} 1\n"));
        assert_eq!(gauges.waiting_peak.load(Relaxed), 7);
    }
}
