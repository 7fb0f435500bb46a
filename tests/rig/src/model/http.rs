//! The server's sockets: endpoints, streams of events, errors.

use super::engine::Engine;
use super::gauges::Gauges;
use super::wire::{self, Ask, Endpoint};
use crate::sim::job::Token;
use crate::sim::spec::Spec;
use anyhow::{Context as _, Result};
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{StatusCode, header};
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::{get, post};
use axum::serve::ListenerExt;
use futures_util::{StreamExt, stream};
use serde_json::json;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_stream::wrappers::UnboundedReceiverStream;

/// The name under which the model is listed; any other is served just as well.
pub const MODEL: &str = "simulated";
/// Largest body taken, in bytes: above what the shipped policy lets through, so that the filter's limit is the
/// one that is met.
const MAX_BODY_BYTES: usize = 16 << 20;

/// A running model server; it ends when dropped.
#[derive(Debug)]
pub struct ModelServer {
    address: SocketAddr,
    engine: Engine,
    task: JoinHandle<std::io::Result<()>>,
}

impl ModelServer {
    /// Serves on 127.0.0.1, on a free port when `port` is 0. An error says which port cannot be had, or what is wrong
    /// with `spec`.
    pub async fn start(port: u16, spec: Spec) -> Result<ModelServer> {
        let engine = Engine::start(spec)?;
        let listener = TcpListener::bind(("127.0.0.1", port));
        let listener = listener.await.with_context(|| format!("cannot listen on 127.0.0.1:{port}"))?;
        let address = listener.local_addr()?;
        // A token must not wait until the one before it is acknowledged, which on a kept connection takes 40 ms.
        let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
        let task =
            tokio::spawn(axum::serve(listener, routes(engine.clone(), spec.max_model_len)).into_future());
        Ok(ModelServer { address, engine, task })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its figures.
    pub fn gauges(&self) -> &Gauges {
        self.engine.gauges()
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What the handlers share.
#[derive(Clone)]
struct Shared {
    engine: Engine,
    max_model_len: u32,
    answers: Arc<AtomicU64>,
}

fn routes(engine: Engine, max_model_len: u32) -> axum::Router {
    axum::Router::new()
        .route("/v1/chat/completions", post(chat))
        .route("/v1/completions", post(text))
        .route("/v1/models", get(models))
        .route("/health", get(|| async { StatusCode::OK }))
        .route("/metrics", get(metrics))
        .fallback(|| async { refuse(StatusCode::NOT_FOUND, "NotFoundError", "no such endpoint") })
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .with_state(Shared { engine, max_model_len, answers: Arc::default() })
}

async fn chat(State(shared): State<Shared>, body: Bytes) -> Response {
    generate(&shared, Endpoint::Chat, &body).await
}

async fn text(State(shared): State<Shared>, body: Bytes) -> Response {
    generate(&shared, Endpoint::Text, &body).await
}

async fn models() -> Response {
    Json(json!({"object": "list", "data": [{"id": MODEL, "object": "model", "created": 0, "owned_by": "rig"}]}))
        .into_response()
}

async fn metrics(State(shared): State<Shared>) -> Response {
    match shared.engine.gauges().exposition() {
        Ok(text) => ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response(),
        Err(error) => fail(&error.to_string()),
    }
}

async fn generate(shared: &Shared, endpoint: Endpoint, body: &[u8]) -> Response {
    let ask = match Ask::read(endpoint, body, shared.max_model_len) {
        Ok(ask) => ask,
        Err(message) => return refuse(StatusCode::BAD_REQUEST, "BadRequestError", &message),
    };
    let id = shared.answers.fetch_add(1, Relaxed);
    let mut tokens = shared.engine.submit(ask.job());
    if ask.stream {
        let events =
            UnboundedReceiverStream::new(tokens).flat_map(move |token| stream::iter(events(&ask, id, token)));
        return Sse::new(events).into_response();
    }
    // A client that closes its connection drops this future, and with it the receiver.
    let mut latest = None;
    while let Some(token) = tokens.recv().await {
        latest = Some(token);
    }
    match latest {
        Some(token) if token.last => Json(ask.answer(id, token.cached_tokens)).into_response(),
        _ => fail("the engine ended"),
    }
}

/// The events that one token brings: itself and, after the last one, how the stream ends.
fn events(ask: &Ask, id: u64, token: Token) -> Vec<Result<Event, Infallible>> {
    let mut events = vec![ask.chunk(id, token.index, token.last).to_string()];
    if token.last && ask.include_usage {
        events.push(ask.usage_chunk(id, token.cached_tokens).to_string());
    }
    if token.last {
        events.push("[DONE]".to_owned());
    }
    events.into_iter().map(|data| Ok(Event::default().data(data))).collect()
}

fn fail(message: &str) -> Response {
    refuse(StatusCode::INTERNAL_SERVER_ERROR, "InternalServerError", message)
}

fn refuse(status: StatusCode, kind: &str, message: &str) -> Response {
    (status, Json(wire::error(status.as_u16(), kind, message))).into_response()
}
