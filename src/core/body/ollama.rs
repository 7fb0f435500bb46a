//! Ollama's own generation and chat: the limit among `options`, images by the list.

use super::backend::{Backend, Backends};
use super::dialect::Dialect;
use super::holder::Inject;
use super::shape::{Holds, Rule, Settings, Shape, Sway, field, inside, text};
use crate::core::refusal::Family;

/// `/api/generate` and `/api/chat`, read as Ollama reads them whatever else is behind. Where TGI is behind a prefix
/// `/api`, its own `/generate` is meant.
pub static OLLAMA: Dialect =
    Dialect { on: Backends::ALL.but(Backend::Tgi).but(Backend::Sglang), by: Some(Backend::Ollama), ..BOTH };

/// The same served by SGLang, which does not fold keys.
pub static SGLANG_OLLAMA: Dialect = Dialect { on: Backends::only(Backend::Sglang), ..BOTH };

const BOTH: Dialect = Dialect {
    streams: true,
    ..Dialect::new("ollama", &["/api/generate", "/api/chat"], Family::Ollama, &ROOT)
};

static LIMIT: Inject = Inject::named("options.num_predict");

static ROOT: Shape = Shape::of(&[
    text("prompt"),
    text("suffix"),
    text("system"),
    text("template"),
    field("context", Rule::Ids),
    field("images", Rule::Medias),
    inside("messages", &MESSAGE),
    text("tools"),
    text("format"),
    field("options", Rule::Settings(&Settings { shape: &OPTIONS, list: false, null: true })),
    field("model", Rule::Model),
    field("user", Rule::User),
    field("stream", Rule::Stream),
])
.holding(Holds::Within(&LIMIT));

static OPTIONS: Shape =
    Shape::settings(&LIMIT, &[field("num_predict", Rule::Limit("options.num_predict", Sway::Set))]);

static MESSAGE: Shape = Shape::of(&[
    text("content"),
    text("thinking"),
    field("images", Rule::Medias),
    inside("tool_calls", &CALL),
]);

static CALL: Shape = Shape::of(&[inside("function", &FUNCTION)]);

static FUNCTION: Shape = Shape::of(&[text("arguments")]);
