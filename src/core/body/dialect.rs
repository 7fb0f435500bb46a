//! The dialects that the filter speaks. A new one is a new file and a line in [`ALL`].

use std::fmt;

use super::shape::Shape;
use super::walk::Walk;
use super::{BadBody, View, chat, completions};
use crate::core::refusal::Family;

/// How the bodies of one family of endpoints are read.
pub struct Dialect {
    /// Its name, as in the policy's `endpoints`.
    pub name: &'static str,
    /// The paths that speak it, as suffixes of whole segments.
    pub paths: &'static [&'static str],
    /// The error shape that its clients understand.
    pub family: Family,
    /// The field that is put in when no output limit is set.
    pub inject: &'static str,
    /// The members of a body that are read.
    pub root: &'static Shape,
}

/// Every dialect.
pub static ALL: &[&Dialect] = &[&chat::CHAT, &completions::COMPLETIONS];

/// Reads `body` in one pass, without copying or allocating per string. Time is linear in its length.
///
/// # Errors
/// Where it is not one JSON object of RFC 8259 in UTF-8 (nested over 128 levels counts as not), where a limit is
/// nothing that can be bounded, or where a key that is read comes twice.
pub fn read<'a>(dialect: &Dialect, body: &'a [u8]) -> Result<View<'a>, BadBody> {
    let walk = Walk::over(dialect.root, body)?;
    let prompts = walk.prompts.max(1);
    let (copies, copies_param) = walk.copies;
    Ok(View {
        body,
        prompt: walk.prompt,
        limits: walk.limits,
        min_tokens: walk.min_tokens,
        sequences: prompts.saturating_mul(copies),
        sequences_param: if prompts > copies { "prompt" } else { copies_param },
        stream: walk.stream,
        model: walk.model,
        user: walk.user,
        inject: dialect.inject,
        insertion: walk.insertion,
    })
}

// By name: shapes may refer to themselves, so they cannot be printed or compared member by member.
impl fmt::Debug for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Dialect({})", self.name)
    }
}

impl PartialEq for Dialect {
    fn eq(&self, other: &Dialect) -> bool {
        self.name == other.name
    }
}

impl Eq for Dialect {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::body::shape::Rule;

    /// Every shape of every dialect; they may refer to themselves.
    fn shapes() -> Vec<&'static Shape> {
        let mut found: Vec<&'static Shape> = ALL.iter().map(|dialect| dialect.root).collect();
        let mut next = 0;
        while let Some(shape) = found.get(next).copied() {
            next += 1;
            for field in shape.fields {
                if let Rule::Inside(inner) = field.rule
                    && !found.iter().any(|known| std::ptr::eq(*known, inner))
                {
                    found.push(inner);
                }
            }
        }
        found
    }

    #[test]
    fn names_and_paths_are_unique() {
        for (place, one) in ALL.iter().enumerate() {
            for other in &ALL[..place] {
                assert_ne!(one.name, other.name);
                assert!(one.paths.iter().all(|suffix| !other.paths.contains(suffix)));
            }
            assert!(one.paths.iter().all(|suffix| suffix.starts_with('/')));
        }
    }

    #[test]
    fn shapes_fit_what_the_walk_can_remember() {
        for shape in shapes() {
            assert!(shape.fields.len() <= 64);
            for (place, field) in shape.fields.iter().enumerate() {
                assert!(field.key.len() <= 64 && field.key.is_ascii(), "{}", field.key);
                assert!(
                    shape.fields[..place].iter().all(|other| other.key != field.key),
                    "{} twice",
                    field.key
                );
            }
        }
    }

    #[test]
    fn the_injected_field_is_one_of_the_limits() {
        for dialect in ALL {
            let named = |field: &&super::super::shape::Field| matches!(field.rule, Rule::Limit(name) if name == dialect.inject);
            assert!(dialect.root.fields.iter().any(|field| named(&field)), "{}", dialect.name);
        }
    }
}
