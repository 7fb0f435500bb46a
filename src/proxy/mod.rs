//! The glue to Envoy's wasm host: the only place, beside the entry hook, that knows proxy-wasm.

mod envoy;
mod http;
mod map;
mod metrics;
mod raw;
mod root;
#[cfg(feature = "trap")]
mod trap;

use proxy_wasm::types::LogLevel;

/// Tells the SDK how to make our contexts; called once when the VM starts.
pub fn register() {
    // Also installs the panic hook that logs where a panic was. Envoy's own level filters what is logged.
    proxy_wasm::set_log_level(LogLevel::Info);
    proxy_wasm::set_root_context(|_| Box::new(root::Root::default()));
}
