//! A body is read whole however it travels.

use super::words::{CHAT, LONG_ENOUGH, chat_body, exchange, refused, short, still_serves};
use super::{Body, Request, World};

fn clamped() -> (Vec<u8>, String) {
    (chat_body("hi", r#","max_tokens":9999"#).into_bytes(), chat_body("hi", r#","max_tokens":1024"#))
}

fn bytewise(body: &[u8]) -> Vec<Vec<u8>> {
    body.iter().map(|byte| vec![*byte]).collect()
}

fn a_trailer() -> Vec<(String, String)> {
    vec![("x-checksum".to_owned(), "1".to_owned())]
}

pub fn one_byte_a_chunk(world: &mut dyn World) {
    let (body, sent_on) = clamped();
    exchange(world, &short().body(Body::Chunks(bytewise(&body)))).0.has_body(sent_on);
}

pub fn trailers_end_a_body(world: &mut dyn World) {
    let (body, sent_on) = clamped();
    let halves = body.chunks(body.len() / 2).map(<[u8]>::to_vec).collect();
    exchange(world, &short().body(Body::Trailers(halves, a_trailer()))).0.has_body(sent_on);
}

pub fn trailers_end_an_empty_body(world: &mut dyn World) {
    refused(world, &short().body(Body::Trailers(Vec::new(), a_trailer()))).refused(400, "invalid_body");
    still_serves(world);
}

pub fn an_empty_body_is_refused(world: &mut dyn World) {
    refused(world, &Request::post(CHAT, "")).refused(400, "invalid_body");
    still_serves(world);
}

pub fn an_empty_chunked_body_is_refused(world: &mut dyn World) {
    refused(world, &short().body(Body::Chunks(Vec::new()))).refused(400, "invalid_body");
    still_serves(world);
}

pub fn a_body_that_never_ends_is_refused_in_time(world: &mut dyn World) {
    let sent = world.send(&short().body(Body::Withheld(br#"{"messages":"#.to_vec())));
    assert!(!world.answered(sent));
    world.pass(LONG_ENOUGH);
    world.response(sent).refused(408, "body_timeout");
    assert_eq!(world.arrived(), 0);
    still_serves(world);
}

pub fn a_body_that_never_begins_is_refused_in_time(world: &mut dyn World) {
    let sent = world.send(&short().body(Body::Withheld(Vec::new())));
    world.pass(LONG_ENOUGH);
    world.response(sent).refused(408, "body_timeout");
    still_serves(world);
}

pub fn a_body_over_http2(world: &mut dyn World) {
    let (body, sent_on) = clamped();
    exchange(world, &Request::post(CHAT, body.clone()).http2()).0.has_body(&sent_on);
    exchange(world, &short().body(Body::Chunks(bytewise(&body))).http2()).0.has_body(sent_on);
}

pub fn trailers_over_http2(world: &mut dyn World) {
    let (body, sent_on) = clamped();
    exchange(world, &short().body(Body::Trailers(vec![body], a_trailer())).http2()).0.has_body(sent_on);
}

pub fn a_body_of_many_reads(world: &mut dyn World) {
    let prompt = "0123456789abcdef".repeat(1 << 16);
    let request = Request::post(CHAT, chat_body(&prompt, r#","max_tokens":9999"#));
    exchange(world, &request).0.has_body(chat_body(&prompt, r#","max_tokens":1024"#));
}

pub fn a_body_announced_with_expect(world: &mut dyn World) {
    let (body, sent_on) = clamped();
    exchange(world, &Request::post(CHAT, body).header("expect", "100-continue")).0.has_body(sent_on);
}
