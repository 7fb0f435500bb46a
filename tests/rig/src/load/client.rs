//! Sends one request and watches its answer.

use super::outcome::{Failure, Outcome, Served};
use super::sse::Events;
use super::traffic::Planned;
use reqwest::{Client, Response, header};
use serde::Deserialize;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// How long a client waits for the end of its answer, from the planned arrival on. What has no answer by then,
/// or is refused, counts as this long.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Sends `planned`, which was due at `due`, and follows it to its end.
pub async fn send(client: &Client, url: &str, planned: &Planned, due: Instant) -> Outcome {
    let late = due.elapsed();
    let request =
        client.post(url).header(header::CONTENT_TYPE, "application/json").body(planned.body.clone());
    let answer = async {
        match request.send().await {
            Ok(response) => receive(response, planned, due).await,
            Err(_) => Err(Failure::Broken),
        }
    };
    let result = timeout_at(due + PATIENCE, answer).await.unwrap_or(Err(Failure::TimedOut));
    Outcome { class: planned.class, at: planned.at, late, took: due.elapsed(), result }
}

async fn receive(mut response: Response, planned: &Planned, due: Instant) -> Result<Served, Failure> {
    let said = |name| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    if response.status() != 200 {
        return Err(Failure::Status(response.status().as_u16(), said("x-sluice-reason").unwrap_or_default()));
    }
    let (tagged, limit_action) = (said("x-sluice-class"), said("x-sluice-max-tokens-action"));
    let (mut events, mut tokens, mut done, mut first_token) = (Events::default(), 0, false, None);
    while let Some(bytes) = response.chunk().await.map_err(|_| Failure::Broken)? {
        events.push(&bytes, |event| match event {
            "[DONE]" => done = true,
            event if carries_token(event) => tokens += 1,
            _ => {}
        });
        if tokens > 0 {
            first_token.get_or_insert_with(|| due.elapsed());
        }
    }
    match first_token {
        Some(first_token) if done && tokens == planned.output_tokens => {
            Ok(Served { first_token, tokens, tagged, limit_action })
        }
        _ => Err(Failure::Incomplete),
    }
}

/// Whether an event of a chat stream has text in it.
fn carries_token(event: &str) -> bool {
    #[derive(Deserialize)]
    struct Chunk {
        choices: Vec<Choice>,
    }
    #[derive(Deserialize)]
    struct Choice {
        delta: Delta,
    }
    #[derive(Deserialize)]
    struct Delta {
        content: Option<String>,
    }
    serde_json::from_str::<Chunk>(event).is_ok_and(|chunk| {
        chunk
            .choices
            .iter()
            .any(|choice| choice.delta.content.as_deref().is_some_and(|text| !text.is_empty()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::traffic::Class;
    use crate::model::http::ModelServer;
    use crate::sim::preset::Preset;

    fn planned(body: &str, output_tokens: u32) -> Planned {
        Planned { at: Duration::ZERO, class: Class::Short, output_tokens, body: body.to_owned() }
    }

    #[test]
    fn only_text_counts_as_a_token() {
        assert!(carries_token(r#"{"choices":[{"delta":{"content":"a"}}]}"#));
        for event in
            [r#"{"choices":[{"delta":{"role":"assistant","content":""}}]}"#, r#"{"choices":[]}"#, "x"]
        {
            assert!(!carries_token(event), "{event}");
        }
    }

    #[tokio::test]
    async fn answers_of_the_model_server_are_understood() {
        let server = ModelServer::start(0, Preset::Gpu.spec()).await.unwrap();
        let url = format!("http://{}/v1/chat/completions", server.address());
        let client = Client::builder().no_proxy().build().unwrap();
        let ask = r#"{"messages":[],"stream":true,"max_tokens":3,"stream_options":{"include_usage":true}}"#;
        let served = send(&client, &url, &planned(ask, 3), Instant::now()).await.result.unwrap();
        assert_eq!((served.tokens, served.tagged), (3, None));
        for (body, output_tokens, failure) in
            [(ask, 4, Failure::Incomplete), ("{", 3, Failure::Status(400, String::new()))]
        {
            let outcome = send(&client, &url, &planned(body, output_tokens), Instant::now()).await;
            assert_eq!(outcome.result, Err(failure));
        }
    }
}
