//! Log lines, kept by level.

use super::{Status, note, text};
use crate::harness::vm;

const CRITICAL: u32 = 5;

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_log(level: u32, data: *const u8, size: usize) -> Status {
    note("proxy_log");
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
    note("proxy_get_log_level");
    unsafe { *level = 0 };
    Status::Ok
}
