//! `x-sluice-*` headers say what the filter did, and nobody else can say it.

use super::words::{CHAT, chat_body, exchange, refused, short, take_slot};
use super::{Answer, Request, World};

fn spoofed(request: Request) -> Request {
    request
        .header("x-sluice-class", "short")
        .header("x-sluice-class", "boss")
        .header("X-Sluice-Bypass", "key")
        .header("x-sluice-queue-timeout", "1s")
        .header("x-sluice-anything", "at all")
}

pub fn spoofed_headers_never_reach_a_guarded_upstream(world: &mut dyn World) {
    let request = Request::post(CHAT, chat_body("hi", r#","max_tokens":1000"#));
    let (arrival, _) = exchange(world, &spoofed(request));
    assert_eq!(arrival.cluster, "llm_long");
    let ours: Vec<_> = arrival.headers.iter().filter(|(name, _)| name.starts_with("x-sluice-")).collect();
    assert_eq!(ours, [&("x-sluice-class".to_owned(), b"long".to_vec())]);
}

pub fn spoofed_headers_never_reach_any_upstream(world: &mut dyn World) {
    for request in [Request::get("/v1/models"), Request::post("/v1/embeddings", "{}")] {
        let (arrival, _) = exchange(world, &spoofed(request));
        assert!(
            !arrival.headers.iter().any(|(name, _)| name.starts_with("x-sluice-")),
            "{:?}",
            arrival.headers
        );
        assert_eq!(arrival.cluster, "llm_long", "the default route");
    }
}

pub fn the_upstreams_own_are_removed(world: &mut dyn World) {
    for (request, class) in [(short(), Some("short")), (Request::get("/v1/models"), None)] {
        let index = world.arrived();
        let sent = world.send(&request);
        world.arrivals(index + 1);
        let headers = [("x-sluice-class", "boss"), ("x-sluice-reason", "none"), ("x-other", "kept")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()));
        world.answer(index, Answer::Whole { status: 200, headers: headers.to_vec(), body: b"{}".to_vec() });
        let response = world.response(sent);
        assert_eq!(response.header("x-sluice-class"), class);
        assert_eq!(response.header("x-sluice-reason"), None);
        assert_eq!(response.header("x-other"), Some("kept"));
    }
}

pub fn the_client_is_told_what_was_done(world: &mut dyn World) {
    let (arrival, response) = exchange(world, &short());
    assert_eq!(arrival.header("x-sluice-class"), Some(b"short".as_slice()));
    for (name, value) in [
        ("x-sluice-class", "short"),
        ("x-sluice-max-tokens", "10"),
        ("x-sluice-max-tokens-action", "kept"),
        ("x-sluice-queue-ms", "0"),
    ] {
        assert_eq!(response.header(name), Some(value), "{name}");
    }
    let timing = response.header("server-timing").expect("server-timing");
    assert!(timing.contains("queue;dur=") && timing.contains("upstream;dur="), "{timing}");
    assert_eq!(response.header("x-sluice-reason"), None);
    assert_eq!(response.body, br#"{"choices":[]}"#);
}

pub fn server_timing_is_appended(world: &mut dyn World) {
    let sent = world.send(&short());
    world.arrivals(1);
    let headers = vec![("server-timing".to_owned(), "prefill;dur=3".to_owned())];
    world.answer(0, Answer::Whole { status: 200, headers, body: b"{}".to_vec() });
    let response = world.response(sent);
    let timings: Vec<&str> = response
        .headers
        .iter()
        .filter(|(name, _)| name == "server-timing")
        .flat_map(|(_, value)| value.split(',').map(str::trim))
        .collect();
    assert!(timings.first() == Some(&"prefill;dur=3") && timings.len() > 1, "{timings:?}");
}

pub fn response_headers_can_be_turned_off(world: &mut dyn World) {
    let held = take_slot(world, &short());
    let refusal = refused(world, &short());
    refusal.refused(429, "queue_full");
    refusal.says_when_to_retry();
    world.answer(0, super::words::ok());
    let response = world.response(held);
    let told = [&response, &refusal].map(|response| {
        response.headers.iter().any(|(name, _)| {
            (name.starts_with("x-sluice-") && name != "x-sluice-reason") || name == "server-timing"
        })
    });
    assert_eq!(told, [false, false]);
}

pub fn values_need_not_be_text(world: &mut dyn World) {
    let value = vec![b'a', 0xff, 0xc3, 0x28, b'z'];
    let (arrival, _) =
        exchange(world, &short().header("x-odd", value.clone()).header("x-sluice-odd", value.clone()));
    assert_eq!(arrival.header("x-odd"), Some(value.as_slice()));
    assert_eq!(arrival.header("x-sluice-odd"), None);
    let (arrival, _) = exchange(world, &Request::get("/health").header("x-odd", value.clone()));
    assert_eq!(arrival.header("x-odd"), Some(value.as_slice()));
}
