//! A response on its way to the client: the model server's or a local reply.

use super::ending;
use super::guest;
use super::headers::Headers;
use super::vm::{Reply, call, stream, with};

/// The response headers leave for the client.
pub fn begin(id: u32, status: u16, headers: Headers, details: &str, end: bool) {
    let started = stream(id, |stream| {
        let response = &mut stream.response;
        let first = !response.started && !stream.ending;
        if first {
            (response.started, response.open, response.status) = (true, true, status);
            response.details = details.to_owned();
            response.headers = headers;
            response.headers.set(":status", status.to_string());
        }
        first.then(|| response.headers.len())
    });
    let Some(Some(count)) = started else { return };
    expect_continue(call(id, || guest::proxy_on_response_headers(id, count, end)).value);
    let head = stream(id, |stream| {
        stream.response.open = false;
        (stream.exchange, stream.response.headers.clone())
    });
    let Some((exchange, headers)) = head else { return };
    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    let regular = headers.iter().filter(|(name, _)| !name.starts_with(':'));
    let regular = regular.map(|(name, value)| (name.to_owned(), text(value))).collect();
    with(|vm| {
        vm.process.exchange(exchange, |exchange| {
            exchange.status = status;
            exchange.headers = regular;
            exchange.complete = end;
        });
    });
    if end {
        ending::finish(id);
    }
}

/// Response bytes leave for the client. As Envoy's HTTP/1 codec does, the end comes in a call of its own.
pub fn data(id: u32, bytes: Vec<u8>, end: bool) {
    let size = bytes.len();
    let streaming = stream(id, |stream| {
        stream.response.chunk = Some(bytes);
        stream.response.size += size;
        stream.response.started && !stream.ending
    });
    if streaming != Some(true) {
        return;
    }
    expect_continue(call(id, || guest::proxy_on_response_body(id, size, end)).value);
    let sent = stream(id, |stream| (stream.exchange, stream.response.chunk.take().unwrap_or_default()));
    let Some((exchange, bytes)) = sent else { return };
    with(|vm| {
        vm.process.exchange(exchange, |exchange| {
            exchange.body.extend(bytes);
            exchange.complete = end;
        });
    });
    if end {
        ending::finish(id);
    }
}

/// A local reply, the filter's or Envoy's own. One that comes after response headers breaks the stream off.
pub fn reply(id: u32, reply: Reply) {
    let Some(request) = stream(id, |stream| {
        stream.response.flags |= reply.flags;
        let grpc = stream
            .request
            .headers
            .get("content-type")
            .is_some_and(|kind| kind.starts_with(b"application/grpc"));
        (stream.ending, stream.response.started, grpc)
    }) else {
        return;
    };
    match request {
        (true, ..) => {}
        (_, true, _) => ending::break_off(id, &reply.details),
        (_, _, true) => begin(id, 200, grpc_headers(&reply), &reply.details, true),
        (_, _, false) => {
            begin(id, reply.status, plain_headers(&reply), &reply.details, reply.body.is_empty());
            if !reply.body.is_empty() {
                data(id, reply.body, true);
            }
        }
    }
}

fn plain_headers(reply: &Reply) -> Headers {
    let mut headers = reply.headers.clone();
    if !reply.body.is_empty() {
        headers.set("content-length", reply.body.len().to_string());
        if headers.get("content-type").is_none() {
            headers.set("content-type", "text/plain");
        }
    }
    headers
}

/// Envoy turns a local reply to a gRPC request into 200 with the status beside it.
fn grpc_headers(reply: &Reply) -> Headers {
    let status = match reply.status {
        400 => 13,
        401 => 16,
        403 => 7,
        404 => 12,
        429 | 502..=504 => 14,
        _ => 2,
    };
    let mut headers = reply.headers.clone();
    headers.remove("content-length");
    headers.set("content-type", "application/grpc");
    headers.set("grpc-status", status.to_string());
    headers.set("grpc-message", reply.body.clone());
    headers
}

fn expect_continue(verdict: u32) {
    if verdict != guest::CONTINUE {
        with(|vm| vm.process.fault("a response was paused, though responses are promised to stream through"));
    }
}
