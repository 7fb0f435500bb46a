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

    /// The key of the object that the limit stands in, and its own.
    pub fn keys(&self) -> (Option<&'static str>, &'static str) {
        match self.name.split_once('.') {
            Some((within, key)) => (Some(within), key),
            None => (None, self.name),
        }
    }
}

/// One object that holds an output limit, or has to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Where a limit goes if there is none: right behind a brace, or over a `null`.
    pub span: Range<usize>,
    /// What is put in.
    pub inject: &'static Inject,
    /// How much of it.
    pub form: Form,
    /// Whether a comma has to follow.
    pub comma: bool,
}

/// How much has to be put in for a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `"key": 1`
    Member,
    /// `{"key": 1}`
    Object,
    /// `"within": {"key": 1}`
    Whole,
}

impl Holder {
    /// The edit that puts the limit `value` in.
    pub fn put_in(&self, value: u64) -> Edit {
        let (within, key) = self.inject.keys();
        let beside = self.inject.beside;
        let comma = if self.comma { "," } else { "" };
        let text = match (self.form, within) {
            (Form::Object, _) => format!("{{\"{key}\":{value}{beside}}}{comma}"),
            (Form::Whole, Some(within)) => format!("\"{within}\":{{\"{key}\":{value}{beside}}}{comma}"),
            (Form::Member | Form::Whole, _) => format!("\"{key}\":{value}{comma}"),
        };
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
