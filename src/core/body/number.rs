//! Numbers as text: the grammar, and what a limit says, compared digit by digit. No floating point.

use super::Amount;
use super::escape::unescape;

/// The length of the JSON number at the start of `rest`; `None` where RFC 8259 knows no such number.
#[inline]
pub fn len(rest: &[u8]) -> Option<usize> {
    // Most numbers are whole, and of a few digits.
    let whole = digits(rest, 0);
    if whole > 0
        && !matches!(rest.get(whole), Some(b'.' | b'e' | b'E'))
        && (whole == 1 || rest.first() != Some(&b'0'))
    {
        return Some(whole);
    }
    any_len(rest)
}

fn any_len(rest: &[u8]) -> Option<usize> {
    let sign = usize::from(rest.first() == Some(&b'-'));
    let whole = digits(rest, sign);
    if whole == 0 || whole > 1 && rest.get(sign) == Some(&b'0') {
        return None;
    }
    let mut len = sign + whole;
    if rest.get(len) == Some(&b'.') {
        let fraction = digits(rest, len + 1);
        if fraction == 0 {
            return None;
        }
        len += 1 + fraction;
    }
    if let Some(b'e' | b'E') = rest.get(len) {
        let sign = usize::from(matches!(rest.get(len + 1), Some(b'+' | b'-')));
        let exponent = digits(rest, len + 1 + sign);
        if exponent == 0 {
            return None;
        }
        len += 1 + sign + exponent;
    }
    Some(len)
}

/// What a JSON number says as a limit, however long and in whatever notation; `None` where it is not whole.
pub fn amount(number: &[u8]) -> Option<Amount> {
    let (negative, unsigned) = match number {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, number),
    };
    let cut = unsigned.iter().position(|byte| matches!(byte, b'e' | b'E')).unwrap_or(unsigned.len());
    let (mantissa, exponent) = unsigned.split_at_checked(cut)?;
    let point = mantissa.iter().position(|&byte| byte == b'.').unwrap_or(mantissa.len());
    // The digits without the point, counted from the first; `units` of them stand before the decimal point.
    let mut significant =
        mantissa.iter().filter(|byte| byte.is_ascii_digit()).enumerate().filter(|(_, byte)| **byte != b'0');
    let Some((first, _)) = significant.next() else { return Some(Amount::Zero) };
    let last = significant.last().map_or(first, |(place, _)| place);
    let units = i64::try_from(point).ok()?.saturating_add(exponent_value(exponent));
    if units <= i64::try_from(last).ok()? {
        return None;
    }
    if negative {
        return Some(Amount::Negative);
    }
    let units = usize::try_from(units).unwrap_or(usize::MAX);
    // 20 digits are the most that u64 can hold.
    if units - first > 20 {
        return Some(Amount::Count(u64::MAX));
    }
    let written =
        mantissa.iter().filter(|byte| byte.is_ascii_digit()).copied().chain(std::iter::repeat(b'0'));
    let value = written.take(units).skip(first).fold(0, append);
    Some(Amount::Count(value))
}

/// What the inside of a string says as a limit where the backend reads it as a whole number: white space around it, a
/// sign, digits with single underscores between them, a fraction of zeros. `None` for every other string.
pub fn quoted_amount(inside: &[u8]) -> Option<Amount> {
    let mut state = Quoted::Before;
    let (mut negative, mut value) = (false, 0u64);
    let mut bytes = unescape(inside);
    while let Some(byte) = bytes.next() {
        state = match (state, byte) {
            (Quoted::Before, b'+' | b'-') => {
                negative = byte == b'-';
                Quoted::Signed
            }
            (Quoted::Before | Quoted::Signed | Quoted::Digits | Quoted::Underscore, b'0'..=b'9') => {
                value = append(value, byte);
                Quoted::Digits
            }
            (Quoted::Digits, b'_') => Quoted::Underscore,
            (Quoted::Digits, b'.') => Quoted::Point,
            (Quoted::Point | Quoted::Zeros, b'0') => Quoted::Zeros,
            (Quoted::Before, _) if is_blank(byte, &mut bytes) => Quoted::Before,
            (Quoted::Digits | Quoted::Zeros | Quoted::After, _) if is_blank(byte, &mut bytes) => {
                Quoted::After
            }
            _ => return None,
        };
    }
    match state {
        Quoted::Digits | Quoted::Zeros | Quoted::After => Some(match value {
            0 => Amount::Zero,
            _ if negative => Amount::Negative,
            _ => Amount::Count(value),
        }),
        _ => None,
    }
}

/// How far a string has been read as a number.
#[derive(Clone, Copy)]
enum Quoted {
    Before,
    Signed,
    Digits,
    Underscore,
    Point,
    Zeros,
    After,
}

/// Whether a letter is white space to Unicode, and so to pydantic. It begins with `byte`; the rest of it is taken.
fn is_blank(byte: u8, behind: &mut impl Iterator<Item = u8>) -> bool {
    let mut letter = [byte; 4];
    let len = byte.leading_ones().clamp(1, 4) as usize;
    letter.iter_mut().take(len).skip(1).for_each(|byte| *byte = behind.next().unwrap_or_default());
    std::str::from_utf8(letter.get(..len).unwrap_or_default()).is_ok_and(|letter| letter.trim().is_empty())
}

/// How many digits stand from `from` on.
#[inline]
fn digits(bytes: &[u8], from: usize) -> usize {
    let (mut run, mut behind) = (0, bytes.get(from..).unwrap_or_default());
    while let Some((word, more)) = behind.split_first_chunk() {
        // Digits become 0 to 9. A carry can only spoil bytes above a true hit, so the lowest hit is exact.
        let word = u64::from_le_bytes(*word) ^ (ONES * b'0' as u64);
        let others = (word.wrapping_add(ONES * (0x80 - 10)) | word) & (ONES << 7);
        if others != 0 {
            return run + others.trailing_zeros() as usize / 8;
        }
        run += 8;
        behind = more;
    }
    run + behind.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

const ONES: u64 = u64::MAX / 255;

fn append(value: u64, digit: u8) -> u64 {
    value.saturating_mul(10).saturating_add(u64::from(digit.wrapping_sub(b'0')))
}

/// The value of `e12`, `E+12`, `e-12` or nothing, as far as it matters: saturated at a size that no body's digits reach.
fn exponent_value(exponent: &[u8]) -> i64 {
    let negative = exponent.get(1) == Some(&b'-');
    let far = i64::MAX / 2;
    let size = exponent
        .iter()
        .filter(|byte| byte.is_ascii_digit())
        .fold(0i64, |value, byte| far.min(value.saturating_mul(10).saturating_add(i64::from(byte - b'0'))));
    if negative { -size } else { size }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grammar_is_strict() {
        for good in
            ["0", "-0", "7", "10", "-12.50", "1e5", "1E+5", "0.0e-0", "123456789012345678901234567890"]
        {
            assert_eq!(len(good.as_bytes()), Some(good.len()), "{good}");
            assert_eq!(len(format!("{good},").as_bytes()), Some(good.len()), "{good}");
        }
        for bad in [
            "",
            "-",
            "+1",
            "01",
            "-01",
            "00",
            ".5",
            "1.",
            "1.e5",
            "1e",
            "1e+",
            "-a",
            "e5",
            "Infinity",
            "-Infinity",
            "１",
        ] {
            assert_eq!(len(bad.as_bytes()), None, "{bad}");
        }
        // What follows is for the caller to refuse.
        assert_eq!(len(b"0x10"), Some(1));
        assert_eq!(len(b"1_000"), Some(1));
    }

    #[test]
    fn numbers_are_compared_as_text() {
        let count = |value| Some(Amount::Count(value));
        for (number, want) in [
            ("100", count(100)),
            ("1e6", count(1_000_000)),
            ("1000000.0", count(1_000_000)),
            ("1.5e1", count(15)),
            ("1200e-2", count(12)),
            ("0.001e3", count(1)),
            ("1E400", count(u64::MAX)),
            ("9223372036854775807", count(9_223_372_036_854_775_807)),
            ("18446744073709551615", count(u64::MAX)),
            ("18446744073709551616", count(u64::MAX)),
            ("99999999999999999999", count(u64::MAX)),
            ("1e99999999999999999999999", count(u64::MAX)),
            ("0", Some(Amount::Zero)),
            ("-0.0", Some(Amount::Zero)),
            ("0e99999999999999999999", Some(Amount::Zero)),
            ("-1", Some(Amount::Negative)),
            ("-1e400", Some(Amount::Negative)),
            ("1.5", None),
            ("-1.5", None),
            ("1e-1", None),
            ("1201e-2", None),
            ("1e-99999999999999999999999", None),
            ("1024.00000000000000000000000000000001", None),
        ] {
            assert_eq!(amount(number.as_bytes()), want, "{number}");
        }
    }

    #[test]
    fn ten_thousand_digits_are_read_in_any_place() {
        let zeros = "0".repeat(10_000);
        assert_eq!(amount(format!("1{zeros}").as_bytes()), Some(Amount::Count(u64::MAX)));
        assert_eq!(amount(format!("1{zeros}e-10000").as_bytes()), Some(Amount::Count(1)));
        assert_eq!(amount(format!("5.{zeros}").as_bytes()), Some(Amount::Count(5)));
        assert_eq!(amount(format!("0.{zeros}7e10001").as_bytes()), Some(Amount::Count(7)));
        assert_eq!(amount(format!("5.{zeros}1").as_bytes()), None);
        assert_eq!(quoted_amount(format!("{zeros}7").as_bytes()), Some(Amount::Count(7)));
    }

    #[test]
    fn strings_are_read_as_pydantic_reads_them() {
        for (inside, want) in [
            ("100", 100),
            (" 100\\n", 100),
            ("+5", 5),
            ("007", 7),
            ("1_000", 1000),
            ("100.0", 100),
            ("100.000 ", 100),
            ("\\u00a0100", 100),
            ("\u{2003}100\\u3000\\u0085", 100),
            ("\\u000b100\\f", 100),
            ("\\u0031\\u0030", 10),
            ("99999999999999999999999", u64::MAX),
        ] {
            assert_eq!(quoted_amount(inside.as_bytes()), Some(Amount::Count(want)), "{inside}");
        }
        for (inside, want) in [
            ("0", Amount::Zero),
            ("-1", Amount::Negative),
            ("-0", Amount::Zero),
            (" -7 ", Amount::Negative),
            ("0_0", Amount::Zero),
        ] {
            assert_eq!(quoted_amount(inside.as_bytes()), Some(want), "{inside}");
        }
        for inside in [
            "",
            " ",
            "abc",
            "1e3",
            "0x10",
            "1.5",
            "1.",
            ".0",
            "1__0",
            "_1",
            "1_",
            "+-1",
            "- 1",
            "1 2",
            "+",
            "1.0_0",
            "１",
            "null",
            "1,000",
            "100\u{200b}",
            "\u{feff}100",
            "\\u001f100",
            "\\ud83d100",
        ] {
            assert_eq!(quoted_amount(inside.as_bytes()), None, "{inside}");
        }
    }
}
