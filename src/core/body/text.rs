//! How long a text is, without holding it.

use std::ops::AddAssign;

/// The length of a text after unescaping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Text {
    /// Unicode scalar values; a lone surrogate escape counts as one.
    pub chars: usize,
    /// UTF-8 bytes; a lone surrogate escape counts three.
    pub bytes: usize,
}

impl Text {
    /// A text of `len` ASCII characters.
    pub fn ascii(len: usize) -> Text {
        Text { chars: len, bytes: len }
    }

    /// The same text between its two quotes.
    pub fn quoted(self) -> Text {
        Text { chars: self.chars + 2, bytes: self.bytes + 2 }
    }
}

// Plain sums: a text is never longer than the body that spells it, so they cannot overflow.
impl AddAssign for Text {
    fn add_assign(&mut self, more: Text) {
        self.chars += more.chars;
        self.bytes += more.bytes;
    }
}
