//! The host's side of the proxy-wasm ABI 0.2.1, and the two WASI functions that the filter imports besides.
//!
//! Each function copies what the guest passed and changes the state of this thread's VM; where Envoy defers its work,
//! so does this. None may panic: they are called through `extern "C"`.

mod body;
mod calls;
mod clock;
mod log;
mod maps;
mod metrics;
mod property;
mod shared;
mod stream;

use std::slice;

use super::guest;
use super::vm::{self, Vm};

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

/// Counts a call that the filter makes.
fn note(call: &'static str) {
    vm::try_with(|vm| *vm.process.calls().entry(call).or_default() += 1);
}

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
