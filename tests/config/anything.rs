//! Whatever is written, there is an answer: a policy or mistakes, never a panic.

use proptest::prelude::*;
use serde_json::Value;
use sluice::core::config;

use crate::{parse, with};

/// JSON of which much, but not all, is what a policy may hold.
fn anything() -> impl Strategy<Value = Value> {
    let mut names: Vec<String> = config::keys()
        .iter()
        .filter_map(|path| path.rsplit('.').next())
        .map(|name| name.trim_end_matches("[]").to_owned())
        .collect();
    names.push("nonsense".to_owned());
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        (0u32..2000).prop_map(Value::from),
        prop::sample::select(vec!["5s", "vllm", "clamp", "a", "b", "none", "0.1ms", "", "é\n"])
            .prop_map(Value::from),
        ".{0,60}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 200, 12, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((prop::sample::select(names.clone()), inner), 0..12)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_json_comes_there_is_an_answer(json in anything()) {
        if let Err(mistakes) = parse(&json) {
            prop_assert!(!mistakes.0.is_empty());
            prop_assert_eq!(mistakes.to_string().lines().count(), mistakes.0.len());
        }
    }

    #[test]
    fn whatever_stands_at_a_key_there_is_an_answer(at in any::<prop::sample::Index>(), json in anything()) {
        let keys = config::keys();
        let _ = parse(&with(at.get::<String>(&keys), json));
    }

    #[test]
    fn whatever_bytes_come_there_is_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = config::parse(&bytes);
    }
}
