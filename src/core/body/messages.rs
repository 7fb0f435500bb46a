//! Anthropic messages: `system`, `messages` of blocks, a budget for thinking.

use super::backend::{Backend, Backends};
use super::chat::CALL;
use super::dialect::Dialect;
use super::holder::Inject;
use super::shape::{Field, Holds, Rule, Shape, field, inside, label, limit, media, perhaps, text};
use crate::core::refusal::Family;

/// `/messages`.
pub static MESSAGES: Dialect = Dialect::new("messages", &["/messages"], Family::Anthropic, &ROOT);

const LLAMACPP: Backends = Backends::only(Backend::LlamaCpp);

static ROOT: Shape = Shape::of(&[
    inside("messages", &MESSAGE),
    inside("system", &BLOCK),
    text("tools"),
    label("tool_choice"),
    text("output_format"),
    text("output_config"),
    text("chat_template_kwargs"),
    inside("thinking", &THINKING),
    field("model", Rule::Model),
    field("user", Rule::User),
    field("stream", Rule::Stream),
    limit("max_tokens"),
    // llama.cpp makes a chat request of it, into which these may come along.
    perhaps("max_completion_tokens").on(LLAMACPP),
    perhaps("n_predict").on(LLAMACPP),
])
.holding(Holds::Here(&Inject::named("max_tokens")));

static MESSAGE: Shape = Shape::of(&[
    inside("content", &BLOCK),
    label("role"),
    // llama.cpp takes messages of plain text as they are.
    text("reasoning_content").on(LLAMACPP),
    inside("tool_calls", &CALL).on(LLAMACPP),
    label("tool_call_id").on(LLAMACPP),
    label("name").on(LLAMACPP),
]);

static THINKING: Shape = Shape::of(&[field("budget_tokens", Rule::Budget("thinking.budget_tokens"))]);

/// A block of any type, known by its members.
static BLOCK: Shape = Shape::of(&BLOCK_FIELDS);

/// One in the result of a tool: vLLM shows the model an assistant's results as they stand, and so does Ollama with those
/// of a search.
static RESULT: Shape = Shape::of(&BLOCK_FIELDS).loose();

static BLOCK_FIELDS: [Field; 12] = [
    label("id"),
    label("tool_use_id"),
    label("name"),
    text("text"),
    text("thinking"),
    text("data"),
    text("input"),
    text("title"),
    // Of what Ollama has found in the web.
    text("url").on(Backends::only(Backend::Ollama)),
    text("context"),
    inside("content", &RESULT),
    inside("source", &SOURCE),
];

/// Where an image or document comes from. A document may be plain text, which then counts as that.
static SOURCE: Shape = Shape::of(&[
    field("type", Rule::DataType),
    field("data", Rule::Data),
    media("url"),
    media("file_id"),
    inside("content", &BLOCK),
]);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::body::{Amount, Prompt, read};

    #[test]
    fn what_the_model_reads_is_counted() {
        for (members, text, media) in [
            (r#""system":"be brief","messages":[{"role":"user","content":"hi"}]"#, "be briefhi", 0),
            (r#""system":[{"type":"text","text":"s"}]"#, "s", 0),
            (
                r#""messages":[{"content":[{"type":"text","text":"a"},{"type":"thinking","thinking":"b"}]}]"#,
                "ab",
                0,
            ),
            (r#""messages":[{"content":[{"type":"tool_use","name":"f","input":{"a":1}}]}]"#, r#"{"a":1}"#, 0),
            (r#""messages":[{"content":[{"type":"tool_result","content":"r"}]}]"#, "r", 0),
            (r#""messages":[{"content":[{"type":"tool_result","content":[{"text":"r"}]}]}]"#, "r", 0),
            (r#""messages":[{"content":[{"source":{"type":"base64","data":"AAAA"}}]}]"#, "", 1),
            (r#""messages":[{"content":[{"source":{"data":"AAAA"}}]}]"#, "", 1),
            (r#""messages":[{"content":[{"source":{"type":"url","url":"http://x"}}]}]"#, "", 1),
            (r#""messages":[{"content":[{"source":{"type":"text","data":"doc"},"title":"t"}]}]"#, "doct", 0),
            (r#""messages":[{"content":[{"source":{"data":"doc","type":"te\u0078t"}}]}]"#, "doc", 0),
            (r#""messages":[{"content":[{"source":{"type":"content","content":[{"text":"c"}]}}]}]"#, "c", 0),
            (
                r#""messages":[{"content":[{"type":"search_result","source":"s","content":[{"text":"c"}]}]}]"#,
                "sc",
                0,
            ),
            (r#""tools":[{"input_schema":{}}]"#, r#"[{"input_schema":{}}]"#, 0),
            (r#""chat_template_kwargs":{"a":1}"#, r#"{"a":1}"#, 0),
        ] {
            let body = format!("{{{members}}}");
            let view = read(&MESSAGES, Backend::Vllm, body.as_bytes()).unwrap();
            let chars = text.chars().count() as u64;
            let want = Prompt { chars, utf8_bytes: text.len() as u64, token_ids: 0, media };
            assert_eq!(view.prompt, want, "{members}");
        }
    }

    #[test]
    fn the_budget_is_a_limit_of_its_own() {
        let body = br#"{"thinking":{"type":"enabled","budget_tokens":8000},"max_tokens":9000}"#;
        let view = read(&MESSAGES, Backend::Vllm, body).unwrap();
        assert_eq!(view.budget.map(|budget| budget.amount), Some(Amount::Count(8000)));
        assert_eq!(view.limits.len(), 1);
    }
}
