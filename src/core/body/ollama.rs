//! Ollama's own generation and chat: the limit among `options`, images by the list.

use super::backend::{Backend, Backends};
use super::dialect::Dialect;
use super::holder::Inject;
use super::shape::{Holds, Rule, Settings, Shape, Sway, field, inside, label, text};
use crate::core::refusal::Family;

/// `/api/generate` and `/api/chat`, read as Ollama reads them whatever else is behind. Where TGI is behind a prefix
/// `/api`, its own `/generate` is meant; llama.cpp serves OpenAI's chat there.
pub static OLLAMA: Dialect = Dialect {
    on: Backends::ALL.but(Backend::Tgi).but(Backend::Sglang).but(Backend::LlamaCpp),
    by: Some(Backend::Ollama),
    ..BOTH
};

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
.holding(Holds::Within(&LIMIT, 2));

static OPTIONS: Shape =
    Shape::settings(&LIMIT, &[field("num_predict", Rule::Limit("options.num_predict", Sway::Set))]);

static MESSAGE: Shape = Shape::of(&[
    label("role"),
    label("name"),
    text("content"),
    text("thinking"),
    field("images", Rule::Medias),
    label("tool_name"),
    label("tool_call_id"),
    inside("tool_calls", &CALL),
]);

static CALL: Shape = Shape::of(&[label("id"), inside("function", &FUNCTION)]);

static FUNCTION: Shape = Shape::of(&[label("name"), text("arguments")]);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::body::{Prompt, read};

    #[test]
    fn what_the_model_reads_is_counted() {
        for (members, text, token_ids, media) in [
            (
                r#""prompt":"a","suffix":"b","system":"c","template":"d","images":["AAAA","BBBB"]"#,
                "abcd",
                0,
                2,
            ),
            (r#""context":[1,22,333],"images":null"#, "", 3, 0),
            (r#""messages":[{"role":"user","content":"a","images":["AAAA"]},{"thinking":"b"}]"#, "ab", 0, 1),
            (
                r#""messages":[{"tool_calls":[{"function":{"name":"f","arguments":{"a":1}}}]}]"#,
                r#"{"a":1}"#,
                0,
                0,
            ),
            (r#""tools":[],"format":"json""#, "[]json", 0, 0),
            (r#""Prompt":"a","MESSAGES":[{"Content":"b"}],"options":{"prompt":"no"}"#, "ab", 0, 0),
        ] {
            let body = format!("{{{members}}}");
            let view = read(&OLLAMA, Backend::Vllm, body.as_bytes()).unwrap();
            let (chars, utf8_bytes) = (text.chars().count() as u64, text.len() as u64);
            assert_eq!(view.prompt, Prompt { chars, utf8_bytes, token_ids, media }, "{members}");
            assert_eq!(view.sequences, 1, "{members}");
        }
    }

    #[test]
    fn answers_are_streamed_unless_told_otherwise() {
        let stream = |body: &str| read(&OLLAMA, Backend::Ollama, body.as_bytes()).unwrap().stream;
        assert!(stream("{}") && stream(r#"{"stream":null}"#) && stream(r#"{"stream":true}"#));
        assert!(!stream(r#"{"stream":false}"#));
    }
}
