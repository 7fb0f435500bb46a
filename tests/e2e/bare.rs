//! The bare module, by which the benches tell the filter's calls of the host from its own work: it has the filter's
//! effects, or its cost would say nothing about the filter's.

use std::collections::BTreeSet;

use rig::envoy::Config;
use rig::overhead::steps;

use super::RealWorld;
use super::watched::poll;
use crate::stories::words::{CHAT, arrival, chat_body, ok};
use crate::stories::{Arrival, Request, World};

const POLICY: &str =
    r#"{"classes": [{"name": "short", "at_most": {"prompt_chars": 2000}}, {"name": "long"}]}"#;
const LOGGED: [&str; 6] = ["class", "outcome", "prompt_chars", "prompt_tokens", "max_tokens", "queue_ms"];

/// What a request leaves behind.
#[derive(Debug, PartialEq)]
struct Traces {
    cluster: String,
    request_headers: Vec<(String, Vec<u8>)>,
    body: Vec<u8>,
    response_headers: Vec<String>,
    logged: Vec<&'static str>,
}

/// A short request that stays as it is, and a long one whose output limit is missing; then the names that were counted.
fn traces(adapt: impl FnOnce(&mut Config)) -> (Vec<Traces>, BTreeSet<String>) {
    let mut world = RealWorld::start_with(POLICY, adapt);
    let mut traces = Vec::new();
    for (index, (chars, more)) in [(100, r#","max_tokens":256"#), (8000, "")].into_iter().enumerate() {
        let sent = world.send(&Request::post(CHAT, chat_body(&"x".repeat(chars), more)));
        let Arrival { cluster, mut headers, body, .. } = arrival(&mut world, index);
        world.answer(index, ok());
        let response = world.response(sent);
        assert_eq!(response.status, 200, "{}", String::from_utf8_lossy(&response.body));
        // These differ from one request to the next.
        headers.retain(|(name, _)| !["x-request-id", "host"].contains(&name.as_str()));
        let mut response_headers: Vec<String> = response.headers.into_iter().map(|(name, _)| name).collect();
        response_headers.sort();
        let logged = LOGGED.into_iter().filter(|field| world.logged(sent, field) != "-").collect();
        traces.push(Traces { cluster, request_headers: headers, body, response_headers, logged });
    }
    let answered = || -> u64 {
        let count =
            |class| world.metric(&format!("sluice.responses_total.domain.default.class.{class}.code.2xx"));
        ["short", "long"].map(count).iter().sum()
    };
    poll(|| "all answers to be counted".to_owned(), || (answered() == traces.len() as u64).then_some(()));
    let stats = world.envoy.stats().expect("stats");
    let counted = stats.iter().filter(|(name, count)| name.starts_with("wasmcustom.sluice.") && *count > 0);
    let counted = counted.map(|(name, _)| name.to_owned()).filter(|name| name.contains("_total")).collect();
    world.close();
    (traces, counted)
}

#[test]
fn the_bare_module_does_what_the_filter_does() {
    let (filter, counted_by_filter) = traces(|_| ());
    let (bare, counted) = traces(|config| {
        config.module = Config::bare_module().expect("the bare module");
        config.policy = Some(steps::words(steps::STEPS.len() - 1, 1));
    });
    assert_eq!(filter.len(), bare.len());
    for (filter, bare) in filter.into_iter().zip(bare) {
        assert_eq!(bare, filter);
    }
    assert_eq!(counted.len(), 3, "{counted:?}");
    assert!(counted.is_subset(&counted_by_filter), "{counted:?} of {counted_by_filter:?}");
}

#[test]
fn at_its_first_step_the_bare_module_has_no_effect() {
    let mut world = RealWorld::start_with("", |config| {
        config.module = Config::bare_module().expect("the bare module");
    });
    let sent = world.send(&Request::post(CHAT, chat_body("hi", "")));
    let arrival = arrival(&mut world, 0);
    world.answer(0, ok());
    assert!(world.response(sent).headers.iter().all(|(name, _)| !name.starts_with("x-sluice")));
    assert_eq!(arrival.cluster, "llm_long");
    assert!(arrival.headers.iter().all(|(name, _)| !name.starts_with("x-sluice")));
    assert_eq!(arrival.body, chat_body("hi", "").into_bytes());
    world.close();
}
