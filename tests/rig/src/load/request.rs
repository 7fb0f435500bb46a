//! The body of a request.

use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;
use serde_json::json;

/// Characters of a prompt for each token that it is to have: what the simulated server counts by, and about what
/// tokenizers make of English.
pub const CHARS_PER_TOKEN: usize = 4;

/// How an answer is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Style {
    /// The model's name.
    pub model: String,
    /// Whether the answer is to come as a stream of events.
    pub stream: bool,
    /// Whether a stream is to end with the server's own count of tokens.
    pub include_usage: bool,
    /// Whether the model must go on to the output limit. vLLM, SGLang and llama.cpp know this; others may refuse it.
    pub ignore_eos: bool,
}

/// A stream of the simulated model.
impl Default for Style {
    fn default() -> Style {
        Style { model: "simulated".to_owned(), stream: true, include_usage: false, ignore_eos: false }
    }
}

impl Style {
    /// A chat with a prompt of `chars` characters and an output limit of `output_tokens`.
    pub fn body(&self, random: &mut ChaCha8Rng, chars: usize, output_tokens: u32) -> String {
        let mut body = json!({
            "model": self.model,
            "messages": [{"role": "user", "content": text(random, chars)}],
            "max_tokens": output_tokens,
            "stream": self.stream,
        });
        if self.stream && self.include_usage {
            body["stream_options"] = json!({"include_usage": true});
        }
        if self.ignore_eos {
            body["ignore_eos"] = json!(true);
        }
        body.to_string()
    }
}

/// Words without sense, exactly `chars` ASCII characters of them.
fn text(random: &mut ChaCha8Rng, chars: usize) -> String {
    const WORDS: [&str; 8] = ["river", "lock", "barge", "gate", "water", "keeper", "upstream", "tide"];
    let mut text = String::with_capacity(chars + 16);
    while text.len() < chars {
        text.push_str(WORDS.choose(random).copied().unwrap_or_default());
        text.push(' ');
    }
    text.truncate(chars);
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use serde_json::Value;

    #[test]
    fn only_what_is_asked_for_is_in_the_body() {
        let body = |style: Style| -> Value {
            serde_json::from_str(&style.body(&mut ChaCha8Rng::seed_from_u64(1), 41, 7)).unwrap()
        };
        let plain = body(Style { stream: false, include_usage: true, ..Style::default() });
        assert_eq!((plain["stream"].as_bool(), plain["max_tokens"].as_u64()), (Some(false), Some(7)));
        assert_eq!(plain["messages"][0]["content"].as_str().unwrap().len(), 41);
        assert!(plain.get("stream_options").is_none() && plain.get("ignore_eos").is_none());
        let full = body(Style { include_usage: true, ignore_eos: true, ..Style::default() });
        assert_eq!(
            (&full["stream_options"]["include_usage"], &full["ignore_eos"]),
            (&json!(true), &json!(true))
        );
    }
}
