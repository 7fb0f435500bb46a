//! The shapes on the wire: OpenAI's chat and text completions, as vLLM speaks them.

use crate::sim::job::{Job, Prefix};
use serde_json::{Value, json};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// The length of an answer to a request that names none, in tokens.
const DEFAULT_MAX_TOKENS: u64 = 256;
/// UTF-8 bytes of text that count as one prompt token.
const BYTES_PER_TOKEN: u64 = 4;

const WORDS: [&str; 12] =
    ["the", "sluice", "lets", "short", "boats", "pass", "while", "long", "barges", "wait", "in", "line"];

/// Which of the two endpoints is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// `/v1/chat/completions`
    Chat,
    /// `/v1/completions`
    Text,
}

/// A request, as far as the simulator cares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// The endpoint it came to.
    pub endpoint: Endpoint,
    /// The model's name, given back as it came.
    pub model: String,
    /// Estimated size of the prompt.
    pub prompt_tokens: u32,
    /// Exact length of the answer.
    pub output_tokens: u32,
    /// vLLM's `priority`: the lowest goes first, where the server schedules so.
    pub priority: i32,
    /// The messages of the system that the conversation begins with, which others may share.
    pub prefix: Option<Prefix>,
    /// Whether the answer is a stream of events.
    pub stream: bool,
    /// Whether the stream ends with a usage event.
    pub include_usage: bool,
}

impl Ask {
    /// Reads a request body; the error is the message for the client. Prompt and answer together may not be longer than
    /// `max_model_len` tokens.
    pub fn read(endpoint: Endpoint, body: &[u8], max_model_len: u32) -> Result<Ask, String> {
        let body: Value = serde_json::from_slice(body).map_err(|error| format!("invalid JSON: {error}"))?;
        let prompt = match endpoint {
            Endpoint::Chat => body.get("messages").filter(|messages| messages.is_array()),
            Endpoint::Text => body.get("prompt").filter(|prompt| !prompt.is_null()),
        };
        let prompt = prompt.ok_or_else(|| format!("'{}' is required", endpoint.prompt_field()))?;
        if !body["n"].is_null() && body["n"] != 1 {
            return Err("the simulator makes one sequence a request: 'n' must be 1".into());
        }
        // At least one: a model has to begin with something.
        let prompt_tokens = text_bytes(prompt).div_ceil(BYTES_PER_TOKEN).max(1);
        let output_tokens = output_tokens(&body)?;
        if prompt_tokens.saturating_add(output_tokens) > u64::from(max_model_len) {
            return Err(format!(
                "this model's maximum context length is {max_model_len} tokens, but {prompt_tokens} of prompt \
                 and {output_tokens} of output were asked for"
            ));
        }
        Ok(Ask {
            endpoint,
            model: body["model"].as_str().unwrap_or("simulated").to_owned(),
            priority: priority(&body)?,
            prefix: system_prefix(prompt),
            // Both are at most max_model_len.
            prompt_tokens: prompt_tokens as u32,
            output_tokens: output_tokens as u32,
            stream: body["stream"] == true,
            include_usage: body["stream_options"]["include_usage"] == true,
        })
    }

    /// What the engine has to do for it.
    pub fn job(&self) -> Job {
        let Ask { prompt_tokens, output_tokens, priority, prefix, .. } = *self;
        Job { prompt_tokens, output_tokens, priority, prefix }
    }

    /// The whole answer of a request without `stream`.
    pub fn answer(&self, id: u64, cached_tokens: u32) -> Value {
        let text: String = (0..self.output_tokens).map(word).collect();
        let choice = match self.endpoint {
            Endpoint::Chat => json!({"index": 0, "message": {"role": "assistant", "content": text},
                                     "logprobs": null, "finish_reason": "length"}),
            Endpoint::Text => json!({"index": 0, "text": text, "logprobs": null, "finish_reason": "length"}),
        };
        let object = match self.endpoint {
            Endpoint::Chat => "chat.completion",
            Endpoint::Text => "text_completion",
        };
        self.envelope(id, object, json!([choice]), Some(self.usage(cached_tokens)))
    }

    /// The event that a chat's stream begins with, before its first token; none where the stream is of text.
    pub fn role_chunk(&self, id: u64) -> Option<Value> {
        let choice = json!({"index": 0, "logprobs": null, "finish_reason": null,
                            "delta": {"role": "assistant", "content": ""}});
        (self.endpoint == Endpoint::Chat)
            .then(|| self.envelope(id, self.chunk_object(), json!([choice]), None))
    }

    /// The event that carries one token.
    pub fn chunk(&self, id: u64, index: u32, last: bool) -> Value {
        let finish_reason = if last { json!("length") } else { Value::Null };
        let choice = match self.endpoint {
            Endpoint::Chat => json!({"index": 0, "logprobs": null, "finish_reason": finish_reason,
                "delta": {"content": word(index)}}),
            Endpoint::Text => json!({"index": 0, "logprobs": null, "finish_reason": finish_reason,
                "text": word(index)}),
        };
        self.envelope(id, self.chunk_object(), json!([choice]), None)
    }

    /// The last event of a stream whose client asked for the usage.
    pub fn usage_chunk(&self, id: u64, cached_tokens: u32) -> Value {
        self.envelope(id, self.chunk_object(), json!([]), Some(self.usage(cached_tokens)))
    }

    fn chunk_object(&self) -> &'static str {
        match self.endpoint {
            Endpoint::Chat => "chat.completion.chunk",
            Endpoint::Text => "text_completion",
        }
    }

    /// As vLLM with `--enable-prompt-tokens-details`: details only where there is a hit to tell of.
    fn usage(&self, cached_tokens: u32) -> Value {
        let mut usage = json!({"prompt_tokens": self.prompt_tokens, "completion_tokens": self.output_tokens,
                               "total_tokens": self.prompt_tokens + self.output_tokens});
        if cached_tokens > 0 {
            usage["prompt_tokens_details"] = json!({"cached_tokens": cached_tokens});
        }
        usage
    }

    fn envelope(&self, id: u64, object: &str, choices: Value, usage: Option<Value>) -> Value {
        let prefix = match self.endpoint {
            Endpoint::Chat => "chatcmpl",
            Endpoint::Text => "cmpl",
        };
        // The simulator has no calendar: `created` is always 0, so that like requests have like answers.
        let mut envelope = json!({"id": format!("{prefix}-{id}"), "object": object, "created": 0,
                                  "model": self.model, "choices": choices});
        if let Some(usage) = usage {
            envelope["usage"] = usage;
        }
        envelope
    }
}

impl Endpoint {
    fn prompt_field(self) -> &'static str {
        match self {
            Endpoint::Chat => "messages",
            Endpoint::Text => "prompt",
        }
    }
}

/// An error in OpenAI's shape.
pub fn error(status: u16, kind: &str, message: &str) -> Value {
    json!({"error": {"message": message, "type": kind, "param": null, "code": status}})
}

/// The word that stands at this place of every answer.
fn word(index: u32) -> String {
    format!("{} ", WORDS[index as usize % WORDS.len()])
}

/// As in vLLM, `max_completion_tokens` wins over `max_tokens`, and null is as good as absent.
fn output_tokens(body: &Value) -> Result<u64, String> {
    for field in ["max_completion_tokens", "max_tokens"] {
        match &body[field] {
            Value::Null => {}
            value => {
                let tokens = value.as_u64().filter(|&tokens| tokens > 0);
                return tokens.ok_or_else(|| format!("'{field}' must be a whole number of at least 1"));
            }
        }
    }
    Ok(DEFAULT_MAX_TOKENS)
}

fn priority(body: &Value) -> Result<i32, String> {
    match &body["priority"] {
        Value::Null => Ok(0),
        value => {
            let priority = value.as_i64().and_then(|priority| i32::try_from(priority).ok());
            priority.ok_or_else(|| "'priority' must be a whole number of 32 bits".to_owned())
        }
    }
}

/// The messages by `system` or `developer` that a conversation begins with: those that a service sends with every
/// request. Named by a hash of their text.
fn system_prefix(messages: &Value) -> Option<Prefix> {
    let leading = messages
        .as_array()?
        .iter()
        .take_while(|message| matches!(message["role"].as_str(), Some("system" | "developer")));
    let (mut hasher, mut bytes) = (DefaultHasher::new(), 0);
    for message in leading {
        message["content"].to_string().hash(&mut hasher);
        bytes += text_bytes(message);
    }
    // Only whole tokens are equal for sure.
    let tokens = u32::try_from(bytes / BYTES_PER_TOKEN).unwrap_or(u32::MAX);
    (tokens > 0).then(|| Prefix { id: hasher.finish(), tokens })
}

/// Bytes of text in messages, content parts or prompts; a token id counts as one token's worth.
fn text_bytes(value: &Value) -> u64 {
    match value {
        Value::String(text) => text.len() as u64,
        Value::Number(_) => BYTES_PER_TOKEN,
        Value::Array(items) => items.iter().map(text_bytes).sum(),
        Value::Object(fields) => {
            ["content", "text"].iter().filter_map(|&key| fields.get(key)).map(text_bytes).sum()
        }
        Value::Null | Value::Bool(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chat(body: Value) -> Result<Ask, String> {
        Ask::read(Endpoint::Chat, body.to_string().as_bytes(), 32_768)
    }

    #[test]
    fn prompts_are_estimated_from_their_text() {
        let ask = chat(json!({"messages": [{"role": "system", "content": "12345678"},
                                           {"role": "user", "content": [{"type": "text", "text": "1234"}]}]}));
        assert_eq!(ask.unwrap().prompt_tokens, 3);
        let text = |body: Value| {
            Ask::read(Endpoint::Text, body.to_string().as_bytes(), 32_768).unwrap().prompt_tokens
        };
        assert_eq!(text(json!({"prompt": ["12345", "1234567"]})), 3);
        assert_eq!(text(json!({"prompt": [11, 12, 13]})), 3);
    }

    #[test]
    fn output_limits_are_exact() {
        for (limits, tokens) in [
            (json!({}), 256),
            (json!({"max_tokens": 7}), 7),
            (json!({"max_tokens": null}), 256),
            (json!({"max_tokens": 7, "max_completion_tokens": 9}), 9),
        ] {
            let mut body = limits;
            body["messages"] = json!([]);
            let ask = chat(body).unwrap();
            assert_eq!(ask.output_tokens, tokens);
            let answer = ask.answer(1, 0);
            let content = answer["choices"][0]["message"]["content"].as_str().unwrap();
            assert_eq!(content.split_whitespace().count(), tokens as usize);
            assert_eq!(answer["usage"]["completion_tokens"], tokens);
        }
    }

    #[test]
    fn what_cannot_be_simulated_is_refused() {
        for body in [
            "",
            "{",
            "[]",
            "{}",
            r#"{"messages":[],"max_tokens":0}"#,
            r#"{"messages":[],"max_tokens":"9"}"#,
            r#"{"messages":[],"n":2}"#,
            r#"{"messages":[],"priority":"high"}"#,
            r#"{"messages":[],"priority":4294967296}"#,
            r#"{"messages":[],"max_tokens":32769}"#,
        ] {
            assert!(Ask::read(Endpoint::Chat, body.as_bytes(), 32_768).is_err(), "{body}");
        }
    }

    #[test]
    fn what_the_system_says_first_is_a_prefix_and_hits_are_told() {
        let ask = |system: &str, user: &str| {
            chat(
                json!({"messages": [{"role": "system", "content": system}, {"role": "user", "content": user}],
                        "priority": -3}),
            )
            .unwrap()
        };
        let (one, other) = (ask("You are a lock keeper.", "Open!"), ask("You are a lock keeper.", "Close!"));
        assert_eq!((one.prefix, one.prefix.unwrap().tokens, one.priority), (other.prefix, 5, -3));
        assert_ne!(one.prefix, ask("You are a lock sleeper", "Open!").prefix);
        assert_eq!(chat(json!({"messages": [{"role": "user", "content": "Open!"}]})).unwrap().prefix, None);
        assert_eq!(one.answer(1, 4)["usage"]["prompt_tokens_details"]["cached_tokens"], 4);
        assert_eq!(one.answer(1, 0)["usage"]["prompt_tokens_details"], Value::Null);
    }

    #[test]
    fn a_stream_says_the_words_of_the_whole_answer() {
        let ask = chat(json!({"messages": [], "max_tokens": 3, "stream": true})).unwrap();
        let chunks: Vec<Value> = (0..3).map(|index| ask.chunk(1, index, index == 2)).collect();
        let said: String =
            chunks.iter().map(|chunk| chunk["choices"][0]["delta"]["content"].as_str().unwrap()).collect();
        assert_eq!(said, ask.answer(1, 0)["choices"][0]["message"]["content"]);
        assert_eq!(chunks[1]["choices"][0]["finish_reason"], Value::Null);
        assert_eq!(chunks[2]["choices"][0]["finish_reason"], "length");
    }
}
