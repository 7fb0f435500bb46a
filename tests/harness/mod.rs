//! A simulated Envoy around the very filter code: the proxy-wasm ABI defined natively, header and body passage,
//! deferred actions, timers, queues and the end of streams as Envoy 1.40 has them. Tests ask questions of the outcome;
//! they do not script call order.
//!
//! One OS thread is one VM, since the SDK keeps its dispatcher in a thread-local. What Envoy shares between its threads
//! is a [`process::Process`]; a [`worker::Worker`] is a thread with a VM; the other files are what lies inside a VM.

mod abi;
mod client;
mod clock;
mod crew;
mod ending;
mod guest;
mod headers;
mod metrics;
pub mod process;
mod property;
mod request;
mod response;
mod root;
mod shared;
mod stream;
mod upstream;
mod vm;
mod worker;
pub mod world;
