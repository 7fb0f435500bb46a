//! Hostile input for Sluice, and what must hold for any of it. Each check takes bytes and panics where the filter is
//! wrong: libFuzzer finds the bytes, and what it found once is played again by the tests.

pub mod body;
pub mod found;
pub mod head;
#[cfg(feature = "envoy")]
pub mod mutate;
pub mod policy;
pub mod seeds;
pub mod twin;
