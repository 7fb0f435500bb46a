//! One verb: bound what a request asks for. Says what changes, or why it cannot be let through.

use super::body::{Amount, Edit, Limit, Prefix, Size, View, Weights, splice};
use super::policy::{Limits, OverMaxTokens};

/// What became of the output limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It stands as the client set it.
    Kept,
    /// It was over the ceiling, which stands in its place.
    Clamped,
    /// There was none; the default stands there.
    Defaulted,
}

impl Action {
    /// The name that clients, metrics and access logs know it by.
    pub fn name(self) -> &'static str {
        match self {
            Action::Kept => "kept",
            Action::Clamped => "clamped",
            Action::Defaulted => "defaulted",
        }
    }
}

/// A request within bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clamped {
    /// The output limit in force, per sequence, in tokens: the largest of all spellings.
    pub max_tokens: u64,
    /// What became of it.
    pub action: Action,
    /// The prompt's size.
    pub prompt: Size,
    /// What is to be written over the start of the body; `None` where it stays as it is.
    pub prefix: Option<Prefix>,
    /// The body's length once that is done, in bytes.
    pub body_len: usize,
}

/// Why a request cannot be brought within bounds. Sizes and limits are in the unit of the bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClampRefusal {
    /// More sequences than allowed.
    TooManySequences {
        /// The field that asks for most of them: `n`, `best_of` or `prompt`.
        param: &'static str,
        /// What is asked for.
        asked: u64,
        /// What is allowed.
        limit: u64,
    },
    /// A longer prompt than allowed.
    PromptTooLong {
        /// What it is measured in.
        unit: PromptUnit,
        /// Its size.
        size: u64,
        /// What is allowed.
        limit: u64,
    },
    /// An output limit over the ceiling where that is not lowered.
    MaxTokensTooLarge {
        /// The field as the backend knows it.
        param: &'static str,
        /// What it asks for; `u64::MAX` where it is larger than that.
        asked: u64,
        /// The ceiling.
        limit: u64,
    },
}

/// The two measures of a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PromptUnit {
    /// Unicode scalar values.
    Chars,
    /// Estimated tokens.
    Tokens,
}

/// Bounds the request in `view`: sequences first, then the prompt, then the output limit. Edits only the bytes of
/// limits that must change; without any limit the default takes the place of a `null`, or goes in behind the brace.
///
/// # Errors
/// Where something is over a bound that cannot be lowered.
pub fn clamp(view: &View, limits: &Limits) -> Result<Clamped, ClampRefusal> {
    if view.sequences > limits.sequences {
        let (param, asked, limit) = (view.sequences_param, view.sequences, limits.sequences);
        return Err(ClampRefusal::TooManySequences { param, asked, limit });
    }
    let prompt = prompt_within(view, limits)?;
    let mut edits = Vec::new();
    let set: Vec<&Limit> = view.limits.iter().filter(|limit| limit.amount != Amount::Unset).collect();
    let (max_tokens, action) = if set.is_empty() {
        let default = limits.default_max_tokens.min(limits.max_tokens);
        edits.push(put_in(view, default));
        (default, Action::Defaulted)
    } else {
        lower(&set, limits, &mut edits)?
    };
    // Backends refuse a minimum over the maximum; the client could not know that we would lower it.
    if let Some(Limit { amount: Amount::Count(min), span, .. }) = &view.min_tokens
        && action != Action::Kept
        && *min > max_tokens
    {
        edits.push(Edit { span: span.clone(), text: max_tokens.to_string() });
    }
    let prefix = splice(view.body, edits);
    let body_len = prefix.as_ref().map_or(view.body.len(), |prefix| prefix.body_len(view.body.len()));
    Ok(Clamped { max_tokens, action, prompt, prefix, body_len })
}

fn prompt_within(view: &View, limits: &Limits) -> Result<Size, ClampRefusal> {
    let weights = Weights { bytes_per_token: limits.bytes_per_token, media_tokens: limits.media_tokens };
    let prompt = view.prompt.size(weights);
    for (unit, size, limit) in [
        (PromptUnit::Chars, prompt.chars, limits.prompt_chars),
        (PromptUnit::Tokens, prompt.tokens, limits.prompt_tokens),
    ] {
        if let Some(limit) = limit
            && size > limit
        {
            return Err(ClampRefusal::PromptTooLong { unit, size, limit });
        }
    }
    Ok(prompt)
}

/// The default in place of the `null` that the backend would read, or behind the opening brace.
fn put_in(view: &View, default: u64) -> Edit {
    let preferred = view.limits.iter().find(|limit| limit.name == view.inject);
    match preferred.or(view.limits.first()) {
        Some(null) => Edit { span: null.span.clone(), text: default.to_string() },
        None => {
            let comma = if view.insertion.empty { "" } else { "," };
            let text = format!("\"{}\":{default}{comma}", view.inject);
            Edit { span: view.insertion.at..view.insertion.at, text }
        }
    }
}

/// Brings every spelling under the ceiling. Backends disagree on which of two counts, so the larger one is in force,
/// and what is not positive counts as the ceiling.
fn lower(set: &[&Limit], limits: &Limits, edits: &mut Vec<Edit>) -> Result<(u64, Action), ClampRefusal> {
    let ceiling = limits.max_tokens;
    let (mut in_force, mut action) = (0, Action::Kept);
    for limit in set {
        let Amount::Count(asked) = limit.amount else {
            in_force = ceiling;
            continue;
        };
        if asked > ceiling {
            if limits.over_max_tokens == OverMaxTokens::Reject {
                return Err(ClampRefusal::MaxTokensTooLarge { param: limit.name, asked, limit: ceiling });
            }
            action = Action::Clamped;
        }
        let bounded = asked.min(ceiling);
        in_force = in_force.max(bounded);
        // A string is a number to one backend and nothing to the next, so it becomes one to all.
        if asked > ceiling || limit.quoted {
            edits.push(Edit { span: limit.span.clone(), text: bounded.to_string() });
        }
    }
    Ok((in_force, action))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::core::body::{dialect, read};

    fn limits() -> Limits {
        Limits {
            body_bytes: 1 << 20,
            buffered_bytes: 1 << 28,
            body_timeout: Duration::from_secs(30),
            prompt_chars: None,
            prompt_tokens: Some(8000),
            max_tokens: 1024,
            default_max_tokens: 256,
            over_max_tokens: OverMaxTokens::Clamp,
            sequences: 8,
            background: false,
            media_tokens: 1000,
            bytes_per_token: 4.0,
        }
    }

    fn chat<'a>(body: &'a str, limits: &Limits) -> Result<(Clamped, String), ClampRefusal> {
        let chat = dialect::ALL.iter().find(|dialect| dialect.name == "chat").unwrap();
        let view: View<'a> = read(chat, body.as_bytes()).unwrap();
        let clamped = clamp(&view, limits)?;
        let after =
            clamped.prefix.as_ref().map_or(body.as_bytes().to_vec(), |prefix| prefix.apply(body.as_bytes()));
        assert_eq!(after.len(), clamped.body_len);
        Ok((clamped, String::from_utf8(after).unwrap()))
    }

    #[test]
    fn limits_are_bounded_byte_for_byte() {
        use Action::{Clamped, Defaulted, Kept};
        for (before, after, in_force, action) in [
            (r#"{"max_tokens":100}"#, r#"{"max_tokens":100}"#, 100, Kept),
            (r#"{"max_tokens":1024}"#, r#"{"max_tokens":1024}"#, 1024, Kept),
            (r#"{"max_tokens": 1025 }"#, r#"{"max_tokens": 1024 }"#, 1024, Clamped),
            (r#"{"max_tokens":1E400,"a":1}"#, r#"{"max_tokens":1024,"a":1}"#, 1024, Clamped),
            (r#"{"max_tokens":0}"#, r#"{"max_tokens":0}"#, 1024, Kept),
            (
                r#"{"max_tokens":-1,"max_completion_tokens":5}"#,
                r#"{"max_tokens":-1,"max_completion_tokens":5}"#,
                1024,
                Kept,
            ),
            (
                r#"{"max_tokens":1,"max_completion_tokens":9999}"#,
                r#"{"max_tokens":1,"max_completion_tokens":1024}"#,
                1024,
                Clamped,
            ),
            (r#"{"max_tokens":"1_0"}"#, r#"{"max_tokens":10}"#, 10, Kept),
            (r#"{"max_tokens":" 9999 "}"#, r#"{"max_tokens":1024}"#, 1024, Clamped),
            (r#"{"max_tokens":"-1"}"#, r#"{"max_tokens":"-1"}"#, 1024, Kept),
            (r#"{"max\u005ftokens":9999}"#, r#"{"max\u005ftokens":1024}"#, 1024, Clamped),
            ("{}", r#"{"max_tokens":256}"#, 256, Defaulted),
            (" { } ", r#" {"max_tokens":256 } "#, 256, Defaulted),
            (r#"{ "a":1}"#, r#"{"max_tokens":256, "a":1}"#, 256, Defaulted),
            (r#"{"max_tokens":null}"#, r#"{"max_tokens":256}"#, 256, Defaulted),
            (r#"{"max_completion_tokens":null}"#, r#"{"max_completion_tokens":256}"#, 256, Defaulted),
            (
                r#"{"max_completion_tokens":null,"max_tokens":null}"#,
                r#"{"max_completion_tokens":null,"max_tokens":256}"#,
                256,
                Defaulted,
            ),
            (
                r#"{"max_completion_tokens":null,"max_tokens":7}"#,
                r#"{"max_completion_tokens":null,"max_tokens":7}"#,
                7,
                Kept,
            ),
            (
                r#"{"min_tokens":2000,"max_tokens":3000}"#,
                r#"{"min_tokens":1024,"max_tokens":1024}"#,
                1024,
                Clamped,
            ),
            (r#"{"min_tokens":2000}"#, r#"{"max_tokens":256,"min_tokens":256}"#, 256, Defaulted),
            (
                r#"{"min_tokens":20,"max_tokens":3000}"#,
                r#"{"min_tokens":20,"max_tokens":1024}"#,
                1024,
                Clamped,
            ),
            (r#"{"min_tokens":20,"max_tokens":10}"#, r#"{"min_tokens":20,"max_tokens":10}"#, 10, Kept),
        ] {
            let (clamped, body) = chat(before, &limits()).unwrap();
            assert_eq!(
                (body.as_str(), clamped.max_tokens, clamped.action),
                (after, in_force, action),
                "{before}"
            );
            assert_eq!(clamped.prefix.is_none(), before == after, "{before}");
        }
    }

    #[test]
    fn what_cannot_be_lowered_is_refused_in_this_order() {
        let strict = Limits { over_max_tokens: OverMaxTokens::Reject, prompt_tokens: Some(1), ..limits() };
        let all = r#"{"n":9,"messages":[{"content":"hello"}],"max_tokens":1025}"#;
        let refusal = ClampRefusal::TooManySequences { param: "n", asked: 9, limit: 8 };
        assert_eq!(chat(all, &strict), Err(refusal));
        let strict = Limits { sequences: 9, ..strict };
        let refusal = ClampRefusal::PromptTooLong { unit: PromptUnit::Tokens, size: 2, limit: 1 };
        assert_eq!(chat(all, &strict), Err(refusal));
        let chars = Limits { prompt_chars: Some(4), ..strict.clone() };
        let refusal = ClampRefusal::PromptTooLong { unit: PromptUnit::Chars, size: 5, limit: 4 };
        assert_eq!(chat(all, &chars), Err(refusal));
        let strict = Limits { prompt_tokens: None, ..strict };
        let refusal = ClampRefusal::MaxTokensTooLarge { param: "max_tokens", asked: 1025, limit: 1024 };
        assert_eq!(chat(all, &strict), Err(refusal));
    }

    #[test]
    fn a_default_over_the_ceiling_is_the_ceiling() {
        let limits = Limits { max_tokens: 10, ..limits() };
        assert_eq!(chat("{}", &limits).unwrap().1, r#"{"max_tokens":10}"#);
    }
}
