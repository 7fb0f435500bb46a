//! `rig advise`: the filter's own engine over a trace in virtual time, for a grid of policies, and which of them to take.

pub mod ask;
pub mod bound;
mod filter;
mod host;
pub mod run;
mod server;
