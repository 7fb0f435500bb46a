//! SGLang's native generation: one prompt or many, one object of `sampling_params` for all or one for each.

use super::backend::{Backend, Backends};
use super::dialect::Dialect;
use super::holder::Inject;
use super::shape::{Holds, Rule, Settings, Shape, Sway, field, text};
use crate::core::refusal::Family;

/// `/generate`.
pub static SGLANG: Dialect = Dialect {
    on: Backends::only(Backend::Sglang),
    ..Dialect::new("sglang", &["/generate"], Family::OpenAi, &ROOT)
};

static LIMIT: Inject = Inject::named("sampling_params.max_new_tokens");

static ROOT: Shape = Shape::of(&[
    field("text", Rule::Prompts),
    field("input_ids", Rule::Prompts),
    // Rows of numbers, as many as there are tokens: what they take in the body is the safe side of that.
    text("input_embeds"),
    field("image_data", Rule::Medias),
    field("audio_data", Rule::Medias),
    field("video_data", Rule::Medias),
    field("sampling_params", Rule::Settings(&Settings { shape: &SAMPLING, list: true, null: true })),
    field("model", Rule::Model),
    field("user", Rule::User),
    field("stream", Rule::Stream),
])
.holding(Holds::Within(&LIMIT));

static SAMPLING: Shape = Shape::settings(
    &LIMIT,
    &[
        field("max_new_tokens", Rule::Limit("sampling_params.max_new_tokens", Sway::Set)),
        field("min_new_tokens", Rule::MinTokens("sampling_params.min_new_tokens")),
        field("n", Rule::Copies("sampling_params.n")),
        text("json_schema"),
        text("regex"),
        text("ebnf"),
        text("structural_tag"),
    ],
);
