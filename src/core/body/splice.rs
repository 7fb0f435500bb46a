//! Edits by span. Nothing behind the last edit is copied.

use std::ops::Range;

/// A replacement of some bytes of the body; an empty span inserts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The bytes that go.
    pub span: Range<usize>,
    /// The bytes that come.
    pub text: String,
}

/// The start of a body as edited: these bytes take the place of its first `len` ones, the rest stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// Bytes of the original that are replaced, from its start.
    pub len: usize,
    /// What stands there instead.
    pub bytes: Vec<u8>,
}

impl Prefix {
    /// The length of a body of `len` bytes once edited.
    pub fn body_len(&self, len: usize) -> usize {
        len.saturating_sub(self.len).saturating_add(self.bytes.len())
    }

    /// The whole body as edited.
    pub fn apply(&self, body: &[u8]) -> Vec<u8> {
        [&self.bytes, body.get(self.len..).unwrap_or_default()].concat()
    }
}

/// Carries out `edits`, in any order but without overlap, on `body`; `None` where there are none.
pub fn splice(body: &[u8], mut edits: Vec<Edit>) -> Option<Prefix> {
    edits.sort_by_key(|edit| edit.span.start);
    let len = edits.last()?.span.end;
    let grown: usize = edits.iter().map(|edit| edit.text.len()).sum();
    let mut bytes = Vec::with_capacity(len + grown);
    let mut from = 0;
    for Edit { span, text } in edits {
        bytes.extend_from_slice(body.get(from..span.start).unwrap_or_default());
        bytes.extend_from_slice(text.as_bytes());
        from = span.end;
    }
    Some(Prefix { len, bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(span: Range<usize>, text: &str) -> Edit {
        Edit { span, text: text.to_owned() }
    }

    #[test]
    fn edits_land_where_they_belong_and_the_rest_is_not_copied() {
        let body = b"0123456789";
        for (edits, len, want) in [
            (vec![edit(2..4, "ab")], 4, "01ab456789"),
            (vec![edit(1..1, "+")], 1, "0+123456789"),
            (vec![edit(8..9, ""), edit(0..1, "zero")], 9, "zero12345679"),
            (vec![edit(9..10, "end")], 10, "012345678end"),
            (vec![edit(3..3, "a"), edit(3..5, "b")], 5, "012ab56789"),
        ] {
            let prefix = splice(body, edits).unwrap();
            assert_eq!(prefix.len, len);
            assert_eq!(prefix.apply(body), want.as_bytes());
            assert_eq!(prefix.body_len(body.len()), want.len());
        }
        assert_eq!(splice(body, vec![]), None);
    }
}
