//! What is asked: a request as the filter, the server and its client see it.

use crate::load::traffic::{Class, Planned};
use crate::model::wire::{self, Endpoint};
use anyhow::{Context, Result, anyhow};
use serde::Deserialize;
use std::time::Duration;

/// One request of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// When it is sent, since the start of the run.
    pub at: Duration,
    /// What it truly is, whatever a policy takes it for: by this the run is judged.
    pub class: Class,
    /// What the server reads, in tokens.
    pub prompt_tokens: u32,
    /// What the filter sees of it, in characters.
    pub prompt_chars: usize,
    /// What the server would answer if nobody stopped it, in tokens; at least 1.
    pub output_tokens: u32,
    /// The limit that the client asks for, if it asks for one.
    pub max_tokens: Option<u32>,
}

impl Ask {
    /// A request of the demo's kind of traffic.
    ///
    /// # Errors
    /// Where its body is none that the simulated server would answer.
    pub fn planned(planned: &Planned) -> Result<Ask> {
        let ask =
            wire::Ask::read(Endpoint::Chat, planned.body.as_bytes(), u32::MAX).map_err(|why| anyhow!(why))?;
        let body: Chat = serde_json::from_str(&planned.body).context("a planned body")?;
        Ok(Ask {
            at: planned.at,
            class: planned.class,
            prompt_tokens: ask.prompt_tokens,
            prompt_chars: body.messages.iter().map(|message| message.content.chars().count()).sum(),
            output_tokens: planned.output_tokens,
            max_tokens: body.max_tokens,
        })
    }

    /// A body of this size, as a client would send it: the filter reads it like any other.
    pub fn body(&self) -> Vec<u8> {
        let limit = self.max_tokens.map(|limit| format!("\"max_tokens\":{limit},")).unwrap_or_default();
        let head = format!(
            "{{\"model\":\"simulated\",{limit}\"stream\":true,\"messages\":[{{\"role\":\"user\",\"content\":\""
        );
        let mut body = head.into_bytes();
        body.resize(body.len() + self.prompt_chars, b'x');
        body.extend_from_slice(b"\"}]}");
        body
    }
}

#[derive(Deserialize)]
struct Chat {
    messages: Vec<Message>,
    max_tokens: Option<u32>,
}

#[derive(Deserialize)]
struct Message {
    content: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::traffic::Mix;

    #[test]
    fn a_body_made_from_a_plan_is_what_the_plan_sends() {
        let mix = Mix {
            seed: 3,
            span: Duration::from_secs(9),
            shorts: 9,
            single_longs: 3,
            bursts: 1,
            burst_longs: 3,
        };
        for planned in mix.plan() {
            let ask = Ask::planned(&planned).unwrap();
            let [sent, made] = [planned.body.as_bytes(), &ask.body()]
                .map(|body| wire::Ask::read(Endpoint::Chat, body, u32::MAX).unwrap());
            assert_eq!(sent, made);
            assert_eq!((ask.output_tokens, ask.max_tokens), (made.output_tokens, Some(made.output_tokens)));
        }
    }
}
