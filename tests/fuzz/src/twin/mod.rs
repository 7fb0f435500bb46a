//! The naive twin: what is right for a request, worked out in the plainest way, to hold the filter's answer against.

mod dialects;
pub mod json;
mod number;
mod walk;

use std::ops::Range;

use json::{Node, Text, Value};
use sluice::core::body::Backend;
use sluice::core::clamp::Action;
use sluice::core::policy::{Fairness, Limits, OverMaxTokens, Policy};
use sluice::core::refusal::Reason;

use number::Amount;
use walk::{Found, Holder, Kind, Limit};

/// What is right for a request that goes on.
#[derive(Debug, PartialEq)]
pub struct Right {
    pub prompt: (u64, u64),
    pub max_tokens: u64,
    pub tokens: u64,
    pub action: Action,
    pub class: usize,
    pub stream: bool,
    /// The body that the model server gets.
    pub body: Vec<u8>,
}

/// Why it does not go on.
#[derive(Debug, PartialEq)]
pub enum Wrong {
    /// It is not one JSON object.
    Json,
    /// These fields cannot be read or bounded; any of them may be blamed.
    Fields(Vec<String>),
    /// It is over a limit.
    Over(Reason),
}

/// Judges `body` as `policy` has it, read in the dialect of this name.
pub fn judge(dialect: &str, policy: &Policy, body: &[u8]) -> Result<Right, Wrong> {
    let Some(Node { value: Value::Object(members), span }) = json::parse(body) else {
        return Err(Wrong::Json);
    };
    let found = read(dialect, policy.backend, &members, span.start + 1);
    let mut faults = found.faults.clone();
    if found.users && policy.fairness == Some(Fairness::User) {
        faults.push("user".to_owned());
    }
    if !faults.is_empty() {
        return Err(Wrong::Fields(faults));
    }
    let limits = &policy.limits;
    let sequences = found.prompts.max(1).saturating_mul(found.copies);
    let (chars, tokens) = size(&found, limits);
    let over = |reason, is: bool| if is { Err(Wrong::Over(reason)) } else { Ok(()) };
    over(Reason::UnsupportedBackground, found.background && !limits.background)?;
    over(Reason::TooManySequences, sequences > limits.sequences)?;
    over(Reason::PromptTooLong, limits.prompt_chars.is_some_and(|most| chars > most))?;
    over(Reason::PromptTooLong, limits.prompt_tokens.is_some_and(|most| tokens > most))?;

    let mut edits = Vec::new();
    let bounded = found.holders.iter().map(|holder| bound(holder, limits, &mut edits));
    let bounded: Vec<(u64, Action)> =
        bounded.collect::<Option<_>>().ok_or(Wrong::Over(Reason::MaxTokensTooLarge))?;
    let max_tokens = bounded.iter().map(|(tokens, _)| *tokens).max().unwrap_or(limits.max_tokens);
    let done = bounded.iter().map(|(_, action)| *action).find(|action| *action != Action::Kept);
    let action = done.unwrap_or(Action::Kept);
    if let Some(budget) = &found.budget {
        spend(budget, max_tokens, action, limits, &mut edits)
            .ok_or(Wrong::Over(Reason::MaxTokensTooLarge))?;
    }
    let output = max_tokens.saturating_mul(sequences);
    let seen = if found.hidden { (u64::MAX, u64::MAX) } else { (chars, tokens) };
    Ok(Right {
        prompt: (chars, tokens),
        max_tokens,
        tokens: tokens.saturating_add(output),
        action,
        class: class(policy, seen, output),
        stream: found.stream.unwrap_or(false),
        body: edited(body, edits),
    })
}

fn read(dialect: &str, backend: Backend, members: &[(Text, Node)], start: usize) -> Found {
    dialects::read(dialect, backend, members, start)
}

/// In characters and in tokens.
fn size(found: &Found, limits: &Limits) -> (u64, u64) {
    let not_text = found.token_ids + found.media * limits.media_tokens;
    let worth = (not_text as f64 * limits.bytes_per_token).ceil() as u64;
    let text = (found.utf8_bytes as f64 / limits.bytes_per_token).ceil() as u64;
    (found.chars + worth, text + not_text)
}

/// The limit in force in one object, and what was done for it; `None` where it must not be.
fn bound(holder: &Holder, limits: &Limits, edits: &mut Vec<(Range<usize>, String)>) -> Option<(u64, Action)> {
    let ceiling = limits.max_tokens;
    let reject = limits.over_max_tokens == OverMaxTokens::Reject;
    let given = || holder.limits.iter().filter(|limit| limit.amount != Amount::Unset);
    let read = || given().filter(|limit| limit.kind != Kind::Wish);
    let counts = |limit: &Limit| if let Amount::Count(tokens) = limit.amount { Some(tokens) } else { None };
    // Zero and less are never small.
    let mut in_force = read().map(|limit| counts(limit).unwrap_or(ceiling).min(ceiling)).max().unwrap_or(0);
    let mut action = Action::Kept;
    for limit in read() {
        let Some(tokens) = counts(limit) else { continue };
        if tokens > ceiling {
            action = Action::Clamped;
        }
        if tokens > ceiling || walk::is_text(&limit.node) {
            edits.push((limit.node.span.clone(), tokens.min(ceiling).to_string()));
        }
    }
    if !given().any(|limit| limit.kind == Kind::Sure) {
        let wish = given().filter_map(counts).min();
        let value = wish.unwrap_or(limits.default_max_tokens).min(ceiling);
        match wish {
            None => action = Action::Defaulted,
            Some(wish) if wish > ceiling => action = Action::Clamped,
            Some(_) => {}
        }
        edits.push(put_in(holder, value));
        in_force = in_force.max(value);
    }
    if reject && action == Action::Clamped {
        return None;
    }
    for minimum in holder.minima.iter().filter(|_| action != Action::Kept) {
        if counts(minimum).is_some_and(|tokens| tokens > in_force) {
            edits.push((minimum.node.span.clone(), in_force.to_string()));
        }
    }
    Some((in_force, action))
}

/// In place of a `null` under the holder's name, or under any that is read; or else as a new member.
fn put_in(holder: &Holder, value: u64) -> (Range<usize>, String) {
    let nulls =
        || holder.limits.iter().filter(|limit| walk::is_null(&limit.node) && limit.kind == Kind::Sure);
    let own = nulls().find(|limit| limit.name == holder.name);
    match own.or_else(|| nulls().find(|_| !holder.strict)) {
        Some(null) => (null.node.span.clone(), value.to_string()),
        None => {
            let (span, before, behind) = &holder.put_in;
            (span.clone(), format!("{before}{value}{behind}"))
        }
    }
}

/// Keeps a budget for thinking below the limit that was set for the client.
fn spend(
    budget: &Limit,
    max_tokens: u64,
    action: Action,
    limits: &Limits,
    edits: &mut Vec<(Range<usize>, String)>,
) -> Option<()> {
    let Amount::Count(asked) = budget.amount else { return Some(()) };
    let ours = action != Action::Kept || asked > limits.max_tokens;
    let most = max_tokens - 1;
    if ours && asked > most {
        if most < 1024 || limits.over_max_tokens == OverMaxTokens::Reject {
            return None;
        }
        edits.push((budget.node.span.clone(), most.to_string()));
    } else if walk::is_text(&budget.node) {
        edits.push((budget.node.span.clone(), asked.to_string()));
    }
    Some(())
}

fn class(policy: &Policy, prompt: (u64, u64), output: u64) -> usize {
    let fits = policy.classes.iter().position(|class| {
        let within = |size: u64, most: Option<u64>| most.is_none_or(|most| size <= most);
        within(prompt.0, class.at_most.prompt_chars)
            && within(prompt.1, class.at_most.prompt_tokens)
            && within(output, class.at_most.max_tokens)
    });
    fits.unwrap_or(policy.classes.len() - 1)
}

/// From the last edit to the first, so that none moves the place of another.
fn edited(body: &[u8], mut edits: Vec<(Range<usize>, String)>) -> Vec<u8> {
    let mut body = body.to_vec();
    edits.sort_by_key(|(span, _)| std::cmp::Reverse(span.start));
    for (span, text) in edits {
        body.splice(span, text.into_bytes());
    }
    body
}
