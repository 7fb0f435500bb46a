//! Whatever a body holds, in whatever dialect and to whatever backend: once let through it is within bounds.

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use sluice::core::body::{Amount, BACKENDS, Dialect, Sway, dialect, read};
use sluice::core::clamp::clamp;
use sluice::core::config;
use sluice::core::policy::Limits;

const CEILING: u64 = 1024;

const KEYS: [&str; 40] = [
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "max_new_tokens",
    "num_predict",
    "n_predict",
    "MAX_TOKENS",
    "max_to\u{212a}ens",
    "Options",
    "min_tokens",
    "min_new_tokens",
    "budget_tokens",
    "thinking",
    "n",
    "best_of",
    "sampling_params",
    "parameters",
    "options",
    "instances",
    "messages",
    "content",
    "source",
    "data",
    "type",
    "images",
    "prompt",
    "inputs",
    "input",
    "text",
    "system",
    "tools",
    "context",
    "image_data",
    "input_ids",
    "multimodal_data",
    "prompt_string",
    "previous_response_id",
    "stream",
    "model",
    "x",
];

/// Under which no size is refused.
fn limits() -> Limits {
    let policy = br#"{"limits":{"prompt_chars":null,"background":true}}"#;
    Limits { sequences: u64::MAX, ..config::parse(policy).expect("a policy").limits }
}

fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        2 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::from),
        4 => (-3i64..3000).prop_map(Value::from),
        1 => any::<u64>().prop_map(Value::from),
        1 => prop::sample::select(vec![json!("100"), json!("9000"), json!("x"), json!("text"), json!(1e30), json!(1.5)]),
    ];
    leaf.prop_recursive(5, 48, 6, |inner| {
        prop_oneof![
            1 => prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            3 => members(inner).prop_map(Value::from),
        ]
    })
}

fn members(inner: impl Strategy<Value = Value>) -> impl Strategy<Value = Map<String, Value>> {
    let key = prop::sample::select(&KEYS[..]).prop_map(str::to_owned);
    prop::collection::vec((key, inner), 0..6).prop_map(|members| members.into_iter().collect())
}

fn check(dialect: &Dialect, body: &str) -> Result<(), TestCaseError> {
    for (name, backend) in BACKENDS {
        let Ok(view) = read(dialect, backend, body.as_bytes()) else { continue };
        // A budget that cannot be lowered is the only thing to refuse under these limits.
        let Ok(clamped) = clamp(&view, &limits()) else { continue };
        prop_assert!((1..=CEILING).contains(&clamped.max_tokens));
        let after =
            clamped.prefix.as_ref().map_or(body.as_bytes().to_vec(), |prefix| prefix.apply(body.as_bytes()));
        let what = || format!("{dialect:?} to {name}: {body} became {}", String::from_utf8_lossy(&after));
        prop_assert!(serde_json::from_slice::<Value>(&after).is_ok(), "{}", what());
        let again = match read(dialect, backend, &after) {
            Ok(again) => again,
            Err(bad) => return Err(TestCaseError::fail(format!("{}: {bad:?}", what()))),
        };
        for (place, _) in again.holders.iter().enumerate() {
            let mut set =
                again.limits.iter().filter(|limit| limit.holder == place && limit.sway == Sway::Set);
            prop_assert!(set.any(|limit| limit.amount != Amount::Unset), "no limit: {}", what());
        }
        for limit in again.limits.iter().filter(|limit| limit.sway != Sway::Wish) {
            let within = !matches!(limit.amount, Amount::Count(tokens) if tokens > CEILING);
            prop_assert!(within && !limit.quoted, "{limit:?}: {}", what());
        }
        let settled = clamp(&again, &limits()).map(|clamped| (clamped.prefix, clamped.max_tokens));
        prop_assert_eq!(settled, Ok((None, clamped.max_tokens)), "{}", what());
        prop_assert_eq!((again.prompt, again.sequences), (view.prompt, view.sequences), "{}", what());
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_let_through_is_bounded_and_stays_so(body in members(anything())) {
        let body = Value::from(body).to_string();
        for dialect in dialect::ALL {
            check(dialect, &body)?;
        }
    }
}
