//! The pure core: bytes, numbers and time as an argument in, decisions out. No host call, clock, log or static.

#![forbid(unsafe_code)]

pub mod admission;
pub mod body;
pub mod buffered;
pub mod clamp;
pub mod classify;
pub mod config;
pub mod engine;
pub mod fairness;
pub mod head;
pub mod intake;
pub mod paths;
pub mod policy;
pub mod refusal;
pub mod units;
