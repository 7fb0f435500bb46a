//! The policy as written: what is read, what is refused and in which words, and that docs/policy.md says the same.

use std::time::Duration;

mod anything;
mod pools;
mod reference;
mod refused;

use serde_json::{Value, json};
use sluice::core::body::{BACKENDS, dialect};
use sluice::core::config::{self, Mistakes};
use sluice::core::policy::{AtMost, Backend, Class, Fairness, Limits, OverMaxTokens, Policy, Queue, Slo};

fn parse(json: &Value) -> Result<Policy, Mistakes> {
    config::parse(json.to_string().as_bytes())
}

fn good(json: Value) -> Policy {
    parse(&json).unwrap_or_else(|mistakes| panic!("{json}\n{mistakes}"))
}

/// The mistakes as the log shows them.
fn lines(json: &str) -> Vec<String> {
    let mistakes = config::parse(json.as_bytes()).map(|policy| panic!("{json}\n{policy}")).unwrap_err();
    mistakes.to_string().lines().map(str::to_owned).collect()
}

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// A policy of two classes, and of a pool for each where the path is one of pools, with a value put at a path of
/// [`config::keys`]; `[]` stands for the second class or pool.
fn with(path: &str, value: Value) -> Value {
    let mut policy = json!({"classes": [{"name": "a", "at_most": {"prompt_chars": 5}}, {"name": "b"}]});
    if path.starts_with("pools[]") {
        policy["pools"] = json!([{"name": "p", "concurrency": 4}, {"name": "q", "concurrency": 4, "concurrency_tokens": 9}]);
        policy["classes"][0]["pool"] = json!("p");
        policy["classes"][1]["pool"] = json!("q");
    }
    if path.starts_with("endpoints[]") {
        policy["endpoints"] = json!([{"path": "/a", "dialect": "chat"}, {"path": "/b", "dialect": "pass"}]);
    }
    let mut at = &mut policy;
    for key in path.split('.') {
        at = match key.strip_suffix("[]") {
            Some(list) => &mut at[list][1],
            None => &mut at[key],
        };
    }
    *at = value;
    policy
}

#[test]
fn nothing_is_the_default_policy() {
    let queue = |capacity, timeout, promote_after| Queue {
        capacity,
        timeout: secs(timeout),
        overflow_status: 429,
        timeout_status: 503,
        promote_after,
    };
    let policy = Policy {
        backend: Backend::Vllm,
        limits: Limits {
            body_bytes: 8_388_608,
            buffered_bytes: 268_435_456,
            body_timeout: secs(30),
            prompt_chars: Some(100_000),
            prompt_tokens: None,
            max_tokens: 1024,
            default_max_tokens: 256,
            over_max_tokens: OverMaxTokens::Clamp,
            sequences: 64,
            background: false,
            media_tokens: 1000,
            bytes_per_token: 4.0,
        },
        pools: vec![],
        fairness: None,
        classes: vec![
            Class {
                name: "short".into(),
                at_most: AtMost { prompt_chars: Some(2000), prompt_tokens: None, max_tokens: Some(256) },
                models: vec![],
                pool: None,
                concurrency: Some(64),
                concurrency_tokens: None,
                reserved: 0,
                queue: queue(256, 5, None),
                slo: Slo::default(),
            },
            Class {
                name: "long".into(),
                at_most: AtMost::default(),
                models: vec![],
                pool: None,
                concurrency: Some(16),
                concurrency_tokens: None,
                reserved: 0,
                queue: queue(64, 30, Some(secs(15))),
                slo: Slo::default(),
            },
        ],
        domain: "default".into(),
        endpoints: vec![],
        reject_unlisted: false,
        response_headers: true,
    };
    for text in ["", " \n", "{}", "\t{ }\n", r#"{"limits":{}}"#] {
        assert_eq!(config::parse(text.as_bytes()).as_ref(), Ok(&policy), "{text:?}");
    }
    assert_eq!(
        policy.to_string(),
        "domain default, backend vllm, classes short (concurrency 64, queue 256 for 5s), \
         long (concurrency 16, queue 64 for 30s); max_tokens 1024 (clamp), default 256, prompt_chars 100000, \
         prompt_tokens unbounded, sequences 64; body_bytes 8388608 within 30s, buffered_bytes 268435456"
    );
}

#[test]
fn a_bare_class_has_the_defaults_of_any_class() {
    let policy = good(
        json!({"classes": [{"name": "a", "models": ["m-*"]}, {"name": "b", "queue": {"timeout": "8s"}}]}),
    );
    let [a, b] = policy.classes.as_slice() else { panic!("{policy}") };
    assert_eq!((a.concurrency, a.queue.capacity, a.queue.timeout), (None, 256, secs(5)));
    assert_eq!((a.queue.overflow_status, a.queue.timeout_status), (429, 503));
    assert_eq!((a.queue.promote_after, b.queue.promote_after), (None, Some(secs(4))));
    assert_eq!(
        (b.queue.capacity, b.at_most.clone(), b.slo.clone()),
        (256, AtMost::default(), Slo::default())
    );
    assert_eq!(a.models, ["m-*"]);
}

#[test]
fn every_key_is_kept() {
    let policy = good(json!({
        "backend": "vllm",
        "limits": {
            "body_bytes": 1000.0, "buffered_bytes": 2e3, "body_timeout": "1.5s", "prompt_chars": null,
            "prompt_tokens": 8000.0, "max_tokens": 100, "default_max_tokens": 50.0, "over_max_tokens": "reject",
            "sequences": 8, "background": true, "media_tokens": 0, "bytes_per_token": 3
        },
        "pools": [{"name": "gpu", "concurrency": 8.0, "concurrency_tokens": 9000.0}],
        "policies": {}, "endpoints": [{"path": "/v2/ask", "dialect": "prompt"}, {"path": "/b/", "dialect": "pass"}],
        "unlisted_posts": "reject", "bypass": null, "fairness": {"key": "body:user"},
        "enforce_percent": 100.0, "usage": true, "domain": "gpu-1_a", "response_headers": false,
        "classes": [
            {"name": "a", "at_most": {"prompt_chars": null, "prompt_tokens": 5.0, "max_tokens": 6}, "pool": "gpu",
             "concurrency": 3.0, "concurrency_tokens": 4e3, "reserved": 2.0, "models": ["x", "y*"],
             "slo": {"duration_p99": "10s", "ttft_p99": "250ms"}},
            {"name": "b", "concurrency": null, "queue": {"capacity": 0, "timeout": "1m", "overflow_status": 503.0,
             "timeout_status": 429, "promote_after": "10s"}},
        ]
    }));
    let Limits { body_bytes, buffered_bytes, body_timeout, prompt_chars, prompt_tokens, .. } = policy.limits;
    assert_eq!((body_bytes, buffered_bytes, body_timeout), (1000, 2000, Duration::from_millis(1500)));
    assert_eq!((prompt_chars, prompt_tokens), (None, Some(8000)));
    let Limits { max_tokens, default_max_tokens, over_max_tokens, sequences, background, .. } = policy.limits;
    assert_eq!((max_tokens, default_max_tokens, over_max_tokens), (100, 50, OverMaxTokens::Reject));
    assert_eq!((sequences, background), (8, true));
    assert_eq!((policy.limits.media_tokens, policy.limits.bytes_per_token), (0, 3.0));
    assert_eq!((policy.domain.as_str(), policy.response_headers), ("gpu-1_a", false));
    let [gpu] = policy.pools.as_slice() else { panic!("{policy}") };
    assert_eq!((gpu.name.as_str(), gpu.concurrency, gpu.concurrency_tokens), ("gpu", Some(8), Some(9000)));
    assert_eq!(policy.fairness, Some(Fairness::User));
    let [a, b] = policy.classes.as_slice() else { panic!("{policy}") };
    assert_eq!((a.pool.as_deref(), a.concurrency_tokens, a.reserved), (Some("gpu"), Some(4000), 2));
    assert_eq!((b.pool.as_deref(), b.concurrency_tokens, b.reserved), (None, None, 0));
    assert_eq!(a.at_most, AtMost { prompt_chars: None, prompt_tokens: Some(5), max_tokens: Some(6) });
    assert_eq!(a.slo, Slo { duration_p99: Some(secs(10)), ttft_p99: Some(Duration::from_millis(250)) });
    assert_eq!((a.concurrency, a.models.len(), b.concurrency), (Some(3), 2, None));
    assert_eq!((b.queue.capacity, b.queue.timeout, b.queue.promote_after), (0, secs(60), Some(secs(10))));
    assert_eq!((b.queue.overflow_status, b.queue.timeout_status), (503, 429));
    let [ask, pass] = policy.endpoints.as_slice() else { panic!("{policy}") };
    assert_eq!((ask.path.as_str(), ask.dialect.map(|dialect| dialect.name)), ("/v2/ask", Some("prompt")));
    assert_eq!((pass.path.as_str(), pass.dialect), ("/b/", None));
    assert!(policy.reject_unlisted);
    let never = good(
        json!({"classes": [{"name": "a", "models": ["m"]}, {"name": "b", "queue": {"promote_after": null}}]}),
    );
    assert_eq!(never.classes[1].queue.promote_after, None);
}

#[test]
fn a_default_gives_way_to_the_bound_that_was_written() {
    assert_eq!(good(json!({"limits": {"max_tokens": 100}})).limits.default_max_tokens, 100);
    assert_eq!(good(json!({"limits": {"buffered_bytes": 1000}})).limits.body_bytes, 1000);
}

#[test]
fn every_backend_is_known() {
    for (name, backend) in BACKENDS {
        let policy = good(json!({"backend": name}));
        assert_eq!(policy.backend, backend);
        assert!(policy.to_string().contains(&format!("backend {name},")), "{policy}");
    }
    // A dialect of several kinds is the backend's own one.
    let strict = good(json!({"backend": "openai", "endpoints": [{"path": "/x", "dialect": "chat"}]}));
    assert_ne!(strict.endpoints[0].dialect, dialect::named("chat", Backend::Vllm));
}
