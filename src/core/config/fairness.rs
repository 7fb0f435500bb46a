//! `fairness`: by what requests of a class take turns, as written.

use super::mistakes::{Wrong, shown};
use super::node::Node;
use super::reader::Reader;
use super::values::text_of;
use crate::core::head::OURS;
use crate::core::policy::Fairness;

pub(super) fn fairness(from: &mut Reader) -> Option<Fairness> {
    from.object_or_null("fairness", |from| from.require("key", key)).flatten()
}

const ALLOWED: &str = "\"header:<name>\" with the name in lower case, \"body:user\" or \"body:model\"";

fn key(node: &Node) -> Result<Fairness, Wrong> {
    let text = text_of(node, ALLOWED)?;
    let wrong =
        |what: &str| Err(Wrong::new(format!("\"{}\" {what}", shown(text)), format!("allowed is {ALLOWED}")));
    match text.split_once(':') {
        Some(("body", "user")) => Ok(Fairness::User),
        Some(("body", "model")) => Ok(Fairness::Model),
        Some(("header", name)) if name.as_bytes().starts_with(OURS) => {
            wrong("is a header that the filter takes out of every request")
        }
        // Each would be looked for in vain, and all requests would share one turn without a word.
        Some(("header", "host")) => {
            wrong("is no header by the time the filter sees it, but Envoy's :authority")
        }
        Some(("header", name)) if !is_token(name) => wrong("names no header"),
        Some(("header", name)) => Ok(Fairness::Header(name.to_owned())),
        _ => wrong("is unknown"),
    }
}

/// A field name of RFC 9110 as Envoy hands it out: in lower case, of a length that one has.
fn is_token(name: &str) -> bool {
    let letter = |byte: u8| match byte {
        b'a'..=b'z' | b'0'..=b'9' => true,
        byte => b"!#$%&'*+-.^_`|~".contains(&byte),
    };
    (1..=LONGEST).contains(&name.len()) && name.bytes().all(letter)
}

const LONGEST: usize = 128;
