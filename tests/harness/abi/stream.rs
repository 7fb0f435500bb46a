//! Acting on streams: the deferred actions, and whose they are.

use super::{Status, bytes, host, note, text};
use crate::harness::headers::Headers;
use crate::harness::vm::{Action, Reply};

const REQUEST: u32 = 0;

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_continue_stream(kind: u32) -> Status {
    note("proxy_continue_stream");
    host(|vm| {
        let context = vm.context();
        let Some(stream) = vm.streams.get_mut(&context) else { return Status::Ok };
        if kind != REQUEST {
            return Status::Ok;
        }
        if stream.replied {
            vm.process.fault("a stream was resumed after a local reply");
        }
        stream.request.open = false;
        vm.actions.push_back(Action::Resume(context));
        Status::Ok
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_close_stream(_kind: u32) -> Status {
    note("proxy_close_stream");
    host(|vm| {
        let context = vm.context();
        if vm.streams.contains_key(&context) {
            vm.actions.push_back(Action::Close(context));
        }
        Status::Ok
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_send_local_response(
    status: u32,
    details: *const u8,
    details_size: usize,
    body: *const u8,
    body_size: usize,
    headers: *const u8,
    headers_size: usize,
    _grpc_status: i32,
) -> Status {
    note("proxy_send_local_response");
    let (details, body, headers) =
        unsafe { (text(details, details_size), bytes(body, body_size), bytes(headers, headers_size)) };
    let Some(headers) = Headers::decode(&headers) else { return Status::BadArgument };
    let Ok(status) = u16::try_from(status) else { return Status::BadArgument };
    host(|vm| {
        let context = vm.context();
        // Replying as a root, or for a stream that is not the one called from its own callback, stops that one too.
        vm.stop = true;
        let Some(stream) = vm.streams.get_mut(&context) else { return Status::Ok };
        if std::mem::replace(&mut stream.replied, true) {
            vm.process.fault("a stream was given two local replies");
        }
        let caller = vm.current();
        if caller != context && vm.streams.get(&caller).is_some_and(|stream| !stream.ending) {
            vm.process.fault("a stream was answered from another one's callback, which hangs now");
        }
        let details = details.replace(char::is_whitespace, "_");
        vm.actions.push_back(Action::Reply(context, Reply { status, details, flags: 0, headers, body }));
        Status::Ok
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_set_effective_context(context: u32) -> Status {
    note("proxy_set_effective_context");
    host(|vm| if vm.choose(context) { Status::Ok } else { Status::BadArgument })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_done() -> Status {
    note("proxy_done");
    Status::NotFound
}
