//! Output limits, prompts and bodies are bounded before anything is sent on.

use super::words::{CHAT, chat_body, exchange, refused, still_serves};
use super::{Body, Request, World};

pub fn a_limit_within_bounds_arrives_untouched(world: &mut dyn World) {
    let body = "{ \"max_tokens\" :100,\n\"messages\":[{\"role\":\"user\",\"content\":\"h\\u00e9 \u{1F600}\"}], \"x\":1.50 }";
    let (arrival, response) = exchange(world, &Request::post(CHAT, body));
    arrival.has_body(body);
    assert_eq!((arrival.method.as_str(), arrival.path.as_str()), ("POST", CHAT));
    assert_eq!(arrival.cluster, "llm_short");
    assert_eq!(response.header("x-sluice-max-tokens"), Some("100"));
    assert_eq!(response.header("x-sluice-max-tokens-action"), Some("kept"));
}

pub fn a_limit_over_the_ceiling_is_clamped(world: &mut dyn World) {
    let request = Request::post(CHAT, chat_body("hi", r#", "max_tokens" : 100000 ,"n":1"#));
    let (arrival, response) = exchange(world, &request);
    arrival.has_body(chat_body("hi", r#", "max_tokens" : 1024 ,"n":1"#));
    assert_eq!(arrival.cluster, "llm_long");
    assert_eq!(response.header("x-sluice-max-tokens"), Some("1024"));
    assert_eq!(response.header("x-sluice-max-tokens-action"), Some("clamped"));
}

pub fn a_missing_limit_is_injected(world: &mut dyn World) {
    for path in [CHAT, "/v1/completions"] {
        let body =
            if path == CHAT { chat_body("hi", "") } else { r#"{"model":"m","prompt":"hi"}"#.to_owned() };
        let (arrival, response) = exchange(world, &Request::post(path, body.clone()));
        let text = String::from_utf8_lossy(&arrival.body).into_owned();
        assert_eq!(text.replacen(r#""max_tokens":256,"#, "", 1), body, "{text}");
        arrival.has_body(&text);
        assert_eq!(arrival.cluster, "llm_short");
        assert_eq!(response.header("x-sluice-max-tokens"), Some("256"));
        assert_eq!(response.header("x-sluice-max-tokens-action"), Some("defaulted"));
    }
}

pub fn a_null_limit_counts_as_missing(world: &mut dyn World) {
    let (arrival, response) = exchange(world, &Request::post(CHAT, chat_body("hi", r#","max_tokens":null"#)));
    arrival.has_body(chat_body("hi", r#","max_tokens":256"#));
    assert_eq!(response.header("x-sluice-max-tokens-action"), Some("defaulted"));
}

pub fn a_limit_over_the_ceiling_is_refused_where_told(world: &mut dyn World) {
    let response = refused(world, &Request::post(CHAT, chat_body("hi", r#","max_tokens":1025"#)));
    assert_eq!(response.refused(400, "max_tokens_too_large")["param"], "max_tokens");
    still_serves(world);
}

pub fn a_declared_body_too_large_is_refused_unread(world: &mut dyn World) {
    let request = Request::post(CHAT, "").header("content-length", "1001").body(Body::Withheld(Vec::new()));
    refused(world, &request).refused(413, "body_too_large");
    still_serves(world);
}

pub fn a_received_body_too_large_is_refused_before_its_end(world: &mut dyn World) {
    let request = Request::post(CHAT, "").body(Body::Withheld(vec![b' '; 1001]));
    refused(world, &request).refused(413, "body_too_large");
    still_serves(world);
}

pub fn a_body_of_exactly_the_limit_passes(world: &mut dyn World) {
    let mut body = chat_body("hi", r#","max_tokens":10"#);
    body.extend(std::iter::repeat_n(' ', 1000 - body.len()));
    exchange(world, &Request::post(CHAT, body.clone())).0.has_body(&body);
    body.push(' ');
    refused(world, &Request::post(CHAT, body)).refused(413, "body_too_large");
}

pub fn a_prompt_too_long_is_refused(world: &mut dyn World) {
    let error =
        refused(world, &Request::post(CHAT, chat_body(&"x".repeat(101), ""))).refused(413, "prompt_too_long");
    let message = error["message"].as_str().expect("a message");
    assert!(message.contains("100") && message.contains("101"), "the limit and the size in: {message}");
    exchange(world, &Request::post(CHAT, chat_body(&"\u{e9}".repeat(100), "")));
}

pub fn too_many_sequences_are_refused(world: &mut dyn World) {
    let response = refused(world, &Request::post(CHAT, chat_body("hi", r#","max_tokens":1,"n":5"#)));
    assert_eq!(response.refused(400, "too_many_sequences")["param"], "n");
    let prompts = r#"{"prompt":["a","b","c"],"max_tokens":1,"n":2}"#;
    refused(world, &Request::post("/v1/completions", prompts)).refused(400, "too_many_sequences");
    still_serves(world);
}

pub fn sequences_count_towards_the_class(world: &mut dyn World) {
    let (arrival, response) =
        exchange(world, &Request::post(CHAT, chat_body("hi", r#","max_tokens":100,"n":3"#)));
    assert_eq!(arrival.cluster, "llm_long");
    assert_eq!(response.header("x-sluice-max-tokens"), Some("100"));
}

pub fn an_unreadable_body_is_refused_with_its_field(world: &mut dyn World) {
    let bad = [
        (r#"{"messages":"#, None),
        ("[]", None),
        ("not json", None),
        ("{}{}", None),
        (r#"{"messages":[],"max_tokens":"abc"}"#, Some("max_tokens")),
        (r#"{"messages":[],"max_tokens":1,"max_tokens":2}"#, Some("max_tokens")),
    ];
    for (body, param) in bad {
        let error = refused(world, &Request::post(CHAT, body)).refused(400, "invalid_body");
        assert_eq!(error["param"].as_str(), param, "{body}");
    }
    still_serves(world);
}
