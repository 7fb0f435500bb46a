//! What is refused, and in which words.

use serde_json::json;
use sluice::core::config;

use crate::{good, lines, parse, with};

#[test]
fn a_wrong_type_is_refused_at_every_key() {
    let wrong = [json!(null), json!(true), json!(-1), json!(1.5), json!("x y"), json!([1]), json!({"x": 1})];
    for key in config::keys() {
        let path = key.replace("[]", "[1]");
        let refused = wrong.iter().filter(|value| {
            let Err(mistakes) = parse(&with(&key, (*value).clone())) else { return false };
            let all = mistakes.0.iter().all(|mistake| mistake.path.starts_with(&path));
            assert!(all, "{key} = {value}\n{mistakes}");
            true
        });
        // Besides `null` and a flag no key takes more than one of these.
        assert!(refused.count() >= wrong.len() - 2, "{key}");
    }
}

#[test]
fn each_mistake_in_its_words() {
    for (json, line) in [
        ("[]", "configuration: is a list; allowed is an object"),
        (r#"{"limits":3}"#, "limits: is a number; allowed is an object"),
        (
            r#"{"limits":{"max_tokens":"5"}}"#,
            "limits.max_tokens: is a string; allowed is a whole number from 1 to 4294967295",
        ),
        (
            r#"{"limits":{"max_tokens":1.5}}"#,
            "limits.max_tokens: 1.5 is out of range; allowed is a whole number from 1 to 4294967295",
        ),
        (
            r#"{"limits":{"prompt_chars":-1}}"#,
            "limits.prompt_chars: -1 is out of range; allowed is a whole number from 1 to 4294967295, or null",
        ),
        (
            r#"{"limits":{"max_tokens":99999999999999999999999}}"#,
            "limits.max_tokens: 1e23 is out of range; allowed is a whole number from 1 to 4294967295",
        ),
        (
            r#"{"limits":{"body_bytes":67108865}}"#,
            "limits.body_bytes: 67108865 is out of range; allowed is a whole number from 1 to 67108864",
        ),
        (
            r#"{"limits":{"buffered_bytes":1e12}}"#,
            "limits.buffered_bytes: 1000000000000 is out of range; allowed is a whole number from 1 to 68719476736",
        ),
        (
            r#"{"limits":{"body_timeout":30}}"#,
            "limits.body_timeout: is a number; allowed is a duration from 1ms to 24h such as \"5s\", \"0.25s\", \"250ms\", \"1m\" or \"1h\"",
        ),
        (
            r#"{"limits":{"body_timeout":"30"}}"#,
            "limits.body_timeout: \"30\" is no duration; allowed is a duration from 1ms to 24h such as \"5s\", \"0.25s\", \"250ms\", \"1m\" or \"1h\"",
        ),
        (
            r#"{"limits":{"body_timeout":"25h"}}"#,
            "limits.body_timeout: \"25h\" is out of range; allowed is a duration from 1ms to 24h such as \"5s\", \"0.25s\", \"250ms\", \"1m\" or \"1h\"",
        ),
        (
            r#"{"limits":{"bytes_per_token":0}}"#,
            "limits.bytes_per_token: 0 is out of range; allowed is a number from 0.1 to 100",
        ),
        (
            r#"{"limits":{"over_max_tokens":"drop"}}"#,
            "limits.over_max_tokens: \"drop\" is unknown; allowed is \"clamp\" or \"reject\"",
        ),
        (
            r#"{"limits":{"max_tokens":100,"default_max_tokens":200}}"#,
            "limits.default_max_tokens: 200 is over max_tokens, which is 100; allowed is up to max_tokens",
        ),
        (
            r#"{"limits":{"default_max_tokens":2000}}"#,
            "limits.default_max_tokens: 2000 is over max_tokens, which is 1024; allowed is up to max_tokens",
        ),
        (
            r#"{"limits":{"body_bytes":20,"buffered_bytes":10}}"#,
            "limits.body_bytes: 20 is over buffered_bytes, which is 10; allowed is up to buffered_bytes",
        ),
        (r#"{"limits":{"sequences":1,"sequences":2}}"#, "limits.sequences: given twice; allowed is once"),
        (r#"{"limits":{"max_token":1}}"#, "limits.max_token: unknown key; did you mean max_tokens?"),
        (r#"{"limits":{"maxTokens":1}}"#, "limits.maxTokens: unknown key; did you mean max_tokens?"),
        (
            r#"{"classes":[{"name":"a","slo":{"p99":"1s"}}]}"#,
            "classes[0].slo.p99: unknown key; allowed are duration_p99, ttft_p99",
        ),
        (
            r#"{"a\nb":1}"#,
            "a\\nb: unknown key; allowed are backend, limits, pools, classes, policies, endpoints, unlisted_posts, bypass, fairness, enforce_percent, usage, domain, response_headers",
        ),
        (
            r#"{"domain":"none"}"#,
            "domain: \"none\" is reserved; allowed is a name matching [a-z][a-z0-9_-]{0,31}, other than \"none\"",
        ),
        (
            r#"{"domain":"GPU"}"#,
            "domain: \"GPU\" is no name; allowed is a name matching [a-z][a-z0-9_-]{0,31}, other than \"none\"",
        ),
        (
            r#"{"backend":"triton"}"#,
            "backend: \"triton\" is unknown; allowed is \"vllm\" or \"sglang\" or \"tgi\" or \"llamacpp\" or \"ollama\" or \"openai\"",
        ),
        (
            r#"{"enforce_percent":101}"#,
            "enforce_percent: 101 is out of range; allowed is a whole number from 0 to 100",
        ),
        (r#"{"classes":{}}"#, "classes: is an object; allowed is a list of objects"),
        (r#"{"classes":[]}"#, "classes: holds 0 entries; allowed are 1 to 32"),
        (r#"{"classes":["a"]}"#, "classes[0]: is a string; allowed is an object"),
        (r#"{"classes":[{}]}"#, "classes[0].name: is missing; it has no default"),
        (
            r#"{"classes":[{"name":"a","concurrency":0}]}"#,
            "classes[0].concurrency: 0 is out of range; allowed is a whole number from 1 to 1000000, or null",
        ),
        (
            r#"{"classes":[{"name":"a","queue":{"overflow_status":500}}]}"#,
            "classes[0].queue.overflow_status: 500 is out of range; allowed is 429 or 503",
        ),
        (
            r#"{"classes":[{"name":"a","queue":{"timeout":"1s","promote_after":"2s"}}]}"#,
            "classes[0].queue.promote_after: 2s is over timeout, which is 1s: nobody waits that long; allowed is up to timeout, or null for never",
        ),
        (
            r#"{"classes":[{"name":"a","models":["m",""]},{"name":"b"}]}"#,
            "classes[0].models: pattern 1 has 0 bytes; allowed is a list of up to 256 model-name patterns such as \"llama-3-*\", each of 1 to 256 bytes",
        ),
        (
            r#"{"classes":[{"name":"a","models":["m"]},{"name":"a"}]}"#,
            "classes[1].name: \"a\" is the name of classes[0] already; names must differ",
        ),
        (
            r#"{"classes":[{"name":"a","at_most":{"max_tokens":5}}]}"#,
            "classes[0]: is the last class, yet has at_most or models, so that some requests would have no class; the last class must take everything",
        ),
        (
            r#"{"classes":[{"name":"a","at_most":{"max_tokens":null}},{"name":"b"}]}"#,
            "classes[0]: has neither at_most nor models, so that no later class is ever reached; only the last class may go without",
        ),
        (
            r#"{"classes":[{"name":"a","at_most":{"max_tokens":5}},{"name":"b","at_most":{"max_tokens":5,"prompt_chars":3}},{"name":"c"}]}"#,
            "classes[1]: is never reached: all that fits it fits classes[0], too; put the class with the tighter bounds first",
        ),
    ] {
        assert_eq!(lines(json), [line], "{json}");
    }
}

#[test]
fn text_that_is_no_json_is_one_mistake_with_its_place() {
    for (json, place) in [
        ("{", "line 1 column 1"),
        ("{\n  \"limits\": {,}\n}", "line 2 column 14"),
        ("{} x", "line 1 column 4"),
        (r#"{"limits":{"max_tokens":NaN}}"#, "line 1 column 25"),
        (r#"{"limits":{"max_tokens":1e999}}"#, "line 1 column 29"),
    ] {
        let lines = lines(json);
        assert!(lines.len() == 1 && lines[0].starts_with("configuration: not JSON: "), "{lines:?}");
        assert!(lines[0].contains(place), "{lines:?}");
        assert!(lines[0].ends_with("; allowed is one JSON object"), "{lines:?}");
    }
    assert!(config::parse(b"{\"domain\":\"\xff\"}").is_err());
    // {"limits": {}} as a google.protobuf.Struct.
    let lines = lines("\n\x0c\n\x06limits\x12\x02*\x00");
    assert!(lines.len() == 1 && lines[0].contains("google.protobuf.StringValue"), "{lines:?}");
    assert!(config::parse("[".repeat(1_000_000).as_bytes()).is_err());
}

#[test]
fn what_comes_later_is_refused_by_name() {
    for (path, value) in [
        ("policies", json!({"b": {}})),
        ("bypass", json!({"keys": ["secret"]})),
        ("enforce_percent", json!(0)),
        ("usage", json!(false)),
        ("limits.bytes_per_token", json!("auto")),
    ] {
        let text = lines(&with(path, value.clone()).to_string());
        assert_eq!(text.len(), 1, "{text:?}");
        assert!(text[0].starts_with(&format!("{}: ", path.replace("[]", "[1]"))), "{text:?}");
        assert!(text[0].contains("not supported yet in this version"), "{text:?}");
        assert!(!text[0].contains("secret"), "{text:?}");
    }
}

#[test]
fn all_mistakes_at_once_in_the_order_of_the_policy() {
    let text = lines(
        r#"{"domain": "", "limit": {}, "fairness": {"key": "body:name"}, "pools": [{"name": "gpu"}],
            "limits": {"max_tokens": 0, "sequences": "8", "bodybytes": 5},
            "classes": [{"nam": "a", "pool": "gp", "queue": {"timeout": "soon", "capacity": -1}},
                        {"name": "b", "at_most": {"prompt_chars": 7}, "concurrency": 1.5}, 7]}"#,
    );
    let paths: Vec<_> = text.iter().filter_map(|line| line.split_once(": ")).map(|(path, _)| path).collect();
    assert_eq!(
        paths,
        [
            "limits.max_tokens",
            "limits.sequences",
            "limits.bodybytes",
            "pools[0]",
            "classes[0].name",
            "classes[0].queue.capacity",
            "classes[0].queue.timeout",
            "classes[0].nam",
            "classes[1].concurrency",
            "classes[2]",
            "classes[0]",
            "classes[0].pool",
            "fairness.key",
            "domain",
            "limit",
        ],
        "{text:#?}"
    );
}

#[test]
fn thirty_two_classes_and_no_more() {
    let classes = |count: usize| {
        let class = |place| json!({"name": format!("c{place}"), "at_most": {"prompt_chars": 1 + place}});
        let mut all: Vec<_> = (1..count).map(class).collect();
        all.push(json!({"name": "rest"}));
        json!({ "classes": all })
    };
    assert_eq!(good(classes(32)).classes.len(), 32);
    assert_eq!(lines(&classes(33).to_string()), ["classes: holds 33 entries; allowed are 1 to 32"]);
}

#[test]
fn a_pasted_file_does_not_fill_the_log() {
    let long = "x".repeat(10_000);
    for json in
        [json!({ "domain": long }), json!({ (long.as_str()): 1 }), json!({"limits": {"body_timeout": long}})]
    {
        assert!(lines(&json.to_string())[0].len() < 400);
    }
}

#[test]
fn endpoints_that_would_never_be_met_are_refused() {
    for (endpoints, line) in [
        (
            r#"[{"path":"x","dialect":"chat"}]"#,
            "endpoints[0].path: \"x\" is no such path; allowed is the end of a path such as \"/v1/generate\", decoded, without query, of up to 256 bytes",
        ),
        (
            r#"[{"path":"/x","dialect":"chat"},{"path":"//x/","dialect":"pass"}]"#,
            "endpoints[1].path: \"//x/\" is the path of endpoints[0] already; paths must differ",
        ),
        (r#"[{"path":"/x"}]"#, "endpoints[0].dialect: is missing; it has no default"),
        (
            r#"[{"path":"/x","dialect":"triton"}]"#,
            "endpoints[0].dialect: \"triton\" is unknown; allowed are chat, chat_batch, completions, invocations, llamacpp, llamacpp_chat, messages, ollama, pass, prompt, responses, sglang, sglang_vertex, tgi, tgi_stream, tgi_vertex, vllm",
        ),
    ] {
        assert_eq!(lines(&format!(r#"{{"endpoints":{endpoints}}}"#)), [line]);
    }
    for path in ["/x?y", "/x#y", "/%78", "/./x", "/x/.."] {
        let json = json!({"endpoints": [{"path": path, "dialect": "chat"}]});
        assert!(lines(&json.to_string())[0].starts_with("endpoints[0].path: "), "{path}");
    }
}
