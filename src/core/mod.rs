//! The pure core: bytes, numbers and time as an argument in, decisions out. No host call, clock, log or static.

#![forbid(unsafe_code)]

pub mod body;
pub mod config;
pub mod paths;
pub mod policy;
pub mod units;
