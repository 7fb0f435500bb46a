//! Sends one request, again where it fails as SDKs do, and watches its answer.

use super::outcome::{Failure, Outcome, Served};
use super::retry::{self, Advice};
use super::sse::Events;
use super::traffic::Planned;
use anyhow::Result;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use reqwest::{Client, Response, header};
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout_at};

/// How long a client waits for the end of its answer, from the planned arrival on. What has no answer by then,
/// or is refused, counts as this long.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// How clients behave.
#[derive(Clone, Debug)]
pub struct Options {
    /// How long a client waits for the end of its answer, from the planned moment on and over all attempts.
    pub timeout: Duration,
    /// How long it waits for one attempt before it tries again; none: as long as for all.
    pub attempt_timeout: Option<Duration>,
    /// How often it tries again; 2 in OpenAI's and Anthropic's SDKs.
    pub max_retries: u32,
    /// Whether connections are kept for later requests. Without, each attempt has its own, and no request is lost on
    /// one that the server is just closing, as llama.cpp's does after answers.
    pub keep_alive: bool,
    /// Whether an answer of another length than planned is none.
    pub exact: bool,
}

/// One attempt, and exactly what was asked for.
impl Default for Options {
    fn default() -> Options {
        Options { timeout: PATIENCE, attempt_timeout: None, max_retries: 0, keep_alive: true, exact: true }
    }
}

impl Options {
    /// The client that sends so.
    ///
    /// # Errors
    ///
    /// When the system does not let it have what it needs.
    pub fn client(&self) -> Result<Client> {
        let client = Client::builder().no_proxy().tcp_nodelay(true);
        Ok(if self.keep_alive { client } else { client.pool_max_idle_per_host(0) }.build()?)
    }
}

/// Sends `planned`, which was due at `due`, and follows it to its end: one attempt, with [`PATIENCE`].
pub async fn send(client: &Client, url: &str, planned: &Planned, due: Instant) -> Outcome {
    send_as(&Options::default(), client, url, planned, due).await
}

/// The same as clients that behave so.
pub async fn send_as(
    options: &Options,
    client: &Client,
    url: &str,
    planned: &Planned,
    due: Instant,
) -> Outcome {
    let late = due.elapsed();
    let deadline = due + options.timeout;
    // Like plans have like retries.
    let mut random = ChaCha8Rng::seed_from_u64(planned.at.as_nanos() as u64);
    let mut attempts = 0;
    let result = loop {
        let end = options.attempt_timeout.map_or(deadline, |timeout| deadline.min(Instant::now() + timeout));
        let attempt = attempt(options, client, url, planned, due, attempts);
        let attempt =
            timeout_at(end, attempt).await.unwrap_or(Err((Failure::TimedOut, Some(Advice::default()))));
        let (failure, advice) = match attempt {
            Ok(served) => break Ok(served),
            Err(failed) => failed,
        };
        let wait = advice
            .filter(|_| attempts < options.max_retries)
            .and_then(|advice| retry::wait(&failure, &advice, attempts, &mut random))
            .filter(|&wait| Instant::now() + wait < deadline);
        attempts += 1;
        match wait {
            Some(wait) => sleep(wait).await,
            None => break Err(failure),
        }
    };
    let attempts = attempts + u32::from(result.is_ok());
    Outcome { class: planned.class, at: planned.at, late, attempts, took: due.elapsed(), result }
}

/// A failure, and what was said about another attempt; none when there can be no other, since the answer had begun.
type Failed = (Failure, Option<Advice>);

async fn attempt(
    options: &Options,
    client: &Client,
    url: &str,
    planned: &Planned,
    due: Instant,
    retries: u32,
) -> Result<Served, Failed> {
    let request = client
        .post(url)
        .header(header::CONTENT_TYPE, "application/json")
        .header("x-stainless-retry-count", retries)
        .body(planned.body.clone());
    let response = request.send().await.map_err(|error| {
        let failure = if error.is_connect() { Failure::Unreachable } else { Failure::Broken };
        (failure, Some(Advice::default()))
    })?;
    let said = |name| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    if response.status() != 200 {
        let failure =
            Failure::Status(response.status().as_u16(), said("x-sluice-reason").unwrap_or_default());
        return Err((failure, Some(Advice::of(response.headers()))));
    }
    let (tagged, limit_action) = (said("x-sluice-class"), said("x-sluice-max-tokens-action"));
    let streamed = said("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"));
    let reading = async {
        let answer = if streamed { receive_stream(response).await? } else { receive_whole(response).await? };
        let first_token = answer.first_token.ok_or(Failure::Incomplete)? - due;
        match answer.tokens == planned.output_tokens || !options.exact {
            true => {
                Ok(Served { first_token, tokens: answer.tokens, gaps: answer.gaps, tagged, limit_action })
            }
            false => Err(Failure::Incomplete),
        }
    };
    reading.await.map_err(|failure| (failure, None))
}

/// What an answer came to.
#[derive(Default)]
struct Answer {
    first_token: Option<Instant>,
    tokens: u32,
    gaps: Vec<Duration>,
}

async fn receive_stream(mut response: Response) -> Result<Answer, Failure> {
    let (mut events, mut answer) = (Events::default(), Answer::default());
    let (mut last, mut usage, mut done, mut failed) = (None, None, false, false);
    while let Some(bytes) = response.chunk().await.map_err(|_| Failure::Broken)? {
        let now = Instant::now();
        events.push(&bytes, |event| {
            if event == "[DONE]" {
                done = true;
                return;
            }
            let Ok(chunk) = serde_json::from_str::<Chunk>(event) else { return };
            usage = chunk.usage.map(|usage| usage.completion_tokens).or(usage);
            failed |= chunk.error.is_some();
            if chunk.choices.iter().any(|choice| choice.delta.carries_token()) {
                answer.tokens += 1;
                answer.gaps.extend(last.map(|last| now - last));
                last = Some(now);
                answer.first_token.get_or_insert(now);
            }
            // A model may have nothing to say, or nothing that is text: its answer is there when it is over.
            if chunk.choices.iter().any(|choice| choice.finish_reason.is_some()) {
                answer.first_token.get_or_insert(now);
            }
        });
    }
    // The server's count knows of tokens that share an event, or have no text.
    answer.tokens = usage.unwrap_or(answer.tokens);
    if done && !failed { Ok(answer) } else { Err(Failure::Incomplete) }
}

/// An answer in one piece: its first token is there when all are.
async fn receive_whole(response: Response) -> Result<Answer, Failure> {
    let body = response.bytes().await.map_err(|_| Failure::Broken)?;
    let whole: Whole = serde_json::from_slice(&body).map_err(|_| Failure::Incomplete)?;
    let tokens = whole.usage.map_or(0, |usage| usage.completion_tokens);
    Ok(Answer { first_token: Some(Instant::now()), tokens, gaps: Vec::new() })
}

/// An answer of `/v1/chat/completions`, as far as it counts.
#[derive(Deserialize)]
struct Whole {
    #[expect(dead_code, reason = "without choices it is no answer")]
    choices: Vec<IgnoredAny>,
    usage: Option<Usage>,
}

/// An event of its stream.
#[derive(Deserialize)]
struct Chunk {
    #[serde(default)]
    choices: Vec<Choice>,
    usage: Option<Usage>,
    error: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(default)]
    delta: Delta,
    finish_reason: Option<IgnoredAny>,
}

#[derive(Default, Deserialize)]
struct Delta {
    content: Option<String>,
    /// What a model thinks, in the names of vLLM (and llama.cpp) and of OpenRouter.
    reasoning_content: Option<String>,
    reasoning: Option<String>,
    tool_calls: Option<Vec<IgnoredAny>>,
}

#[derive(Deserialize)]
struct Usage {
    completion_tokens: u32,
}

impl Delta {
    fn carries_token(&self) -> bool {
        let texts = [&self.content, &self.reasoning_content, &self.reasoning];
        texts.into_iter().flatten().any(|text| !text.is_empty())
            || self.tool_calls.as_ref().is_some_and(|calls| !calls.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::traffic::Class;
    use axum::http::StatusCode;
    use axum::response::IntoResponse;
    use axum::routing::post;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    use tokio::net::TcpListener;

    const STREAM: &str =
        r#"{"messages":[],"stream":true,"max_tokens":3,"stream_options":{"include_usage":true}}"#;

    fn planned(body: &str, output_tokens: u32) -> Planned {
        Planned { at: Duration::ZERO, class: Class::Short, output_tokens, body: body.to_owned() }
    }

    /// Status, headers, body.
    type Reply = (u16, Vec<(&'static str, &'static str)>, &'static str);

    /// A server that gives these answers in turn, the last of them for ever. It ends with the test.
    async fn server(answers: Vec<Reply>) -> (String, Arc<AtomicUsize>) {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let answer = move || {
            let turn = count.fetch_add(1, Relaxed).min(answers.len() - 1);
            let (status, headers, body) = answers[turn].clone();
            async move {
                let headers = headers.into_iter().map(|(name, value)| {
                    (
                        name.parse::<axum::http::HeaderName>().unwrap(),
                        value.parse::<axum::http::HeaderValue>().unwrap(),
                    )
                });
                let headers: axum::http::HeaderMap = headers.collect();
                (StatusCode::from_u16(status).unwrap(), headers, body).into_response()
            }
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1/chat/completions", listener.local_addr().unwrap());
        let routes = axum::Router::new().route("/v1/chat/completions", post(answer));
        tokio::spawn(axum::serve(listener, routes).into_future());
        (url, asked)
    }

    async fn sent(url: &str, options: &Options, body: &str, output_tokens: u32) -> Outcome {
        let client = options.client().unwrap();
        send_as(options, &client, url, &planned(body, output_tokens), Instant::now()).await
    }

    const EVENTS: (&str, &str) = ("content-type", "text/event-stream; charset=utf-8");
    const TWO_TOKENS: &str = "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n\
        data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"hm\"}}]}\n\n\
        data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: [DONE]\n\n";

    #[tokio::test]
    async fn streams_are_read_to_their_end() {
        const CUT: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
        const FAILED: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n\
            data: {\"error\":{\"message\":\"out of memory\"}}\n\ndata: [DONE]\n\n";
        const COUNTED: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"a b\"}}]}\n\n\
            data: {\"choices\":[],\"usage\":{\"completion_tokens\":2}}\n\ndata: [DONE]\n\n";
        const SILENT: &str = "data: {\"choices\":[{\"finish_reason\":\"length\",\"delta\":{}}]}\n\n\
            data: {\"choices\":[],\"usage\":{\"completion_tokens\":2}}\n\ndata: [DONE]\n\n";
        for (body, result) in [
            (TWO_TOKENS, Ok((2, 1))),
            (COUNTED, Ok((2, 0))),
            (SILENT, Ok((2, 0))),
            (CUT, Err(Failure::Incomplete)),
            (FAILED, Err(Failure::Incomplete)),
            ("data: [DONE]\n\n", Err(Failure::Incomplete)),
        ] {
            let (url, _) = server(vec![(200, vec![EVENTS], body)]).await;
            let outcome = sent(&url, &Options::default(), STREAM, 2).await;
            assert_eq!(outcome.result.map(|served| (served.tokens, served.gaps.len())), result, "{body}");
        }
    }

    #[tokio::test]
    async fn a_whole_answer_is_counted_by_its_usage() {
        let (url, _) =
            server(vec![(200, vec![], r#"{"choices":[{}],"usage":{"completion_tokens":7}}"#)]).await;
        let loose = Options { exact: false, ..Options::default() };
        assert_eq!(sent(&url, &loose, "{}", 9).await.result.unwrap().tokens, 7);
        assert_eq!(sent(&url, &Options::default(), "{}", 9).await.result, Err(Failure::Incomplete));
        let (url, _) = server(vec![(200, vec![], "no JSON")]).await;
        assert_eq!(sent(&url, &loose, "{}", 9).await.result, Err(Failure::Incomplete));
    }

    #[tokio::test]
    async fn refused_requests_are_tried_again_as_often_as_asked_for() {
        let busy = (429, vec![("retry-after-ms", "1"), ("x-sluice-reason", "queue_full")], "");
        for (max_retries, attempts, served) in [(0, 1, false), (1, 2, false), (2, 3, true), (9, 3, true)] {
            let (url, asked) =
                server(vec![busy.clone(), busy.clone(), (200, vec![EVENTS], TWO_TOKENS)]).await;
            let outcome = sent(&url, &Options { max_retries, ..Options::default() }, STREAM, 2).await;
            assert_eq!((outcome.attempts, asked.load(Relaxed) as u32), (attempts, attempts));
            match outcome.result {
                Ok(_) => assert!(served),
                Err(failure) => {
                    assert_eq!((failure, served), (Failure::Status(429, "queue_full".into()), false))
                }
            }
        }
    }

    #[tokio::test]
    async fn nobody_waits_for_an_attempt_beyond_his_patience() {
        let (url, asked) = server(vec![(503, vec![("retry-after", "60")], "")]).await;
        let options = Options { max_retries: 5, timeout: Duration::from_secs(30), ..Options::default() };
        let outcome = sent(&url, &options, STREAM, 2).await;
        assert_eq!((outcome.attempts, asked.load(Relaxed)), (1, 1));
        assert_eq!(outcome.result, Err(Failure::Status(503, String::new())));
    }

    #[tokio::test]
    async fn where_nothing_listens_is_said() {
        let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let outcome = sent(&format!("http://{free}/"), &Options::default(), STREAM, 2).await;
        assert_eq!((outcome.attempts, outcome.result), (1, Err(Failure::Unreachable)));
    }
}
