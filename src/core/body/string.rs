//! The inside of a JSON string: checked and measured while it is skipped.

use std::ops::Range;

use super::escape::Escape;
use super::lanes::{LANES, Lanes};
use super::text::Text;
use super::wide;

/// A string as it stands in the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Str {
    /// The bytes between its quotes.
    pub inside: Range<usize>,
    /// Its length after unescaping.
    pub text: Text,
}

impl Str {
    /// Whether any of it is escaped: an escape is always longer than what it stands for.
    pub fn is_escaped(&self) -> bool {
        self.text.bytes < self.inside.len()
    }
}

/// Reads the string whose first byte behind the opening quote is `bytes[start]`.
///
/// # Errors
/// Where the string is not one of RFC 8259: the byte offset and what is wrong.
#[inline(always)]
pub fn read(bytes: &[u8], start: usize) -> Result<Str, (usize, &'static str)> {
    // Most strings are short and plain.
    let rest = bytes.get(start..).unwrap_or_default();
    if let Some(block) = rest.first_chunk() {
        let len = stops(Lanes::of(block)).trailing_zeros() as usize;
        if rest.get(len) == Some(&b'"') && len < LANES {
            return Ok(Str { inside: start..start + len, text: Text::ascii(len) });
        }
    }
    read_any(bytes, start)
}

fn read_any(bytes: &[u8], start: usize) -> Result<Str, (usize, &'static str)> {
    let mut at = start;
    // What escapes take more than what they stand for, and how many bytes of the decoded text only continue a character.
    let (mut spelling, mut continuations) = (0, 0);
    loop {
        let rest = bytes.get(at..).unwrap_or_default();
        let plain = plain_run(rest);
        at += plain;
        let mut rest = rest.get(plain..).unwrap_or_default();
        match rest.first() {
            Some(b'"') => break,
            Some(b'\\') => {
                // They seldom come alone.
                while let Some(b'\\') = rest.first() {
                    let escape = Escape::read(rest).ok_or((at, BAD_ESCAPE))?;
                    let utf8_len = escape.utf8_len();
                    spelling += escape.len - utf8_len;
                    continuations += utf8_len - 1;
                    at += escape.len;
                    rest = rest.get(escape.len..).unwrap_or_default();
                }
            }
            Some(0x80..) => {
                let (len, more) = wide::run(rest).map_err(|fault| (at + fault, BAD_UTF8))?;
                continuations += more;
                at += len;
            }
            Some(_) => return Err((at, RAW_CONTROL)),
            None => return Err((at, "the body ends within a string")),
        }
    }
    let bytes = at - start - spelling;
    Ok(Str { inside: start..at, text: Text { chars: bytes - continuations, bytes } })
}

const BAD_ESCAPE: &str = "a string holds an escape that JSON does not know; allowed are \\\" \\\\ \\/ \\b \\f \\n \\r \\t and \\u with four hex digits";
const BAD_UTF8: &str = "a string holds bytes that are not UTF-8";
const RAW_CONTROL: &str = "a string holds a raw control character; it must be escaped";

/// How many bytes at the start of `rest` stand for themselves: no quote, backslash, control character or non-ASCII.
#[inline]
fn plain_run(rest: &[u8]) -> usize {
    let (mut run, mut behind) = (0, rest);
    while let Some((block, more)) = behind.split_first_chunk() {
        let stops = stops(Lanes::of(block));
        if stops != 0 {
            return run + stops.trailing_zeros() as usize;
        }
        run += LANES;
        behind = more;
    }
    // NUL behind the last byte stops it.
    run + stops(Lanes::padded(behind)).trailing_zeros() as usize
}

/// The bytes that end a plain run, a bit each. Beyond ASCII is below a space where bytes are signed.
#[inline(always)]
fn stops(block: Lanes) -> u32 {
    (block.below(b' ') | block.is(b'"') | block.is(b'\\')).bits()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(inside: &[u8]) -> Option<Text> {
        let body = [b"\"", inside, b"\""].concat();
        read(&body, 1).ok().filter(|string| string.inside == (1..body.len() - 1)).map(|string| string.text)
    }

    #[test]
    fn text_is_measured_as_std_measures_it_wherever_it_starts() {
        for sample in [
            "",
            "a",
            "é",
            "你好世界你好",
            "😀",
            "aé你😀",
            "0123456789abcdef",
            "привет мир",
            "\u{7f}\u{80}\u{7ff}\u{800}\u{ffff}\u{10000}\u{10ffff}",
        ] {
            for pad in 0..17 {
                let padded = format!("{}{sample}{}", "x".repeat(pad), "y".repeat(pad % 5));
                let want = Text { chars: padded.chars().count(), bytes: padded.len() };
                assert_eq!(text(padded.as_bytes()), Some(want), "{padded}");
            }
        }
    }

    #[test]
    fn utf8_is_accepted_exactly_where_std_accepts_it() {
        // Every two bytes behind every lead byte that matters, with room for a whole word or not.
        for lead in 0x80..=0xffu8 {
            for next in 0x70..=0xffu8 {
                for tail in [&b""[..], b"\x80", b"\xbf\x80", b"\x80\xbf\x80", b"\x80 ", b"\x80\x80plain text"]
                {
                    let bytes = [&[lead, next], tail].concat();
                    assert_eq!(text(&bytes).is_some(), std::str::from_utf8(&bytes).is_ok(), "{bytes:x?}");
                }
            }
        }
    }

    #[test]
    fn several_characters_at_once_are_as_strict_as_one() {
        for bad in [&b"\xc0\x80"[..], b"\xc1\xbf", b"\xd0 ", b"\xe0\x80", b"\x80\x80"] {
            for before in 0..5 {
                assert_eq!(
                    text(&["п".repeat(before).as_bytes(), bad, "привет".as_bytes()].concat()),
                    None,
                    "{bad:x?}"
                );
            }
        }
        for bad in [&b"\xe0\x80\x80"[..], b"\xed\xa0\x80", b"\xe4\xbd", b"\xe4\xbd\x41", b"\xff\xbf\xbf"] {
            for place in [
                ["".as_bytes(), "你好你好".as_bytes()],
                ["你".as_bytes(), "好你好".as_bytes()],
                ["你好你".as_bytes(), b""],
            ] {
                assert_eq!(text(&[place[0], bad, place[1]].concat()), None, "{bad:x?}");
            }
        }
    }

    #[test]
    fn escapes_count_as_what_they_stand_for() {
        for (inside, chars, bytes) in [
            (r"\u0061\n\/", 3, 3),
            (r"\u4f60你", 2, 6),
            (r"\ud83d\ude00", 1, 4),
            (r"\ud83d", 1, 3),
            (r"\ude00\ud83d", 2, 6),
            (r"\ud83d\u0061", 2, 4),
        ] {
            assert_eq!(text(inside.as_bytes()), Some(Text { chars, bytes }), "{inside}");
        }
    }

    #[test]
    fn controls_are_refused_at_every_place() {
        for control in 0..0x20u8 {
            for pad in 0..12 {
                let body = ["x".repeat(pad).as_bytes(), &[control], b"yyyyyyyyyyyy\""].concat();
                assert_eq!(read(&body, 0), Err((pad, RAW_CONTROL)), "{control} at {pad}");
            }
        }
    }

    #[test]
    fn an_open_end_is_refused() {
        for body in ["", "abc", "12345678", "你", "\\", "\\u00", "\\ud83d\\ude0"] {
            assert!(read(body.as_bytes(), 0).is_err(), "{body}");
        }
    }
}
