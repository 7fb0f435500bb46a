//! OpenAI chat: `messages` of text parts, media parts and tool calls.

use super::dialect::Dialect;
use super::shape::{Rule, Shape, field, inside, limit, media, text};
use crate::core::refusal::Family;

/// `/chat/completions`.
pub static CHAT: Dialect = Dialect {
    name: "chat",
    paths: &["/chat/completions"],
    family: Family::OpenAi,
    inject: "max_tokens",
    root: &ROOT,
};

static ROOT: Shape = Shape {
    fields: &[
        inside("messages", &MESSAGE),
        field("model", Rule::Model),
        field("user", Rule::User),
        field("stream", Rule::Stream),
        limit("max_tokens"),
        limit("max_completion_tokens"),
        field("min_tokens", Rule::MinTokens("min_tokens")),
        field("n", Rule::Copies("n")),
        field("best_of", Rule::Copies("best_of")),
        text("tools"),
        text("functions"),
        text("documents"),
        text("chat_template"),
        text("chat_template_kwargs"),
        text("response_format"),
        text("structured_outputs"),
        text("structural_tag"),
        text("guided_json"),
        text("guided_regex"),
        text("guided_choice"),
        text("guided_grammar"),
    ],
};

static MESSAGE: Shape = Shape {
    fields: &[
        inside("content", &PART),
        text("reasoning"),
        text("reasoning_content"),
        text("refusal"),
        text("thinking"),
        inside("tool_calls", &CALL),
        inside("function_call", &FUNCTION),
    ],
};

/// A part is known by its members, not by its `type`: what a backend does not expect it may still read.
static PART: Shape = Shape {
    fields: &[
        text("text"),
        text("refusal"),
        text("thinking"),
        text("reasoning"),
        text("input_text"),
        text("output_text"),
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
        media("input_video"),
        media("video"),
        media("file"),
        media("file_url"),
        media("input_file"),
    ],
};

static CALL: Shape = Shape { fields: &[inside("function", &FUNCTION)] };

static FUNCTION: Shape = Shape { fields: &[text("arguments")] };

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::body::{Prompt, read};

    fn prompt(body: &str) -> Prompt {
        read(&CHAT, body.as_bytes()).unwrap_or_else(|bad| panic!("{body}: {bad:?}")).prompt
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
}
