//! The corpus at the core: every request of it that the body alone decides.

use serde_json::Value;
use sluice::core::body::{BACKENDS, Backend, BadBody, Dialect, dialect, read};
use sluice::core::clamp::{ClampRefusal, Clamped, clamp};
use sluice::core::config;
use sluice::core::paths::Table;
use sluice::core::policy::Limits;

/// Reasons that a body gives; the others are decided before there is one.
const OF_THE_BODY: [&str; 5] = [
    "invalid_body",
    "prompt_too_long",
    "too_many_sequences",
    "max_tokens_too_large",
    "unsupported_background",
];

#[test]
fn every_body_is_judged_as_the_corpus_says() {
    for (name, backend) in BACKENDS {
        let paths = Table::new(dialect::paths(backend));
        let mut judged = 0;
        for line in include_str!("corpus/requests.jsonl").lines() {
            let case: Value = serde_json::from_str(line).unwrap();
            let reason = case["want"]["refuse"]["reason"].as_str();
            let guarded = paths.find(case["path"].as_str().unwrap().as_bytes());
            let Some(dialect) = guarded.filter(|_| case["method"] == "POST") else { continue };
            if case["backend"].as_str().unwrap_or("vllm") != name
                || reason.is_some_and(|reason| !OF_THE_BODY.contains(&reason))
            {
                continue;
            }
            judge(&case, dialect, backend, &body(&case));
            judged += 1;
        }
        assert!(judged >= 10, "only {judged} cases are for {name}");
    }
}

fn judge(case: &Value, dialect: &Dialect, backend: Backend, body: &[u8]) {
    let (id, want) = (&case["id"], &case["want"]);
    let got = answer(dialect, backend, body);
    if let Some(refusal) = want.get("refuse") {
        let (reason, param) =
            got.map(|clamped| panic!("{id}: let through, {:?}", clamped.action)).unwrap_err();
        assert_eq!(reason, refusal["reason"], "{id}");
        if let Some(wanted) = refusal["param"].as_str() {
            assert_eq!(param.as_deref(), Some(wanted), "{id}");
        }
        return;
    }
    let clamped = got.unwrap_or_else(|refused| panic!("{id}: refused, {refused:?}"));
    let after = clamped.prefix.as_ref().map_or(body.to_vec(), |prefix| prefix.apply(body));
    assert_eq!(after.len(), clamped.body_len, "{id}");
    if let Some(text) = want["body"].as_str() {
        assert_eq!(String::from_utf8_lossy(&after), text, "{id}");
    } else if let Some(inject) = want.get("inject") {
        let more = after.len() - body.len();
        let only_inserted =
            (0..=body.len()).any(|at| body[at..] == after[at + more..] && body[..at] == after[..at]);
        let pointer = format!("/{}", inject["member"].as_str().unwrap().replace('.', "/"));
        let value: Value = serde_json::from_slice(&after).unwrap();
        assert!(only_inserted, "{id}: {}", String::from_utf8_lossy(&after));
        assert_eq!(value.pointer(&pointer), Some(&inject["value"]), "{id}");
    } else {
        assert_eq!(want["pass"], true, "{id}");
        assert_eq!(clamped.prefix, None, "{id}");
    }
}

/// What the core makes of a body: bounded, or the reason and the field.
fn answer(
    dialect: &Dialect,
    backend: Backend,
    body: &[u8],
) -> Result<Clamped, (&'static str, Option<String>)> {
    let bad = |bad: BadBody| {
        assert!(!bad.message.is_empty() && bad.at <= body.len());
        ("invalid_body", bad.param)
    };
    clamp(&read(dialect, backend, body).map_err(bad)?, &limits()).map_err(|refusal| match refusal {
        ClampRefusal::Background => ("unsupported_background", Some("background".to_owned())),
        ClampRefusal::TooManySequences { param, .. } => ("too_many_sequences", Some(param.to_owned())),
        ClampRefusal::PromptTooLong { .. } => ("prompt_too_long", None),
        ClampRefusal::NoRoomToThink { param, .. } | ClampRefusal::MaxTokensTooLarge { param, .. } => {
            ("max_tokens_too_large", Some(param.to_owned()))
        }
    })
}

/// The policy that the corpus is written for.
fn limits() -> Limits {
    let policy = br#"{"limits":{"prompt_chars":null,"prompt_tokens":8000,"sequences":8}}"#;
    config::parse(policy).expect("a policy").limits
}

fn body(case: &Value) -> Vec<u8> {
    if let Some(text) = case["body"].as_str() {
        return text.as_bytes().to_vec();
    }
    if let Some(encoded) = case["body_b64"].as_str() {
        return base64(encoded);
    }
    let part = |name: &str| case["body_gen"][name].as_str().unwrap_or_default();
    let count = case["body_gen"]["count"].as_u64().unwrap() as usize;
    let body = [
        part("prefix"),
        &part("unit").repeat(count),
        part("suffix"),
        &part("close_unit").repeat(count),
        part("tail"),
    ];
    body.concat().into_bytes()
}

fn base64(encoded: &str) -> Vec<u8> {
    let digit = |byte: u8| match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let digits: Vec<u8> = encoded.bytes().filter(|&byte| byte != b'=').map(digit).collect();
    let bits = |group: &[u8]| {
        group.iter().fold(0u32, |bits, digit| bits << 6 | u32::from(*digit)) << (6 * (4 - group.len()))
    };
    digits.chunks(4).flat_map(|group| bits(group).to_be_bytes()[1..group.len()].to_vec()).collect()
}
