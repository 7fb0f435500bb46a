//! llama.cpp's native completion: that of OpenAI, `n_predict` before all other spellings, and more around the prompt.

use super::backend::{Backend, Backends};
use super::completions;
use super::dialect::Dialect;
use super::holder::Inject;
use super::shape::{Holds, Shape};
use crate::core::refusal::Family;

/// `/completion` and `/infill`.
pub static LLAMACPP: Dialect = Dialect {
    on: Backends::only(Backend::LlamaCpp),
    ..Dialect::new("llamacpp", &["/completion", "/infill"], Family::OpenAi, &ROOT)
};

static ROOT: Shape = Shape::of(completions::FIELDS).holding(Holds::Here(&Inject::named("n_predict")));
