//! Durations as text: digits, perhaps with a fraction, and one unit of `ms`, `s`, `m`, `h`.

use std::time::Duration;

/// Reads `5s`, `0.25s`, `250ms`, `1m`, `1h`; `None` for everything else, signs, blanks and sums of units included.
/// What lies below a nanosecond is cut off.
pub fn parse(text: &str) -> Option<Duration> {
    let (number, unit) = UNITS.iter().find_map(|(name, nanos)| Some((text.strip_suffix(name)?, *nanos)))?;
    let (whole, fraction) = match number.split_once('.') {
        Some((_, "")) => return None,
        Some(parts) => parts,
        None => (number, ""),
    };
    let nanos = digits(whole)?.checked_mul(unit)?;
    let mut part: u64 = 0;
    let mut worth = unit;
    for digit in fraction.bytes() {
        worth /= 10;
        part += digits_value(digit)? * worth;
    }
    Some(Duration::from_nanos(nanos.checked_add(part)?))
}

/// Units by name, in nanoseconds; `ms` before `s` and `m`, which it ends or begins with.
const UNITS: [(&str, u64); 4] =
    [("ms", 1_000_000), ("s", 1_000_000_000), ("m", 60_000_000_000), ("h", 3_600_000_000_000)];

fn digits(text: &str) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.bytes().try_fold(0u64, |sum, digit| sum.checked_mul(10)?.checked_add(digits_value(digit)?))
}

fn digits_value(digit: u8) -> Option<u64> {
    digit.is_ascii_digit().then(|| u64::from(digit - b'0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_a_duration_and_what_is_not() {
        for (text, millis) in [
            ("5s", 5000),
            ("0.25s", 250),
            ("250ms", 250),
            ("1m", 60_000),
            ("1.5m", 90_000),
            ("1h", 3_600_000),
            ("0s", 0),
            ("007s", 7000),
            ("0.001s", 1),
        ] {
            assert_eq!(parse(text), Some(Duration::from_millis(millis)), "{text}");
        }
        assert_eq!(parse("0.0000000019s"), Some(Duration::from_nanos(1)));
        for text in [
            "",
            "s",
            "ms",
            "5",
            ".5s",
            "5.s",
            "-5s",
            "+5s",
            " 5s",
            "5 s",
            "5S",
            "1m30s",
            "1e3s",
            "5us",
            "1d",
            "0x5s",
            "1.2.3s",
            "1,5s",
            "٣s",
            "99999999999999999999s",
            "99999999999999h",
            "5sm",
            "NaNs",
            "infs",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
