//! The client's side: a request as Envoy's connection manager hands it to the filter, piece by piece.

use super::headers::Headers;
use super::request;
use crate::stories::{Body, Protocol, Request};

/// Envoy reads from a socket in pieces of this size.
const READ_BYTES: usize = 16 << 10;

/// Sends all there is of a request; its context's id.
pub fn send(exchange: usize, request: &Request) -> u32 {
    let headers = head(request);
    let upgrade = is_upgrade(&headers);
    let bodiless = matches!(&request.body, Body::Whole(bytes) if bytes.is_empty()) && !upgrade;
    let id = request::headers(exchange, headers, bodiless);
    let http2 = request.protocol == Protocol::Http2;
    match &request.body {
        _ if bodiless => {}
        // A tunnel has no end that the filter could wait for.
        _ if upgrade => request::data(id, Vec::new(), false),
        Body::Whole(bytes) => pieces(id, bytes.chunks(READ_BYTES).map(<[u8]>::to_vec).collect(), http2),
        Body::Chunks(chunks) => pieces(id, chunks.clone(), http2),
        Body::Trailers(chunks, trailers) => {
            chunks.iter().for_each(|chunk| request::data(id, chunk.clone(), false));
            let mut map = Headers::default();
            trailers.iter().for_each(|(name, value)| map.add(name, value.as_bytes()));
            request::trailers(id, map);
        }
        Body::Withheld(bytes) if bytes.is_empty() => {}
        Body::Withheld(bytes) => request::data(id, bytes.clone(), false),
    }
    id
}

/// The headers as the filter meets them: Envoy's connection manager has worked on them before.
pub fn head(request: &Request) -> Headers {
    let mut headers = Headers::default();
    headers.add(":authority", "model.test");
    headers.add(":path", request.path.as_bytes());
    headers.add(":method", request.method.as_bytes());
    headers.add(":scheme", "http");
    for (name, value) in &request.headers {
        headers.add(name, value.as_slice());
    }
    if headers.get("content-length").is_none() {
        match &request.body {
            Body::Whole(body) if !body.is_empty() || request.method == "POST" => {
                headers.add("content-length", body.len().to_string());
            }
            _ => {}
        }
    }
    // `Expect` is answered, an offer of h2c is not taken up, and what belongs to the connection stays with it.
    headers.remove("expect");
    if !is_upgrade(&headers) {
        ["connection", "upgrade", "http2-settings", "keep-alive", "transfer-encoding"]
            .into_iter()
            .for_each(|name| headers.remove(name));
    }
    headers.add("x-forwarded-proto", "http");
    headers.add("x-request-id", "8f2b1c52-7a55-4d1e-9a0e-0d6c5f1a2b3c");
    headers
}

/// A body's data; over HTTP/1 its end comes in a call of its own.
fn pieces(id: u32, mut chunks: Vec<Vec<u8>>, http2: bool) {
    let last = if http2 { chunks.pop() } else { None };
    chunks.into_iter().for_each(|chunk| request::data(id, chunk, false));
    request::data(id, last.unwrap_or_default(), true);
}

fn is_upgrade(headers: &Headers) -> bool {
    headers.get("upgrade").is_some_and(|protocol| !protocol.eq_ignore_ascii_case(b"h2c"))
}
