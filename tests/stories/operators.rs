//! What operators see of a request.

use super::words::{CHAT, answer, chat_body, exchange, refused, short, take_slot};
use super::{Answer, Request, Sent, World};

fn requests(class: &str, outcome: &str) -> String {
    format!("sluice.requests_total.domain.default.class.{class}.outcome.{outcome}")
}

fn logged(world: &mut dyn World, sent: Sent, fields: &[(&str, &str)]) {
    for (field, value) in fields {
        assert_eq!(world.logged(sent, field), *value, "{field}");
    }
}

pub fn an_admitted_request_is_logged_and_counted(world: &mut dyn World) {
    let sent = world.send(&Request::post(CHAT, chat_body("12345678", r#","max_tokens":5000"#)));
    world.arrivals(1);
    world.answer(0, answer(200));
    world.response(sent);
    let fields = [
        ("class", "long"),
        ("outcome", "admitted"),
        ("prompt_chars", "8"),
        ("prompt_tokens", "2"),
        ("max_tokens", "1024"),
        ("queue_ms", "0"),
        ("details", "via_upstream"),
    ];
    logged(world, sent, &fields);
    world.metric_becomes(&requests("long", "admitted"), 1);
    world.metric_becomes("sluice.max_tokens_total.domain.default.class.long.action.clamped", 1);
    world.metric_becomes("sluice.responses_total.domain.default.class.long.code.2xx", 1);
    world.metric_becomes("sluice.limit.domain.default.class.long", 64);
}

pub fn a_refused_request_is_logged_and_counted(world: &mut dyn World) {
    let sent = world.send(&Request::post(CHAT, "{"));
    world.response(sent).refused(400, "invalid_body");
    let fields =
        [("class", "-"), ("outcome", "invalid_body"), ("queue_ms", "-"), ("details", "sluice_invalid_body")];
    logged(world, sent, &fields);
    world.metric_becomes(&requests("none", "invalid_body"), 1);
}

pub fn a_request_refused_by_its_class_is_logged_and_counted(world: &mut dyn World) {
    take_slot(world, &short());
    let sent = world.send(&short());
    world.response(sent).refused(429, "queue_full");
    logged(world, sent, &[("class", "short"), ("outcome", "queue_full"), ("details", "sluice_queue_full")]);
    world.metric_becomes(&requests("short", "queue_full"), 1);
}

pub fn a_client_gone_is_logged_and_counted(world: &mut dyn World) {
    let held = take_slot(world, &short());
    let waiting = world.send(&short());
    world.leave(waiting);
    logged(
        world,
        waiting,
        &[("class", "short"), ("outcome", "client_gone"), ("details", "downstream_remote_disconnect")],
    );
    world.metric_becomes(&requests("short", "client_gone"), 1);
    world.leave(held);
    logged(world, held, &[("outcome", "admitted")]);
    world.metric_becomes(&requests("short", "admitted"), 1);
}

pub fn gauges_follow_the_requests(world: &mut dyn World) {
    let (inflight, queued) =
        ("sluice.inflight.domain.default.class.short", "sluice.queued.domain.default.class.short");
    let held = take_slot(world, &short());
    world.metric_becomes(inflight, 1);
    let waiting = world.send(&short());
    world.metric_becomes(queued, 1);
    world.answer(0, answer(200));
    world.response(held);
    world.metric_becomes(queued, 0);
    world.metric_becomes(inflight, 1);
    world.arrivals(2);
    world.answer(1, answer(200));
    world.response(waiting);
    world.metric_becomes(inflight, 0);
}

pub fn responses_are_counted_by_code(world: &mut dyn World) {
    let code = |label: &str| format!("sluice.responses_total.domain.default.class.short.code.{label}");
    for (index, (status, label)) in [(200, "2xx"), (404, "4xx"), (500, "5xx")].into_iter().enumerate() {
        let sent = world.send(&short());
        world.arrivals(index + 1);
        world.answer(index, answer(status));
        world.response(sent);
        world.metric_becomes(&code(label), 1);
    }
    let sent = world.send(&short());
    world.arrivals(4);
    world.answer(3, Answer::Begin(vec![b"data: 1\n\n".to_vec()]));
    world.answer(3, Answer::Reset);
    world.response(sent);
    world.metric_becomes(&code("reset"), 1);
    refused(world, &Request::post(CHAT, "{"));
    exchange(world, &short());
    world.metric_becomes(&code("2xx"), 2);
    world.metric_becomes(&code("4xx"), 1);
}

pub fn who_passes_has_nothing_logged(world: &mut dyn World) {
    let sent = world.send(&Request::get("/health"));
    world.arrivals(1);
    world.answer(0, answer(200));
    world.response(sent);
    let fields = ["class", "outcome", "prompt_chars", "prompt_tokens", "max_tokens", "queue_ms"];
    logged(world, sent, &fields.map(|field| (field, "-")));
}
