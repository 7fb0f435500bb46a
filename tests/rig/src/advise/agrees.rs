//! Whether the prediction agrees with measurements: with demos that were run, over sockets and in real time.

use super::grid::Candidate;
use super::input::planned;
use super::run::Setting;
use super::score::{Score, Slo};
use super::trial::Trial;
use crate::demo::{MIX, PRESET};
use crate::envoy::root;
use crate::load::traffic::Mix;
use serde_json::Value;
use std::fs;
use std::time::Duration;

/// What a prediction may be off by.
const WITHIN: f64 = 0.2;

#[test]
fn the_prediction_agrees_with_the_demos_that_were_measured() {
    for seed in 1..=3 {
        let path = root().join(format!("benches/record/2026-11-30-demo-{seed}.json"));
        let record: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        assert_eq!(record["seeds"], serde_json::json!([seed]), "{}", path.display());
        let scenario = &record["figures"]["scenarios"][0];
        let asks = planned(Mix { seed, ..MIX }).unwrap();
        let setting =
            Setting { server: PRESET.spec(), policy: None, workers: 1, hop: Duration::from_micros(300) };
        let slo = Slo { short_first_token: Duration::from_secs(1), long_whole: Duration::from_secs(30) };
        let trial = Trial { asks: &asks, setting, slo };
        let policy = scenario["policy"].to_string();
        let policy = Candidate::read("the policy measured".to_owned(), &policy).unwrap().policy;
        let targets = scenario["targets"].as_array().unwrap();
        let measured = |name: &str| targets.iter().find(|target| target["target"] == name).unwrap();
        compare(seed, "without", &trial.score(None).unwrap(), measured("envoy"));
        compare(seed, "with", &trial.score(Some(&policy)).unwrap(), measured("sluice"));
    }
}

fn compare(seed: u64, run: &str, predicted: &Score, measured: &Value) {
    let Score { short, long, .. } = predicted;
    for (figure, predicted, place) in [
        ("short first token P99", short.first_token.p99, "/short/first_token/p99"),
        ("short whole P99", short.whole.p99, "/short/whole/p99"),
        ("long first token P99", long.first_token.p99, "/long/first_token/p99"),
        ("long whole P99", long.whole.p99, "/long/whole/p99"),
        ("tokens/s", predicted.tokens_per_second, "/tokens_per_second"),
    ] {
        let measured = measured.pointer(place).and_then(Value::as_f64).unwrap();
        let off = predicted / measured - 1.0;
        let said = format!(
            "seed {seed}, {run}, {figure}: {predicted:.3} predicted, {measured:.3} measured, {:+.1} %",
            off * 100.0
        );
        println!("{said}");
        assert!(off.abs() <= WITHIN, "{said}");
    }
}
