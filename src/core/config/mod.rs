//! The policy as written: JSON in, a [`Policy`] or every mistake at once out. Each key's default stands here and in
//! the parts below, once; `docs/policy.md` is the reference that a test holds against it.

mod classes;
pub mod duration;
mod endpoints;
mod fairness;
mod limits;
mod mistakes;
mod near;
mod node;
mod pools;
mod reader;
mod values;

pub use mistakes::{Mistake, Mistakes};

use super::body::BACKENDS;
use super::policy::{Backend, Policy};
use node::{Kind, Node};
use reader::{Reader, Walk};
use values::{choice, flag, name, not_yet, whole};

/// Reads the plugin's configuration. Empty or blank text is `{}`, the default policy.
///
/// # Errors
/// Every mistake that stands in the text, in the policy's order; a single one with line and column where it is not JSON.
pub fn parse(json: &[u8]) -> Result<Policy, Mistakes> {
    let (policy, walk) = read(json)?;
    if walk.mistakes.is_empty() { Ok(policy) } else { Err(Mistakes(walk.mistakes)) }
}

/// The path of every key that the parser knows, `[]` for any place in a list: what the reference has to explain.
pub fn keys() -> Vec<String> {
    read(DEEPEST).map(|(_, walk)| walk.known.into_iter().collect()).unwrap_or_default()
}

/// What is empty or `null` in `{}` has keys, too: those are only asked for where there is something to ask.
const DEEPEST: &[u8] = br#"{"pools": [{}], "endpoints": [{}], "fairness": {}}"#;

fn read(json: &[u8]) -> Result<(Policy, Walk), Mistakes> {
    let tree = Node::parse(json).map_err(|mistake| Mistakes(vec![mistake]))?;
    let mut walk = Walk::default();
    let policy = Reader::whole(&tree, &mut walk, policy);
    Ok((policy, walk))
}

fn policy(from: &mut Reader) -> Policy {
    let backend = from.read("backend", Backend::Vllm, choice(&BACKENDS));
    let limits = from.object("limits", limits::limits);
    let pools = pools::pools(from);
    let classes = classes::classes(from);
    pools::agree(from, &pools, &classes);
    from.reserved("policies", &Node::Object(Vec::new()), Kind::Object);
    let endpoints = endpoints::endpoints(from, backend);
    let reject_unlisted = from.read("unlisted_posts", false, choice(&[("pass", false), ("reject", true)]));
    from.reserved("bypass", &Node::Null, Kind::Object);
    let fairness = fairness::fairness(from);
    from.read("enforce_percent", 100, |node| match whole(0..=100)(node)? {
        100 => Ok(100),
        _ => Err(not_yet("sharing less than everything", "100")),
    });
    from.read("usage", true, |node| match flag(node)? {
        true => Ok(true),
        false => Err(not_yet("switching it off", "true")),
    });
    let domain = from.read("domain", "default".to_owned(), name);
    let response_headers = from.read("response_headers", true, flag);
    Policy { backend, limits, pools, fairness, endpoints, reject_unlisted, classes, domain, response_headers }
}
