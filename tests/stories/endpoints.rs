//! Which endpoints are guarded, and what their clients are told.

use serde_json::Value;

use super::words::{CHAT, chat_body, exchange, ok, refused, short, still_serves, take_slot};
use super::{Request, World};

pub fn a_post_to_an_unlisted_path_is_refused(world: &mut dyn World) {
    for path in ["/v1/tokenize", "/", "/v1/messages/count_tokens"] {
        refused(world, &Request::post(path, "{}")).refused(404, "unlisted_endpoint");
    }
    refused(world, &Request::post("/v1/tokenize", "")).refused(404, "unlisted_endpoint");
    let (_, response) = exchange(world, &Request::get("/v1/models"));
    assert_eq!(response.header("x-sluice-class"), None);
    still_serves(world);
}

pub fn a_path_of_ones_own_is_guarded(world: &mut dyn World) {
    let (arrival, _) = exchange(world, &Request::post("/below/ask/", r#"{"prompt":"hi"}"#));
    arrival.has_body(r#"{"max_tokens":256,"prompt":"hi"}"#);
    refused(world, &Request::post("/ask", "[]")).refused(400, "invalid_body");
}

pub fn a_path_that_is_let_pass_passes(world: &mut dyn World) {
    for path in ["/v1/embeddings", "/internal/chat/completions"] {
        let (arrival, response) = exchange(world, &Request::post(path, "not JSON"));
        arrival.has_body("not JSON");
        assert_eq!(response.header("x-sluice-class"), None, "{path}");
    }
    still_serves(world);
}

pub fn a_prompt_that_is_not_seen_is_never_short(world: &mut dyn World) {
    let post = |more: &str| {
        Request::post("/v1/responses", format!(r#"{{"max_output_tokens":5,"input":"hi"{more}}}"#))
    };
    for (more, class) in [
        ("", "short"),
        (r#","previous_response_id":null"#, "short"),
        (r#","previous_response_id":"r""#, "long"),
        (r#","conversation":"c""#, "long"),
    ] {
        let (_, response) = exchange(world, &post(more));
        assert_eq!(response.header("x-sluice-class"), Some(class), "{more}");
    }
    refused(world, &post(r#","background":true"#)).refused(400, "unsupported_background");
}

pub fn each_family_is_told_in_its_own_shape(world: &mut dyn World) {
    let held = take_slot(world, &short());
    let messages = chat_body("hi", r#","max_tokens":9"#);
    for (path, kind) in [(CHAT, "openai"), ("/v1/messages", "anthropic"), ("/api/chat", "ollama")] {
        let body = if kind == "ollama" { r#"{"options":{"num_predict":9}}"# } else { &messages };
        let response = refused(world, &Request::post(path, body));
        let body: Value = serde_json::from_slice(&response.body).unwrap();
        assert_eq!(
            (response.status, response.header("x-sluice-reason")),
            (429, Some("queue_full")),
            "{path}"
        );
        response.says_when_to_retry();
        let right = match kind {
            "openai" => body["error"]["code"] == "queue_full" && body["error"]["type"] == "rate_limit_error",
            "anthropic" => body["type"] == "error" && body["error"]["type"] == "rate_limit_error",
            _ => body["error"].is_string(),
        };
        assert!(right, "{path}: {body}");
    }
    world.answer(0, ok());
    assert_eq!(world.response(held).status, 200);
}
