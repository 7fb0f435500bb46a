//! A model server without sockets and without a clock: time is an argument. The same batch runs in real time behind
//! `rig serve` and in virtual time, thousands of requests a second, wherever the rig computes what would happen.

pub mod batch;
pub mod blocks;
pub mod cluster;
pub mod dynamic;
pub mod job;
pub mod options;
pub mod preset;
pub mod replay;
mod sequence;
pub mod spec;

#[cfg(test)]
mod effects;
