//! What came of a comparison as JSON, to be kept under `benches/record`.

use super::figures::{ClassFigures, Figures, quantile};
use super::scenario::Results;
use crate::envoy::{Config, root};
use crate::peers::Peer;
use crate::report::record::{Record, UNKNOWN};
use anyhow::Result;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;

/// The record of `results`, with the versions of all that took part or could have.
pub fn of(results: &[Results], seed: u64) -> Record {
    let figures = json!({ "scenarios": results.iter().map(scenario).collect::<Vec<_>>() });
    let mut record = Record::new("Ways to a model server", &[seed], figures);
    if let Some(size) = module_size() {
        record = record.version("filter", &format!("{size} bytes"));
    }
    for peer in Peer::ALL.into_iter().filter(|peer| peer.installed()) {
        record = record.version(peer.name(), peer.version().as_deref().unwrap_or(UNKNOWN));
    }
    record
}

/// Writes it where dated records are kept, under its day and `name`, and says where.
pub fn keep(name: &str, record: &Record) -> Result<PathBuf> {
    let day = record.date.get(..10).unwrap_or(UNKNOWN);
    let path = root().join(format!("benches/record/{day}-{name}.json"));
    record.write(&path)?;
    Ok(path)
}

/// A name that is one of a file, from a command line; nothing for the usual one.
pub fn name(text: &str) -> Result<String, String> {
    let plain = |char: char| char.is_ascii_alphanumeric() || "-_.".contains(char);
    let good = text.chars().all(plain) && !text.starts_with('.');
    good.then(|| text.to_owned()).ok_or_else(|| "letters, digits, -, _ and . make a record's name".to_owned())
}

fn module_size() -> Option<u64> {
    Some(fs::metadata(Config::shipped("envoy.yaml").ok()?.module).ok()?.len())
}

fn scenario(results: &Results) -> Value {
    let reference = results.figures(results.reference);
    let targets = results.targets.iter().map(|played| {
        let mut target = figures(&played.figures);
        target["target"] = json!(played.target.name());
        if let Some(reference) = reference {
            target["ratios"] = ratios(&played.figures, reference);
        }
        target
    });
    json!({
        "scenario": results.name,
        "about": results.about,
        "policy": serde_json::from_str::<Value>(&results.policy).unwrap_or_default(),
        "reference": results.reference.name(),
        "targets": targets.collect::<Vec<_>>(),
        "promises": (results.promises)(results),
        "warnings": results.warnings(),
    })
}

fn figures(figures: &Figures) -> Value {
    json!({
        "short": class(&figures.short),
        "long": class(&figures.long),
        "tokens_per_second": rounded(figures.tokens_per_second),
        "most_waiting_in_server": figures.most_waiting,
        "most_held_before_it": figures.most_held,
    })
}

/// Times in seconds.
fn class(class: &ClassFigures) -> Value {
    let times = |values: &[f64]| {
        let parts = [("p50", 0.5), ("p95", 0.95), ("p99", 0.99)];
        let times = parts.map(|(name, part)| (name.to_owned(), rounded(quantile(values, part))));
        Value::Object(times.into_iter().collect())
    };
    json!({
        "sent": class.sent,
        "served": rounded(class.served()),
        "failures": class.failures.to_string(),
        "first_token": times(&class.first_token),
        "whole": times(&class.whole),
    })
}

fn ratios(figures: &Figures, reference: &Figures) -> Value {
    let p99 = |one: &[f64], other: &[f64]| rounded(quantile(one, 0.99) / quantile(other, 0.99));
    json!({
        "short_first_token_p99": p99(&figures.short.first_token, &reference.short.first_token),
        "short_whole_p99": p99(&figures.short.whole, &reference.short.whole),
        "long_whole_p99": p99(&figures.long.whole, &reference.long.whole),
        "tokens_per_second": rounded(figures.tokens_per_second / reference.tokens_per_second),
    })
}

/// To a tenth of a thousandth; null where there is no such number.
fn rounded(value: f64) -> Value {
    if value.is_finite() { json!((value * 1e4).round() / 1e4) } else { Value::Null }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_kept_where_records_are() {
        assert_eq!((name("real-2").unwrap(), name("").unwrap()), ("real-2".to_owned(), String::new()));
        for text in ["../x", "a/b", ".x", "a b"] {
            assert!(name(text).unwrap_err().contains("letters"), "{text}");
        }
    }
}
