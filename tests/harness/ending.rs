//! The end of a stream. Whatever ends it, the calls are `on_log`, `on_done`, `on_delete`, once each.

use super::guest;
use super::headers::Headers;
use super::process::AccessLog;
use super::request;
use super::response;
use super::stream::Stream;
use super::vm::{Reply, call, stream, with};

/// `%RESPONSE_FLAGS%` DC: the downstream connection ended.
pub const DOWNSTREAM_CONNECTION_TERMINATION: u64 = 0x4000;
/// `%RESPONSE_FLAGS%` UC: the upstream connection ended.
pub const UPSTREAM_CONNECTION_TERMINATION: u64 = 0x40;

/// The stream is over: logged, done, deleted.
pub fn finish(id: u32) {
    let first = stream(id, |stream| {
        stream.logging = true;
        !std::mem::replace(&mut stream.ending, true)
    });
    if first != Some(true) {
        return;
    }
    end_call(id, "on_log", || guest::proxy_on_log(id));
    stream(id, |stream| stream.logging = false);
    write_access_log(id);
    end_call(id, "on_done", || {
        guest::proxy_on_done(id);
    });
    end_call(id, "on_delete", || guest::proxy_on_delete(id));
    with(|vm| vm.streams.remove(&id));
}

/// The client is gone.
pub fn disconnect(id: u32) {
    stream(id, |stream| stream.response.flags |= DOWNSTREAM_CONNECTION_TERMINATION);
    break_off(id, "downstream_remote_disconnect");
}

/// The model server has closed the connection.
pub fn upstream_reset(id: u32) {
    let started = stream(id, |stream| stream.response.started);
    if started == Some(true) {
        stream(id, |stream| stream.response.flags |= UPSTREAM_CONNECTION_TERMINATION);
        return break_off(id, "upstream_reset_after_response_started{connection_termination}");
    }
    let reply = Reply {
        status: 503,
        details: "upstream_reset_before_response_started{connection_termination}".to_owned(),
        flags: UPSTREAM_CONNECTION_TERMINATION,
        body: b"upstream connect error or disconnect/reset before headers".to_vec(),
        ..Reply::default()
    };
    response::reply(id, reply);
}

/// The filter asked to close the stream.
pub fn close(id: u32) {
    break_off(id, "wasm_close_stream");
}

/// The stream ends without the end of its response.
pub fn break_off(id: u32, details: &str) {
    stream(id, |stream| details.clone_into(&mut stream.response.details));
    finish(id);
}

/// A request that an earlier filter answers, or that is malformed: a context is made for the log alone.
pub fn stillborn(exchange: usize, headers: Headers) {
    let (id, root) = with(|vm| {
        let id = vm.next_context();
        let mut stream = Stream::new(vm.root, exchange, headers, vm.process.clock.elapsed());
        stream.request.open = false;
        vm.streams.insert(id, stream);
        (id, vm.root)
    });
    call(id, || guest::proxy_on_context_create(id, root));
    finish(id);
}

/// Envoy's internal redirect: the old context ends and a new one begins with the same request.
pub fn redirect(id: u32) -> Option<u32> {
    let (exchange, headers, body) = stream(id, |stream| {
        let body = stream.request.forwarded.take().map(|forwarded| forwarded.body).unwrap_or_default();
        (stream.exchange, stream.request.headers.clone(), body)
    })?;
    finish(id);
    let id = request::headers(exchange, headers, false);
    request::data(id, body, true);
    Some(id)
}

fn end_call(id: u32, name: &'static str, entry: impl FnOnce()) {
    if let Some(exchange) = stream(id, |stream| stream.exchange) {
        with(|vm| vm.process.exchange(exchange, |exchange| exchange.end_calls.push(name)));
    }
    call(id, entry);
}

fn write_access_log(id: u32) {
    let line = stream(id, |stream| {
        let log = AccessLog { details: stream.response.details.clone(), state: stream.state.clone() };
        (stream.exchange, log)
    });
    if let Some((exchange, line)) = line {
        with(|vm| vm.process.exchange(exchange, |exchange| exchange.log = Some(line)));
    }
}
