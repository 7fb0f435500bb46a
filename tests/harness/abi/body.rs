//! Buffers: bodies and the configuration.

use super::{Status, bytes, give_found, host, note};
use crate::harness::{request, vm};

const REQUEST_BODY: u32 = 0;
const PLUGIN_CONFIGURATION: u32 = 7;

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_get_buffer_bytes(
    kind: u32,
    start: usize,
    length: usize,
    data: *mut *mut u8,
    size: *mut usize,
) -> Status {
    note("proxy_get_buffer_bytes");
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
    note("proxy_set_buffer_bytes");
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
