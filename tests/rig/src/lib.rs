//! Test ground of Sluice: launches Envoy, simulates a model server, sends load.

pub mod advise;
pub mod bench;
pub mod compare;
pub mod curve;
pub mod demo;
pub mod envoy;
pub mod front;
pub mod http1;
pub mod load;
pub mod model;
pub mod overhead;
pub mod peers;
pub mod process;
pub mod report;
pub mod run;
pub mod sim;
pub mod sweep;
