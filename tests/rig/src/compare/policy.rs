//! The policies of the comparisons.

use serde_json::{Value, json};

/// What is short: up to so much of a prompt and of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Short {
    pub prompt_chars: u32,
    pub max_tokens: u32,
}

/// One server of so many `slots` for both classes, at most `longs` of them for long requests; all others are reserved
/// for short ones. `backend` as in the policy's reference.
pub fn shared(backend: &str, slots: usize, longs: usize, short: Short) -> String {
    let reserved = slots.saturating_sub(longs);
    pretty(json!({
        "backend": backend,
        "limits": { "prompt_chars": 100_000, "max_tokens": 2_048 },
        "pools": [{ "name": "server", "concurrency": slots }],
        "classes": [
            {
                "name": "short",
                "at_most": { "prompt_chars": short.prompt_chars, "max_tokens": short.max_tokens },
                "pool": "server",
                "reserved": reserved,
                "queue": { "capacity": 256, "timeout": "5s" },
            },
            {
                "name": "long",
                "pool": "server",
                "concurrency": longs,
                "queue": { "capacity": 64, "timeout": "30s" },
            },
        ],
    }))
}

/// A server of so many `slots` for each class. A few more than that are let in, so that one is at the server already when
/// a slot gets free there: with as many as slots, each slot would stand empty for a step of the batch between two.
pub fn apart(slots: usize, short: Short) -> String {
    let ahead = slots + slots.div_ceil(4);
    pretty(json!({
        "limits": { "prompt_chars": 100_000, "max_tokens": 2_048 },
        "classes": [
            {
                "name": "short",
                "at_most": { "prompt_chars": short.prompt_chars, "max_tokens": short.max_tokens },
                "concurrency": ahead,
                "queue": { "capacity": 256, "timeout": "5s" },
            },
            { "name": "long", "concurrency": ahead, "queue": { "capacity": 64, "timeout": "30s" } },
        ],
    }))
}

fn pretty(policy: Value) -> String {
    format!("{policy:#}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filter_takes_them() {
        let short = Short { prompt_chars: 2_000, max_tokens: 256 };
        for policy in [shared("vllm", 16, 7, short), shared("llamacpp", 2, 1, short), apart(16, short)] {
            if let Err(mistakes) = sluice::core::config::parse(policy.as_bytes()) {
                panic!("{policy}\n{mistakes}");
            }
        }
    }
}
