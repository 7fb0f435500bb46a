//! The least that an endpoint of one's own can speak: a prompt and a limit.

use super::dialect::Dialect;
use super::holder::Inject;
use super::shape::{Holds, Rule, Shape, field, limit};
use crate::core::refusal::Family;

/// `{"prompt": …, "max_tokens": …}`, only where the policy's `endpoints` say so.
pub static PROMPT: Dialect = Dialect::new("prompt", &[], Family::OpenAi, &ROOT);

/// Keys are read as they stand: whoever speaks this, it is not the backend at a path of its own.
static ROOT: Shape = Shape::of(&[
    field("prompt", Rule::Prompts),
    field("model", Rule::Model),
    field("user", Rule::User),
    field("stream", Rule::Stream),
    limit("max_tokens"),
])
.holding(Holds::Here(&Inject::named("max_tokens")))
.verbatim();

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::body::{Backend, read};

    #[test]
    fn keys_are_read_as_they_stand_whatever_the_backend() {
        let body = br#"{"Prompt":"abc","prompt":"ab","MAX_TOKENS":5}"#;
        for backend in [Backend::Vllm, Backend::Ollama] {
            let view = read(&PROMPT, backend, body).unwrap();
            assert_eq!((view.prompt.chars, view.limits.len()), (2, 0));
        }
    }
}
