//! OpenAI responses: `input` as text or items, and what the server keeps of earlier turns.

use super::backend::{Backend, Backends};
use super::chat::{CALL, PART};
use super::dialect::Dialect;
use super::holder::Inject;
use super::shape::{Holds, Rule, Shape, copies, field, inside, label, limit, media, perhaps, text};
use crate::core::refusal::Family;

/// `/responses`.
pub static RESPONSES: Dialect = Dialect::new("responses", &["/responses"], Family::OpenAi, &ROOT);

const LLAMACPP: Backends = Backends::only(Backend::LlamaCpp);

static ROOT: Shape = Shape::of(&[
    inside("input", &ITEM),
    text("instructions"),
    text("tools"),
    label("tool_choice"),
    // The form of the answer: a schema.
    text("text"),
    text("response_format"),
    text("structured_outputs"),
    text("chat_template_kwargs"),
    // Earlier turns that the client sends along, vLLM's own ways.
    inside("previous_input_messages", &HARMONY),
    text("previous_response"),
    field("previous_response_id", Rule::Hidden),
    field("conversation", Rule::Hidden),
    field("prompt", Rule::Hidden),
    field("model", Rule::Model),
    field("user", Rule::User),
    field("stream", Rule::Stream),
    field("background", Rule::Background),
    limit("max_output_tokens"),
    // llama.cpp makes a chat request of it, in which names that it takes from there may stand.
    perhaps("max_tokens").on(LLAMACPP),
    perhaps("max_completion_tokens").on(LLAMACPP),
    perhaps("n_predict").on(LLAMACPP),
    copies("n").on(LLAMACPP),
    copies("n_cmpl").on(LLAMACPP),
    text("grammar").on(LLAMACPP),
    text("json_schema").on(LLAMACPP),
])
.holding(Holds::Here(&Inject::named("max_output_tokens")));

/// An item of any type: a message, a tool's call or output, reasoning. Known by its members, as parts are.
static ITEM: Shape = Shape::of(&[
    field("type", Rule::ItemType),
    label("role"),
    label("name"),
    label("id"),
    label("call_id"),
    label("namespace"),
    inside("content", &PART),
    inside("summary", &PART),
    inside("output", &PART),
    text("text"),
    text("arguments"),
    text("input"),
    text("code"),
    text("action"),
    inside("outputs", &OUTPUT),
    text("queries"),
    text("results"),
    text("operation"),
    text("tools"),
    text("error"),
    text("reason"),
    text("encrypted_content"),
    // llama.cpp makes messages of items, with all that is in them.
    text("reasoning_content").on(LLAMACPP),
    inside("tool_calls", &CALL).on(LLAMACPP),
    label("tool_call_id").on(LLAMACPP),
    media("image_url"),
    media("result"),
    media("file_data"),
    media("file_url"),
    media("file_id"),
]);

/// What code has put out that the server ran.
static OUTPUT: Shape = Shape::of(&[text("logs"), media("url")]);

/// A message in the form of OpenAI's open models.
static HARMONY: Shape = Shape::of(&[
    label("role"),
    label("name"),
    label("recipient"),
    inside("author", &AUTHOR),
    inside("content", &HARMONY_PART),
]);

static AUTHOR: Shape = Shape::of(&[label("role"), label("name")]);

/// Text, or what a system's or developer's message is made of.
static HARMONY_PART: Shape =
    Shape::of(&[text("text"), text("instructions"), text("model_identity"), text("tools")]);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::body::{Prompt, read};

    fn text_and_media(text: &str, media: u64) -> Prompt {
        Prompt { chars: text.chars().count() as u64, utf8_bytes: text.len() as u64, token_ids: 0, media }
    }

    #[test]
    fn what_the_model_reads_is_counted() {
        for (members, text, media) in [
            (r#""input":"hi","instructions":"be brief""#, "hibe brief", 0),
            (r#""input":["a",{"role":"user","content":"b"}]"#, "ab", 0),
            (
                r#""input":[{"content":[{"type":"input_text","text":"a"},{"type":"input_image","image_url":"x"}]}]"#,
                "a",
                1,
            ),
            (r#""input":[{"type":"function_call","name":"f","arguments":"{}"}]"#, "{}", 0),
            (r#""input":[{"type":"function_call_output","output":"out"}]"#, "out", 0),
            (
                r#""input":[{"type":"function_call_output","output":[{"type":"input_text","text":"o"}]}]"#,
                "o",
                0,
            ),
            (r#""input":[{"type":"computer_call_output","output":{"image_url":"data:,AAAA"}}]"#, "", 1),
            (r#""input":[{"type":"reasoning","summary":[{"text":"s"}],"content":[{"text":"c"}]}]"#, "sc", 0),
            (r#""tools":[{"a":1}],"text":{"format":{}}"#, r#"[{"a":1}]{"format":{}}"#, 0),
            (r#""input":[{"content":[{"type":"input_file","file_data":"AAAA"},{"file_id":"f"}]}]"#, "", 2),
            (r#""input":[{"code":"c","outputs":[{"logs":"l"},{"url":"u"}]}]"#, "cl", 1),
            (r#""input":[{"type":"shell_call_output","output":[{"stdout":"o","stderr":"e"}]}]"#, "oe", 0),
            (r#""input":[{"queries":["q"],"error":"e","reason":"r"}]"#, r#"["q"]er"#, 0),
            (r#""chat_template_kwargs":{"a":1},"previous_response":{"b":2}"#, r#"{"a":1}{"b":2}"#, 0),
            (
                r#""previous_input_messages":[{"author":{"role":"developer"},"content":[{"instructions":"i"},{"text":"t"}]}]"#,
                "it",
                0,
            ),
        ] {
            let body = format!("{{{members}}}");
            let view = read(&RESPONSES, Backend::Vllm, body.as_bytes()).unwrap();
            assert_eq!((view.prompt, view.hidden), (text_and_media(text, media), false), "{members}");
        }
    }

    #[test]
    fn what_the_server_keeps_hides_the_prompt() {
        for (members, hidden, background) in [
            (r#""previous_response_id":"r""#, true, false),
            (r#""previous_response_id":null,"background":null"#, false, false),
            (r#""conversation":{"id":"c"},"background":false"#, true, false),
            (r#""prompt":{"id":"p"},"background":true"#, true, true),
            (r#""background":"yes""#, false, true),
            (r#""background":1"#, false, true),
            (r#""input":[{"type":"message","content":"a"}]"#, false, false),
            (r#""input":[{"type":"item_reference","id":"i"}]"#, true, false),
            (r#""input":{"type":"item\u005freference"}"#, true, false),
        ] {
            let body = format!("{{{members}}}");
            let view = read(&RESPONSES, Backend::Vllm, body.as_bytes()).unwrap();
            assert_eq!((view.hidden, view.background), (hidden, background), "{members}");
        }
    }
}
