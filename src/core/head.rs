//! What the filter needs of a request's headers, read in one pass.

use std::time::Duration;

use super::fairness::{self, NOBODY};

/// The prefix of the headers that are ours alone: clients' and upstreams' are removed.
pub const OURS: &[u8] = b"x-sluice-";

/// A request's headers as far as they decide anything.
#[derive(Debug, Default)]
pub struct Head<'p> {
    /// Whether the method is POST, or PUT, which SGLang takes as well.
    pub post: bool,
    /// Whether the stream asks for another protocol: an upgrade other than `h2c`, or an extended CONNECT.
    pub upgrade: bool,
    /// The path with its query, as the client sent it.
    pub path: Vec<u8>,
    /// Whether a `content-length` is there, which then has to follow every edit of the body.
    pub has_length: bool,
    /// The declared size of the body, in bytes; the largest where the number is larger than that.
    pub length: Option<u64>,
    /// Whether the body is encoded other than `identity`.
    pub encoded: bool,
    /// Whether the body is multipart or gRPC.
    pub foreign: bool,
    /// How long the client would wait in a queue, as it wrote it.
    pub queue_timeout: Option<Vec<u8>>,
    /// The name of the header whose value says whose turn the request takes, if one does.
    fair_by: Option<&'p str>,
    /// What it said: the first value counts.
    fair_key: Option<u64>,
    /// The names of headers of ours that the client sent.
    pub ours: Vec<Vec<u8>>,
    /// Bytes of the names and values that stay, the unit of Envoy's `request.total_size`.
    pub bytes: u64,
    connect: bool,
    upgrades_connection: bool,
    other_protocol: bool,
}

impl<'p> Head<'p> {
    /// Nothing noted yet; the header named `fair_by` will say whose turn the request takes.
    pub fn new(fair_by: Option<&'p str>) -> Head<'p> {
        Head { fair_by, ..Head::default() }
    }

    /// Takes note of one header; the name is in lower case, as Envoy hands it out.
    pub fn note(&mut self, name: &[u8], value: &[u8]) {
        if !name.starts_with(OURS) {
            self.bytes = self.bytes.saturating_add((name.len() + value.len()) as u64);
        }
        if self.fair_by.is_some_and(|fair_by| fair_by.as_bytes() == name) {
            self.fair_key.get_or_insert_with(|| fairness::key(value.iter().copied()));
        }
        match name {
            b":method" => {
                self.post = matches!(value, b"POST" | b"PUT");
                self.connect = value == b"CONNECT";
            }
            b":path" => self.path = value.to_vec(),
            b"content-length" => {
                self.has_length = true;
                self.length = decimal(value);
            }
            b"content-encoding" => {
                self.encoded |= items(value).any(|item| !item.eq_ignore_ascii_case(b"identity"))
            }
            b"content-type" => {
                self.foreign |= starts_with(value, b"multipart/") || starts_with(value, b"application/grpc");
            }
            b"connection" => {
                self.upgrades_connection |= items(value).any(|item| item.eq_ignore_ascii_case(b"upgrade"))
            }
            b"upgrade" => self.other_protocol |= items(value).any(|item| !item.eq_ignore_ascii_case(b"h2c")),
            _ if name.starts_with(OURS) => {
                if name == b"x-sluice-queue-timeout" {
                    self.queue_timeout = Some(value.to_vec());
                }
                self.ours.push(name.to_vec());
            }
            _ => return,
        }
        self.upgrade = self.connect || (self.upgrades_connection && self.other_protocol);
    }

    /// The client's patience, where it is written as a duration; anything else says nothing.
    pub fn patience(&self) -> Option<Duration> {
        let text = std::str::from_utf8(self.queue_timeout.as_deref()?).ok()?;
        super::config::duration::parse(text.trim())
    }

    /// The key that stands in the headers; `None` where keys are not made of headers.
    pub fn fair_key(&self) -> Option<u64> {
        self.fair_by.map(|_| self.fair_key.unwrap_or(NOBODY))
    }
}

/// The comma-separated items of a header value that are not empty.
fn items(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).filter(|item| !item.is_empty())
}

fn starts_with(value: &[u8], prefix: &[u8]) -> bool {
    value.trim_ascii_start().get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}

fn decimal(value: &[u8]) -> Option<u64> {
    let digits = value.trim_ascii();
    (!digits.is_empty() && digits.iter().all(u8::is_ascii_digit)).then(|| {
        digits.iter().fold(0u64, |n, digit| n.saturating_mul(10).saturating_add(u64::from(digit - b'0')))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(headers: &[(&str, &str)]) -> Head<'static> {
        fair_head(None, headers)
    }

    fn fair_head(fair_by: Option<&'static str>, headers: &[(&str, &str)]) -> Head<'static> {
        let mut head = Head::new(fair_by);
        headers.iter().for_each(|(name, value)| head.note(name.as_bytes(), value.as_bytes()));
        head
    }

    #[test]
    fn an_upgrade_needs_both_headers_and_a_protocol_other_than_h2c() {
        assert!(head(&[("connection", "keep-alive, Upgrade"), ("upgrade", "websocket")]).upgrade);
        assert!(head(&[("upgrade", "h2c, websocket"), ("connection", "upgrade")]).upgrade);
        assert!(head(&[(":method", "CONNECT"), (":path", "/v1/completions")]).upgrade);
        assert!(!head(&[("connection", "Upgrade, HTTP2-Settings"), ("upgrade", "h2c")]).upgrade);
        assert!(!head(&[("upgrade", "websocket")]).upgrade);
    }

    #[test]
    fn identity_is_no_encoding() {
        assert!(!head(&[("content-encoding", "identity")]).encoded);
        assert!(!head(&[("content-encoding", "")]).encoded);
        assert!(head(&[("content-encoding", "identity, gzip")]).encoded);
        assert!(head(&[("content-encoding", "identity"), ("content-encoding", "br")]).encoded);
    }

    #[test]
    fn the_length_saturates_and_nonsense_is_none() {
        assert_eq!(head(&[("content-length", "12")]).length, Some(12));
        assert_eq!(head(&[("content-length", "99999999999999999999999")]).length, Some(u64::MAX));
        assert_eq!(head(&[("content-length", "x")]).length, None);
        assert!(head(&[("content-length", "x")]).has_length);
    }

    #[test]
    fn headers_of_ours_are_listed_and_bytes_counted() {
        let head = head(&[(":method", "POST"), ("x-sluice-class", "short"), ("X", "\u{e9}")]);
        assert_eq!(head.ours, [b"x-sluice-class".to_vec()]);
        assert_eq!(head.bytes, 7 + 4 + 1 + 2, "removed ones do not count");
        assert!(head.post);
    }

    #[test]
    fn one_header_says_whose_turn_it_is() {
        let key = |value: &str| Some(fairness::key(value.bytes()));
        let by = |name, headers| fair_head(Some(name), headers).fair_key();
        assert_eq!(head(&[("x-tenant-id", "a")]).fair_key(), None);
        assert_eq!(
            by("x-tenant-id", &[("x-tenant", "b"), ("x-tenant-id", "a"), ("x-tenant-id", "c")]),
            key("a")
        );
        assert_eq!(by("content-type", &[("content-type", "text/plain")]), key("text/plain"));
        for nobody in [&[][..], &[("x-tenant-id", "")], &[("x-tenant", "b")]] {
            assert_eq!(by("x-tenant-id", nobody), Some(NOBODY));
        }
    }

    #[test]
    fn bodies_in_foreign_types() {
        assert!(head(&[("content-type", "Multipart/form-data; boundary=B")]).foreign);
        assert!(head(&[("content-type", "application/grpc+proto")]).foreign);
        assert!(!head(&[("content-type", "text/plain")]).foreign);
    }
}
