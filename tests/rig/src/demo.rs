//! `rig demo`: the same traffic through Envoy without the filter and with it, and what came of it.

use crate::envoy::{Config, Envoy, root};
use crate::load::drive::drive;
use crate::load::outcome::Outcome;
use crate::load::traffic::{Mix, Planned};
use crate::model::http::ModelServer;
use crate::report::summary::Summary;
use crate::report::table::table;
use crate::report::target::targets;
use crate::report::validity::{lateness_warning, objections};
use crate::sim::preset::Preset;
use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use std::fs;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::task::block_in_place;

const PRESET: Preset = Preset::Gpu;
/// Held against the server's figures in docs/demo.md: about 85 % of what it can do.
pub const MIX: Mix =
    Mix { seed: 0, span: Duration::from_secs(42), shorts: 336, single_longs: 24, bursts: 4, burst_longs: 15 };

/// Runs the demo; an error means that the runs cannot be compared.
pub async fn demo(seed: u64) -> Result<()> {
    let plan = Mix { seed, ..MIX }.plan();
    println!(
        "{} requests over {} s, twice, with seed {seed}. docs/demo.md explains the figures.",
        plan.len(),
        42
    );
    let (without, without_summary) = measure("baseline.yaml", None, "without filter", &plan).await?;
    let policy = root().join("envoy/demo-policy.json");
    let policy = fs::read_to_string(&policy).with_context(|| policy.display().to_string())?;
    let (with, with_summary) = measure("envoy.yaml", Some(policy), "with Sluice", &plan).await?;

    println!("\n{}\n", table(&without_summary, &with_summary));
    for target in targets(&without_summary, &with_summary) {
        println!("{target}");
    }
    for (run, outcomes) in [("without filter", &without), ("with Sluice", &with)] {
        if let Some(warning) = lateness_warning(outcomes) {
            println!("warning, {run}: {warning}");
        }
    }
    match objections(&without, &with) {
        objections if objections.is_empty() => Ok(()),
        objections => bail!("the runs cannot be compared: {}", objections.join("; ")),
    }
}

/// One run: a fresh model server, a fresh Envoy before it, the plan.
async fn measure(
    yaml: &str,
    policy: Option<String>,
    name: &'static str,
    plan: &[Planned],
) -> Result<(Vec<Outcome>, Summary)> {
    let server = ModelServer::start(0, PRESET.spec()).await?;
    let clusters = ["llm_short", "llm_long"].map(|cluster| (cluster.to_owned(), server.address())).into();
    let config = Config { policy, clusters, ..Config::shipped(yaml)? };
    let envoy = block_in_place(|| Envoy::start(&config))?;
    let bar = progress(name, plan.len())?;
    let outcomes = drive(plan, &format!("http://{}/v1/chat/completions", envoy.addr()), &bar).await?;
    bar.finish();
    // Asks for a sign of life, and so fails when Envoy died on the way.
    block_in_place(|| envoy.stop()).with_context(|| format!("Envoy did not last through the run {name}"))?;
    let summary = Summary::of(&outcomes, server.gauges().waiting_peak.load(Relaxed));
    Ok((outcomes, summary))
}

/// A bar that counts ended requests; where there is no terminal, only the line that says how long it takes.
fn progress(name: &'static str, requests: usize) -> Result<ProgressBar> {
    println!("{name}: {} s of arrivals, and some more to work them off", MIX.span.as_secs());
    let style = ProgressStyle::with_template("{prefix:>15} {bar:40} {pos}/{len} answered, {elapsed}")?;
    let bar = ProgressBar::new(requests as u64).with_style(style).with_prefix(name);
    bar.enable_steady_tick(Duration::from_millis(250));
    Ok(bar)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::traffic::Class;
    use serde_json::Value;

    fn policy() -> Value {
        serde_json::from_str(&fs::read_to_string(root().join("envoy/demo-policy.json")).unwrap()).unwrap()
    }

    #[test]
    fn nothing_is_won_by_clamping_or_refusing_what_is_too_large() {
        let policy = policy();
        for request in MIX.plan() {
            let body: Value = serde_json::from_str(&request.body).unwrap();
            let chars = body["messages"][0]["content"].as_str().unwrap().len() as u64;
            let tokens = u64::from(request.output_tokens);
            assert!(tokens <= policy["limits"]["max_tokens"].as_u64().unwrap());
            assert!(chars <= policy["limits"]["prompt_chars"].as_u64().unwrap());
            let short = &policy["classes"][0]["at_most"];
            let fits = chars <= short["prompt_chars"].as_u64().unwrap()
                && tokens <= short["max_tokens"].as_u64().unwrap();
            assert_eq!(fits, request.class == Class::Short);
        }
    }

    #[test]
    fn the_classes_share_exactly_what_the_run_without_filter_has() {
        let caps: u64 = policy()["classes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|class| class["concurrency"].as_u64().unwrap())
            .sum();
        assert_eq!(PRESET.spec().max_num_seqs as u64, caps);
    }

    #[test]
    fn the_load_is_high_and_below_what_the_server_can_do() {
        let spec = PRESET.spec();
        let sequences = u32::try_from(spec.max_num_seqs).unwrap();
        let full_step = spec.base + spec.per_sequence * sequences;
        let work = |request: &Planned| {
            let prompt = u32::try_from(request.body.len() / 4).unwrap();
            full_step * request.output_tokens / sequences + spec.per_prefill_token * prompt
        };
        let load = MIX.plan().iter().map(work).sum::<Duration>().as_secs_f64() / MIX.span.as_secs_f64();
        assert!((0.8..0.9).contains(&load), "{load}");
    }
}
