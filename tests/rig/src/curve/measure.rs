//! What a server of OpenAI's chat needs for a step and for a prompt, seen from outside.

use super::fit::Curve;
use crate::load::client::{Options, send_as};
use crate::load::request::{CHARS_PER_TOKEN, Style};
use crate::load::traffic::{Class, Planned};
use anyhow::{Context, Result, anyhow, ensure};
use indicatif::ProgressBar;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use reqwest::Client;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Lengths of prompts, in what counts as tokens here; the server says how many it takes them for.
const PROMPTS: [usize; 5] = [64, 256, 512, 1_024, 1_536];
/// A prompt that is no matter beside its answer.
const SMALL: usize = 8;
/// Tokens of an answer whose steps are looked at, and how many of them at either end are not: there others still enter,
/// or have left.
const ANSWER: u32 = 64;
const MARGIN: usize = 12;
/// The same where nothing else runs.
const ALONE_ANSWER: u32 = 24;

/// Measures `url`, a path of OpenAI's chat: steps of 1 to `most` sequences, prompts of several lengths, and steps
/// beside them; each `repeats` times, of which the median counts.
pub async fn measure(url: &str, most: u32, repeats: usize, bar: &ProgressBar) -> Result<Curve> {
    let options = Options { keep_alive: false, exact: false, ..Options::default() };
    let mut server = Server { url, http: options.client()?, options, random: ChaCha8Rng::seed_from_u64(1) };
    bar.set_length((most as usize + 2 * PROMPTS.len()) as u64);
    // The first request may find a server that is not awake.
    server.steps(1, SMALL, ALONE_ANSWER).await?;
    let mut curve = Curve::default();
    for sequences in 1..=most {
        let mut steps = Vec::new();
        for _ in 0..repeats {
            steps.extend(server.steps(sequences, SMALL, ANSWER).await?);
        }
        curve.steps.push((sequences, median(steps).context("answers without tokens")?));
        bar.inc(1);
    }
    for prompt in PROMPTS {
        let (mut tokens, mut times, mut steps) = (0, Vec::new(), Vec::new());
        for _ in 0..repeats {
            let (read, time) = server.reads(prompt).await?;
            tokens = read;
            times.push(time);
            steps.extend(server.steps(1, prompt, ALONE_ANSWER).await?);
        }
        curve.prompts.push((tokens, median(times).context("no prompt was read")?));
        bar.inc(1);
        curve.contexts.push((tokens, median(steps).context("answers without tokens")?));
        bar.inc(1);
    }
    Ok(curve)
}

struct Server<'a> {
    url: &'a str,
    http: Client,
    options: Options,
    random: ChaCha8Rng,
}

impl Server<'_> {
    /// What a step takes in each of so many answers at once: the mean, since tokens that come late on a busy machine
    /// are followed by some that come at once. The steps at an answer's ends are left out.
    async fn steps(&mut self, sequences: u32, prompt: usize, answer: u32) -> Result<Vec<Duration>> {
        let mut under_way = JoinSet::new();
        for _ in 0..sequences {
            let body = self.body(true, prompt, answer);
            let planned = Planned { at: Duration::ZERO, class: Class::Short, output_tokens: answer, body };
            let (options, http, url) = (self.options.clone(), self.http.clone(), self.url.to_owned());
            under_way.spawn(async move { send_as(&options, &http, &url, &planned, Instant::now()).await });
        }
        let mut steps = Vec::new();
        for outcome in under_way.join_all().await {
            let served = outcome.result.map_err(|failure| anyhow!("{}: {failure}", self.url))?;
            let margin = if sequences > 1 { MARGIN } else { 1 };
            let end = served.gaps.len().saturating_sub(margin);
            let gaps = served.gaps.get(margin..end).unwrap_or_default();
            steps.extend(gaps.iter().sum::<Duration>().checked_div(gaps.len() as u32));
        }
        Ok(steps)
    }

    /// Sends a prompt for one token: how many tokens the server took it for, and how long that took.
    async fn reads(&mut self, prompt: usize) -> Result<(u32, Duration)> {
        let body = self.body(false, prompt, 1);
        let begun = Instant::now();
        let request = self.http.post(self.url).header("content-type", "application/json").body(body);
        let answer = request.timeout(self.options.timeout).send().await?;
        let status = answer.status();
        let text = answer.text().await?;
        let took = begun.elapsed();
        ensure!(status == 200, "{} answers {status}: {text}", self.url);
        let answer: Value = serde_json::from_str(&text).with_context(|| format!("not JSON: {text}"))?;
        let tokens = answer["usage"]["prompt_tokens"].as_u64().and_then(|tokens| u32::try_from(tokens).ok());
        Ok((tokens.with_context(|| format!("no usage.prompt_tokens: {text}"))?, took))
    }

    fn body(&mut self, stream: bool, prompt: usize, answer: u32) -> String {
        let style = Style { stream, include_usage: true, ignore_eos: true, ..Style::default() };
        uncached(&style.body(&mut self.random, prompt * CHARS_PER_TOKEN, answer))
    }
}

/// The same request, nothing of whose prompt llama.cpp takes from an earlier one.
fn uncached(body: &str) -> String {
    let mut body: Value = serde_json::from_str(body).unwrap_or_default();
    body["cache_prompt"] = json!(false);
    body.to_string()
}

/// In seconds; none where there is nothing.
fn median(mut times: Vec<Duration>) -> Option<f64> {
    times.sort_unstable();
    times.get(times.len() / 2).map(Duration::as_secs_f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::http::ModelServer;
    use crate::sim::preset::Preset;

    #[test]
    fn a_body_stays_what_it_is_but_for_the_cache() {
        let body = uncached(r#"{"messages":[],"max_tokens":3}"#);
        let body: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(body, json!({"messages": [], "max_tokens": 3, "cache_prompt": false}));
    }

    /// Times are not looked at: they are the machine's. What was measured of which length is.
    #[tokio::test]
    async fn all_of_a_server_is_measured() {
        let spec = crate::sim::spec::Spec {
            base: Duration::from_micros(100),
            per_sequence: Duration::ZERO,
            per_prefill_token: Duration::ZERO,
            ..Preset::Gpu.spec()
        };
        let server = ModelServer::start(0, spec).await.unwrap();
        let url = format!("http://{}/v1/chat/completions", server.address());
        let bar = ProgressBar::hidden();
        let curve = measure(&url, 3, 1, &bar).await.unwrap();
        let counts = |points: &[(u32, f64)]| points.iter().map(|point| point.0).collect::<Vec<_>>();
        assert_eq!(counts(&curve.steps), [1, 2, 3]);
        assert_eq!(counts(&curve.prompts), PROMPTS.map(|tokens| tokens as u32));
        assert_eq!(counts(&curve.contexts), counts(&curve.prompts));
        let nobody = measure("http://127.0.0.1:1/v1/chat/completions", 1, 1, &bar).await;
        assert!(nobody.unwrap_err().to_string().contains("unreachable"));
    }
}
