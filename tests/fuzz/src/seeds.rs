//! What fuzzing begins with: the corpus of requests, the shipped policy, and the words that stand in them.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::Value;
use sluice::core::config;

use crate::body::{POLICIES, header};

const CORPUS: &str = include_str!("../../corpus/requests.jsonl");
const POLICY: &str = include_str!("../../../envoy/policy.json");
/// Longer ones teach a mutator nothing that shorter ones do not.
const LARGEST: usize = 4096;

/// A request of the corpus.
pub struct Case {
    pub backend: String,
    pub path: String,
    pub body: Vec<u8>,
}

/// Those with a body of their own that is not generated at length.
pub fn cases() -> impl Iterator<Item = Case> {
    CORPUS.lines().filter_map(|line| {
        let case: Value = serde_json::from_str(line).ok()?;
        let body = match (case["body"].as_str(), case["body_b64"].as_str()) {
            (Some(text), _) => text.as_bytes().to_vec(),
            (None, Some(encoded)) => BASE64.decode(encoded).ok()?,
            (None, None) => return None,
        };
        let word = |key: &str| case[key].as_str().map(str::to_owned);
        let backend = word("backend").unwrap_or_else(|| "vllm".to_owned());
        Some(Case { backend, path: word("path")?, body }).filter(|case| case.body.len() <= LARGEST)
    })
}

/// Bodies for the target of that name, each under a policy of its own.
pub fn bodies() -> Vec<Vec<u8>> {
    let with_policy = |(place, case): (usize, Case)| {
        let policy = u8::try_from(place % POLICIES.len()).ok()?;
        Some([&header(&case.backend, &case.path, policy)?[..], &case.body].concat())
    };
    cases().enumerate().filter_map(with_policy).collect()
}

/// Policies: the shipped one, and one that holds every key.
pub fn policies() -> Vec<Vec<u8>> {
    vec![b"{}".to_vec(), POLICY.as_bytes().to_vec(), EVERY_KEY.as_bytes().to_vec()]
}

const EVERY_KEY: &str = r#"{"backend": "tgi", "limits": {"body_bytes": 1000.0, "buffered_bytes": 2e3,
    "body_timeout": "1.5s", "prompt_chars": null, "prompt_tokens": 8000, "max_tokens": 100, "default_max_tokens": 50,
    "over_max_tokens": "reject", "sequences": 8, "background": true, "media_tokens": 0, "bytes_per_token": 3},
    "pools": [{"name": "gpu", "concurrency": 8, "concurrency_tokens": 9000}], "policies": {},
    "endpoints": [{"path": "/v2/ask", "dialect": "prompt"}, {"path": "/b/", "dialect": "pass"}],
    "unlisted_posts": "reject", "bypass": null, "fairness": {"key": "body:user"}, "enforce_percent": 100,
    "usage": true, "domain": "gpu-1_a", "response_headers": false, "classes": [
    {"name": "a", "at_most": {"prompt_chars": null, "prompt_tokens": 5, "max_tokens": 6}, "pool": "gpu",
     "concurrency": 3, "concurrency_tokens": 4e3, "reserved": 2, "models": ["x", "y*"],
     "slo": {"duration_p99": "10s", "ttft_p99": "250ms"}, "queue": {"capacity": 0, "timeout": "1m",
     "overflow_status": 503, "timeout_status": 429, "promote_after": "10s"}}, {"name": "b"}]}"#;

/// Headers: every path of the corpus, and patience in every unit.
pub fn heads() -> Vec<Vec<u8>> {
    let paths = cases().map(|case| case.path).collect::<BTreeSet<_>>();
    let patience = ["2s", "250ms", "0.25s", "1m", "0s", " 1h ", "-1s", "1.", "99999999999999999999s"];
    let line = |which: u8, value: &str| [&[which], value.as_bytes()].concat();
    let paths = paths.iter().map(|path| line(0, path));
    paths.chain(patience.iter().map(|value| line(1, value))).collect()
}

/// The words of all of these in libFuzzer's notation, so that it need not find them byte by byte.
pub fn dictionary() -> String {
    let mut words: BTreeSet<String> =
        config::keys().iter().flat_map(|key| key.split('.').map(str::to_owned)).collect();
    cases()
        .filter_map(|case| serde_json::from_slice(&case.body).ok())
        .for_each(|body| keys(&body, &mut words));
    let plain = words.iter().map(|word| word.trim_end_matches("[]"));
    let plain = plain.filter(|word| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_graphic()));
    let quoted = plain.filter(|word| !word.contains(['"', '\\'])).map(|word| format!("\"\\\"{word}\\\"\"\n"));
    let spelled = [
        "null",
        "1e3",
        "-1",
        "\\\\u0031",
        "\\\\ud83d",
        "\\\"1_000\\\"",
        "{",
        "}",
        "[",
        "]",
        ":",
        ",",
        "/../",
        "%2F",
        "ms",
        "\\xe2\\x84\\xaa",
    ];
    quoted.chain(spelled.iter().map(|word| format!("\"{word}\"\n"))).collect()
}

fn keys(value: &Value, words: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => members.iter().for_each(|(key, value)| {
            words.insert(key.clone());
            keys(value, words);
        }),
        Value::Array(items) => items.iter().for_each(|item| keys(item, words)),
        _ => {}
    }
}
