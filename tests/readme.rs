//! What README and docs show is what happens: the curls are run against the shipped configuration, and what they print
//! is held against what stands there; so are the metrics.

use std::collections::BTreeSet;
use std::process::Command;

use rig::envoy::{Config, Envoy};
use rig::model::http::ModelServer;
use rig::sim::preset::Preset;

/// Stands for any text within a line.
const ANYTHING: &str = "…";

#[test]
fn the_curls_print_what_the_readme_says() {
    let readme = include_str!("../README.md");
    let examples = examples(readme);
    assert!(examples.len() >= 6, "the README's examples are gone");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let model = runtime.block_on(ModelServer::start(0, Preset::Gpu.spec())).unwrap();
    let mut config = Config::shipped("envoy.yaml").unwrap();
    config.clusters = ["llm_short", "llm_long"].map(|cluster| (cluster.to_owned(), model.address())).into();
    let envoy = Envoy::start(&config).unwrap();
    for (command, want) in examples {
        let command = command.replace("localhost:10000", &envoy.addr().to_string());
        let output = Command::new("sh").args(["-c", &command]).output().unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        let mut lines = printed.lines();
        for line in want {
            let found = lines.any(|printed| matches(printed, line));
            assert!(found, "{command}\nprints\n{printed}\nwithout, or not in its place,\n{line}");
        }
    }
}

#[test]
fn every_refusal_stands_in_the_readme() {
    let readme = include_str!("../README.md");
    for reason in sluice::core::refusal::Reason::all() {
        assert!(readme.contains(&format!("`{}`", reason.name())), "{reason:?}");
    }
}

#[test]
fn every_metric_stands_in_the_docs_and_every_one_there_exists() {
    let docs = include_str!("../docs/metrics.md");
    let mut config = Config::shipped("envoy.yaml").unwrap();
    config.policy = Some(
        r#"{"classes": [{"name": "all", "concurrency": 1, "concurrency_tokens": 9, "slo": {"ttft_p99": "1s", "duration_p99": "9s"}}]}"#.into(),
    );
    let envoy = Envoy::start(&config).unwrap();
    let shown = envoy.admin_get("/stats?filter=sluice").unwrap();
    let name = |line: &str| {
        let name = line.trim().strip_prefix("wasmcustom.")?.split(".domain.").next()?;
        Some(name.to_owned())
    };
    let exist: BTreeSet<String> = shown.lines().filter_map(name).collect();
    let stand: BTreeSet<String> = docs
        .lines()
        .filter_map(|line| Some(line.strip_prefix("| `")?.split('`').next()?.to_owned()))
        .collect();
    let stand: BTreeSet<String> = stand.into_iter().filter(|name| name.starts_with("sluice.")).collect();
    assert_eq!(exist, stand);
}

#[test]
fn every_policy_in_the_readme_and_the_recipes_is_one() {
    for page in [include_str!("../README.md"), include_str!("../docs/recipes.md")] {
        let policies = blocks(page, "json");
        assert!(!policies.is_empty());
        for policy in policies {
            if let Err(mistakes) = sluice::core::config::parse(policy.as_bytes()) {
                panic!("{policy}\n{mistakes}");
            }
        }
    }
}

/// What stands between the fences of `language`.
fn blocks<'a>(text: &'a str, language: &str) -> Vec<&'a str> {
    let fence = format!("```{language}\n");
    text.split(&fence).skip(1).filter_map(|rest| rest.split("```").next()).collect()
}

/// Commands and the lines that they are said to print, from the `console` blocks.
fn examples(text: &str) -> Vec<(String, Vec<&str>)> {
    let mut examples: Vec<(String, Vec<&str>)> = Vec::new();
    let mut within = false;
    for line in text.lines() {
        match (line, line.strip_prefix("$ ")) {
            ("```console", _) => within = true,
            ("```", _) => within = false,
            (_, Some(command)) if within => examples.push((command.to_owned(), Vec::new())),
            _ if within => examples.last_mut().expect("a command comes first").1.push(line),
            _ => {}
        }
    }
    examples
}

/// Whether a printed line is the one shown, in which [`ANYTHING`] stands for any text.
fn matches(printed: &str, shown: &str) -> bool {
    let mut rest = printed;
    let mut pieces = shown.split(ANYTHING).peekable();
    let Some(first) = pieces.next() else { return false };
    let Some(after) = rest.strip_prefix(first) else { return false };
    rest = after;
    while let Some(piece) = pieces.next() {
        let at = if pieces.peek().is_some() { rest.find(piece) } else { rest.rfind(piece) };
        let Some(at) = at else { return false };
        rest = &rest[at + piece.len()..];
    }
    rest.is_empty()
}
