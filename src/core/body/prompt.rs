//! A prompt's size in the units that a policy bounds.

use super::text::Text;

/// What a prompt holds, in the units that the estimates are made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prompt {
    /// Unicode scalar values of its text after unescaping.
    pub chars: u64,
    /// UTF-8 bytes of the same text.
    pub utf8_bytes: u64,
    /// Token ids given as numbers.
    pub token_ids: u64,
    /// Images, sounds, videos, embeddings.
    pub media: u64,
}

/// What text and media weigh, as the policy has it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weights {
    /// UTF-8 bytes of text per token; over 0.
    pub bytes_per_token: f64,
    /// Tokens of one image, sound or video.
    pub media_tokens: u64,
}

/// A prompt's size as it is bounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Unicode scalar values; what is not text counts as its tokens' worth of text.
    pub chars: u64,
    /// Estimated tokens.
    pub tokens: u64,
}

impl Prompt {
    /// Adds a text.
    pub fn add(&mut self, text: Text) {
        self.chars += text.chars as u64;
        self.utf8_bytes += text.bytes as u64;
    }

    /// Its size under `weights`; fractions of a token or character count whole.
    pub fn size(&self, weights: Weights) -> Size {
        let not_text = self.token_ids.saturating_add(self.media.saturating_mul(weights.media_tokens));
        // Float to integer saturates, so no size can wrap into a small one.
        let text_tokens = (self.utf8_bytes as f64 / weights.bytes_per_token).ceil() as u64;
        let not_text_chars = (not_text as f64 * weights.bytes_per_token).ceil() as u64;
        Size {
            chars: self.chars.saturating_add(not_text_chars),
            tokens: text_tokens.saturating_add(not_text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WEIGHTS: Weights = Weights { bytes_per_token: 4.0, media_tokens: 1000 };

    #[test]
    fn neither_bound_can_be_dodged() {
        for (prompt, chars, tokens) in [
            (Prompt::default(), 0, 0),
            (Prompt { chars: 8, utf8_bytes: 8, ..Prompt::default() }, 8, 2),
            (Prompt { chars: 1, utf8_bytes: 1, ..Prompt::default() }, 1, 1),
            (Prompt { chars: 2, utf8_bytes: 6, ..Prompt::default() }, 2, 2),
            (Prompt { token_ids: 5, ..Prompt::default() }, 20, 5),
            (Prompt { media: 2, ..Prompt::default() }, 8000, 2000),
            (Prompt { chars: 10, utf8_bytes: 10, token_ids: 1, media: 1 }, 4014, 1004),
            (Prompt { media: u64::MAX, ..Prompt::default() }, u64::MAX, u64::MAX),
        ] {
            assert_eq!(prompt.size(WEIGHTS), Size { chars, tokens }, "{prompt:?}");
        }
    }
}
