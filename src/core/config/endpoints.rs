//! `endpoints`: paths beside those that every backend has, as written.

use super::mistakes::{Wrong, shown};
use super::node::Node;
use super::reader::Reader;
use super::values::text_of;
use crate::core::body::{Backend, Dialect, dialect};
use crate::core::policy::Endpoint;

/// Most paths: each is looked at for each request.
const MOST_ENDPOINTS: usize = 64;

/// Longest path, in bytes.
const LONGEST: usize = 256;

pub(super) fn endpoints(from: &mut Reader, backend: Backend) -> Vec<Endpoint> {
    let endpoints = from.objects("endpoints", &Node::List(Vec::new()), 0..=MOST_ENDPOINTS, |from, _| {
        let path = from.require("path", path).unwrap_or_default();
        let dialect = from.require("dialect", |node| speaks(node, backend)).flatten();
        Endpoint { path, dialect }
    });
    for (place, endpoint) in endpoints.iter().enumerate() {
        let before = endpoints.iter().take(place);
        let twin = before.enumerate().find(|(_, other)| same(&other.path, &endpoint.path));
        if let Some((twin, _)) = twin.filter(|_| !endpoint.path.is_empty()) {
            let what = format!("\"{}\" is the path of endpoints[{twin}] already", endpoint.path);
            from.wrong(&format!("endpoints[{place}].path"), Wrong::new(what, "paths must differ"));
        }
    }
    endpoints
}

/// Whether two paths are the same to a table of paths, which does not look at empty segments.
fn same(one: &str, other: &str) -> bool {
    let segments = |path: &str| {
        path.split('/').filter(|segment| !segment.is_empty()).map(str::to_owned).collect::<Vec<_>>()
    };
    segments(one) == segments(other)
}

fn path(node: &Node) -> Result<String, Wrong> {
    const ALLOWED: &str =
        "the end of a path such as \"/v1/generate\", decoded, without query, of up to 256 bytes";
    let text = text_of(node, ALLOWED)?;
    // What a request's path never is once it has been taken apart would be looked for in vain.
    let dots = text.split('/').any(|segment| matches!(segment, "." | ".."));
    let fits = text.starts_with('/') && text.len() <= LONGEST && !text.contains(['?', '#', '%']) && !dots;
    if fits {
        return Ok(text.to_owned());
    }
    Err(Wrong::new(format!("\"{}\" is no such path", shown(text)), format!("allowed is {ALLOWED}")))
}

/// What lets an endpoint pass unread.
const PASS: &str = "pass";

fn speaks(node: &Node, backend: Backend) -> Result<Option<&'static Dialect>, Wrong> {
    let mut names: Vec<_> = dialect::ALL.iter().map(|dialect| dialect.name).collect();
    names.push(PASS);
    names.sort_unstable();
    names.dedup();
    let allowed = names.join(", ");
    let text = text_of(node, &format!("one of {allowed}"))?;
    match dialect::named(text, backend) {
        None if text != PASS => {
            Err(Wrong::new(format!("\"{}\" is unknown", shown(text)), format!("allowed are {allowed}")))
        }
        dialect => Ok(dialect),
    }
}
