//! `classes`: who goes first and how long the others wait, as written.

use std::time::Duration;

use super::limits::{MOST, MOST_TOKENS};
use super::mistakes::Wrong;
use super::node::Node;
use super::reader::Reader;
use super::values::{busy_status, count, name, or_null, patterns, span, whole};
use crate::core::policy::{AtMost, Class, Queue, Slo};

/// The classes of `{}`, in the policy's own words.
const DEFAULT: &[u8] = br#"[
    { "name": "short", "at_most": { "prompt_chars": 2000, "max_tokens": 256 },
      "concurrency": 64, "queue": { "capacity": 256, "timeout": "5s" } },
    { "name": "long", "concurrency": 16, "queue": { "capacity": 64, "timeout": "30s" } }
]"#;

/// Most classes: each has its own metrics and its own line in every worker's row of shared data.
const MOST_CLASSES: usize = 32;

pub(super) fn classes(from: &mut Reader) -> Vec<Class> {
    let default = Node::parse(DEFAULT).unwrap_or(Node::Null);
    let classes = from.objects("classes", &default, 1..=MOST_CLASSES, class);
    for (place, class) in classes.iter().enumerate() {
        let (before, after) = classes.split_at(place);
        let at = format!("classes[{place}]");
        if let Some(twin) = before.iter().position(|other| other.name == class.name && !class.name.is_empty())
        {
            let what = format!("\"{}\" is the name of classes[{twin}] already", class.name);
            from.wrong(&format!("{at}.name"), Wrong::new(what, "names must differ"));
        }
        if !bounds_good(from, place) {
            continue;
        }
        let last = after.len() == 1;
        if last && !boundless(class) {
            let what =
                "is the last class, yet has at_most or models, so that some requests would have no class";
            from.wrong(&at, Wrong::new(what, "the last class must take everything"));
        } else if !last && boundless(class) {
            let what = "has neither at_most nor models, so that no later class is ever reached";
            from.wrong(&at, Wrong::new(what, "only the last class may go without"));
        } else if let Some(wide) = before
            .iter()
            .enumerate()
            .position(|(place, wide)| bounds_good(from, place) && !boundless(wide) && covers(wide, class))
        {
            let what = format!("is never reached: all that fits it fits classes[{wide}], too");
            from.wrong(&at, Wrong::new(what, "put the class with the tighter bounds first"));
        }
    }
    classes
}

fn class(from: &mut Reader, place: usize) -> Class {
    let name = from.require("name", name).unwrap_or_default();
    let at_most = from.object("at_most", at_most);
    let models = from.read("models", Vec::new(), patterns);
    let pool = from.read("pool", None, or_null(self::name));
    let concurrency = from.read("concurrency", None, or_null(count(1..=MOST)));
    let concurrency_tokens = from.read("concurrency_tokens", None, or_null(whole(1..=MOST_TOKENS)));
    let reserved = from.read("reserved", 0, count(0..=MOST));
    let queue = from.object("queue", |queue| self::queue(queue, place == 0));
    let slo = from.object("slo", |from| Slo {
        duration_p99: from.read("duration_p99", None, |node| span(node).map(Some)),
        ttft_p99: from.read("ttft_p99", None, |node| span(node).map(Some)),
    });
    Class { name, at_most, models, pool, concurrency, concurrency_tokens, reserved, queue, slo }
}

fn at_most(from: &mut Reader) -> AtMost {
    AtMost {
        prompt_chars: from.read("prompt_chars", None, or_null(whole(1..=MOST_TOKENS))),
        prompt_tokens: from.read("prompt_tokens", None, or_null(whole(1..=MOST_TOKENS))),
        max_tokens: from.read("max_tokens", None, or_null(whole(1..=MOST_TOKENS))),
    }
}

fn queue(from: &mut Reader, first: bool) -> Queue {
    let capacity = from.read("capacity", 256, count(0..=MOST));
    let timeout = from.read("timeout", Duration::from_secs(5), span);
    let overflow_status = from.read("overflow_status", 429, busy_status);
    let timeout_status = from.read("timeout_status", 503, busy_status);
    let promote_after = from.read("promote_after", Some(timeout / 2), or_null(span));
    if let Some(wait) = promote_after.filter(|wait| *wait > timeout)
        && from.good(&["timeout", "promote_after"])
    {
        let what = format!("{wait:?} is over timeout, which is {timeout:?}: nobody waits that long");
        from.wrong("promote_after", Wrong::new(what, "allowed is up to timeout, or null for never"));
    }
    // Nobody is more urgent than the first class: there is no one that its requests could be put before.
    let promote_after = promote_after.filter(|_| !first);
    Queue { capacity, timeout, overflow_status, timeout_status, promote_after }
}

/// Whether a class' bounds were read as they were meant, so that more can be said about them.
fn bounds_good(from: &Reader, place: usize) -> bool {
    from.good(&[&format!("classes[{place}].at_most"), &format!("classes[{place}].models")])
}

fn boundless(class: &Class) -> bool {
    class.at_most == AtMost::default() && class.models.is_empty()
}

/// Whether everything within the bounds of `tight` is within those of `wide`, as far as that can be told: patterns
/// are only compared as text.
fn covers(wide: &Class, tight: &Class) -> bool {
    let bound = |wide: Option<u64>, tight: Option<u64>| match (wide, tight) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(wide), Some(tight)) => tight <= wide,
    };
    let models = !tight.models.is_empty() && tight.models.iter().all(|model| wide.models.contains(model));
    (wide.models.is_empty() || models)
        && bound(wide.at_most.prompt_chars, tight.at_most.prompt_chars)
        && bound(wide.at_most.prompt_tokens, tight.at_most.prompt_tokens)
        && bound(wide.at_most.max_tokens, tight.at_most.max_tokens)
}
