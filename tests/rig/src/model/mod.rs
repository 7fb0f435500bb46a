//! An OpenAI-compatible model server without a model: it batches continuously and says deterministic words.

pub mod batch;
pub mod cost;
pub mod engine;
pub mod gauges;
pub mod http;
pub mod wire;
