//! The inside of a JSON string: checked and measured while it is skipped.

use std::ops::Range;

use super::block::{ALL, BLOCK, Block};
use super::escape::Escape;
use super::lanes::{LANES, Lanes};
use super::text::Text;
use super::wide::{self, Check};

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
        let len = stops(Lanes::of(block)).bits().trailing_zeros() as usize;
        if rest.get(len) == Some(&b'"') && len < LANES {
            return Ok(Str { inside: start..start + len, text: Text::ascii(len) });
        }
    }
    read_any(bytes, start)
}

/// A block at a time, without a branch for what most escapes are: text as people write it has one every few words, and
/// nothing foretells where.
fn read_any(bytes: &[u8], start: usize) -> Result<Str, (usize, &'static str)> {
    let behind = |at: usize| bytes.get(at..).unwrap_or_default();
    let mut at = start + plain_run(behind(start));
    // What escapes take more than what they stand for, and how many bytes of the decoded text only continue a character.
    let (mut spelling, mut continuations) = (0, 0);
    let mut check = Check::default();
    // 1 where the byte before the block is a backslash that escapes its first one.
    let mut carry = 0;
    let mut quiet = 0;
    loop {
        let rest = behind(at);
        let block = Block::first(rest);
        let stops = block.bits(stops);
        let wide = block.wide();
        let (mut continues, mut wrong) = (0, 0);
        if wide != 0 || check.is_open() {
            // Text of another script, with no need to look for escapes.
            if wide.count_ones() as usize >= BLOCK / 2 && stops == wide && carry == 0 && !check.is_open() {
                let (len, more) = wide::run(rest).map_err(|fault| (at + fault, BAD_UTF8))?;
                continuations += more;
                at += len;
                continue;
            }
            (continues, wrong) = check.block(&block);
        }
        quiet = if stops == 0 { quiet + 1 } else { 0 };
        if quiet == QUIET {
            at += BLOCK + plain_run(behind(at + BLOCK));
            quiet = 0;
            continue;
        }
        let backslashes = block.bits(|lanes| lanes.is(b'\\'));
        let quotes = block.bits(|lanes| lanes.is(b'"'));
        let letters = block.bits(|lanes| lanes.is(b'n') | lanes.is(b't') | lanes.is(b'r'));
        let escaped = escaped_by(backslashes, carry);
        carry = escaped >> BLOCK;
        let escaped = escaped & ALL;
        // Of an escape that is rarer, longer, or none.
        let odd = escaped & !(letters | quotes | backslashes);
        // What is left of the stops are quotes and control characters that nothing escapes.
        let telling = wrong | odd | (stops & !(wide | escaped | backslashes));
        if telling == 0 {
            spelling += escaped.count_ones() as usize;
            continuations += continues.count_ones() as usize;
            at += BLOCK;
            continue;
        }
        let first = telling.trailing_zeros();
        let (here, before) = (1 << first, (1 << first) - 1);
        spelling += (escaped & before).count_ones() as usize;
        continuations += (continues & before).count_ones() as usize;
        at += first as usize;
        if odd & here != 0 {
            // The backslash stands before.
            at -= 1;
            let run = Escapes::run(behind(at)).map_err(|fault| (at + fault, BAD_ESCAPE))?;
            spelling += run.spelling;
            continuations += run.continuations;
            at += run.len;
            (carry, check) = (0, Check::default());
        } else if wrong & here != 0 {
            return Err((start + wide::first_fault(behind(start), at - start), BAD_UTF8));
        } else if quotes & here != 0 {
            let bytes = at - start - spelling;
            return Ok(Str { inside: start..at, text: Text { chars: bytes - continuations, bytes } });
        } else {
            // NUL stands behind the body's last byte, too.
            return Err((at, if at < bytes.len() { RAW_CONTROL } else { OPEN_END }));
        }
    }
}

/// Escapes side by side.
#[derive(Default)]
struct Escapes {
    /// Bytes of them all.
    len: usize,
    /// How many more those are than what they stand for.
    spelling: usize,
    /// How many bytes of what they stand for only continue a character.
    continuations: usize,
}

impl Escapes {
    /// Those at the start of `rest`.
    ///
    /// # Errors
    /// The offset of the first one that JSON does not know.
    #[inline(never)]
    fn run(rest: &[u8]) -> Result<Escapes, usize> {
        let (mut run, mut behind) = (Escapes::default(), rest);
        while let Some(b'\\') = behind.first() {
            let escape = Escape::read(behind).ok_or(run.len)?;
            let utf8_len = escape.utf8_len();
            run.spelling += escape.len - utf8_len;
            run.continuations += utf8_len - 1;
            run.len += escape.len;
            behind = behind.get(escape.len..).unwrap_or_default();
        }
        Ok(run)
    }
}

/// How many bytes at the start of `rest` stand for themselves, as far as whole lanes go: no quote, backslash, control
/// character or non-ASCII.
// A loop of its own in the module as well: among all that `read_any` keeps at hand it would be slower.
#[inline(never)]
fn plain_run(rest: &[u8]) -> usize {
    let (mut run, mut behind) = (0, rest);
    while let Some((block, more)) = behind.split_first_chunk() {
        if stops(Lanes::of(block)).bits() != 0 {
            break;
        }
        run += LANES;
        behind = more;
    }
    run
}

/// Behind so many blocks with nothing to stop at there is likely no more for a while.
const QUIET: u32 = 4;

/// Which bytes a backslash escapes, a bit each, that behind the block among them. `carry` says whether that is so of the
/// first one. In a run of backslashes every second one is escaped.
#[inline(always)]
fn escaped_by(backslashes: u64, carry: u64) -> u64 {
    // As in simdjson: where a run begins at an odd place, the subtraction borrows up to its end.
    const ODD: u64 = 0xaaaa_aaaa_aaaa_aaaa;
    let begins = backslashes & !carry;
    let series = (begins << 1 | ODD).wrapping_sub(begins) ^ ODD;
    series ^ (backslashes | carry)
}

const BAD_ESCAPE: &str = "a string holds an escape that JSON does not know; allowed are \\\" \\\\ \\/ \\b \\f \\n \\r \\t and \\u with four hex digits";
const BAD_UTF8: &str = "a string holds bytes that are not UTF-8";
const OPEN_END: &str = "the body ends within a string";
const RAW_CONTROL: &str = "a string holds a raw control character; it must be escaped";

/// The bytes that do not stand for themselves. Beyond ASCII is below a space where bytes are signed.
#[inline(always)]
fn stops(lanes: Lanes) -> Lanes {
    lanes.below(b' ') | lanes.is(b'"') | lanes.is(b'\\')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same reader a character at a time, by the standard library's rules.
    fn book(bytes: &[u8], start: usize) -> Result<Str, (usize, &'static str)> {
        let (mut at, mut text) = (start, Text::default());
        loop {
            let rest = &bytes[at..];
            let (len, utf8_len) = match rest {
                [] => return Err((at, OPEN_END)),
                [b'"', ..] => return Ok(Str { inside: start..at, text }),
                [0..0x20, ..] => return Err((at, RAW_CONTROL)),
                [b'\\', ..] => {
                    let escape = Escape::read(rest).ok_or((at, BAD_ESCAPE))?;
                    (escape.len, escape.utf8_len())
                }
                _ => {
                    let whole =
                        |len: &usize| rest.get(..*len).is_some_and(|c| std::str::from_utf8(c).is_ok());
                    let len = (1..=4).find(whole).ok_or((at, BAD_UTF8))?;
                    (len, len)
                }
            };
            at += len;
            text += Text { chars: 1, bytes: utf8_len };
        }
    }

    /// Reads `text` from its start, and with a quote behind it.
    #[track_caller]
    fn as_in_the_book(text: &[u8]) {
        assert_eq!(read(text, 0), book(text, 0), "{}", text.escape_ascii());
        let quoted = [text, b"\""].concat();
        assert_eq!(read(&quoted, 0), book(&quoted, 0), "{}", quoted.escape_ascii());
    }

    #[test]
    fn every_four_bytes_that_matter_are_judged_as_std_judges_them() {
        let telling = [
            0x00, 0x22, 0x41, 0x5c, 0x6e, 0x75, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1, 0xc2,
            0xdf, 0xe0, 0xe1, 0xec, 0xed, 0xee, 0xef, 0xf0, 0xf1, 0xf3, 0xf4, 0xf5, 0xff,
        ];
        for place in [0, 13, 28, 30, 31] {
            let mut text = vec![b'x'; place + 40];
            for a in telling {
                for b in telling {
                    for c in telling {
                        for d in telling {
                            text[place..place + 4].copy_from_slice(&[a, b, c, d]);
                            assert_eq!(read(&text, 0), book(&text, 0), "{a:x} {b:x} {c:x} {d:x} at {place}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_fault_and_an_end_are_found_at_every_place() {
        for filling in [
            "a",
            "é",
            "你",
            "ก",
            "한",
            "😀",
            "\u{10ffff}",
            "é你😀 ",
            r"\n",
            r"a\n",
            r"\\",
            r"a\\\n",
            r"\/",
            r"\u00e9",
            r"\ud83d\ude00 ",
            r#"\"é"#,
        ] {
            for pad in 0..BLOCK {
                let good = ["x".repeat(pad), filling.repeat(90 / filling.len())].concat().into_bytes();
                as_in_the_book(&good);
                for at in 0..good.len() {
                    as_in_the_book(&good[..at]);
                    let mut bytes = good.clone();
                    for byte in
                        [b'"', b'\\', 0, 0x1f, b' ', b'n', b'u', 0x7f, 0x80, 0xc0, 0xc3, 0xe4, 0xf0, 0xff]
                    {
                        bytes[at] = byte;
                        as_in_the_book(&bytes);
                    }
                }
            }
        }
    }

    #[test]
    fn runs_of_backslashes_are_split_anywhere() {
        for pad in 0..=BLOCK {
            for run in 0..=2 * BLOCK + 1 {
                for behind in [r#"""#, "n\"", "x\"", "u0041\"", "é\"", "\0\"", "/b\"", ""] {
                    as_in_the_book(
                        ["x".repeat(pad), "\\".repeat(run), behind.to_owned()].concat().as_bytes(),
                    );
                }
            }
        }
    }

    #[test]
    fn what_comes_behind_much_plain_text_is_found_all_the_same() {
        for before in [r"\n", "é", r"\u00e9", "你好世界你好世界你好世界"] {
            for plain in 0..10 * BLOCK {
                for behind in [r"\n", r"\", "é", "你好世界你好世界你好世界", r"\x", "\u{1f}", ""]
                {
                    as_in_the_book([before, &"x".repeat(plain), behind].concat().as_bytes());
                }
            }
        }
    }

    #[test]
    fn every_byte_behind_a_backslash_is_an_escape_or_a_fault() {
        for pad in 0..=BLOCK {
            for byte in 0..=u8::MAX {
                as_in_the_book(
                    &["x".repeat(pad).as_bytes(), &[b'\\', byte], b"0041 and more, and more\""].concat(),
                );
            }
        }
    }

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
