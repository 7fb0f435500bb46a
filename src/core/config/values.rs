//! The kinds of value that a key can hold: each turns a node into its Rust value or says what is wrong.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::duration;
use super::mistakes::{Wrong, shown};
use super::node::Node;

/// `true` or `false`.
pub(super) fn flag(node: &Node) -> Result<bool, Wrong> {
    match node {
        Node::Bool(value) => Ok(*value),
        other => Err(wrong_kind(other, "true or false")),
    }
}

/// A whole number, `2000.0` included.
pub(super) fn whole(range: RangeInclusive<u64>) -> impl Fn(&Node) -> Result<u64, Wrong> {
    move |node| {
        let allowed = || format!("a whole number from {} to {}", range.start(), range.end());
        match node {
            // The cast is exact within any range used here, and saturates outside.
            Node::Number(value)
                if value.fract() == 0.0 && *value >= 0.0 && range.contains(&(*value as u64)) =>
            {
                Ok(*value as u64)
            }
            Node::Number(value) => Err(out_of_range(digits(*value), allowed())),
            other => Err(wrong_kind(other, &allowed())),
        }
    }
}

/// A whole number of things that are held in memory.
pub(super) fn count(range: RangeInclusive<u32>) -> impl Fn(&Node) -> Result<usize, Wrong> {
    let whole = whole(u64::from(*range.start())..=u64::from(*range.end()));
    move |node| whole(node).map(|value| usize::try_from(value).unwrap_or(usize::MAX))
}

/// A number with or without a fraction.
pub(super) fn number(range: RangeInclusive<f64>) -> impl Fn(&Node) -> Result<f64, Wrong> {
    move |node| {
        let allowed = || format!("a number from {} to {}", range.start(), range.end());
        match node {
            Node::Number(value) if range.contains(value) => Ok(*value),
            Node::Number(value) => Err(out_of_range(digits(*value), allowed())),
            other => Err(wrong_kind(other, &allowed())),
        }
    }
}

/// A status with which a request is sent away for now: clients retry both.
pub(super) fn busy_status(node: &Node) -> Result<u16, Wrong> {
    match node {
        Node::Number(429.0) => Ok(429),
        Node::Number(503.0) => Ok(503),
        Node::Number(value) => Err(out_of_range(digits(*value), "429 or 503".to_owned())),
        other => Err(wrong_kind(other, "429 or 503")),
    }
}

/// A duration from 1ms to 24h: below, a clock tick of the worker could not tell it from nothing; above, a slip of the
/// unit is likelier than the wish.
pub(super) fn span(node: &Node) -> Result<Duration, Wrong> {
    const ALLOWED: &str = "a duration from 1ms to 24h such as \"5s\", \"0.25s\", \"250ms\", \"1m\" or \"1h\"";
    let text = text_of(node, ALLOWED)?;
    match duration::parse(text) {
        Some(value) if (SHORTEST..=LONGEST).contains(&value) => Ok(value),
        Some(_) => Err(out_of_range(format!("\"{}\"", shown(text)), ALLOWED.to_owned())),
        None => {
            Err(Wrong::new(format!("\"{}\" is no duration", shown(text)), format!("allowed is {ALLOWED}")))
        }
    }
}

/// One of some words.
pub(super) fn choice<T: Copy>(words: &[(&str, T)]) -> impl Fn(&Node) -> Result<T, Wrong> {
    move |node| {
        let all: Vec<_> = words.iter().map(|(word, _)| format!("\"{word}\"")).collect();
        let text = text_of(node, &all.join(" or "))?;
        let found = words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
        found.ok_or_else(|| {
            Wrong::new(format!("\"{}\" is unknown", shown(text)), format!("allowed is {}", all.join(" or ")))
        })
    }
}

/// The name of a class, pool or domain: it becomes a header value and part of metric names.
pub(super) fn name(node: &Node) -> Result<String, Wrong> {
    const ALLOWED: &str = "a name matching [a-z][a-z0-9_-]{0,31}, other than \"none\"";
    let text = text_of(node, ALLOWED)?;
    let letters = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-';
    let fits =
        text.starts_with(|c: char| c.is_ascii_lowercase()) && text.chars().all(letters) && text.len() <= 32;
    if text == "none" {
        Err(Wrong::new("\"none\" is reserved", format!("allowed is {ALLOWED}")))
    } else if fits {
        Ok(text.to_owned())
    } else {
        Err(Wrong::new(format!("\"{}\" is no name", shown(text)), format!("allowed is {ALLOWED}")))
    }
}

/// A list of model-name patterns.
pub(super) fn patterns(node: &Node) -> Result<Vec<String>, Wrong> {
    const ALLOWED: &str =
        "a list of up to 256 model-name patterns such as \"llama-3-*\", each of 1 to 256 bytes";
    let Node::List(items) = node else { return Err(wrong_kind(node, ALLOWED)) };
    if items.len() > 256 {
        return Err(Wrong::new(format!("holds {} patterns", items.len()), format!("allowed is {ALLOWED}")));
    }
    let pattern = |(place, item): (usize, &Node)| match item {
        Node::Text(text) if (1..=256).contains(&text.len()) => Ok(text.clone()),
        Node::Text(text) => Err(Wrong::new(
            format!("pattern {place} has {} bytes", text.len()),
            format!("allowed is {ALLOWED}"),
        )),
        other => {
            Err(Wrong::new(format!("pattern {place} is {}", other.kind()), format!("allowed is {ALLOWED}")))
        }
    };
    items.iter().enumerate().map(pattern).collect()
}

/// The value or `null`, which stands for "no bound" or "never".
pub(super) fn or_null<T>(
    value: impl Fn(&Node) -> Result<T, Wrong>,
) -> impl Fn(&Node) -> Result<Option<T>, Wrong> {
    move |node| match node {
        Node::Null => Ok(None),
        other => value(other)
            .map(Some)
            .map_err(|wrong| Wrong { allowed: format!("{}, or null", wrong.allowed), ..wrong }),
    }
}

/// A feature of a later version.
pub(super) fn not_yet(what: &str, instead: &str) -> Wrong {
    Wrong::new(format!("{what} is not supported yet in this version"), format!("allowed is {instead}"))
}

/// A value of the wrong type.
pub(super) fn wrong_kind(node: &Node, allowed: &str) -> Wrong {
    let is = match node {
        Node::Bool(value) => value.to_string(),
        other => other.kind().to_string(),
    };
    Wrong::new(format!("is {is}"), format!("allowed is {allowed}"))
}

/// The text that a value is.
pub(super) fn text_of<'n>(node: &'n Node, allowed: &str) -> Result<&'n str, Wrong> {
    match node {
        Node::Text(text) => Ok(text),
        other => Err(wrong_kind(other, allowed)),
    }
}

fn out_of_range(value: String, allowed: String) -> Wrong {
    Wrong::new(format!("{value} is out of range"), format!("allowed is {allowed}"))
}

/// A number as text, without the three hundred digits that some have.
fn digits(value: f64) -> String {
    let short = value == 0.0 || (1e-6..1e15).contains(&value.abs());
    if short { value.to_string() } else { format!("{value:e}") }
}

const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);
