//! A filter without a thought: it makes the host calls that Sluice makes for a request, step by step, and nothing else.
//! What Envoy needs for it is the floor below which no filter with the same effects can come.
//!
//! `./build.sh bench overhead` measures it. The plugin configuration says which steps to take, see [`plan::Plan`]. A call
//! that the host refuses traps, so that nothing is measured that did not happen.

#![deny(clippy::undocumented_unsafe_blocks)]

pub mod plan;

// Without a wasm host there is nobody to call.
#[cfg(target_family = "wasm")]
mod callbacks;
#[cfg(target_family = "wasm")]
mod host;
