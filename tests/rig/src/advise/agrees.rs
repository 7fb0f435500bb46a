//! Whether the prediction agrees with a measurement: with a demo that was run, over sockets and in real time.

use super::grid::Candidate;
use super::input::planned;
use super::run::Setting;
use super::score::{Score, Slo};
use super::trial::Trial;
use crate::envoy::root;
use crate::load::traffic::Mix;
use crate::sim::preset::Preset;
use crate::sim::spec::Spec;
use serde::Deserialize;
use serde_json::Value;
use std::fs;
use std::time::Duration;

/// What a prediction may be off by.
const WITHIN: f64 = 0.2;

#[derive(Deserialize)]
struct Record {
    server: Server,
    mix: Plan,
    policy: Value,
    without: Figures,
    with: Figures,
}

#[derive(Deserialize)]
struct Server {
    max_num_seqs: usize,
    base_us: u64,
    per_sequence_us: u64,
    per_prefill_token_us: u64,
}

#[derive(Deserialize)]
struct Plan {
    seed: u64,
    span_s: u64,
    shorts: usize,
    single_longs: usize,
    bursts: usize,
    burst_longs: usize,
}

#[derive(Deserialize)]
struct Figures {
    short_first_token_p99_s: f64,
    short_whole_p99_s: f64,
    long_first_token_p99_s: f64,
    long_whole_p99_s: f64,
    tokens_per_second: f64,
}

#[test]
fn the_prediction_agrees_with_a_demo_that_was_measured() {
    let record = fs::read_to_string(root().join("benches/record/2026-11-30-demo.json")).unwrap();
    let record: Record = serde_json::from_str(&record).unwrap();
    let Plan { seed, span_s, shorts, single_longs, bursts, burst_longs } = record.mix;
    let span = Duration::from_secs(span_s);
    let asks = planned(Mix { seed, span, shorts, single_longs, bursts, burst_longs }).unwrap();
    let server = Spec {
        max_num_seqs: record.server.max_num_seqs,
        base: Duration::from_micros(record.server.base_us),
        per_sequence: Duration::from_micros(record.server.per_sequence_us),
        per_prefill_token: Duration::from_micros(record.server.per_prefill_token_us),
        ..Preset::Gpu.spec()
    };
    let setting = Setting { server, policy: None, workers: 1, hop: Duration::from_micros(300) };
    let slo = Slo { short_first_token: Duration::from_secs(1), long_whole: Duration::from_secs(30) };
    let trial = Trial { asks: &asks, setting, slo };
    let policy =
        Candidate::read("the policy measured".to_owned(), &record.policy.to_string()).unwrap().policy;
    compare("without", &trial.score(None).unwrap(), &record.without);
    compare("with", &trial.score(Some(&policy)).unwrap(), &record.with);
}

fn compare(run: &str, predicted: &Score, measured: &Figures) {
    let Score { short, long, .. } = predicted;
    for (figure, predicted, measured) in [
        ("short first token P99", short.first_token.p99, measured.short_first_token_p99_s),
        ("short whole P99", short.whole.p99, measured.short_whole_p99_s),
        ("long first token P99", long.first_token.p99, measured.long_first_token_p99_s),
        ("long whole P99", long.whole.p99, measured.long_whole_p99_s),
        ("tokens/s", predicted.tokens_per_second, measured.tokens_per_second),
    ] {
        let off = predicted / measured - 1.0;
        println!("{run}, {figure}: {predicted:.3} predicted, {measured:.3} measured, {:+.1} %", off * 100.0);
        assert!(off.abs() <= WITHIN, "{run}, {figure}: {predicted:.3} predicted, {measured:.3} measured");
    }
}
