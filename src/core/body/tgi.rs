//! Text Generation Inference: `inputs` and `parameters`, alone or as Vertex' instances.

use super::backend::{Backend, Backends};
use super::dialect::Dialect;
use super::holder::Inject;
use super::shape::{Field, Holds, Rule, Settings, Shape, Sway, field, text};
use crate::core::refusal::Family;

const ONLY: Backends = Backends::only(Backend::Tgi);

/// `/generate` and its compatible twin at the root.
pub static TGI: Dialect =
    Dialect { on: ONLY, ..Dialect::new("tgi", &["/generate", "/"], Family::Tgi, &ROOT) };

/// The same, always streamed.
pub static TGI_STREAM: Dialect = Dialect {
    on: ONLY,
    streams: true,
    ..Dialect::new("tgi_stream", &["/generate_stream"], Family::Tgi, &ROOT)
};

/// `/vertex`: several at once.
pub static TGI_VERTEX: Dialect =
    Dialect { on: ONLY, ..Dialect::new("tgi_vertex", &["/vertex"], Family::Tgi, &VERTEX_ROOT) };

/// Without any `parameters` TGI samples; with some it does not, unless they say so.
static LIMIT: Inject = Inject { beside: ",\"do_sample\":true", ..Inject::named("parameters.max_new_tokens") };

static ROOT: Shape = Shape::of(&[
    text("inputs"),
    // `null` is refused there: 422.
    parameters(&Settings { shape: &PARAMETERS, list: false, null: false }),
    field("model", Rule::Model),
    field("user", Rule::User),
    field("stream", Rule::Stream),
])
.holding(Holds::Within(&LIMIT, 2));

static VERTEX_ROOT: Shape = Shape::of(&[field("instances", Rule::Instances(&INSTANCE))]);

static INSTANCE: Shape = Shape::of(&[
    text("inputs"),
    parameters(&Settings { shape: &PARAMETERS, list: false, null: true }),
    // Some versions take chats, whose limit stands elsewhere.
    field("messages", Rule::Refused),
])
.holding(Holds::Within(&LIMIT, 2));

static PARAMETERS: Shape = Shape::settings(
    &LIMIT,
    &[
        field("max_new_tokens", Rule::Limit("parameters.max_new_tokens", Sway::Set)),
        field("best_of", Rule::Copies("parameters.best_of")),
        text("grammar"),
    ],
);

const fn parameters(settings: &'static Settings) -> Field {
    field("parameters", Rule::Settings(settings))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::body::read;

    #[test]
    fn instances_are_prompts_and_inputs_are_text() {
        for (dialect, body, chars, sequences) in [
            (&TGI, r#"{"inputs":"abc","parameters":{"best_of":2,"grammar":{}}}"#, 3 + 2, 2),
            (
                &TGI_VERTEX,
                r#"{"instances":[{"inputs":"ab"},{"inputs":"c","parameters":{"best_of":2}}]}"#,
                3,
                4,
            ),
            (&TGI_VERTEX, r#"{"instances":[]}"#, 0, 1),
        ] {
            let view = read(dialect, Backend::Tgi, body.as_bytes()).unwrap();
            assert_eq!((view.prompt.chars, view.sequences), (chars, sequences), "{body}");
            assert!(!view.stream);
        }
        assert!(read(&TGI_STREAM, Backend::Tgi, b"{}").unwrap().stream);
    }

    #[test]
    fn what_is_given_by_place_is_refused() {
        for (dialect, body, param) in [
            (&TGI, r#"{"parameters":[null]}"#, "parameters"),
            (&TGI_VERTEX, r#"{"instances":[{},["a"]]}"#, "instances[1]"),
            (&TGI_VERTEX, r#"{"instances":{}}"#, "instances"),
            (&TGI_VERTEX, r#"{"instances":[{"messages":[]}]}"#, "instances[0].messages"),
            (&TGI_VERTEX, r#"{"instances":[{"parameters":7}]}"#, "instances[0].parameters"),
        ] {
            let bad = read(dialect, Backend::Tgi, body.as_bytes()).unwrap_err();
            assert_eq!(bad.param.as_deref(), Some(param), "{body}: {}", bad.message);
        }
    }
}
