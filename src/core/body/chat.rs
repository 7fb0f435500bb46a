//! OpenAI chat: `messages` of text parts, media parts and tool calls.

use super::backend::{Backend, Backends};
use super::dialect::Dialect;
use super::holder::Inject;
use super::shape::{
    FORMS, Field, Holds, Rule, Shape, copies, field, inside, join, label, limit, media, minimum, text, wish,
};
use crate::core::refusal::Family;

const NOT_OPENAI: Backends = Backends::ALL.but(Backend::OpenAi);
const SGLANG: Backends = Backends::only(Backend::Sglang);

/// `/chat/completions`.
pub static CHAT: Dialect =
    Dialect { on: NOT_OPENAI, ..Dialect::new("chat", &["/chat/completions"], Family::OpenAi, &ROOT) };

/// The same to OpenAI itself, whose newer models know one spelling of the limit only.
pub static STRICT_CHAT: Dialect = Dialect {
    on: Backends::only(Backend::OpenAi),
    ..Dialect::new("chat", &["/chat/completions"], Family::OpenAi, &STRICT_ROOT)
};

/// The same by llama.cpp at Ollama's path.
pub static LLAMACPP_CHAT: Dialect = Dialect {
    on: Backends::only(Backend::LlamaCpp),
    ..Dialect::new("llamacpp_chat", &["/api/chat"], Family::OpenAi, &ROOT)
};

/// vLLM's `/chat/completions/batch`: `messages` is a list of conversations.
pub static CHAT_BATCH: Dialect =
    Dialect::new("chat_batch", &["/chat/completions/batch"], Family::OpenAi, &BATCH_ROOT);

static ROOT: Shape = Shape::of(&FIELDS).holding(Holds::Here(&Inject::named("max_tokens")));
static STRICT_ROOT: Shape = Shape::of(&FIELDS).holding(Holds::Here(&STRICT));
static BATCH_ROOT: Shape = Shape::of(&BATCH_FIELDS).holding(Holds::Here(&Inject::named("max_tokens")));

static STRICT: Inject = Inject { strict: true, ..Inject::named("max_completion_tokens") };

const FIELDS: [Field; 33] = fields(inside("messages", &MESSAGE));
const BATCH_FIELDS: [Field; 33] = fields(field("messages", Rule::Each(&MESSAGE)));

const fn fields(messages: Field) -> [Field; 33] {
    join(&[&[messages], MEMBERS, &FORMS])
}

const MEMBERS: &[Field] = &[
    field("model", Rule::Model),
    field("user", Rule::User),
    field("stream", Rule::Stream),
    limit("max_tokens"),
    limit("max_completion_tokens").on(Backends::ALL.but(Backend::Ollama)),
    // Ollama does not know the newer name, and so would generate without end.
    wish("max_completion_tokens").on(Backends::only(Backend::Ollama)),
    limit("n_predict").on(Backends::only(Backend::LlamaCpp)),
    minimum(),
    copies("n"),
    copies("best_of"),
    copies("n_cmpl").on(Backends::only(Backend::LlamaCpp)),
    text("tools"),
    // A word, or the name of a tool.
    label("tool_choice"),
    text("functions"),
    text("documents"),
    text("chat_template"),
    text("chat_template_kwargs"),
    text("tool_prompt"),
    text("guideline"),
    // The prompt itself, which takes the place of what the messages would make.
    field("input_ids", Rule::Ids).on(SGLANG),
    // What the server keeps of the conversation comes before it.
    field("session_params", Rule::Hidden).on(SGLANG),
];

/// One message, or a list of such.
pub static MESSAGE: Shape = Shape::of(&[
    inside("content", &PART),
    label("role"),
    label("name"),
    text("reasoning"),
    text("reasoning_content"),
    text("refusal"),
    text("thinking"),
    // Of a developer's message.
    text("tools"),
    // An answer that was given in sound, by its id.
    media("audio"),
    label("tool_call_id"),
    inside("tool_calls", &CALL),
    inside("function_call", &FUNCTION),
]);

/// A part is known by its members, not by its `type`: what a backend does not expect it may still read. Members that no
/// backend knows are read by none: they refuse such parts, or drop what they do not know before a template sees it.
pub static PART: Shape = Shape::of(&[
    text("text"),
    text("refusal"),
    text("thinking"),
    text("reasoning"),
    text("input_text"),
    text("output_text"),
    // Of a shell's output.
    text("stdout"),
    text("stderr"),
    inside("content", &PART),
    media("image_url"),
    media("input_image"),
    media("image"),
    media("image_pil"),
    media("image_embeds"),
    media("input_audio"),
    media("audio_url"),
    media("audio"),
    media("audio_embeds"),
    media("video_url"),
    media("video_embeds"),
    // Of embeddings that stand for a prompt.
    media("data"),
    media("input_video"),
    media("video"),
    media("file"),
    media("file_url"),
    media("file_data"),
    media("file_id"),
    media("input_file"),
    // vLLM's cache knows them by that, and takes `null` in their place.
    field("uuid", Rule::KeptMedia).on(Backends::only(Backend::Vllm)),
]);

/// A call of a tool.
pub static CALL: Shape =
    Shape::of(&[label("id"), inside("function", &FUNCTION), inside("custom", &FUNCTION)]);

/// What is called, with what. TGI puts all that it knows into the prompt, `parameters` being `arguments` to it.
static FUNCTION: Shape =
    Shape::of(&[label("name"), text("arguments"), text("input"), text("parameters"), text("description")]);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::body::{Prompt, read};

    fn prompt(body: &str) -> Prompt {
        read(&CHAT, Backend::Vllm, body.as_bytes()).unwrap_or_else(|bad| panic!("{body}: {bad:?}")).prompt
    }

    fn text_and_media(text: &str, media: u64) -> Prompt {
        Prompt { chars: text.chars().count() as u64, utf8_bytes: text.len() as u64, token_ids: 0, media }
    }

    #[test]
    fn what_the_model_reads_is_counted() {
        for (message, text, media) in [
            (r#"{"role":"user","content":"hi"}"#, "hi", 0),
            (r#"{"role":"user","content":null}"#, "", 0),
            (r#"{"role":"user","name":"not read","content":"你\u597d"}"#, "你好", 0),
            (
                r#"{"content":[{"type":"text","text":"a"},{"type":"refusal","refusal":"b"},"c",null]}"#,
                "abc",
                0,
            ),
            (
                r#"{"content":[{"type":"image_url","image_url":{"url":"data:,AAAA"}},{"image":"x"},{"file":null}]}"#,
                "",
                2,
            ),
            (r#"{"content":[{"type":"tool_result","content":[{"text":"in"},{"input_audio":{}}]}]}"#, "in", 1),
            (
                r#"{"content":"a","reasoning_content":"b","reasoning":"c","refusal":"d","thinking":"e"}"#,
                "abcde",
                0,
            ),
            (
                r#"{"content":null,"tool_calls":[{"id":"1","function":{"name":"f","arguments":"{\"a\":1}"}}]}"#,
                "{\"a\":1}",
                0,
            ),
            (r#"{"tool_calls":[{"function":{"arguments":{ "a" : "\u0031" }}}]}"#, "{\"a\":\"1\"}", 0),
            (r#"{"function_call":{"name":"f","arguments":"xy"}}"#, "xy", 0),
            (r#"{"tool_calls":[{"id":"1","custom":{"name":"f","input":"xy"}}]}"#, "xy", 0),
            (r#"{"tool_calls":[{"function":{"description":"d","parameters":{}}}]}"#, "d{}", 0),
            (r#"{"content":null,"audio":{"id":"audio_1"}}"#, "", 1),
            (r#"{"content":[{"file_id":"x"},{"file_data":"AAAA","filename":"a"}]}"#, "", 2),
            (r#"{"content":[{"image_url":{"url":"x"},"uuid":"u"},{"uuid":"v","image_url":{}}]}"#, "", 2),
            (r#"{"content":[{"image_url":null,"uuid":"u"},{"uuid":"v"},{"uuid":null}]}"#, "", 2),
        ] {
            assert_eq!(
                prompt(&format!(r#"{{"messages":[{message}]}}"#)),
                text_and_media(text, media),
                "{message}"
            );
        }
    }

    #[test]
    fn schemas_are_counted_as_compact_text() {
        let compact = r#"[{"a":"b","c":[1,2.50,null,true],"d":{},"e":[]}]"#;
        for key in ["tools", "functions", "response_format", "guided_json", "structured_outputs", "documents"]
        {
            assert_eq!(prompt(&format!(r#"{{"{key}":{compact}}}"#)), text_and_media(compact, 0), "{key}");
            let spaced =
                " [ {\"\\u0061\" : \"b\" , \"c\":[1,\n2.50, null ,true ], \"d\":{ },\t\"e\" :[ ] } ] ";
            assert_eq!(prompt(&format!(r#"{{"{key}":{spaced}}}"#)), text_and_media(compact, 0), "{key}");
        }
    }

    #[test]
    fn odd_shapes_pass_and_count_what_text_they_hold() {
        for (messages, text) in [
            ("null", ""),
            ("\"as text\"", "as text"),
            ("[null,\"x\",[],{\"role\":null},{\"content\":{\"a\":1}}]", "x"),
            ("[[{\"content\":\"deeper\"}]]", "deeper"),
            ("{\"content\":\"alone\"}", "alone"),
            ("[{\"content\":[[[\"far\"]],{}]}]", "far"),
            ("[{\"content\":[{\"text\":{\"value\":\"v\"}}]}]", "{\"value\":\"v\"}"),
            ("[{\"content\":17}]", "17"),
        ] {
            assert_eq!(
                prompt(&format!(r#"{{"messages":{messages}}}"#)),
                text_and_media(text, 0),
                "{messages}"
            );
        }
    }

    #[test]
    fn roles_and_names_are_no_place_to_hide_a_prompt_in() {
        let name = "r".repeat(64);
        let long = "r".repeat(65);
        for (body, text) in [
            (
                format!(r#"{{"messages":[{{"role":"{name}","name":"{name}","content":"a"}}]}}"#),
                "a".to_owned(),
            ),
            (format!(r#"{{"messages":[{{"role":"{long}","content":"a"}}]}}"#), format!("{long}a")),
            (
                format!(r#"{{"messages":[{{"tool_calls":[{{"function":{{"name":"{long}"}}}}]}}]}}"#),
                long.clone(),
            ),
        ] {
            assert_eq!(prompt(&body), text_and_media(&text, 0), "{body}");
        }
    }
}
