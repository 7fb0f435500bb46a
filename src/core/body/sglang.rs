//! SGLang's native generation: one prompt or many, one object of `sampling_params` for all or one for each.

use super::backend::{Backend, Backends};
use super::dialect::Dialect;
use super::holder::Inject;
use super::shape::{Field, Holds, Rule, Settings, Shape, Sway, field, text};
use crate::core::refusal::Family;

/// `/generate`.
pub static SGLANG: Dialect = Dialect {
    on: Backends::only(Backend::Sglang),
    ..Dialect::new("sglang", &["/generate"], Family::OpenAi, &ROOT)
};

/// `/vertex_generate`: several prompts, and one object of `parameters` with all else.
pub static SGLANG_VERTEX: Dialect = Dialect {
    on: Backends::only(Backend::Sglang),
    ..Dialect::new("sglang_vertex", &["/vertex_generate"], Family::OpenAi, &VERTEX_ROOT)
};

static LIMIT: Inject = Inject::named("sampling_params.max_new_tokens");
static VERTEX_LIMIT: Inject = Inject::named("parameters.sampling_params.max_new_tokens");

static ROOT: Shape = Shape::of(&[
    field("text", Rule::Prompts),
    field("input_ids", Rule::Prompts),
    field("input_embeds", Rule::Rows),
    field("image_data", Rule::Medias),
    field("audio_data", Rule::Medias),
    field("video_data", Rule::Medias),
    field("sampling_params", Rule::Settings(&Settings { shape: &SAMPLING, list: true, null: true })),
    SESSION,
    field("model", Rule::Model),
    field("user", Rule::User),
    field("stream", Rule::Stream),
])
.holding(Holds::Within(&LIMIT, 2));

static VERTEX_ROOT: Shape = Shape::of(&[
    field("instances", Rule::Each(&INSTANCE)),
    field("parameters", Rule::Settings(&Settings { shape: &PARAMETERS, list: false, null: true })),
])
.holding(Holds::Within(&VERTEX_LIMIT, 3));

static INSTANCE: Shape = Shape::of(&[
    text("text"),
    field("input_ids", Rule::Ids),
    field("input_embeds", Rule::Ids),
    field("image_data", Rule::Medias),
]);

static PARAMETERS: Shape = Shape::of(&[
    field("audio_data", Rule::Medias),
    field("video_data", Rule::Medias),
    field("sampling_params", Rule::Settings(&Settings { shape: &VERTEX_SAMPLING, list: true, null: true })),
    SESSION,
    field("stream", Rule::Stream),
])
.holding(Holds::Within(&VERTEX_LIMIT, 2));

/// What the server keeps of the conversation comes before the prompt.
const SESSION: Field = field("session_params", Rule::Hidden);

static SAMPLING: Shape = Shape::settings(&LIMIT, &sampling(LIMIT.name));
static VERTEX_SAMPLING: Shape = Shape::settings(&VERTEX_LIMIT, &sampling(VERTEX_LIMIT.name));

const fn sampling(limit: &'static str) -> [Field; 8] {
    [
        field("max_new_tokens", Rule::Limit(limit, Sway::Set)),
        field("min_new_tokens", Rule::MinTokens("sampling_params.min_new_tokens")),
        field("n", Rule::Copies("sampling_params.n")),
        field("beam_width", Rule::Copies("sampling_params.beam_width")),
        text("json_schema"),
        text("regex"),
        text("ebnf"),
        text("structural_tag"),
    ]
}

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
            (r#""text":"a","sampling_params":{"n":2,"beam_width":4}"#, 1, 0, 0, 4),
            (r#""input_embeds":[[0.1,0.2],[0.3,0.4],[]]"#, 0, 3, 0, 1),
            (r#""input_embeds":[[[0.1,0.2],[0.3,0.4]],[ [0.5]]]"#, 0, 3, 0, 2),
            (r#""input_embeds":"text""#, 4, 0, 0, 1),
        ] {
            let body = format!("{{{members}}}");
            let view = read(&SGLANG, Backend::Sglang, body.as_bytes()).unwrap();
            assert_eq!(view.prompt, Prompt { chars: text, utf8_bytes: text, token_ids, media }, "{members}");
            assert_eq!(view.sequences, sequences, "{members}");
        }
    }

    #[test]
    fn a_vertex_request_has_a_prompt_an_instance() {
        for (members, text, token_ids, media, sequences, hidden) in [
            (r#""instances":[{"text":"ab"},{"text":"c","image_data":"AAAA"}]"#, 3, 0, 1, 2, false),
            (
                r#""instances":[{"input_ids":[1,2]}],"parameters":{"sampling_params":{"n":3}}"#,
                0,
                2,
                0,
                3,
                false,
            ),
            (r#""instances":[{"input_embeds":[[0.1],[0.2]]}]"#, 0, 2, 0, 1, false),
            (r#""instances":[],"parameters":{"session_params":{"id":"s"}}"#, 0, 0, 0, 1, true),
        ] {
            let body = format!("{{{members}}}");
            let view = read(&SGLANG_VERTEX, Backend::Sglang, body.as_bytes()).unwrap();
            assert_eq!(view.prompt, Prompt { chars: text, utf8_bytes: text, token_ids, media }, "{members}");
            assert_eq!((view.sequences, view.hidden), (sequences, hidden), "{members}");
        }
    }
}
