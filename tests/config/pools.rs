//! Pools, budgets and turns: what is read, and which contradictions are refused in which words.

use serde_json::{Value, json};
use sluice::core::policy::Fairness;

use crate::{good, lines, with};

/// Three classes that share a pool.
fn shared(pool: Value, a: Value, b: Value, c: Value) -> Value {
    let class = |name: &str, more: Value| {
        let mut class = json!({"name": name, "pool": "gpu"});
        for (key, value) in more.as_object().into_iter().flatten() {
            class[key] = value.clone();
        }
        class
    };
    let bounds = |mut class: Value, most: u64| {
        class["at_most"] = json!({"prompt_chars": most});
        class
    };
    json!({"pools": [pool], "classes": [bounds(class("a", a), 5), bounds(class("b", b), 9), class("c", c)]})
}

#[test]
fn what_is_in_force_is_told() {
    let mut policy = shared(
        json!({"name": "gpu", "concurrency": 64, "concurrency_tokens": 200_000}),
        json!({"reserved": 8, "concurrency": 64}),
        json!({}),
        json!({"concurrency": 16, "concurrency_tokens": 100_000, "queue": {"timeout": "30s"}}),
    );
    policy["fairness"] = json!({"key": "header:x-tenant-id"});
    assert_eq!(
        good(policy).to_string().split(';').next(),
        Some(
            "domain default, backend vllm, pools gpu (concurrency 64, tokens 200000), \
             classes a (pool gpu, reserved 8, concurrency 64, queue 256 for 5s), \
             b (pool gpu, concurrency unbounded, queue 256 for 5s), \
             c (pool gpu, concurrency 16, tokens 100000, queue 256 for 30s), in turns by header:x-tenant-id"
        )
    );
}

#[test]
fn slots_may_be_reserved_up_to_the_last_one_that_everybody_needs() {
    let gpu = || json!({"name": "gpu", "concurrency": 10});
    good(shared(gpu(), json!({"reserved": 5}), json!({"reserved": 4}), json!({"reserved": 1})));
    good(shared(gpu(), json!({"reserved": 9}), json!({"reserved": 0}), json!({})));
    // Only classes of the same pool take slots from each other.
    let mut two = shared(gpu(), json!({"reserved": 9}), json!({"pool": "cpu", "reserved": 4}), json!({}));
    two["pools"] = json!([gpu(), {"name": "cpu", "concurrency": 5}]);
    good(two);
}

#[test]
fn classes_that_contradict_their_pool_are_refused() {
    let gpu = || json!({"name": "gpu", "concurrency": 10, "concurrency_tokens": 5000});
    let none = || json!({});
    for (policy, line) in [
        (
            shared(gpu(), json!({"reserved": 6}), json!({"reserved": 4}), none()),
            "classes[2]: has no slot that it could get: more urgent classes reserve 10 of the 10 slots of pool \"gpu\"; leave at least one",
        ),
        (
            shared(gpu(), json!({"reserved": 6}), none(), json!({"reserved": 5})),
            "classes[2].reserved: 5 is more than is left: pool \"gpu\" has 10 slots, of which more urgent classes reserve 6; allowed is up to 4",
        ),
        (
            shared(gpu(), none(), json!({"reserved": 3, "concurrency": 2}), none()),
            "classes[1].reserved: 3 is over concurrency, which is 2: the class can never use all of them; allowed is up to concurrency",
        ),
        (
            shared(gpu(), none(), none(), json!({"concurrency": 11})),
            "classes[2].concurrency: 11 is over that of pool \"gpu\", which is 10; allowed is up to the pool's concurrency, or null for as much",
        ),
        (
            shared(gpu(), json!({"concurrency_tokens": 5001}), none(), none()),
            "classes[0].concurrency_tokens: 5001 is over that of pool \"gpu\", which is 5000; allowed is up to the pool's concurrency_tokens, or null for as much",
        ),
        (
            shared(
                json!({"name": "gpu", "concurrency_tokens": 5000}),
                json!({"reserved": 1}),
                none(),
                none(),
            ),
            "classes[0].reserved: keeps slots, and pool \"gpu\" does not count any; give the pool a concurrency, or leave this out",
        ),
        (
            with("classes[].reserved", json!(1)),
            "classes[1].reserved: keeps slots of a pool, and the class has none; name its pool, or leave this out",
        ),
    ] {
        assert_eq!(lines(&policy.to_string()), [line], "{policy}");
    }
}

#[test]
fn pools_and_their_names_are_checked() {
    for (policy, line) in [
        (
            with("classes[].pool", json!("gpu")),
            "classes[1].pool: \"gpu\" is none of pools; there are none: add it, or leave this out",
        ),
        (
            shared(
                json!({"name": "gpus", "concurrency": 1}),
                json!({"pool": "gpus"}),
                json!({"pool": null}),
                json!({}),
            ),
            "classes[2].pool: \"gpu\" is none of pools; did you mean \"gpus\"?",
        ),
        (
            shared(
                json!({"name": "other", "concurrency": 1}),
                json!({"pool": "other"}),
                json!({"pool": null}),
                json!({}),
            ),
            "classes[2].pool: \"gpu\" is none of pools; pools are other",
        ),
        (
            with("pools", json!([{"name": "gpu", "concurrency": 4}])),
            "pools[0]: is the pool of no class; name it in a class, or leave it out",
        ),
        (
            shared(json!({"name": "gpu", "concurrency": null}), json!({}), json!({}), json!({})),
            "pools[0]: has neither concurrency nor concurrency_tokens, so that it bounds nothing; give one of them at least",
        ),
        (
            with("pools[].concurrency_tokens", json!(0)),
            "pools[1].concurrency_tokens: 0 is out of range; allowed is a whole number from 1 to 4294967295, or null",
        ),
        (
            with("classes[].concurrency_tokens", json!(0)),
            "classes[1].concurrency_tokens: 0 is out of range; allowed is a whole number from 1 to 4294967295, or null",
        ),
        (
            with("pools[].name", json!("GPU")),
            "pools[1].name: \"GPU\" is no name; allowed is a name matching [a-z][a-z0-9_-]{0,31}, other than \"none\"",
        ),
        (
            with("pools[].slots", json!(4)),
            "pools[1].slots: unknown key; allowed are name, concurrency, concurrency_tokens",
        ),
    ] {
        assert_eq!(lines(&policy.to_string()), [line], "{policy}");
    }
    let mut twins = with("pools[].name", json!("p"));
    twins["classes"][1]["pool"] = json!("p");
    assert_eq!(
        lines(&twins.to_string()),
        ["pools[1].name: \"p\" is the name of pools[0] already; names must differ"]
    );
}

#[test]
fn thirty_two_pools_and_no_more() {
    let policy = |count: usize| {
        let name = |place: usize| format!("p{place}");
        let pools: Vec<_> = (0..count).map(|place| json!({"name": name(place), "concurrency": 1})).collect();
        let class =
            |place| json!({"name": name(place), "pool": name(place), "at_most": {"prompt_chars": 1 + place}});
        let mut classes: Vec<_> = (0..count.min(32) - 1).map(class).collect();
        classes.push(json!({"name": "rest", "pool": name(count - 1)}));
        json!({"pools": pools, "classes": classes})
    };
    assert_eq!(good(policy(32)).pools.len(), 32);
    assert_eq!(lines(&policy(33).to_string())[0], "pools: holds 33 entries; allowed are 0 to 32");
}

#[test]
fn turns_go_by_a_header_or_a_field_of_the_body() {
    for (key, fairness) in [
        ("body:user", Fairness::User),
        ("body:model", Fairness::Model),
        ("header:x-tenant-id", Fairness::Header("x-tenant-id".to_owned())),
        ("header:authorization", Fairness::Header("authorization".to_owned())),
    ] {
        let policy = good(with("fairness", json!({ "key": key })));
        assert_eq!(policy.fairness.as_ref().map(ToString::to_string).as_deref(), Some(key));
        assert_eq!(policy.fairness, Some(fairness));
    }
    const ALLOWED: &str =
        "allowed is \"header:<name>\" with the name in lower case, \"body:user\" or \"body:model\"";
    for (key, what) in [
        ("header:X-Tenant-Id", "names no header"),
        ("header:", "names no header"),
        ("header::path", "names no header"),
        ("header:x tenant", "names no header"),
        ("header:x-sluice-class", "is a header that the filter takes out of every request"),
        ("header:host", "is no header by the time the filter sees it, but Envoy's :authority"),
        ("body:name", "is unknown"),
        ("x-tenant-id", "is unknown"),
        ("", "is unknown"),
    ] {
        let text = lines(&with("fairness", json!({ "key": key })).to_string());
        assert_eq!(text, [format!("fairness.key: \"{key}\" {what}; {ALLOWED}")]);
    }
    let long = format!("header:{}", "x".repeat(129));
    assert_eq!(lines(&with("fairness.key", json!(long)).to_string()).len(), 1);
    assert_eq!(
        lines(&with("fairness", json!({})).to_string()),
        ["fairness.key: is missing; it has no default"]
    );
    assert_eq!(
        lines(&with("fairness", json!("body:user")).to_string()),
        ["fairness: is a string; allowed is an object, or null"]
    );
}
