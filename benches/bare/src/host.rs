//! Envoy's host calls. One that is refused traps.

use std::ptr::null_mut;

/// The header map of a request.
pub const REQUEST: u32 = 0;
/// The header map of a response.
pub const RESPONSE: u32 = 2;
/// A metric that only grows.
pub const COUNTER: u32 = 0;
/// A metric that is a distribution.
pub const HISTOGRAM: u32 = 2;

const REQUEST_BODY: u32 = 0;
const PLUGIN_CONFIGURATION: u32 = 7;
const ERROR: u32 = 4;
const MONOTONIC: u32 = 1;

#[link(wasm_import_module = "env")]
unsafe extern "C" {
    fn proxy_log(level: u32, text: *const u8, len: usize) -> u32;
    fn proxy_get_buffer_bytes(
        kind: u32,
        start: usize,
        size: usize,
        data: *mut *mut u8,
        len: *mut usize,
    ) -> u32;
    fn proxy_set_buffer_bytes(kind: u32, start: usize, size: usize, data: *const u8, len: usize) -> u32;
    fn proxy_get_header_map_pairs(map: u32, data: *mut *mut u8, len: *mut usize) -> u32;
    fn proxy_replace_header_map_value(
        map: u32,
        name: *const u8,
        len: usize,
        value: *const u8,
        len: usize,
    ) -> u32;
    fn proxy_add_header_map_value(map: u32, name: *const u8, len: usize, value: *const u8, len: usize)
    -> u32;
    fn proxy_set_property(path: *const u8, len: usize, value: *const u8, len: usize) -> u32;
    fn proxy_set_shared_data(key: *const u8, len: usize, data: *const u8, len: usize, version: u32) -> u32;
    fn proxy_define_metric(kind: u32, name: *const u8, len: usize, id: *mut u32) -> u32;
    fn proxy_record_metric(id: u32, value: u64) -> u32;
    fn proxy_increment_metric(id: u32, offset: i64) -> u32;
}

#[link(wasm_import_module = "wasi_snapshot_preview1")]
unsafe extern "C" {
    fn clock_time_get(id: u32, precision: u64, time: *mut u64) -> u16;
}

// SAFETY of every block below: pointers come from live slices and locals, with their lengths, and the host keeps none
// of them beyond the call.

/// Writes an error to Envoy's log.
pub fn complain(text: &str) {
    // SAFETY: see above.
    done(unsafe { proxy_log(ERROR, text.as_ptr(), text.len()) });
}

/// The plugin configuration of `size` bytes.
pub fn configuration(size: usize) -> Vec<u8> {
    // SAFETY: see above.
    fetch(|data, len| unsafe { proxy_get_buffer_bytes(PLUGIN_CONFIGURATION, 0, size, data, len) })
}

/// The first `size` bytes of the request body.
pub fn body(size: usize) -> Vec<u8> {
    // SAFETY: see above.
    fetch(|data, len| unsafe { proxy_get_buffer_bytes(REQUEST_BODY, 0, size, data, len) })
}

/// Puts `bytes` in the place of the first `len` bytes of the request body.
pub fn replace_body_prefix(len: usize, bytes: &[u8]) {
    // SAFETY: see above.
    done(unsafe { proxy_set_buffer_bytes(REQUEST_BODY, 0, len, bytes.as_ptr(), bytes.len()) });
}

/// A header map, serialized.
pub fn headers(map: u32) -> Vec<u8> {
    // SAFETY: see above.
    fetch(|data, len| unsafe { proxy_get_header_map_pairs(map, data, len) })
}

/// Sets a header of the request.
pub fn set_header(name: &str, value: &str) {
    // SAFETY: see above.
    done(unsafe {
        proxy_replace_header_map_value(REQUEST, name.as_ptr(), name.len(), value.as_ptr(), value.len())
    });
}

/// Adds a header to the response.
pub fn add_header(name: &str, value: &str) {
    // SAFETY: see above.
    done(unsafe {
        proxy_add_header_map_value(RESPONSE, name.as_ptr(), name.len(), value.as_ptr(), value.len())
    });
}

/// Sets filter state `wasm.<name>`.
pub fn set_property(name: &str, value: &str) {
    // SAFETY: see above.
    done(unsafe { proxy_set_property(name.as_ptr(), name.len(), value.as_ptr(), value.len()) });
}

/// Writes a record that all VMs share, whatever its version.
pub fn set_shared_data(key: &str, record: &[u8]) {
    // SAFETY: see above.
    done(unsafe { proxy_set_shared_data(key.as_ptr(), key.len(), record.as_ptr(), record.len(), 0) });
}

/// Makes a metric: its id.
pub fn define_metric(kind: u32, name: &str) -> u32 {
    let mut id = 0;
    // SAFETY: see above.
    done(unsafe { proxy_define_metric(kind, name.as_ptr(), name.len(), &raw mut id) });
    id
}

/// Adds a sample to a histogram.
pub fn record_metric(id: u32, value: u64) {
    // SAFETY: numbers only.
    done(unsafe { proxy_record_metric(id, value) });
}

/// Counts one more.
pub fn increment_metric(id: u32) {
    // SAFETY: numbers only.
    done(unsafe { proxy_increment_metric(id, 1) });
}

/// Reads the monotonic clock.
pub fn clock() {
    let mut time = 0;
    // SAFETY: see above.
    done(unsafe { clock_time_get(MONOTONIC, 1, &raw mut time) }.into());
}

fn fetch(call: impl FnOnce(*mut *mut u8, *mut usize) -> u32) -> Vec<u8> {
    let (mut data, mut len) = (null_mut(), 0);
    done(call(&raw mut data, &raw mut len));
    if data.is_null() || len == 0 {
        return Vec::new();
    }
    // SAFETY: the host got `data` from `proxy_on_memory_allocate`, which made it with this length and let go of it.
    unsafe { Vec::from_raw_parts(data, len, len) }
}

fn done(status: u32) {
    assert!(status == 0, "the host refuses with status {status}");
}
