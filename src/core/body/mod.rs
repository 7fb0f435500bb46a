//! Bytes of a request body -> a borrowed view with spans. Knows JSON and the dialects, no policy.

pub mod backend;
mod bare;
mod block;
mod chat;
mod completions;
pub mod dialect;
mod escape;
mod frame;
pub mod holder;
mod index;
mod invocations;
mod lanes;
mod leaf;
mod llamacpp;
mod messages;
mod name;
mod number;
mod ollama;
mod prompt;
mod prompts;
mod responses;
mod scan;
mod sglang;
mod shape;
pub mod splice;
mod string;
mod text;
mod tgi;
mod vllm;
mod walk;
mod wide;

use std::ops::Range;

pub use backend::{BACKENDS, Backend};
pub use dialect::{Dialect, read};
pub use escape::{unescape, unescaped};
pub use holder::Holder;
pub use prompt::{Prompt, Size, Weights};
pub use shape::Sway;
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
    /// Zero: never small, whatever the backend makes of it.
    Zero,
    /// A whole number below that: never small either.
    Negative,
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
    /// What it is to the backend.
    pub sway: Sway,
    /// The place among the view's holders of the object that it stands in.
    pub holder: usize,
}

/// A body as far as the policy needs it.
#[derive(Clone, Debug, PartialEq)]
pub struct View<'a> {
    /// The whole of it.
    pub body: &'a [u8],
    /// The prompt's size.
    pub prompt: Prompt,
    /// Whether there is more to the prompt than the body shows.
    pub hidden: bool,
    /// Every output limit that stands in the body, in the body's order, and so in that of the holders.
    pub limits: Vec<Limit>,
    /// The objects that hold them, or have to. None where the backend refuses the body for what stands in their place.
    pub holders: Vec<Holder>,
    /// `min_tokens`, which may not exceed the output limit beside it.
    pub min_tokens: Vec<Limit>,
    /// How much of the output may be spent on thinking; to be below the output limit.
    pub budget: Option<Limit>,
    /// Prompts x max(`n`, `best_of`, …); at least 1.
    pub sequences: u64,
    /// Which field asks for most of the sequences, for the refusal.
    pub sequences_param: &'static str,
    /// Whether a streamed answer is asked for.
    pub stream: bool,
    /// The model's name, still escaped as in the body.
    pub model: Option<&'a [u8]>,
    /// Who asks, as the client says, still escaped as in the body; what is wrong where that is said twice.
    pub user: Result<Option<&'a [u8]>, BadBody>,
    /// Whether the answer is only to be fetched later, while the server works on.
    pub background: bool,
}
