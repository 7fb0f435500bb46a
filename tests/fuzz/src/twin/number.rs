//! What a value says as a limit, by the plainest arithmetic on text.

use super::json::{Node, Text, Value};

/// As `sluice` has it, and in the same words.
pub use sluice::core::body::Amount;

/// What `node` says; `None` where that is no limit, and it has to be refused.
pub fn amount(node: &Node) -> Option<Amount> {
    match &node.value {
        Value::Null => Some(Amount::Unset),
        Value::Number(number) => decimal(number),
        Value::Text(text) => quoted(text),
        _ => None,
    }
}

/// What a JSON number says.
pub fn decimal(number: &str) -> Option<Amount> {
    let (negative, number) = number.strip_prefix('-').map_or((false, number), |rest| (true, rest));
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return Some(Amount::Zero);
    }
    let significant = digits.trim_end_matches('0');
    let far = i128::from(i64::MAX);
    let exponent: i128 = exponent.parse().unwrap_or(if exponent.starts_with('-') { -far } else { far });
    let zeros = exponent - fraction.len() as i128 + (digits.len() - significant.len()) as i128;
    if zeros < 0 {
        return None;
    }
    if negative {
        return Some(Amount::Negative);
    }
    if significant.len() as i128 + zeros > 20 {
        return Some(Amount::Count(u64::MAX));
    }
    let value: u128 = format!("{significant}{}", "0".repeat(zeros as usize)).parse().unwrap_or(u128::MAX);
    Some(Amount::Count(u64::try_from(value).unwrap_or(u64::MAX)))
}

/// What a string says to who reads strings as numbers.
fn quoted(text: &Text) -> Option<Amount> {
    let word = text.word();
    let word = word.trim();
    let (negative, word) = match word.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, word.strip_prefix('+').unwrap_or(word)),
    };
    let (whole, fraction) = word.split_once('.').unwrap_or((word, "0"));
    let all_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !whole.split('_').all(all_digits) || fraction.is_empty() || fraction.bytes().any(|byte| byte != b'0') {
        return None;
    }
    let digits = whole.replace('_', "");
    match digits.trim_start_matches('0') {
        "" => Some(Amount::Zero),
        _ if negative => Some(Amount::Negative),
        digits => Some(Amount::Count(digits.parse().unwrap_or(u64::MAX))),
    }
}
