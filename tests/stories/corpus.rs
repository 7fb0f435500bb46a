//! Every line of the corpus is answered as it says, and the next request after it is served as ever.

use std::fs;

use serde_json::Value;

use super::words::{exchange, refused, still_serves};
use super::{Body, Request, World};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus/requests.jsonl");

pub fn each_line_is_answered_rightly(world: &mut dyn World) {
    let lines = fs::read_to_string(FILE).unwrap_or_else(|error| panic!("{FILE}: {error}"));
    for line in lines.lines() {
        let case: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        // Tells the failing case even where the failure is deep down.
        eprintln!("corpus {}", case["id"]);
        tell(world, &case);
        still_serves(world);
    }
}

fn tell(world: &mut dyn World, case: &Value) {
    let (request, body) = request(case);
    let want = &case["want"];
    if let Some(refusal) = want.get("refuse") {
        let status =
            refusal["status"].as_u64().and_then(|status| u16::try_from(status).ok()).expect("a status");
        let error = refused(world, &request).refused(status, text(&refusal["reason"]));
        if let Some(param) = refusal.get("param") {
            assert_eq!(error["param"], *param);
        }
        return;
    }
    let (arrival, _) = exchange(world, &request);
    if let Some(expected) = want["body"].as_str() {
        arrival.has_body(expected);
    } else if let Some(injected) = want.get("inject") {
        let at = (0..=body.len()).find(|at| arrival.body[..*at] != body[..*at]).unwrap_or(body.len());
        let added = arrival.body.len() - body.len();
        let without = |start: usize| [&arrival.body[..start], &arrival.body[start + added..]].concat();
        assert!((0..=at).any(|start| without(start) == body), "more than an insertion: {:?}", arrival.body);
        let after: Value = serde_json::from_slice(&arrival.body).expect("still JSON");
        assert_eq!(after[text(&injected["member"])], injected["value"]);
    } else {
        assert_eq!(want["pass"], true, "a want that is known");
        arrival.has_body(&body);
    }
}

/// The request of a case, and its body in one piece.
fn request(case: &Value) -> (Request, Vec<u8>) {
    let body = body(case);
    let mut request = Request::post(text(&case["path"]), body.clone());
    request.method = text(&case["method"]).to_owned();
    let headers = case["headers"].as_object().into_iter().flatten();
    request.headers = headers.map(|(name, value)| (name.clone(), text(value).as_bytes().to_vec())).collect();
    let chunks = |size: usize| Body::Chunks(body.chunks(size).map(<[u8]>::to_vec).collect());
    match case.get("transport").map(text) {
        None => {}
        Some("chunked") => request = request.body(chunks(1000)),
        Some("1-byte chunks") => request = request.body(chunks(1)),
        Some("trailers") => {
            let trailers = vec![("x-t".to_owned(), "1".to_owned())];
            request = request.body(Body::Trailers(vec![body.clone()], trailers));
        }
        Some("h2") => request = request.http2(),
        Some("h2 trailers") => {
            let trailers = vec![("x-t".to_owned(), "1".to_owned())];
            request = request.body(Body::Trailers(vec![body.clone()], trailers)).http2();
        }
        Some(other) => panic!("a transport that is not known: {other}"),
    }
    (request, body)
}

fn body(case: &Value) -> Vec<u8> {
    if let Some(body) = case.get("body") {
        return text(body).as_bytes().to_vec();
    }
    if let Some(body) = case.get("body_b64") {
        return base64(text(body));
    }
    let Some(recipe) = case.get("body_gen") else { return Vec::new() };
    let part = |name: &str| recipe.get(name).map(text).unwrap_or_default().to_owned();
    let count = recipe["count"].as_u64().and_then(|count| usize::try_from(count).ok()).expect("a count");
    let repeated = |name: &str| part(name).repeat(count);
    [part("prefix"), repeated("unit"), part("suffix"), repeated("close_unit"), part("tail")]
        .concat()
        .into_bytes()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("text, not {value}"))
}

fn base64(text: &str) -> Vec<u8> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bytes, mut bits, mut held) = (Vec::new(), 0u32, 0);
    for digit in text.bytes().filter(|digit| *digit != b'=') {
        let value = DIGITS.iter().position(|known| *known == digit).expect("base64");
        bits = bits << 6 | u32::try_from(value).expect("six bits");
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push(u8::try_from(bits >> held & 0xff).expect("eight bits"));
        }
    }
    bytes
}
