//! The inside of a JSON string: checked and measured while it is skipped.

use std::ops::Range;

use super::escape::Escape;
use super::text::Text;

/// A string as it stands in the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Str {
    /// The bytes between its quotes.
    pub inside: Range<usize>,
    /// Its length after unescaping.
    pub text: Text,
    /// Whether any of it is escaped.
    pub escaped: bool,
}

/// Reads the string whose first byte behind the opening quote is `bytes[start]`.
///
/// # Errors
/// Where the string is not one of RFC 8259: the byte offset and what is wrong.
pub fn read(bytes: &[u8], start: usize) -> Result<Str, (usize, &'static str)> {
    let mut at = start;
    // What escapes take more than what they stand for, and how many bytes of the decoded text only continue a character.
    let (mut spelling, mut continuations) = (0, 0);
    loop {
        let rest = bytes.get(at..).unwrap_or_default();
        let plain = plain_run(rest);
        at += plain;
        let rest = rest.get(plain..).unwrap_or_default();
        match rest.first() {
            Some(b'"') => break,
            Some(b'\\') => {
                let escape = Escape::read(rest).ok_or((at, BAD_ESCAPE))?;
                let utf8_len = escape.utf8_len();
                spelling += escape.len - utf8_len;
                continuations += utf8_len - 1;
                at += escape.len;
            }
            Some(0x80..) => {
                let (len, chars) = wide_run(rest);
                if len == 0 {
                    return Err((at, BAD_UTF8));
                }
                continuations += len - chars;
                at += len;
            }
            Some(_) => return Err((at, RAW_CONTROL)),
            None => return Err((at, "the body ends within a string")),
        }
    }
    let bytes = at - start - spelling;
    Ok(Str { inside: start..at, text: Text { chars: bytes - continuations, bytes }, escaped: spelling > 0 })
}

const BAD_ESCAPE: &str = "a string holds an escape that JSON does not know; allowed are \\\" \\\\ \\/ \\b \\f \\n \\r \\t and \\u with four hex digits";
const BAD_UTF8: &str = "a string holds bytes that are not UTF-8";
const RAW_CONTROL: &str = "a string holds a raw control character; it must be escaped";

const ONES: u64 = u64::MAX / 255;
const HIGHS: u64 = ONES << 7;

/// How many bytes at the start of `rest` stand for themselves: no quote, backslash, control character or non-ASCII.
fn plain_run(rest: &[u8]) -> usize {
    let mut run = 0;
    let mut words = rest;
    // Eight at a time. A borrow can only spoil bytes above a true hit, so the lowest hit is exact.
    while let Some((word, behind)) = words.split_first_chunk::<8>() {
        let word = u64::from_le_bytes(*word);
        let quote = word ^ (ONES * b'"' as u64);
        let backslash = word ^ (ONES * b'\\' as u64);
        let control = word.wrapping_sub(ONES * 0x20) & !word;
        let hits =
            (quote.wrapping_sub(ONES) & !quote | backslash.wrapping_sub(ONES) & !backslash | control | word)
                & HIGHS;
        if hits != 0 {
            return run + hits.trailing_zeros() as usize / 8;
        }
        run += 8;
        words = behind;
    }
    run + words.iter().take_while(|byte| matches!(byte, 0x20..0x80) && !matches!(byte, b'"' | b'\\')).count()
}

/// How many bytes at the start of `rest` are whole characters of UTF-8, and how many characters they are: non-ASCII ones,
/// and single plain ASCII ones between them, such as the spaces of a text in Cyrillic.
fn wide_run(rest: &[u8]) -> (usize, usize) {
    let (mut at, mut chars) = (0, 0);
    loop {
        let rest = rest.get(at..).unwrap_or_default();
        let cjk = words_run::<6>(rest, is_two_of_three);
        if cjk > 0 {
            at += cjk;
            chars += cjk / 3;
            continue;
        }
        let two = words_run::<8>(rest, is_four_of_two);
        if two > 0 {
            at += two;
            chars += two / 2;
            continue;
        }
        at += match (wide_char(rest), rest) {
            (0, [b' ' | b'!' | b'#'..=b'[' | b']'..=0x7f, 0x80..=0xff, ..]) => 1,
            (0, _) => return (at, chars),
            (len, _) => len,
        };
        chars += 1;
    }
}

/// How many bytes at the start of `rest` are words of which `holds` is true, each taken for `STEP` bytes.
fn words_run<const STEP: usize>(rest: &[u8], holds: impl Fn(u64) -> bool) -> usize {
    let mut words = rest;
    while let Some(word) = words.first_chunk::<8>()
        && holds(u64::from_le_bytes(*word))
    {
        words = words.get(STEP..).unwrap_or_default();
    }
    rest.len() - words.len()
}

/// Two characters of three bytes, as in CJK, at the start of a word.
fn is_two_of_three(word: u64) -> bool {
    word & 0xc0c0_f0c0_c0f0 == 0x8080_e080_80e0
        && is_three_sane(word as u32)
        && is_three_sane((word >> 24) as u32)
}

/// Four characters of two bytes, as in Cyrillic.
fn is_four_of_two(word: u64) -> bool {
    // Adding carries into bit 7 from any of the lead's upper four payload bits; overlong forms of ASCII have none.
    let payload = (word & 0x001e_001e_001e_001e) + 0x007e_007e_007e_007e;
    word & 0xc0e0_c0e0_c0e0_c0e0 == 0x80c0_80c0_80c0_80c0
        && payload & 0x0080_0080_0080_0080 == 0x0080_0080_0080_0080
}

/// The length of the non-ASCII character at the start of `rest`; 0 where there is none.
///
/// The bytes are looked at as one little-endian word: the first byte is its lowest.
fn wide_char(rest: &[u8]) -> usize {
    let word = match *rest {
        [a, b, c, d, ..] => u32::from_le_bytes([a, b, c, d]),
        [a, b, c] => u32::from_le_bytes([a, b, c, 0]),
        [a, b] => u32::from_le_bytes([a, b, 0, 0]),
        _ => 0,
    };
    // Overlong forms of ASCII have none of the lead's upper four payload bits.
    let two = word & 0xc0e0 == 0x80c0 && word & 0x1e != 0;
    let three = word & 0xc0_c0f0 == 0x80_80e0 && is_three_sane(word);
    let four = word & 0xc0c0_c0f8 == 0x8080_80f0 && is_four_sane(word);
    if three {
        3
    } else if two {
        2
    } else if four {
        4
    } else {
        0
    }
}

/// Neither overlong (E0 80..9F) nor a surrogate (ED A0..BF): told by the lead's payload and the next byte's bit 5.
fn is_three_sane(word: u32) -> bool {
    !matches!(word & 0x200f, 0 | 0x200d)
}

/// Neither overlong (F0 80..8F) nor beyond U+10FFFF (F4 90.., F5..): told by the lead's payload and the next byte's bits 4, 5.
fn is_four_sane(word: u32) -> bool {
    let (lead, next) = (word & 7, word & 0x3000);
    (lead != 0 || next != 0) && (lead < 4 || lead == 4 && next == 0)
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
