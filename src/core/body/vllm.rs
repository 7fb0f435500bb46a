//! vLLM's native generation: token ids in, `sampling_params` in an object of its own.

use super::backend::{Backend, Backends};
use super::dialect::Dialect;
use super::holder::Inject;
use super::shape::{Holds, Rule, Settings, Shape, Sway, field, media, text};
use crate::core::refusal::Family;

/// `/inference/v1/generate`. Where TGI or SGLang is behind a prefix of that name, their own `/generate` is meant.
pub static VLLM: Dialect = Dialect {
    on: Backends::ALL.but(Backend::Tgi).but(Backend::Sglang),
    ..Dialect::new("vllm", &["/inference/v1/generate"], Family::OpenAi, &ROOT)
};

static LIMIT: Inject = Inject::named("sampling_params.max_tokens");

static ROOT: Shape = Shape::of(&[
    field("token_ids", Rule::Prompts),
    field("prompt_token_ids", Rule::Prompts),
    field("prompt", Rule::Prompts),
    media("features"),
    field("sampling_params", Rule::Settings(&Settings { shape: &SAMPLING, list: false, null: true })),
    field("model", Rule::Model),
    field("user", Rule::User),
    field("stream", Rule::Stream),
])
.holding(Holds::Within(&LIMIT, 2));

static SAMPLING: Shape = Shape::settings(
    &LIMIT,
    &[
        field("max_tokens", Rule::Limit("sampling_params.max_tokens", Sway::Set)),
        field("min_tokens", Rule::MinTokens("sampling_params.min_tokens")),
        field("n", Rule::Copies("sampling_params.n")),
        field("best_of", Rule::Copies("sampling_params.best_of")),
        text("structured_outputs"),
        text("guided_decoding"),
    ],
);
