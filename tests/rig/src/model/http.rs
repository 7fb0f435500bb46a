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
use serde_json::{Value, json};
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

async fn models(State(shared): State<Shared>) -> Response {
    let model = json!({"id": MODEL, "object": "model", "created": 0, "owned_by": "rig", "root": MODEL,
                       "parent": null, "max_model_len": shared.max_model_len});
    Json(json!({"object": "list", "data": [model]})).into_response()
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

/// The events that one token brings: itself, before the first one how the stream begins, after the last one how it ends.
fn events(ask: &Ask, id: u64, token: Token) -> Vec<Result<Event, Infallible>> {
    let begin = (token.index == 0).then(|| ask.role_chunk(id)).flatten();
    let mut events: Vec<String> = begin.iter().map(Value::to_string).collect();
    events.push(ask.chunk(id, token.index, token.last).to_string());
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::preset::Preset;

    /// A server, and who asks it.
    struct Asked {
        server: ModelServer,
        client: reqwest::Client,
    }

    impl Asked {
        async fn new() -> Asked {
            let server = ModelServer::start(0, Preset::Gpu.spec()).await.unwrap();
            Asked { server, client: reqwest::Client::builder().no_proxy().build().unwrap() }
        }

        fn url(&self, path: &str) -> String {
            format!("http://{}{path}", self.server.address())
        }

        async fn get(&self, path: &str) -> String {
            self.client.get(self.url(path)).send().await.unwrap().text().await.unwrap()
        }

        async fn post(&self, path: &str, body: &Value) -> (u16, String) {
            let answer = self.client.post(self.url(path)).body(body.to_string()).send().await.unwrap();
            (answer.status().as_u16(), answer.text().await.unwrap())
        }

        /// The value of a metric without labels of its own.
        async fn metric(&self, name: &str) -> f64 {
            let labels = format!("{{engine=\"0\",model_name=\"{MODEL}\"}} ");
            let page = self.get("/metrics").await;
            let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(labels.as_str()));
            line.unwrap_or_else(|| panic!("{name} is not in {page}")).parse().unwrap()
        }
    }

    /// The events of a stream, without the last one, which says that it ends.
    fn events(stream: &str) -> Vec<Value> {
        let events = stream.strip_suffix("data: [DONE]\n\n").expect(stream);
        let data = events.split_terminator("\n\n").map(|event| event.strip_prefix("data: ").expect(event));
        data.map(|data| serde_json::from_str(data).unwrap()).collect()
    }

    #[tokio::test]
    async fn a_shared_prefix_that_is_found_shows_in_usage_and_metrics() {
        let asked = Asked::new().await;
        // 40 tokens: two full blocks of 16.
        let system = "x".repeat(160);
        let mut cached = Vec::new();
        for (user, stream) in [("Open!", false), ("Close!", false), ("Wait!", true)] {
            let body = json!({
                "messages": [{"role": "system", "content": system}, {"role": "user", "content": user}],
                "max_tokens": 2, "stream": stream, "stream_options": {"include_usage": true},
            });
            let (status, answer) = asked.post("/v1/chat/completions", &body).await;
            assert_eq!(status, 200, "{answer}");
            let answer = match stream {
                true => events(&answer).pop().unwrap(),
                false => serde_json::from_str(&answer).unwrap(),
            };
            assert_eq!(answer["usage"]["prompt_tokens"], 42);
            cached.push(answer["usage"]["prompt_tokens_details"]["cached_tokens"].clone());
        }
        assert_eq!(cached, [Value::Null, json!(32), json!(32)]);
        assert_eq!(asked.metric("vllm:prefix_cache_queries_total").await, 3.0 * 42.0);
        assert_eq!(asked.metric("vllm:prefix_cache_hits_total").await, 2.0 * 32.0);
        assert_eq!(asked.metric("vllm:prompt_tokens_total").await, 3.0 * 42.0);
        assert_eq!(asked.metric("vllm:generation_tokens_total").await, 6.0);
    }

    #[tokio::test]
    async fn a_chat_is_streamed_as_real_servers_do() {
        let asked = Asked::new().await;
        let body =
            json!({"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 3, "stream": true});
        let (_, answer) = asked.post("/v1/chat/completions", &body).await;
        let choices: Vec<Value> = events(&answer).iter().map(|event| event["choices"][0].clone()).collect();
        assert_eq!(choices.len(), 4, "the role and three tokens: {answer}");
        assert_eq!(choices[0]["delta"], json!({"role": "assistant", "content": ""}));
        assert!(choices[1..].iter().all(|choice| choice["delta"]["content"] != ""), "{answer}");
        let reasons: Vec<&Value> = choices.iter().map(|choice| &choice["finish_reason"]).collect();
        assert_eq!(reasons, [&Value::Null, &Value::Null, &Value::Null, &json!("length")]);
        assert_eq!(events(&answer).iter().filter(|event| !event["usage"].is_null()).count(), 0);
        let body = json!({"prompt": "Hello", "max_tokens": 3, "stream": true});
        let (_, answer) = asked.post("/v1/completions", &body).await;
        assert_eq!(events(&answer).len(), 3, "{answer}");
    }

    #[tokio::test]
    async fn what_is_wrong_is_said_in_openais_shape() {
        let asked = Asked::new().await;
        let long = json!({"messages": [{"role": "user", "content": "x".repeat(40_000 * 4)}]});
        for (path, body, status) in [
            ("/v1/nothing", json!({}), 404),
            ("/v1/chat/completions", json!({}), 400),
            ("/v1/chat/completions", long, 400),
        ] {
            let (got, answer) = asked.post(path, &body).await;
            let answer: Value = serde_json::from_str(&answer).unwrap();
            assert_eq!((got, &answer["error"]["code"]), (status, &json!(status)), "{path}: {answer}");
            assert!(answer["error"]["message"].is_string(), "{answer}");
        }
        assert!(asked.get("/v1/models").await.contains("\"max_model_len\":32768"));
        assert_eq!(asked.get("/health").await, "");
    }
}
