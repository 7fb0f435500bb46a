//! Envoy's host calls, returning their statuses. The SDK's wrappers panic on every status but Ok, and a panic takes the
//! worker's VM and all of its streams with it.

use std::ptr::null_mut;

/// A status other than Ok, as the host numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed(pub u32);

/// The buffers read here.
#[derive(Clone, Copy)]
#[repr(u32)]
pub enum Buffer {
    /// The request body received so far.
    RequestBody = 0,
    /// The filter's configuration.
    PluginConfiguration = 7,
}

/// The header maps used here.
#[derive(Clone, Copy)]
#[repr(u32)]
pub enum Map {
    /// The request's headers.
    Request = 0,
    /// The request's trailers.
    RequestTrailers = 1,
    /// The response's headers.
    Response = 2,
    /// The response's trailers.
    ResponseTrailers = 3,
}

/// The kinds of metrics.
#[derive(Clone, Copy)]
#[repr(u32)]
pub enum Metric {
    /// Only grows.
    Counter = 0,
    /// Goes up and down.
    Gauge = 1,
    /// A distribution of whole numbers.
    Histogram = 2,
}

const REQUEST: u32 = 0;
const MONOTONIC: u32 = 1;

mod imports {
    #[link(wasm_import_module = "env")]
    unsafe extern "C" {
        pub fn proxy_get_log_level(level: *mut u32) -> u32;
        pub fn proxy_set_tick_period_milliseconds(period: u32) -> u32;
        pub fn proxy_get_buffer_bytes(
            kind: u32,
            start: usize,
            size: usize,
            data: *mut *mut u8,
            len: *mut usize,
        ) -> u32;
        pub fn proxy_set_buffer_bytes(
            kind: u32,
            start: usize,
            size: usize,
            data: *const u8,
            len: usize,
        ) -> u32;
        pub fn proxy_get_header_map_pairs(map: u32, data: *mut *mut u8, len: *mut usize) -> u32;
        pub fn proxy_remove_header_map_value(map: u32, name: *const u8, len: usize) -> u32;
        pub fn proxy_replace_header_map_value(
            map: u32,
            name: *const u8,
            name_len: usize,
            value: *const u8,
            value_len: usize,
        ) -> u32;
        pub fn proxy_add_header_map_value(
            map: u32,
            name: *const u8,
            name_len: usize,
            value: *const u8,
            value_len: usize,
        ) -> u32;
        pub fn proxy_get_property(path: *const u8, len: usize, data: *mut *mut u8, len: *mut usize) -> u32;
        pub fn proxy_set_property(path: *const u8, len: usize, value: *const u8, value_len: usize) -> u32;
        pub fn proxy_get_shared_data(
            key: *const u8,
            key_len: usize,
            data: *mut *mut u8,
            len: *mut usize,
            cas: *mut u32,
        ) -> u32;
        pub fn proxy_set_shared_data(
            key: *const u8,
            key_len: usize,
            data: *const u8,
            len: usize,
            cas: u32,
        ) -> u32;
        pub fn proxy_register_shared_queue(name: *const u8, len: usize, token: *mut u32) -> u32;
        pub fn proxy_dequeue_shared_queue(token: u32, data: *mut *mut u8, len: *mut usize) -> u32;
        pub fn proxy_enqueue_shared_queue(token: u32, data: *const u8, len: usize) -> u32;
        pub fn proxy_continue_stream(kind: u32) -> u32;
        pub fn proxy_send_local_response(
            status: u32,
            details: *const u8,
            details_len: usize,
            body: *const u8,
            body_len: usize,
            headers: *const u8,
            headers_len: usize,
            grpc_status: i32,
        ) -> u32;
        pub fn proxy_set_effective_context(id: u32) -> u32;
        pub fn proxy_define_metric(kind: u32, name: *const u8, len: usize, id: *mut u32) -> u32;
        pub fn proxy_record_metric(id: u32, value: u64) -> u32;
        pub fn proxy_increment_metric(id: u32, offset: i64) -> u32;
    }

    #[link(wasm_import_module = "wasi_snapshot_preview1")]
    unsafe extern "C" {
        pub fn clock_time_get(id: u32, precision: u64, time: *mut u64) -> u16;
        pub fn random_get(data: *mut u8, len: usize) -> u16;
    }
}

type Done = Result<(), Failed>;

fn done(status: u32) -> Done {
    if status == 0 { Ok(()) } else { Err(Failed(status)) }
}

/// Takes over what the host has put into memory that it got from `proxy_on_memory_allocate`.
fn owned(data: *mut u8, len: usize) -> Vec<u8> {
    if data.is_null() || len == 0 {
        return Vec::new();
    }
    // SAFETY: the SDK's allocator made `data` as a boxed slice of exactly `len` bytes and has let go of it.
    unsafe { Vec::from_raw_parts(data, len, len) }
}

/// Calls the host for bytes.
fn fetch(call: impl FnOnce(*mut *mut u8, *mut usize) -> u32) -> Result<Vec<u8>, Failed> {
    let (mut data, mut len) = (null_mut(), 0);
    done(call(&raw mut data, &raw mut len))?;
    Ok(owned(data, len))
}

// SAFETY of every block below: pointers come from live slices and locals, with their lengths, and the host keeps none
// of them beyond the call.

/// Envoy's level of the `wasm` logger: 0 = trace to 5 = critical.
pub fn log_level() -> Result<u32, Failed> {
    let mut level = 0;
    done(unsafe { imports::proxy_get_log_level(&raw mut level) }).map(|()| level)
}

/// Sets the timer's period in milliseconds; 0 stops it.
pub fn set_tick_period(millis: u32) -> Done {
    done(unsafe { imports::proxy_set_tick_period_milliseconds(millis) })
}

/// The first `size` bytes of a buffer.
pub fn buffer(kind: Buffer, size: usize) -> Result<Vec<u8>, Failed> {
    fetch(|data, len| unsafe { imports::proxy_get_buffer_bytes(kind as u32, 0, size, data, len) })
}

/// Puts `bytes` in the place of the first `len` bytes of the request body.
pub fn replace_body_prefix(len: usize, bytes: &[u8]) -> Done {
    let kind = Buffer::RequestBody as u32;
    done(unsafe { imports::proxy_set_buffer_bytes(kind, 0, len, bytes.as_ptr(), bytes.len()) })
}

/// A header map, serialized; see `map`.
pub fn headers(map: Map) -> Result<Vec<u8>, Failed> {
    fetch(|data, len| unsafe { imports::proxy_get_header_map_pairs(map as u32, data, len) })
}

/// Removes all values of a header.
pub fn remove_header(map: Map, name: &[u8]) -> Done {
    done(unsafe { imports::proxy_remove_header_map_value(map as u32, name.as_ptr(), name.len()) })
}

/// Sets a header, replacing all of its values.
pub fn set_header(map: Map, name: &str, value: &[u8]) -> Done {
    done(unsafe {
        imports::proxy_replace_header_map_value(
            map as u32,
            name.as_ptr(),
            name.len(),
            value.as_ptr(),
            value.len(),
        )
    })
}

/// Adds a value to a header.
pub fn add_header(map: Map, name: &str, value: &[u8]) -> Done {
    done(unsafe {
        imports::proxy_add_header_map_value(
            map as u32,
            name.as_ptr(),
            name.len(),
            value.as_ptr(),
            value.len(),
        )
    })
}

/// A property; `path` has its segments joined by NUL.
pub fn property(path: &str) -> Result<Vec<u8>, Failed> {
    fetch(|data, len| unsafe { imports::proxy_get_property(path.as_ptr(), path.len(), data, len) })
}

/// Sets filter state `wasm.<name>`.
pub fn set_property(name: &str, value: &[u8]) -> Done {
    done(unsafe { imports::proxy_set_property(name.as_ptr(), name.len(), value.as_ptr(), value.len()) })
}

/// A record that all VMs share, and its version.
pub fn shared_data(key: &str) -> Result<(Vec<u8>, u32), Failed> {
    let mut version = 0;
    let record = fetch(|data, len| unsafe {
        imports::proxy_get_shared_data(key.as_ptr(), key.len(), data, len, &raw mut version)
    })?;
    Ok((record, version))
}

/// Writes a record where it has this version; where there is none yet, with any version but 0.
pub fn set_shared_data(key: &str, record: &[u8], version: u32) -> Done {
    done(unsafe {
        imports::proxy_set_shared_data(key.as_ptr(), key.len(), record.as_ptr(), record.len(), version)
    })
}

/// Makes this VM's root the receiver of a queue: its token.
pub fn register_queue(name: &str) -> Result<u32, Failed> {
    let mut token = 0;
    done(unsafe { imports::proxy_register_shared_queue(name.as_ptr(), name.len(), &raw mut token) })
        .map(|()| token)
}

/// Takes one message out of a queue; an error where it is empty.
pub fn dequeue(token: u32) -> Result<Vec<u8>, Failed> {
    fetch(|data, len| unsafe { imports::proxy_dequeue_shared_queue(token, data, len) })
}

/// Puts an empty message into a queue, which wakes its receiver.
pub fn enqueue(token: u32) -> Done {
    done(unsafe { imports::proxy_enqueue_shared_queue(token, [].as_ptr(), 0) })
}

/// Lets the held request go on, after the present callback.
pub fn resume_request() -> Done {
    done(unsafe { imports::proxy_continue_stream(REQUEST) })
}

/// Answers in the upstream's place, after the present callback. `headers` are serialized; see `map`.
pub fn respond(status: u16, details: &str, body: &[u8], headers: &[u8]) -> Done {
    done(unsafe {
        imports::proxy_send_local_response(
            u32::from(status),
            details.as_ptr(),
            details.len(),
            body.as_ptr(),
            body.len(),
            headers.as_ptr(),
            headers.len(),
            -1,
        )
    })
}

/// Makes later calls act on a stream. On failure the one chosen before stays in force.
pub fn set_effective_context(id: u32) -> Done {
    done(unsafe { imports::proxy_set_effective_context(id) })
}

/// Makes a metric, shared by name with all workers; the id is this VM's.
pub fn define_metric(kind: Metric, name: &str) -> Result<u32, Failed> {
    let mut id = 0;
    done(unsafe { imports::proxy_define_metric(kind as u32, name.as_ptr(), name.len(), &raw mut id) })
        .map(|()| id)
}

/// Sets a gauge or adds a sample to a histogram.
pub fn record_metric(id: u32, value: u64) -> Done {
    done(unsafe { imports::proxy_record_metric(id, value) })
}

/// Changes a counter (only upwards) or a gauge.
pub fn increment_metric(id: u32, offset: i64) -> Done {
    done(unsafe { imports::proxy_increment_metric(id, offset) })
}

/// The monotonic clock in nanoseconds, the same for all workers of the process; 0 where the host has none.
pub fn monotonic_nanos() -> u64 {
    let mut time = 0;
    let _ = unsafe { imports::clock_time_get(MONOTONIC, 1, &raw mut time) };
    time
}

/// Random bytes as a number.
pub fn random() -> u64 {
    let mut bytes = [0u8; 8];
    let _ = unsafe { imports::random_get(bytes.as_mut_ptr(), bytes.len()) };
    u64::from_le_bytes(bytes)
}
