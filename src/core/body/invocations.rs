//! `/invocations`, where SageMaker puts whatever the server speaks: the members of a body say what it is.

use super::backend::{Backend, Backends};
use super::chat::CHAT;
use super::completions::COMPLETIONS;
use super::dialect::Dialect;
use super::responses::RESPONSES;
use super::tgi::TGI;
use crate::core::refusal::Family;

/// With none of these members it is read as a completion, which may go by embeddings alone.
pub static INVOCATIONS: Dialect = Dialect {
    on: Backends::ALL.but(Backend::Tgi),
    choices: &[
        ("messages", &CHAT),
        ("prompt", &COMPLETIONS),
        ("prompt_embeds", &COMPLETIONS),
        ("input", &RESPONSES),
        ("inputs", &TGI),
    ],
    ..Dialect::new("invocations", &["/invocations"], Family::OpenAi, COMPLETIONS.root)
};

/// TGI's: with none of these members it is a generation, which TGI then refuses for want of `inputs`.
pub static TGI_INVOCATIONS: Dialect = Dialect {
    on: Backends::only(Backend::Tgi),
    choices: &[("inputs", &TGI), ("messages", &CHAT), ("prompt", &COMPLETIONS)],
    ..Dialect::new("invocations", &["/invocations"], Family::Tgi, TGI.root)
};
