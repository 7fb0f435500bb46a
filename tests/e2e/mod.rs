//! What is only true of the real Envoy, and the stories' world on it.

mod bare;
mod connections;
mod corpus;
mod exchange;
mod http2;
mod idle;
mod load;
mod memory;
mod model;
mod module;
mod operate;
mod settings;
mod shipped;
mod watched;
mod wire;
mod workers;
mod world;

pub use world::RealWorld;

use crate::stories::{Answer, Body, Protocol, Request};

/// A chat with a prompt of `chars` characters and no limit of its own.
fn chat(chars: usize) -> Request {
    post(
        "/v1/chat/completions",
        &format!(r#"{{"messages":[{{"role":"user","content":"{}"}}]}}"#, "x".repeat(chars)),
    )
}

fn post(path: &str, body: &str) -> Request {
    Request {
        method: "POST".to_owned(),
        path: path.to_owned(),
        headers: vec![("content-type".to_owned(), b"application/json".to_vec())],
        body: Body::Whole(body.as_bytes().to_vec()),
        protocol: Protocol::Http1,
    }
}

fn ok() -> Answer {
    Answer::Whole { status: 200, headers: Vec::new(), body: b"{}".to_vec() }
}
