//! The rest of the ABI: calls to other services, which the SDK links and the filter must never make.

use super::Status;
use crate::harness::vm;

/// Notes the call that should not be and refuses it.
fn refuse(name: &str) -> Status {
    vm::try_with(|vm| vm.process.fault(format!("the filter called {name}")));
    Status::InternalFailure
}

#[unsafe(no_mangle)]
extern "C" fn proxy_http_call() -> Status {
    refuse("proxy_http_call")
}

#[unsafe(no_mangle)]
extern "C" fn proxy_grpc_call() -> Status {
    refuse("proxy_grpc_call")
}

#[unsafe(no_mangle)]
extern "C" fn proxy_grpc_stream() -> Status {
    refuse("proxy_grpc_stream")
}

#[unsafe(no_mangle)]
extern "C" fn proxy_grpc_send() -> Status {
    refuse("proxy_grpc_send")
}

#[unsafe(no_mangle)]
extern "C" fn proxy_grpc_cancel() -> Status {
    refuse("proxy_grpc_cancel")
}

#[unsafe(no_mangle)]
extern "C" fn proxy_grpc_close() -> Status {
    refuse("proxy_grpc_close")
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
extern "C" fn proxy_get_status() -> Status {
    refuse("proxy_get_status")
}
