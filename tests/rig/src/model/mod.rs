//! An OpenAI-compatible model server without a model: the
//! [simulator](crate::sim) in real time, saying deterministic words.

pub mod engine;
pub mod gauges;
pub mod http;
pub mod wire;
