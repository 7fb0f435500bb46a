//! The least that an endpoint of one's own can speak: a prompt and a limit.

use super::dialect::Dialect;
use super::holder::Inject;
use super::shape::{Holds, Rule, Shape, field, limit};
use crate::core::refusal::Family;

/// `{"prompt": …, "max_tokens": …}`, only where the policy's `endpoints` say so.
pub static PROMPT: Dialect = Dialect::new("prompt", &[], Family::OpenAi, &ROOT);

static ROOT: Shape = Shape::of(&[
    field("prompt", Rule::Prompts),
    field("model", Rule::Model),
    field("user", Rule::User),
    field("stream", Rule::Stream),
    limit("max_tokens"),
])
.holding(Holds::Here(&Inject::named("max_tokens")));
