//! Sluice: an Envoy proxy-wasm filter that keeps short LLM requests fast.
//!
//! `core` decides, `stream` tells the life of one request, `proxy` speaks with Envoy's wasm host.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::todo,
    clippy::unimplemented,
    clippy::unreachable,
    clippy::string_slice,
    missing_docs
)]
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::string_slice
    )
)]

pub mod core;
pub mod host;
pub mod stream;
pub mod worker;

#[cfg(feature = "envoy")]
mod proxy;

#[cfg(feature = "envoy")]
mod entry {
    proxy_wasm::main! {{
        crate::proxy::register();
    }}
}
