//! Test ground of Sluice: launches Envoy, simulates a model server, sends load.

pub mod envoy;
pub mod model;
