//! Chat requests as a client sends them: the headers of OpenAI's Python client, bodies of a given size.

use rand::Rng as _;
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;
use serde_json::json;

/// A turn of a conversation has about so many characters.
const TURN: usize = 600;
const WORDS: [&str; 24] = include!("../../../../benches/body/src/words.rs");

/// How the answer shall come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// At once, as one JSON object.
    Whole,
    /// As so many server-sent events, one after the other.
    Events,
    /// Never.
    Never,
}

/// The header that tells the upstream of this bench what it shall do.
pub const ANSWER: &str = "x-answer";

impl Answer {
    pub fn name(self) -> &'static str {
        match self {
            Answer::Whole => "whole",
            Answer::Events => "events",
            Answer::Never => "never",
        }
    }
}

/// A request with a body of exactly `size` bytes, 300 or more. Where `seed` is even it says how many tokens it wants,
/// and otherwise leaves that to the server, as about half of all clients do.
pub fn request(size: usize, answer: Answer, seed: u64) -> Vec<u8> {
    let body = body(size, answer == Answer::Events, seed);
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: models.test\r\naccept-encoding: identity\r\n\
         connection: keep-alive\r\naccept: application/json\r\ncontent-type: application/json\r\n\
         user-agent: OpenAI/Python 1.68.2\r\nx-stainless-lang: python\r\nx-stainless-package-version: 1.68.2\r\n\
         x-stainless-os: Linux\r\nx-stainless-arch: x64\r\nx-stainless-runtime: CPython\r\n\
         x-stainless-runtime-version: 3.12.3\r\nauthorization: Bearer sk-0123456789abcdef0123456789abcdef\r\n\
         x-stainless-async: false\r\nx-stainless-retry-count: 0\r\nx-stainless-read-timeout: 600\r\n\
         x-tenant-id: tenant-{}\r\n{ANSWER}: {}\r\ncontent-length: {}\r\n\r\n",
        seed % 16,
        answer.name(),
        body.len(),
    );
    [head.into_bytes(), body].concat()
}

fn body(size: usize, stream: bool, seed: u64) -> Vec<u8> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut chat = json!({
        "model": "llama-3.1-8b-instruct",
        "messages": [{"role": "system", "content": "You are a helpful assistant."}],
        "temperature": 0.7,
        "top_p": 0.95,
        "stream": stream,
    });
    if seed.is_multiple_of(2) {
        chat["max_tokens"] = json!(200);
    }
    let mut left = size.saturating_sub(chat.to_string().len());
    let mut messages = vec![chat["messages"][0].take()];
    while left > 0 {
        let role = if !messages.len().is_multiple_of(2) { "user" } else { "assistant" };
        let around = json!({"role": role, "content": ""}).to_string().len() + 1;
        let text = if left > 2 * TURN + around {
            words(&mut random, TURN)
        } else {
            // The last turn fills up, to the byte.
            filled(&mut random, left.saturating_sub(around))
        };
        left = left.saturating_sub(around + json!(text).to_string().len() - 2);
        messages.push(json!({"role": role, "content": text}));
    }
    chat["messages"] = messages.into();
    chat.to_string().into_bytes()
}

/// Prose that takes exactly `size` bytes as JSON.
fn filled(random: &mut ChaCha8Rng, size: usize) -> String {
    let mut text = words(random, size);
    while json!(text).to_string().len() - 2 > size {
        text.pop();
    }
    while json!(text).to_string().len() - 2 < size {
        text.push('x');
    }
    text
}

/// About `size` bytes of prose.
fn words(random: &mut ChaCha8Rng, size: usize) -> String {
    let mut text = String::new();
    while text.len() < size {
        text.push_str(WORDS[random.random_range(0..WORDS.len())]);
        text.push(' ');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn bodies_have_their_size_and_are_chats() {
        for size in [512, 2048, 20_480, 204_800] {
            for seed in 0..4 {
                let body = body(size, false, seed);
                assert_eq!(body.len(), size);
                let chat: Value = serde_json::from_slice(&body).unwrap();
                assert_eq!(chat.get("max_tokens").is_some(), seed.is_multiple_of(2));
                assert!(chat["messages"].as_array().unwrap().len() >= 2);
            }
        }
    }
}
