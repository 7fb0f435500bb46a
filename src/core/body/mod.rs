//! Bytes of a request body -> a borrowed view with spans. Knows JSON and the dialects, no policy.

mod chat;
mod completions;
pub mod dialect;
mod escape;
mod leaf;
mod name;
mod number;
mod prompt;
mod prompts;
mod scan;
mod shape;
pub mod splice;
mod string;
mod text;
mod walk;

use std::ops::Range;

pub use dialect::{Dialect, read};
pub use escape::{unescape, unescaped};
pub use prompt::{Prompt, Size, Weights};
pub use splice::{Edit, Prefix, splice};

/// A body that cannot be read: what is wrong, where, and in which field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadBody {
    /// Byte offset at which reading stopped.
    pub at: usize,
    /// The field, as a path such as `messages[2].content`; `None` where no field is to blame.
    pub param: Option<String>,
    /// What is wrong and what is allowed, for the client to read. Holds no text of the body.
    pub message: String,
}

/// What the value of a limit says, whatever its spelling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// `null`: the backend reads it as not set.
    Unset,
    /// A whole number of at least 1, `u64::MAX` where it is larger than that.
    Count(u64),
    /// Zero or a negative number: never small, whatever the backend makes of it.
    NotPositive,
}

/// One limit field as it stands in the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The field's name as the backend knows it, dotted where nested.
    pub name: &'static str,
    /// The bytes of its value.
    pub span: Range<usize>,
    /// What the value says.
    pub amount: Amount,
    /// Whether the value is spelled as a string (`"100"`) and has to be written back as a plain number.
    pub quoted: bool,
}

/// Where a missing limit can be put in: right behind the brace of the object that is to hold it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Insertion {
    /// Byte offset behind the opening brace.
    pub at: usize,
    /// Whether the object has no members, so that no comma may follow.
    pub empty: bool,
}

/// A body as far as the policy needs it.
#[derive(Clone, Debug, PartialEq)]
pub struct View<'a> {
    /// The whole of it.
    pub body: &'a [u8],
    /// The prompt's size.
    pub prompt: Prompt,
    /// Every output limit that stands in the body, in the body's order.
    pub limits: Vec<Limit>,
    /// `min_tokens`, which may not exceed the output limit.
    pub min_tokens: Option<Limit>,
    /// Prompts x max(`n`, `best_of`); at least 1.
    pub sequences: u64,
    /// Which field asks for most of the sequences (`n`, `best_of` or `prompt`), for the refusal.
    pub sequences_param: &'static str,
    /// Whether a streamed answer is asked for.
    pub stream: bool,
    /// The model's name, still escaped as in the body.
    pub model: Option<&'a [u8]>,
    /// Who asks, as the client says, still escaped as in the body; what is wrong where that is said twice.
    pub user: Result<Option<&'a [u8]>, BadBody>,
    /// The field that is injected when no limit is set.
    pub inject: &'static str,
    /// Where it goes.
    pub insertion: Insertion,
}
