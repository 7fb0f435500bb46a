//! `limits`: the bounds of one request, as written.

use std::time::Duration;

use super::mistakes::Wrong;
use super::node::Node;
use super::reader::Reader;
use super::values::{choice, flag, not_yet, number, or_null, span, whole};
use crate::core::policy::{Limits, OverMaxTokens};

/// Largest number of characters or tokens a bound may name: what backends keep in 32 bits.
pub(super) const MOST_TOKENS: u64 = u32::MAX as u64;

/// Largest number of sequences, slots or places in a queue.
pub(super) const MOST: u32 = 1_000_000;

/// Largest body. It is copied into the worker's VM once and, where it is edited, a second time; V8 gives a VM 1 GiB,
/// never gives any of it back, and fails the whole VM beyond it. And it is read in one go: a worker that did so for
/// longer than its lease would be taken for dead by the others.
const MOST_BODY: u64 = 64 << 20;

/// Most bytes of bodies waiting. They wait in Envoy's own buffers, not in a VM, so that the process' memory is the
/// limit; beyond this a slip of the unit is likelier than the wish.
const MOST_BUFFERED: u64 = 64 << 30;

pub(super) fn limits(from: &mut Reader) -> Limits {
    let buffered_bytes = from.read("buffered_bytes", 256 << 20, whole(1..=MOST_BUFFERED));
    // A default gives way to the bound that the operator did write; two written ones that disagree are a mistake.
    let body_bytes = from.read("body_bytes", buffered_bytes.min(8 << 20), whole(1..=MOST_BODY));
    let body_timeout = from.read("body_timeout", Duration::from_secs(30), span);
    let prompt_chars = from.read("prompt_chars", Some(100_000), or_null(whole(1..=MOST_TOKENS)));
    let prompt_tokens = from.read("prompt_tokens", None, or_null(whole(1..=MOST_TOKENS)));
    let max_tokens = from.read("max_tokens", 1024, whole(1..=MOST_TOKENS));
    let default_max_tokens = from.read("default_max_tokens", max_tokens.min(256), whole(1..=MOST_TOKENS));
    let over_max_tokens = from.read(
        "over_max_tokens",
        OverMaxTokens::Clamp,
        choice(&[("clamp", OverMaxTokens::Clamp), ("reject", OverMaxTokens::Reject)]),
    );
    let sequences = from.read("sequences", 64, whole(1..=u64::from(MOST)));
    let background = from.read("background", false, flag);
    let media_tokens = from.read("media_tokens", 1000, whole(0..=MOST_TOKENS));
    let bytes_per_token = from.read("bytes_per_token", 4.0, bytes_per_token);

    not_over(from, ("body_bytes", body_bytes), ("buffered_bytes", buffered_bytes));
    not_over(from, ("default_max_tokens", default_max_tokens), ("max_tokens", max_tokens));
    Limits {
        body_bytes,
        buffered_bytes,
        body_timeout,
        prompt_chars,
        prompt_tokens,
        max_tokens,
        default_max_tokens,
        over_max_tokens,
        sequences,
        background,
        media_tokens,
        bytes_per_token,
    }
}

fn not_over(from: &mut Reader, (key, value): (&str, u64), (bound, most): (&str, u64)) {
    if value > most && from.good(&[key, bound]) {
        let what = format!("{value} is over {bound}, which is {most}");
        from.wrong(key, Wrong::new(what, format!("allowed is up to {bound}")));
    }
}

/// The ratio of every tokenizer in use lies well inside; outside, the estimate would be noise.
fn bytes_per_token(node: &Node) -> Result<f64, Wrong> {
    match node {
        Node::Text(text) if text == "auto" => Err(not_yet("\"auto\"", "a number from 0.1 to 100")),
        node => number(0.1..=100.0)(node),
    }
}
