//! "Did you mean": the known name that a misspelt one stands for.

/// The nearest of `known`, if it is near enough to be meant: two slips, one in a short name. Case and underscores do
/// not count, for those who write `maxTokens`.
pub(super) fn nearest<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    let plain = plain(name);
    known
        .iter()
        .map(|key| (distance(&plain, &self::plain(key)), *key))
        .filter(|(slips, key)| *slips <= 2 && slips * 3 <= key.len())
        .min_by_key(|(slips, _)| *slips)
        .map(|(_, key)| key)
}

fn plain(name: &str) -> Vec<char> {
    // Longer than any known key by more than the slips allowed: the rest could not change the answer.
    name.chars().filter(|c| !matches!(c, '_' | '-' | ' ')).map(|c| c.to_ascii_lowercase()).take(64).collect()
}

/// Levenshtein's distance, row by row.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (line, x) in a.iter().enumerate() {
        let mut left = line + 1;
        let mut next = vec![left];
        for (y, above) in b.iter().zip(row.windows(2)) {
            let &[diagonal, up] = above else { break };
            left = (left + 1).min(up + 1).min(diagonal + usize::from(x != y));
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_understood_and_a_stranger_is_not() {
        let known = ["max_tokens", "name", "queue", "default_max_tokens", "slo"];
        for (name, near) in [
            ("max_token", Some("max_tokens")),
            ("maxTokens", Some("max_tokens")),
            ("MAX-TOKENS", Some("max_tokens")),
            ("max_tokns", Some("max_tokens")),
            ("nmae", None),
            ("names", Some("name")),
            ("quue", Some("queue")),
            ("sla", Some("slo")),
            ("xyz", None),
            ("", None),
        ] {
            assert_eq!(nearest(name, &known), near, "{name}");
        }
    }
}
