//! A request on its way from the client through the filter to the router.

use super::guest;
use super::headers::Headers;
use super::response;
use super::stream::{Iteration, Piece, Stream};
use super::upstream::Forwarded;
use super::vm::{Reply, Returned, call, stream, with};

/// `%RESPONSE_FLAGS%` UH: no healthy upstream host.
const NO_HEALTHY_UPSTREAM: u64 = 0x2;

/// A request's headers arrive: its context is made and the header callback runs. Gives the context's id.
pub fn headers(exchange: usize, headers: Headers, end: bool) -> u32 {
    let count = headers.len();
    let (id, root) = with(|vm| {
        let id = vm.next_context();
        let mut stream = Stream::new(vm.root, exchange, headers, vm.process.clock.elapsed());
        stream.request.ended = end;
        vm.streams.insert(id, stream);
        (id, vm.root)
    });
    call(id, || guest::proxy_on_context_create(id, root));
    match callback(id, || guest::proxy_on_request_headers(id, count, end)) {
        Some(Verdict::Go) => {
            // The guest's hold on the headers ends with `Continue` from this callback.
            stream(id, |stream| stream.request.open = false);
            forward(id);
        }
        Some(Verdict::Pause) => {
            let hold = with(|vm| vm.process.settings.hold_headers);
            let iteration = if hold { Iteration::Held } else { Iteration::HeldAll };
            stream(id, |stream| stream.request.iteration = iteration);
        }
        Some(Verdict::Stop) => {
            stream(id, |stream| stream.request.iteration = Iteration::HeldAll);
        }
        None => {}
    }
    id
}

/// Body bytes arrive.
pub fn data(id: u32, bytes: Vec<u8>, end: bool) {
    let counted = stream(id, |stream| {
        stream.request.received += bytes.len();
        stream.request.ended |= end;
    });
    if counted.is_some() {
        piece(id, Piece::Data(bytes, end));
    }
}

/// Trailers arrive, the end of the request: no body callback tells of it.
pub fn trailers(id: u32, trailers: Headers) {
    if stream(id, |stream| stream.request.ended = true).is_some() {
        piece(id, Piece::Trailers(trailers));
    }
}

/// Lets a held request go on; without effect where nothing is held.
pub fn resume(id: u32) {
    let during_call = stream(id, |stream| {
        stream.request.resumed = stream.request.in_call;
        stream.request.in_call
    });
    if during_call == Some(false) {
        release(id);
    }
}

/// Envoy's own 413, where a kept body has outgrown the limit.
pub fn check_size(id: u32) {
    let limit = with(|vm| vm.process.settings.buffer_limit);
    let overflown = stream(id, |stream| {
        let request = &mut stream.request;
        let first = request.body.len() > limit && !request.overflown;
        request.overflown |= first;
        first && !request.in_call
    });
    if overflown == Some(true) {
        too_large(id);
    }
}

fn too_large(id: u32) {
    let reply = Reply {
        status: 413,
        details: "request_payload_too_large".to_owned(),
        body: b"Payload Too Large".to_vec(),
        ..Reply::default()
    };
    response::reply(id, reply);
}

enum Verdict {
    Go,
    Pause,
    /// A local reply is under way: whatever was returned, nothing goes on.
    Stop,
}

/// Runs a request callback; `None` where the stream did not outlive it.
fn callback(id: u32, entry: impl FnOnce() -> u32) -> Option<Verdict> {
    stream(id, |stream| stream.request.in_call = true);
    let Returned { value, stopped } = call(id, entry);
    let (resumed, overflown) = stream(id, |stream| {
        stream.request.in_call = false;
        (std::mem::take(&mut stream.request.resumed), stream.request.overflown && !stream.response.started)
    })?;
    if overflown {
        // What outgrew the limit during a callback is answered when the callback has returned.
        too_large(id);
        return None;
    }
    Some(match value {
        _ if stopped => Verdict::Stop,
        guest::CONTINUE => Verdict::Go,
        _ if resumed => Verdict::Go,
        _ => Verdict::Pause,
    })
}

/// Hands a piece to the guest, or puts it by where everything is held.
fn piece(id: u32, piece: Piece) {
    let held = stream(id, |stream| stream.request.iteration == Iteration::HeldAll);
    match piece {
        _ if held.is_none() => {}
        piece if held == Some(true) => {
            stream(id, |stream| stream.request.backlog.push_back(piece));
        }
        Piece::Data(bytes, end) => body_callback(id, bytes, end),
        Piece::Trailers(trailers) => trailers_callback(id, trailers),
    }
}

fn body_callback(id: u32, bytes: Vec<u8>, end: bool) {
    let limit = with(|vm| vm.process.settings.buffer_limit);
    let size = stream(id, |stream| {
        let request = &mut stream.request;
        if request.buffering {
            request.body.extend(&bytes);
            request.overflown |= request.body.len() > limit;
            request.body.len()
        } else {
            request.chunk = Some(bytes);
            request.chunk.as_ref().map_or(0, Vec::len)
        }
    });
    let Some(size) = size else { return };
    let Some(verdict) = callback(id, || guest::proxy_on_request_body(id, size, end)) else { return };
    let kept = stream(id, |stream| {
        let request = &mut stream.request;
        let chunk = request.chunk.take().unwrap_or_default();
        request.buffering = matches!(verdict, Verdict::Pause);
        if !matches!(verdict, Verdict::Stop) {
            request.body.extend(chunk);
        }
        request.buffering || request.iteration == Iteration::Held
    });
    if kept == Some(true) {
        check_size(id);
    }
    if matches!(verdict, Verdict::Go) {
        release(id);
    }
}

fn trailers_callback(id: u32, trailers: Headers) {
    let count = trailers.len();
    stream(id, |stream| stream.request.trailers = Some(trailers));
    if let Some(Verdict::Go) = callback(id, || guest::proxy_on_request_trailers(id, count)) {
        release(id);
    }
}

/// Gives what is held to the router; what was held back from the guest itself comes to it now.
fn release(id: u32) {
    stream(id, |stream| {
        stream.request.iteration = Iteration::Going;
        stream.request.buffering = false;
    });
    forward(id);
    while let Some(Some(held)) = stream(id, |stream| stream.request.backlog.pop_front()) {
        piece(id, held);
    }
}

/// Moves headers and body on to the router, and to the model server once the request has ended.
fn forward(id: u32) {
    let reachable = with(|vm| vm.process.has_endpoints());
    let first =
        stream(id, |stream| !stream.ending && !stream.response.started && stream.request.forwarded.is_none());
    if first == Some(true) && !reachable {
        return response::reply(id, no_healthy_upstream());
    }
    let whole = stream(id, |stream| {
        if stream.ending || stream.response.started {
            return None;
        }
        let request = &mut stream.request;
        let headers = &request.headers;
        let forwarded = request.forwarded.get_or_insert_with(|| Forwarded::new(headers.clone()));
        forwarded.body.append(&mut request.body);
        let whole = request.ended && request.backlog.is_empty() && !forwarded.complete;
        forwarded.complete |= whole;
        whole.then(|| (stream.exchange, forwarded.clone()))
    });
    if let Some(Some((exchange, request))) = whole {
        with(|vm| vm.process.upstream().receive(exchange, request));
    }
}

fn no_healthy_upstream() -> Reply {
    Reply {
        status: 503,
        details: "no_healthy_upstream".to_owned(),
        flags: NO_HEALTHY_UPSTREAM,
        body: b"no healthy upstream".to_vec(),
        ..Reply::default()
    }
}
