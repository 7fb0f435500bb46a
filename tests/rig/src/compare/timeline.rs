//! How many run and how many wait, and where, over time: from the `/metrics` of the servers and the stats of Envoy.

use anyhow::Result;
use reqwest::Client;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval};

/// The counts at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Since the watch began.
    pub at: Duration,
    /// Requests in the servers' batches.
    pub running: u64,
    /// Requests in the servers' own lines.
    pub waiting: u64,
    /// Requests that Envoy holds: in the filter's queues, or pending behind circuit breakers.
    pub held: u64,
}

/// Where to look.
#[derive(Clone, Debug)]
pub struct Places {
    /// The model servers; vLLM's names and llama.cpp's are known.
    pub servers: Vec<SocketAddr>,
    /// Envoy's admin pages.
    pub admin: Option<SocketAddr>,
    /// How often.
    pub every: Duration,
}

/// A watch that is kept until it is [ended](Watch::end) or dropped.
pub struct Watch(JoinHandle<()>, tokio::sync::mpsc::UnboundedReceiver<Sample>);

impl Watch {
    /// Begins to look.
    pub fn begin(places: Places) -> Result<Watch> {
        let client = Client::builder().no_proxy().timeout(Duration::from_secs(2)).build()?;
        let (tell, told) = tokio::sync::mpsc::unbounded_channel();
        let task = tokio::spawn(async move {
            let start = Instant::now();
            let mut ticks = interval(places.every);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
            loop {
                ticks.tick().await;
                let at = start.elapsed();
                // Where one of them does not answer in time, a moment is missing.
                let Some(sample) = look(&client, &places).await else { continue };
                if tell.send(Sample { at, ..sample }).is_err() {
                    return;
                }
            }
        });
        Ok(Watch(task, told))
    }

    /// What was seen, in order.
    pub fn end(mut self) -> Vec<Sample> {
        let mut samples = Vec::new();
        while let Ok(sample) = self.1.try_recv() {
            samples.push(sample);
        }
        samples
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// One look at all places; none where one of them does not answer.
async fn look(client: &Client, places: &Places) -> Option<Sample> {
    let mut sample = Sample::default();
    for server in &places.servers {
        let page = page(client, &format!("http://{server}/metrics")).await?;
        sample.running += sum(&page, &["vllm:num_requests_running", "llamacpp:requests_processing"]);
        sample.waiting += sum(&page, &["vllm:num_requests_waiting", "llamacpp:requests_deferred"]);
    }
    if let Some(admin) = places.admin {
        let filter = "sluice.queued|upstream_rq_pending_active";
        let page = page(client, &format!("http://{admin}/stats?filter={filter}")).await?;
        sample.held = page.lines().filter_map(|line| line.rsplit_once(": ")?.1.parse::<u64>().ok()).sum();
    }
    Some(sample)
}

/// Whether a server has nothing to do; one that is too busy to say has not.
pub async fn idle(server: SocketAddr) -> Result<bool> {
    let client = Client::builder().no_proxy().timeout(Duration::from_secs(2)).build()?;
    let places = Places { servers: vec![server], admin: None, every: Duration::ZERO };
    let seen = look(&client, &places).await;
    Ok(seen.is_some_and(|seen| seen.running + seen.waiting == 0))
}

async fn page(client: &Client, url: &str) -> Option<String> {
    client.get(url).send().await.ok()?.text().await.ok()
}

/// The sum over all label sets of the metrics with one of these names, from a page in Prometheus' text format.
fn sum(page: &str, names: &[&str]) -> u64 {
    let value = |line: &str| {
        let (metric, value) = line.rsplit_once(' ')?;
        let name = metric.split('{').next()?;
        names.contains(&name).then(|| value.parse::<f64>().ok()).flatten()
    };
    page.lines().filter_map(value).sum::<f64>() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::http::ModelServer;
    use crate::sim::preset::Preset;

    #[tokio::test]
    async fn a_server_is_idle_when_it_says_so() {
        let server = ModelServer::start(0, Preset::Gpu.spec()).await.unwrap();
        let address = server.address();
        assert!(idle(address).await.unwrap());
        let client = Client::builder().no_proxy().build().unwrap();
        let body = r#"{"messages": [], "max_tokens": 1000, "stream": true}"#;
        let url = format!("http://{address}/v1/chat/completions");
        let _answer = client.post(url).body(body).send().await.unwrap();
        assert!(!idle(address).await.unwrap());
        drop(server);
        assert!(!idle(address).await.unwrap());
    }

    #[test]
    fn metrics_are_summed_by_name() {
        let page = "# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running{a=\"x\"} 2.0\n\
                    vllm:num_requests_running{a=\"y\"} 3\nvllm:num_requests_running_total 9\nllamacpp:requests_deferred 4";
        assert_eq!(sum(page, &["vllm:num_requests_running", "llamacpp:requests_processing"]), 5);
        assert_eq!(sum(page, &["llamacpp:requests_deferred"]), 4);
        assert_eq!(sum("", &["x"]), 0);
    }
}
