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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::body::{Prompt, read};

    #[test]
    fn each_text_or_list_of_ids_is_a_prompt() {
        for (members, text, token_ids, media, sequences) in [
            (r#""text":"ab""#, 2, 0, 0, 1),
            (r#""text":["ab","c"],"sampling_params":{"n":3}"#, 3, 0, 0, 6),
            (r#""input_ids":[1,2,3]"#, 0, 3, 0, 1),
            (r#""input_ids":[[1,2],[3]],"text":null"#, 0, 3, 0, 2),
            (r#""text":"a","image_data":"AAAA""#, 1, 0, 1, 1),
            (r#""text":["a","b"],"image_data":[["AAAA","BBBB"],null,"CCCC"]"#, 2, 0, 3, 2),
            (r#""text":["a","b"],"sampling_params":[{"n":1},{"n":2}]"#, 2, 0, 0, 4),
            (r#""text":"a","sampling_params":{"json_schema":"{}"}"#, 3, 0, 0, 1),
        ] {
            let body = format!("{{{members}}}");
            let view = read(&SGLANG, Backend::Sglang, body.as_bytes()).unwrap();
            assert_eq!(view.prompt, Prompt { chars: text, utf8_bytes: text, token_ids, media }, "{members}");
            assert_eq!(view.sequences, sequences, "{members}");
        }
    }
}
