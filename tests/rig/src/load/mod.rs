//! The load: planned in advance, sent on time whatever the answers do, measured from the planned arrival.

pub mod client;
pub mod command;
pub mod drive;
pub mod outcome;
pub mod published;
pub mod request;
pub mod retry;
pub mod sse;
pub mod trace;
pub mod traffic;
pub mod workload;
