//! The rest of the ABI: calls to other services, which the SDK links and the filter must never make.

use super::abi::Status;
use super::vm;

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
extern "C" fn proxy_get_status() -> Status {
    refuse("proxy_get_status")
}
