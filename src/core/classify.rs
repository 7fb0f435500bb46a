//! One verb: sort a bounded request into a class.

use super::body::unescaped;
use super::policy::{Class, Policy};
use super::units::ClassId;

/// The first class whose bounds and model patterns hold; the last one takes what is left.
///
/// `output_tokens` is the output limit in force times the sequences; `model` the model's name as escaped in the body.
pub fn classify(
    policy: &Policy,
    prompt_chars: u64,
    prompt_tokens: u64,
    output_tokens: u64,
    model: Option<&[u8]>,
) -> ClassId {
    let within = |size: u64, bound: Option<u64>| bound.is_none_or(|bound| size <= bound);
    let holds = |class: &Class| {
        within(prompt_chars, class.at_most.prompt_chars)
            && within(prompt_tokens, class.at_most.prompt_tokens)
            && within(output_tokens, class.at_most.max_tokens)
            && (class.models.is_empty() || model.is_some_and(|model| named(&class.models, model)))
    };
    let last = policy.classes.len().saturating_sub(1);
    let place = policy.classes.iter().position(holds).unwrap_or(last);
    ClassId(u8::try_from(place).unwrap_or(u8::MAX))
}

fn named(patterns: &[String], escaped: &[u8]) -> bool {
    let name = unescaped(escaped);
    patterns.iter().any(|pattern| matches(pattern.as_bytes(), &name))
}

/// Whether `name` is what `pattern` describes; `*` stands for any run of bytes. Each piece between two stars is taken
/// where it comes first, and never again, so time is linear in the name for any number of stars.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let mut pieces = pattern.split(|&byte| byte == b'*');
    let Some(mut rest) = pieces.next().and_then(|head| name.strip_prefix(head)) else { return false };
    let Some(tail) = pieces.next_back() else { return rest.is_empty() };
    for piece in pieces {
        let found = piece
            .is_empty()
            .then_some(0)
            .or_else(|| rest.windows(piece.len()).position(|part| part == piece));
        match found.and_then(|at| rest.get(at + piece.len()..)) {
            Some(behind) => rest = behind,
            None => return false,
        }
    }
    rest.ends_with(tail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::config;
    use crate::core::policy::AtMost;

    fn class(name: &str, at_most: AtMost, models: &[&str]) -> Class {
        let models = models.iter().map(|model| (*model).to_owned()).collect();
        let [class, ..] = &policy(vec![]).classes[..] else { panic!("the default policy has classes") };
        Class { name: name.to_owned(), at_most, models, ..class.clone() }
    }

    /// The default one with these classes, or its own.
    fn policy(classes: Vec<Class>) -> Policy {
        let policy = config::parse(b"{}").unwrap();
        if classes.is_empty() { policy } else { Policy { classes, ..policy } }
    }

    #[test]
    fn the_first_class_that_holds_takes_it() {
        let short = AtMost { prompt_chars: Some(2000), prompt_tokens: None, max_tokens: Some(256) };
        let middle = AtMost { prompt_tokens: Some(1000), ..AtMost::default() };
        let policy = policy(vec![
            class("short", short, &[]),
            class("llama", AtMost::default(), &["llama-3-*", "exact"]),
            class("middle", middle, &[]),
            class("long", AtMost::default(), &["ignored-for-the-last"]),
        ]);
        for (chars, tokens, output, model, want) in [
            (2000, 500, 256, None, 0),
            (2001, 500, 256, None, 2),
            (2000, 500, 257, None, 2),
            (9000, 500, 256, Some("llama-3-8b"), 1),
            (9000, 500, 256, Some(r"llama\u002d3-8b"), 1),
            (9000, 500, 256, Some("Llama-3-8b"), 2),
            (9000, 1001, 256, Some("exact"), 1),
            (9000, 1001, 256, Some("exactly"), 3),
        ] {
            let got = classify(&policy, chars, tokens, output, model.map(str::as_bytes));
            assert_eq!(got, ClassId(want), "{chars} {tokens} {output} {model:?}");
        }
    }

    #[test]
    fn stars_stand_for_any_run() {
        for (pattern, yes, no) in [
            ("a", &["a"][..], &["", "aa", "A"][..]),
            ("*", &["", "a", "a*b"], &[]),
            ("a*", &["a", "abc"], &["", "ba"]),
            ("*a", &["a", "cba"], &["", "ab"]),
            ("a*a", &["aa", "aba"], &["a", "ab"]),
            ("*b*", &["b", "abc"], &["", "ac"]),
            ("a*b*c", &["abc", "axbxc", "abbcc"], &["ac", "acb"]),
            ("a**b", &["ab", "a-b"], &["a", "b"]),
            ("*ab*ab", &["abab", "ab-ab"], &["ab", "aba"]),
        ] {
            for name in yes {
                assert!(matches(pattern.as_bytes(), name.as_bytes()), "{pattern} {name}");
            }
            for name in no {
                assert!(!matches(pattern.as_bytes(), name.as_bytes()), "{pattern} {name}");
            }
        }
    }

    #[test]
    fn many_stars_on_a_long_name_take_no_time() {
        let name = "a".repeat(1 << 20);
        assert!(!matches("*a".repeat(20).as_bytes().strip_suffix(b"a").unwrap(), b"b"));
        assert!(!matches(format!("{}b", "*a".repeat(50)).as_bytes(), name.as_bytes()));
    }
}
