//! What is wrong with a configuration, in words for the one who wrote it.

use std::fmt;

/// One mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// Where: `classes[1].queue.timeout`, or `configuration` for the text as a whole.
    pub path: String,
    /// What is wrong, without a full stop.
    pub what: String,
    /// What is allowed instead.
    pub allowed: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.path, self.what, self.allowed)
    }
}

/// All mistakes of a configuration; never empty. Displayed one a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistakes(pub Vec<Mistake>);

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, mistake) in self.0.iter().enumerate() {
            if place > 0 {
                f.write_str("\n")?;
            }
            mistake.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for Mistakes {}

/// A mistake before its path is known.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    pub what: String,
    pub allowed: String,
}

impl Wrong {
    pub fn new(what: impl Into<String>, allowed: impl Into<String>) -> Wrong {
        Wrong { what: what.into(), allowed: allowed.into() }
    }

    pub fn at(self, path: String) -> Mistake {
        Mistake { path, what: self.what, allowed: self.allowed }
    }
}

/// Text of the configuration as it may stand in a message: escaped, so that it stays on its line, and short, so that
/// a whole file pasted into the wrong place does not end up in the log.
pub(super) fn shown(text: &str) -> String {
    let mut short: String = text.chars().take(SHOWN).flat_map(char::escape_debug).collect();
    if text.chars().nth(SHOWN).is_some() {
        short.push('…');
    }
    short
}

/// Longest piece of the configuration in a message, in characters.
const SHOWN: usize = 40;
