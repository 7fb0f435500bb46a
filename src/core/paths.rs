//! Which paths are guarded: a request's path against a table of suffixes.
//!
//! A path is read as the servers behind the filter would, and where they disagree, as the one that would serve it:
//!
//! - The query (`?…`) and a fragment (`#…`) are cut off first, then percent escapes are decoded, once, `%2F` included:
//!   uvicorn and Go route on the decoded path. A broken escape stays as it is.
//! - The scheme and authority of an absolute target (`http://h/v1/…`) are no part of it.
//! - Empty segments do not count: a trailing slash is redirected or served, and of `//` within a path uvicorn makes a
//!   404, so that guarding it costs nothing, while a proxy in between may merge the slashes and serve it.
//! - The same for `.` and `..`: Envoy resolves them before any filter where `normalize_path` is on (Istio's default);
//!   where it is off, vLLM answers 404, but a proxy in between may resolve them. They are resolved here, also when
//!   they were escaped. Nothing that stands plainly in the path is let through for it.
//! - Case counts, and `\` is a letter like others.

use std::borrow::Cow;

/// Values by path suffix. The suffix with the most segments wins; `/` matches the root alone.
#[derive(Clone, Debug)]
pub struct Table<T> {
    /// Longest first.
    rows: Vec<(String, T)>,
}

impl<T> Table<T> {
    /// Compiles a table; of two rows with the same suffix the first one holds.
    pub fn new<S: Into<String>>(rows: impl IntoIterator<Item = (S, T)>) -> Table<T> {
        let mut rows: Vec<(String, T)> =
            rows.into_iter().map(|(suffix, value)| (suffix.into(), value)).collect();
        rows.sort_by_key(|(suffix, _)| std::cmp::Reverse(segments(suffix.as_bytes()).count()));
        Table { rows }
    }

    /// The value for a request's `:path` as it came, or `None` where the path is not in the table. Allocates only for
    /// a path with `%`.
    pub fn find(&self, path: &[u8]) -> Option<&T> {
        let path = decoded(plain(path));
        self.rows.iter().find(|(suffix, _)| ends_with(&path, suffix.as_bytes())).map(|(_, value)| value)
    }
}

/// Without query, fragment, scheme and authority.
fn plain(path: &[u8]) -> &[u8] {
    let path = path.split(|byte| matches!(byte, b'?' | b'#')).next().unwrap_or_default();
    if path.starts_with(b"/") {
        return path;
    }
    match path.windows(3).position(|three| three == b"://").and_then(|at| path.get(at + 3..)) {
        Some(rest) => {
            rest.iter().position(|byte| *byte == b'/').and_then(|at| rest.get(at..)).unwrap_or_default()
        }
        None => path,
    }
}

fn decoded(path: &[u8]) -> Cow<'_, [u8]> {
    if !path.contains(&b'%') {
        return Cow::Borrowed(path);
    }
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((&first, behind)) = rest.split_first() {
        let escape = match rest {
            &[b'%', high, low, ref behind @ ..] => hex(high).zip(hex(low)).map(|pair| (pair, behind)),
            _ => None,
        };
        match escape {
            Some(((high, low), behind)) => {
                bytes.push(high << 4 | low);
                rest = behind;
            }
            None => {
                bytes.push(first);
                rest = behind;
            }
        }
    }
    Cow::Owned(bytes)
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

fn ends_with(path: &[u8], suffix: &[u8]) -> bool {
    let mut path = segments(path);
    let mut suffix = segments(suffix).peekable();
    if suffix.peek().is_none() {
        return path.next().is_none();
    }
    suffix.all(|segment| path.next() == Some(segment))
}

/// The segments from the last to the first, dots resolved.
fn segments(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    // How many more segments a `..` behind them takes away.
    let mut taken: usize = 0;
    path.rsplit(|byte| *byte == b'/').filter(move |segment| match *segment {
        b"" | b"." => false,
        b".." => {
            taken += 1;
            false
        }
        _ if taken > 0 => {
            taken -= 1;
            false
        }
        _ => true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(path: &str) -> Option<&'static str> {
        let suffixes = [
            "/completions",
            "/chat/completions",
            "/",
            "/generate",
            "/api/generate",
            "/inference/v1/generate",
        ];
        Table::new(suffixes.map(|suffix| (suffix, suffix))).find(path.as_bytes()).copied()
    }

    #[test]
    fn suffixes_of_whole_segments_the_longest_first() {
        for (path, suffix) in [
            ("/v1/chat/completions", "/chat/completions"),
            ("/chat/completions", "/chat/completions"),
            ("/openai/deployments/m/chat/completions", "/chat/completions"),
            ("/v1/completions", "/completions"),
            ("/completions", "/completions"),
            ("/v1/xchat/completions", "/completions"),
            ("/generate", "/generate"),
            ("/api/generate", "/api/generate"),
            ("/inference/v1/generate", "/inference/v1/generate"),
            ("/v1/generate", "/generate"),
        ] {
            assert_eq!(find(path), Some(suffix), "{path}");
        }
    }

    #[test]
    fn every_spelling_of_the_same_path() {
        for path in [
            "/v1/chat/completions/",
            "/v1/chat/completions//",
            "/v1/chat/completions?api-version=1",
            "/v1/chat/completions/?x=/models",
            "/v1/chat/completions?",
            "/v1/chat/completions#top",
            "/v1/chat%2Fcompletions",
            "/v1/chat%2fcompletions",
            "/v1/%63hat/c%6Fmpletions",
            "/v1/chat/completions%2F",
            "%2Fv1%2Fchat%2Fcompletions",
            "http://h/v1/chat/completions",
            "https://h:8443/chat/completions?x",
            "//v1//chat//completions",
            "/v1/chat/./completions",
            "/v1/chat/x/../completions",
            "/v1/chat/completions/.",
            "/v1/chat/completions/x/..",
            "/v1/chat/completions/x/y/../%2e%2e/",
            "/../../v1/chat/completions",
            "/v1/%zz/chat/completions",
            "v1/chat/completions",
        ] {
            assert_eq!(find(path), Some("/chat/completions"), "{path}");
        }
    }

    #[test]
    fn all_else_is_not_guarded() {
        for path in [
            "/v1/embeddings",
            "/v1/chat/completionsx",
            "/v1/chat/completions/extra",
            "/v1/chat/completions/../models",
            "/v1/chat/completions%3Fx",
            "/v1/chat/completions%",
            "/v1/chat/completions%2",
            "/v1/chat%252Fcompletions",
            "/v1/Chat/Completions",
            "/v1/chat\\completions",
            "/v1/models?x=/chat/completions",
            "/v1/models#/chat/completions",
            "/v1/chat/completions;x",
            "/v1",
            "*",
            "host:443",
        ] {
            assert_eq!(find(path), None, "{path}");
        }
    }

    #[test]
    fn the_root_is_the_root_alone() {
        for path in
            ["/", "//", "/?x", "/.", "/a/..", "http://h/", "http://h", "http://completions", "", "%2F"]
        {
            assert_eq!(find(path), Some("/"), "{path}");
        }
        assert!(Table::<u8>::new([("/generate", 1)]).find(b"/").is_none());
    }

    #[test]
    fn bytes_that_are_no_text_are_only_bytes() {
        let table = Table::new([("/generate", 1)]);
        assert_eq!(table.find(b"/\xff\x80/generate"), Some(&1));
        assert_eq!(table.find(b"/%ff/generate"), Some(&1));
        assert_eq!(table.find(b"/generate\xff"), None);
    }
}
