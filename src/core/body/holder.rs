//! Objects that hold an output limit, or have to: one for most bodies, several for those with several prompts.

use std::ops::Range;

use super::{BadBody, Edit};

/// What is put in where an object has no output limit.
#[derive(Debug, PartialEq, Eq)]
pub struct Inject {
    /// The limit's name, dotted where it stands in an object of its own: `max_tokens`, `options.num_predict`.
    pub name: &'static str,
    /// What that object has to hold beside the limit where it has to be made, with a comma before it.
    pub beside: &'static str,
    /// Whether the limit goes by no other name, so that a `null` under another one is left as it is.
    pub strict: bool,
}

impl Inject {
    /// A limit of this name, and nothing beside it.
    pub const fn named(name: &'static str) -> Inject {
        Inject { name, beside: "", strict: false }
    }

    /// The key at which the last `missing` ones of its path begin; 1 for the limit's own.
    pub fn key(&self, missing: usize) -> Option<&'static str> {
        self.name.rsplit('.').nth(missing.checked_sub(1)?)
    }
}

/// One object that holds an output limit, or has to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Where a limit goes if there is none: right behind a brace, or over a `null`.
    pub span: Range<usize>,
    /// What is put in.
    pub inject: &'static Inject,
    /// How many of the last keys of its path have to be put in, the limit's own among them.
    pub missing: usize,
    /// Whether the object that they stand in has to be, too.
    pub braced: bool,
    /// Whether a comma has to follow.
    pub comma: bool,
}

impl Holder {
    /// The edit that puts the limit `value` in.
    pub fn put_in(&self, value: u64) -> Edit {
        let key = self.inject.key(1).unwrap_or_default();
        // What stands beside a limit does so in objects that are made for it.
        let made = self.braced || self.missing > 1;
        let beside = if made { self.inject.beside } else { "" };
        let mut text = format!("\"{key}\":{value}{beside}");
        for missing in 2..=self.missing {
            let within = self.inject.key(missing).unwrap_or_default();
            text = format!("\"{within}\":{{{text}}}");
        }
        if self.braced {
            text = format!("{{{text}}}");
        }
        if self.comma {
            text.push(',');
        }
        Edit { span: self.span.clone(), text }
    }
}

/// Most objects with an output limit that one body may have. Each is remembered, so that millions of them, which a body
/// has room for, would not stay within its own size.
const MOST: usize = 1024;

/// Adds one.
///
/// # Errors
/// Where there are too many.
pub(super) fn push(holders: &mut Vec<Holder>, holder: Holder) -> Result<(), BadBody> {
    if holders.len() >= MOST {
        let param = Some(holder.inject.name.to_owned());
        let message = format!("more than {MOST} objects have an output limit each");
        return Err(BadBody { at: holder.span.start, param, message });
    }
    holders.push(holder);
    Ok(())
}
