//! One verb: bound what a request asks for. Says what changes, or why it cannot be let through.

mod bound;

use super::body::{Amount, Edit, Limit, Prefix, Size, View, Weights, splice};
use super::policy::{Limits, OverMaxTokens};
use bound::every_holder;

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
    /// The server would answer at once and generate on.
    Background,
    /// More sequences than allowed.
    TooManySequences {
        /// The field that asks for most of them.
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
    /// A budget for thinking for which the output limit leaves no room.
    NoRoomToThink {
        /// The field as the backend knows it.
        param: &'static str,
        /// What it asks for; `u64::MAX` where it is larger than that.
        asked: u64,
        /// The output limit in force, in tokens, below which the budget would have to be.
        max_tokens: u64,
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

/// Bounds the request in `view`: sequences first, then the prompt, then every output limit. Edits only the bytes of
/// limits that must change; without any limit the default takes the place of a `null`, or goes in behind the brace.
///
/// # Errors
/// Where something is over a bound that cannot be lowered.
pub fn clamp(view: &View, limits: &Limits) -> Result<Clamped, ClampRefusal> {
    if view.background && !limits.background {
        return Err(ClampRefusal::Background);
    }
    if view.sequences > limits.sequences {
        let (param, asked, limit) = (view.sequences_param, view.sequences, limits.sequences);
        return Err(ClampRefusal::TooManySequences { param, asked, limit });
    }
    let prompt = prompt_within(view, limits)?;
    let mut edits = Vec::new();
    let (max_tokens, action) = every_holder(view, limits, &mut edits)?;
    if let Some(budget) = &view.budget {
        edits.extend(below(budget, max_tokens, action, limits)?);
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

/// Least budget for thinking that Anthropic takes, in tokens.
pub const LEAST_BUDGET: u64 = 1024;

/// Keeps the budget for thinking below the limit that it is a part of, where the client could not know that limit.
fn below(
    budget: &Limit,
    max_tokens: u64,
    action: Action,
    limits: &Limits,
) -> Result<Option<Edit>, ClampRefusal> {
    let Amount::Count(asked) = budget.amount else { return Ok(None) };
    let ours = action != Action::Kept || asked > limits.max_tokens;
    let most = max_tokens.saturating_sub(1);
    if ours && asked > most {
        if most < LEAST_BUDGET || limits.over_max_tokens == OverMaxTokens::Reject {
            return Err(ClampRefusal::NoRoomToThink { param: budget.name, asked, max_tokens });
        }
        return Ok(Some(Edit { span: budget.span.clone(), text: most.to_string() }));
    }
    Ok(budget.quoted.then(|| Edit { span: budget.span.clone(), text: asked.to_string() }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::body::{Backend, dialect, read};
    use crate::core::config;

    pub(super) fn limits() -> Limits {
        let policy = br#"{"limits":{"prompt_chars":null,"prompt_tokens":8000,"sequences":8}}"#;
        config::parse(policy).unwrap().limits
    }

    pub(super) fn body(
        name: &str,
        backend: Backend,
        body: &str,
        limits: &Limits,
    ) -> Result<(Clamped, String), ClampRefusal> {
        let view = read(dialect::named(name, backend).unwrap(), backend, body.as_bytes()).unwrap();
        let clamped = clamp(&view, limits)?;
        let after =
            clamped.prefix.as_ref().map_or(body.as_bytes().to_vec(), |prefix| prefix.apply(body.as_bytes()));
        assert_eq!(after.len(), clamped.body_len);
        Ok((clamped, String::from_utf8(after).unwrap()))
    }

    fn chat(text: &str, limits: &Limits) -> Result<(Clamped, String), ClampRefusal> {
        body("chat", Backend::Vllm, text, limits)
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

    #[test]
    fn the_budget_for_thinking_stays_below_the_limit() {
        let high = Limits { max_tokens: 4096, ..limits() };
        let budget = |limits: &Limits, max: &str, budget: u64| {
            let before = format!(r#"{{"max_tokens":{max},"thinking":{{"budget_tokens":{budget}}}}}"#);
            body("messages", Backend::Vllm, &before, limits).map(|(_, after)| after)
        };
        let want = |max: u64, budget: u64| {
            Ok(format!(r#"{{"max_tokens":{max},"thinking":{{"budget_tokens":{budget}}}}}"#))
        };
        assert_eq!(budget(&high, "9000", 8000), want(4096, 4095));
        assert_eq!(budget(&high, "9000", 2000), want(4096, 2000));
        assert_eq!(budget(&high, "4000", 5000), want(4000, 3999));
        // The client's own mistake is the backend's to refuse.
        assert_eq!(budget(&high, "2000", 3000), want(2000, 3000));
        let refusal = |max_tokens| {
            Err(ClampRefusal::NoRoomToThink { param: "thinking.budget_tokens", asked: 8000, max_tokens })
        };
        assert_eq!(budget(&limits(), "9000", 8000), refusal(1024));
        assert_eq!(budget(&high, "null", 8000), refusal(256));
    }

    #[test]
    fn work_in_the_background_is_let_through_where_told() {
        let text = r#"{"background":true,"max_output_tokens":5}"#;
        let background = |allowed| {
            body("responses", Backend::Vllm, text, &Limits { background: allowed, ..limits() }).map(|_| ())
        };
        assert_eq!(background(false), Err(ClampRefusal::Background));
        assert_eq!(background(true), Ok(()));
    }
}
