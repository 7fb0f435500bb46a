//! The host's side of the proxy-wasm ABI 0.2.1, and the two WASI functions that the filter imports besides.
//!
//! Each function copies what the guest passed and changes the state of this thread's VM; where Envoy defers its work,
//! so does this. None may panic: they are called through `extern "C"`.

use std::slice;
use std::time::Duration;

use super::guest;
use super::headers::Headers;
use super::metrics::{Kind, Metric};
use super::property;
use super::request;
use super::vm::{self, Action, Reply, Vm};

/// The ABI's statuses that the SDK knows; it must see no other.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Ok = 0,
    NotFound = 1,
    BadArgument = 2,
    Empty = 7,
    CasMismatch = 8,
    InternalFailure = 10,
}

const CRITICAL: u32 = 5;
const REQUEST: u32 = 0;
const REQUEST_BODY: u32 = 0;
const PLUGIN_CONFIGURATION: u32 = 7;
const MONOTONIC: u32 = 1;

/// Runs host work; on a thread whose VM is gone every call fails.
fn host(work: impl FnOnce(&mut Vm) -> Status) -> Status {
    vm::try_with(work).unwrap_or(Status::InternalFailure)
}

/// What lies at a pointer of the guest's.
///
/// # Safety
/// `data` points to `size` readable bytes, or `size` is 0.
unsafe fn bytes(data: *const u8, size: usize) -> Vec<u8> {
    if size == 0 { Vec::new() } else { unsafe { slice::from_raw_parts(data, size) }.to_vec() }
}

/// The same as text; host names and keys are ASCII.
unsafe fn text(data: *const u8, size: usize) -> String {
    String::from_utf8_lossy(&unsafe { bytes(data, size) }).into_owned()
}

/// Hands bytes to the guest in memory that it allocates itself and frees.
unsafe fn give(value: &[u8], data: *mut *mut u8, size: *mut usize) -> Status {
    let memory = guest::proxy_on_memory_allocate(value.len());
    unsafe {
        memory.copy_from_nonoverlapping(value.as_ptr(), value.len());
        *data = memory;
        *size = value.len();
    }
    Status::Ok
}

/// Hands over what host work found, or its status.
unsafe fn give_found(found: Option<Result<Vec<u8>, Status>>, data: *mut *mut u8, size: *mut usize) -> Status {
    match found {
        Some(Ok(value)) => unsafe { give(&value, data, size) },
        Some(Err(status)) => status,
        None => Status::InternalFailure,
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_log(level: u32, data: *const u8, size: usize) -> Status {
    let line = unsafe { text(data, size) };
    // The SDK's panic hook logs on whatever thread panics, a test's own too, and nothing else prints it.
    if level >= CRITICAL {
        eprintln!("{line}");
    }
    vm::try_with(|vm| vm.process.logs().push((level, line)));
    Status::Ok
}

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_get_log_level(level: *mut u32) -> Status {
    unsafe { *level = 0 };
    Status::Ok
}

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_get_current_time_nanoseconds(time: *mut u64) -> Status {
    host(|vm| {
        // Envoy's wall clock is good to the microsecond.
        unsafe { *time = vm.process.clock.wall() / 1000 * 1000 };
        Status::Ok
    })
}

/// WASI: the monotonic clock is the one the filter asks for; another id is `EINVAL`.
#[unsafe(no_mangle)]
unsafe extern "C" fn clock_time_get(id: u32, _precision: u64, time: *mut u64) -> u16 {
    const EINVAL: u16 = 28;
    let known =
        id == MONOTONIC && vm::try_with(|vm| unsafe { *time = vm.process.clock.monotonic() }).is_some();
    if known { 0 } else { EINVAL }
}

/// WASI: seeded, so that a test's run can be told again.
#[unsafe(no_mangle)]
unsafe extern "C" fn random_get(data: *mut u8, size: usize) -> u16 {
    const EIO: u16 = 29;
    let filled = vm::try_with(|vm| {
        for at in 0..size {
            vm.random =
                vm.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            unsafe { *data.add(at) = (vm.random >> 56) as u8 };
        }
    });
    if filled.is_some() { 0 } else { EIO }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_set_tick_period_milliseconds(period: u32) -> Status {
    host(|vm| {
        let (now, root) = (vm.process.clock.elapsed(), vm.root_of(vm.context()));
        match vm.roots.get_mut(&root) {
            Some(root) => root.tick_every(Duration::from_millis(period.into()), now),
            None => return Status::BadArgument,
        }
        Status::Ok
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_get_buffer_bytes(
    kind: u32,
    start: usize,
    length: usize,
    data: *mut *mut u8,
    size: *mut usize,
) -> Status {
    let found = vm::try_with(|vm| {
        let context = vm.context();
        let buffer = match kind {
            PLUGIN_CONFIGURATION => vm.configuration.as_mut(),
            _ => vm.streams.get_mut(&context).and_then(|stream| stream.body_mut(kind)),
        };
        let buffer = buffer.ok_or(Status::NotFound)?;
        let end = start.checked_add(length).ok_or(Status::BadArgument)?.min(buffer.len());
        Ok(buffer.get(start..end).unwrap_or_default().to_vec())
    });
    match found {
        // An empty range is `Ok` without any memory.
        Some(Ok(value)) if value.is_empty() => Status::Ok,
        found => unsafe { give_found(found, data, size) },
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_set_buffer_bytes(
    kind: u32,
    start: usize,
    length: usize,
    data: *const u8,
    size: usize,
) -> Status {
    let new = unsafe { bytes(data, size) };
    let mut changed = 0;
    let status = host(|vm| {
        changed = vm.context();
        let buffer = vm.streams.get_mut(&changed).and_then(|stream| stream.body_mut(kind));
        let Some(buffer) = buffer else { return Status::NotFound };
        if start == 0 {
            buffer.splice(..length.min(buffer.len()), new);
        } else if start >= buffer.len() {
            buffer.extend(new);
        } else {
            return Status::BadArgument;
        }
        Status::Ok
    });
    if status == Status::Ok && kind == REQUEST_BODY {
        // A kept body that outgrows the limit is answered within this very call, unless its own callback runs.
        request::check_size(changed);
    }
    status
}

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_get_header_map_pairs(kind: u32, data: *mut *mut u8, size: *mut usize) -> Status {
    let found = vm::try_with(|vm| {
        // A map that is not there reads as an empty one.
        let stream = vm.streams.get(&vm.context());
        stream
            .and_then(|stream| stream.map(kind))
            .map_or_else(|| Headers::default().encode(), Headers::encode)
    });
    unsafe { give_found(found.map(Ok), data, size) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_set_header_map_pairs(kind: u32, data: *const u8, size: usize) -> Status {
    let Some(new) = Headers::decode(&unsafe { bytes(data, size) }) else { return Status::BadArgument };
    change_map(kind, |headers| *headers = new)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_get_header_map_value(
    kind: u32,
    key: *const u8,
    key_size: usize,
    data: *mut *mut u8,
    size: *mut usize,
) -> Status {
    let key = unsafe { text(key, key_size) };
    let found = vm::try_with(|vm| {
        let stream = vm.streams.get(&vm.context()).ok_or(Status::BadArgument)?;
        let absent = if stream.logging { Status::NotFound } else { Status::BadArgument };
        let headers = stream.map(kind).ok_or(absent)?;
        headers.get(&key).map(<[u8]>::to_vec).ok_or(Status::NotFound)
    });
    unsafe { give_found(found, data, size) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_remove_header_map_value(kind: u32, key: *const u8, key_size: usize) -> Status {
    let key = unsafe { text(key, key_size) };
    change_map(kind, |headers| headers.remove(&key))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_replace_header_map_value(
    kind: u32,
    key: *const u8,
    key_size: usize,
    data: *const u8,
    size: usize,
) -> Status {
    let (key, value) = unsafe { (text(key, key_size), bytes(data, size)) };
    change_map(kind, |headers| headers.set(&key, value))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_add_header_map_value(
    kind: u32,
    key: *const u8,
    key_size: usize,
    data: *const u8,
    size: usize,
) -> Status {
    let (key, value) = unsafe { (text(key, key_size), bytes(data, size)) };
    change_map(kind, |headers| headers.add(&key, value))
}

fn change_map(kind: u32, change: impl FnOnce(&mut Headers)) -> Status {
    host(|vm| {
        let context = vm.context();
        match vm.streams.get_mut(&context).and_then(|stream| stream.map_mut(kind)) {
            Some(headers) => change(headers),
            None => return Status::BadArgument,
        }
        Status::Ok
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_get_property(
    path: *const u8,
    path_size: usize,
    data: *mut *mut u8,
    size: *mut usize,
) -> Status {
    let path = unsafe { bytes(path, path_size) };
    let found = vm::try_with(|vm| property::get(vm, vm.context(), &path).ok_or(Status::NotFound));
    unsafe { give_found(found, data, size) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_set_property(
    path: *const u8,
    path_size: usize,
    data: *const u8,
    size: usize,
) -> Status {
    let (path, value) = unsafe { (text(path, path_size), bytes(data, size)) };
    host(|vm| {
        let context = vm.context();
        match vm.streams.get_mut(&context) {
            Some(stream) => stream.state.insert(path, value),
            None => return Status::NotFound,
        };
        Status::Ok
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_get_shared_data(
    key: *const u8,
    key_size: usize,
    data: *mut *mut u8,
    size: *mut usize,
    cas: *mut u32,
) -> Status {
    let key = unsafe { text(key, key_size) };
    let found = vm::try_with(|vm| {
        let (value, present) =
            vm.process.data().get(&vm.process.settings.vm_id, &key).ok_or(Status::NotFound)?;
        unsafe { *cas = present };
        Ok(value)
    });
    unsafe { give_found(found, data, size) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_set_shared_data(
    key: *const u8,
    key_size: usize,
    data: *const u8,
    size: usize,
    cas: u32,
) -> Status {
    let (key, value) = unsafe { (text(key, key_size), bytes(data, size)) };
    host(|vm| vm.process.data().set(&vm.process.settings.vm_id, &key, value, cas))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_register_shared_queue(name: *const u8, size: usize, token: *mut u32) -> Status {
    let name = unsafe { text(name, size) };
    host(|vm| {
        let (root, inbox) = (vm.root_of(vm.context()), std::sync::Arc::downgrade(&vm.inbox));
        unsafe { *token = vm.process.queues().register(&vm.process.settings.vm_id, &name, root, inbox) };
        Status::Ok
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_resolve_shared_queue(
    vm_id: *const u8,
    vm_id_size: usize,
    name: *const u8,
    name_size: usize,
    token: *mut u32,
) -> Status {
    let (vm_id, name) = unsafe { (text(vm_id, vm_id_size), text(name, name_size)) };
    host(|vm| {
        let vm_id = if vm_id.is_empty() { &vm.process.settings.vm_id } else { &vm_id };
        match vm.process.queues().resolve(vm_id, &name) {
            Some(found) => unsafe { *token = found },
            None => return Status::NotFound,
        }
        Status::Ok
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_dequeue_shared_queue(token: u32, data: *mut *mut u8, size: *mut usize) -> Status {
    let found = vm::try_with(|vm| vm.process.queues().dequeue(token));
    unsafe { give_found(found, data, size) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_enqueue_shared_queue(token: u32, data: *const u8, size: usize) -> Status {
    let message = unsafe { bytes(data, size) };
    host(|vm| vm.process.queues().enqueue(token, message))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_continue_stream(kind: u32) -> Status {
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
    host(|vm| if vm.choose(context) { Status::Ok } else { Status::BadArgument })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_call_foreign_function(
    _name: *const u8,
    _name_size: usize,
    _arguments: *const u8,
    _arguments_size: usize,
    _results: *mut *mut u8,
    _results_size: *mut usize,
) -> Status {
    Status::NotFound
}

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_done() -> Status {
    Status::NotFound
}

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_define_metric(kind: u32, name: *const u8, size: usize, id: *mut u32) -> Status {
    let name = unsafe { text(name, size) };
    let kind = match kind {
        0 => Kind::Counter,
        1 => Kind::Gauge,
        2 => Kind::Histogram,
        _ => return Status::BadArgument,
    };
    host(|vm| {
        let metric = Metric { kind, name };
        vm.process.metrics().define(&metric);
        vm.metrics.push(metric);
        match u32::try_from(vm.metrics.len()) {
            Ok(defined) => unsafe { *id = defined },
            Err(_) => return Status::InternalFailure,
        }
        Status::Ok
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_get_metric(id: u32, value: *mut u64) -> Status {
    with_metric(id, |vm, metric| match vm.process.metrics().value(&metric.name) {
        Some(found) => {
            unsafe { *value = found };
            Status::Ok
        }
        None => Status::BadArgument,
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_record_metric(id: u32, value: u64) -> Status {
    with_metric(id, |vm, metric| {
        vm.process.metrics().record(metric, value);
        Status::Ok
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_increment_metric(id: u32, offset: i64) -> Status {
    with_metric(id, |vm, metric| vm.process.metrics().increment(metric, offset))
}

fn with_metric(id: u32, work: impl FnOnce(&Vm, &Metric) -> Status) -> Status {
    host(|vm| {
        let place = usize::try_from(id).ok().and_then(|id| id.checked_sub(1));
        match place.and_then(|place| vm.metrics.get(place)) {
            Some(metric) => work(vm, metric),
            None => Status::NotFound,
        }
    })
}
