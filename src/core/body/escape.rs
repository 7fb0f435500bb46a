//! Escapes of a JSON string: one is read, a whole string is decoded.

use std::borrow::Cow;

/// One escape as it stands in a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Escape {
    /// Bytes from the backslash on; 12 for a surrogate pair.
    pub len: usize,
    /// The code point it stands for; a lone surrogate stands for itself.
    pub code: u32,
}

impl Escape {
    /// The escape at the start of `rest`, which begins with the backslash; `None` where it is not one of RFC 8259's.
    pub fn read(rest: &[u8]) -> Option<Escape> {
        let code = match rest.get(1)? {
            b'u' => return Escape::unicode(rest),
            b'"' => 0x22,
            b'\\' => 0x5c,
            b'/' => 0x2f,
            b'b' => 0x08,
            b'f' => 0x0c,
            b'n' => 0x0a,
            b'r' => 0x0d,
            b't' => 0x09,
            _ => return None,
        };
        Some(Escape { len: 2, code })
    }

    /// UTF-8 bytes of what it stands for; three for a lone surrogate, as an encoder that lets it through would write.
    pub fn utf8_len(self) -> usize {
        match self.code {
            0..0x80 => 1,
            0x80..0x800 => 2,
            0x800..0x1_0000 => 3,
            _ => 4,
        }
    }

    fn unicode(rest: &[u8]) -> Option<Escape> {
        let code = hex4(rest.get(2..6)?)?;
        let single = Escape { len: 6, code };
        if !(0xd800..0xdc00).contains(&code) {
            return Some(single);
        }
        // A high surrogate: only the low half right behind it makes a pair of the two.
        match rest.get(6..12) {
            Some([b'\\', b'u', low @ ..]) => Some(match hex4(low)? {
                low @ 0xdc00..0xe000 => {
                    Escape { len: 12, code: 0x1_0000 + ((code - 0xd800) << 10) + (low - 0xdc00) }
                }
                _ => single,
            }),
            _ => Some(single),
        }
    }
}

/// The bytes that the inside of a string stands for. `escaped` has been scanned before; bytes that are no escape are
/// taken as they are.
///
/// Lone surrogates come out as the three bytes that UTF-8 would use for them, so the result need not be UTF-8.
pub fn unescape(escaped: &[u8]) -> impl Iterator<Item = u8> + '_ {
    let (mut rest, mut pending) = (escaped, Pending::default());
    std::iter::from_fn(move || {
        if let Some(byte) = pending.pop() {
            return Some(byte);
        }
        let (&first, behind) = rest.split_first()?;
        let escape = if first == b'\\' { Escape::read(rest) } else { None };
        let Some(escape) = escape else {
            rest = behind;
            return Some(first);
        };
        rest = rest.get(escape.len..).unwrap_or_default();
        pending = Pending::of(escape);
        pending.pop()
    })
}

/// The same as a slice, borrowed where nothing is escaped.
pub fn unescaped(escaped: &[u8]) -> Cow<'_, [u8]> {
    if escaped.contains(&b'\\') { Cow::Owned(unescape(escaped).collect()) } else { Cow::Borrowed(escaped) }
}

/// Bytes of one code point that are still to be handed out.
#[derive(Default)]
struct Pending {
    bytes: [u8; 4],
    next: usize,
    len: usize,
}

impl Pending {
    fn of(escape: Escape) -> Pending {
        let len = escape.utf8_len();
        let code = escape.code;
        let tail = |shift: u32| 0x80 | (code >> shift & 0x3f) as u8;
        let bytes = match len {
            1 => [code as u8, 0, 0, 0],
            2 => [0xc0 | (code >> 6) as u8, tail(0), 0, 0],
            3 => [0xe0 | (code >> 12) as u8, tail(6), tail(0), 0],
            _ => [0xf0 | (code >> 18) as u8, tail(12), tail(6), tail(0)],
        };
        Pending { bytes, next: 0, len }
    }

    fn pop(&mut self) -> Option<u8> {
        let byte = if self.next < self.len { self.bytes.get(self.next).copied() } else { None };
        self.next += 1;
        byte
    }
}

fn hex4(digits: &[u8]) -> Option<u32> {
    let [a, b, c, d] = *digits else { return None };
    let value = hex(a) << 12 | hex(b) << 8 | hex(c) << 4 | hex(d);
    (value <= 0xffff).then_some(value)
}

fn hex(byte: u8) -> u32 {
    HEX.get(usize::from(byte)).copied().unwrap_or(NO_DIGIT)
}

/// What is no hex digit: a value that no other three digits can make up for.
const NO_DIGIT: u32 = 0x1_0000;

/// The value of each byte as a hex digit. A table, since digits and letters mixed would mislead any branch.
static HEX: [u32; 256] = {
    let mut table = [NO_DIGIT; 256];
    let mut rest: &mut [u32] = &mut table;
    let mut byte = 0u8;
    while let [first, behind @ ..] = rest {
        *first = match byte {
            b'0'..=b'9' => (byte - b'0') as u32,
            b'a'..=b'f' => (byte - b'a') as u32 + 10,
            b'A'..=b'F' => (byte - b'A') as u32 + 10,
            _ => NO_DIGIT,
        };
        rest = behind;
        byte = byte.wrapping_add(1);
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(escaped: &str) -> Vec<u8> {
        unescaped(escaped.as_bytes()).into_owned()
    }

    #[test]
    fn each_escape_stands_for_its_code_point() {
        for (escaped, plain) in [
            (r#"\"\\\/\b\f\n\r\t"#, "\"\\/\u{8}\u{c}\n\r\t"),
            (r"\u0061\u00E9\u4f60", "aé你"),
            (r"\ud83d\ude00", "😀"),
            ("plain", "plain"),
            (r"max\u005ftokens", "max_tokens"),
        ] {
            assert_eq!(decoded(escaped), plain.as_bytes(), "{escaped}");
        }
    }

    #[test]
    fn a_lone_surrogate_is_three_bytes() {
        assert_eq!(decoded(r"\ud83d"), [0xed, 0xa0, 0xbd]);
        assert_eq!(decoded(r"\udc00x"), [0xed, 0xb0, 0x80, b'x']);
        assert_eq!(decoded(r"\ud83d\ud83d\ude00"), [0xed, 0xa0, 0xbd, 0xf0, 0x9f, 0x98, 0x80]);
        assert_eq!(decoded(r"\ud83d\n"), [0xed, 0xa0, 0xbd, b'\n']);
    }

    #[test]
    fn what_is_no_escape_is_refused() {
        for bad in [
            "\\",
            "\\x41",
            "\\u12",
            "\\u12g4",
            "\\U0041",
            "\\u 041",
            "\\'",
            "\\0",
            r"\ud800\u12",
            r"\ud800\uzzzz",
        ] {
            let read = Escape::read(bad.as_bytes());
            // The high half of a broken pair may stand for itself; its broken second half is refused on its own.
            let behind = read.map(|first| Escape::read(&bad.as_bytes()[first.len..]));
            assert!(read.is_none() || behind == Some(None), "{bad}");
        }
    }
}
