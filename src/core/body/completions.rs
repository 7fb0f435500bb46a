//! OpenAI completions: `prompt` as text, as token ids, or several of either.

use super::backend::{Backend, Backends};
use super::dialect::Dialect;
use super::holder::Inject;
use super::shape::{FORMS, Field, Holds, Rule, Shape, copies, field, join, limit, minimum, text};
use crate::core::refusal::Family;

/// `/completions`.
pub static COMPLETIONS: Dialect = Dialect::new("completions", &["/completions"], Family::OpenAi, &ROOT);

static ROOT: Shape = Shape::of(FIELDS).holding(Holds::Here(&Inject::named("max_tokens")));

const LLAMACPP: Backends = Backends::only(Backend::LlamaCpp);

/// The members of a completion, which llama.cpp's native endpoints take as well.
pub const FIELDS: &[Field] = &join::<28>(&[MEMBERS, &FORMS]);

const MEMBERS: &[Field] = &[
    field("prompt", Rule::Prompts),
    field("prompt_embeds", Rule::Embeds),
    text("suffix"),
    field("model", Rule::Model),
    field("user", Rule::User),
    field("stream", Rule::Stream),
    limit("max_tokens"),
    // llama.cpp reads all three on every path.
    limit("max_completion_tokens").on(LLAMACPP),
    limit("n_predict").on(LLAMACPP),
    minimum(),
    copies("n"),
    copies("best_of"),
    copies("n_cmpl").on(LLAMACPP),
    text("input_prefix"),
    text("input_suffix"),
    text("input_extra"),
    // What the server keeps of the conversation comes before it.
    field("session_params", Rule::Hidden).on(Backends::only(Backend::Sglang)),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::body::{Prompt, read};

    #[test]
    fn every_form_of_prompt_is_counted() {
        let prompt = |chars, token_ids, media| Prompt { chars, utf8_bytes: chars, token_ids, media };
        for (members, size, sequences) in [
            (r#""prompt":"abc""#, prompt(3, 0, 0), 1),
            (r#""prompt":null"#, prompt(0, 0, 0), 1),
            (r#""prompt":[]"#, prompt(0, 0, 0), 1),
            (r#""prompt":["a","bc"]"#, prompt(3, 0, 0), 2),
            (r#""prompt":[1,22,333]"#, prompt(0, 3, 0), 1),
            (r#""prompt":[[1,2],[3],[]]"#, prompt(0, 3, 0), 3),
            (r#""prompt":["a",[1,2],7,8]"#, prompt(1, 4, 0), 3),
            (r#""prompt":["a",null,{"x":17}]"#, prompt(1 + 2, 0, 0), 2),
            (r#""prompt":[["a",true]]"#, prompt(1 + 4, 0, 0), 1),
            (r#""prompt":{"prompt_string":"a","multimodal_data":["AAAA","BBBB"]}"#, prompt(1, 0, 2), 1),
            (r#""prompt":5"#, prompt(0, 1, 0), 1),
            (r#""prompt":"ab","suffix":"c""#, prompt(3, 0, 0), 1),
            (r#""prompt":null,"prompt_embeds":"AAAA""#, prompt(0, 0, 1), 1),
            (r#""prompt":"a","prompt_embeds":["AAAA",null,"BBBB"]"#, prompt(1, 0, 2), 3),
            (r#""prompt":["a","b"],"n":3,"best_of":4"#, prompt(2, 0, 0), 8),
        ] {
            let body = format!("{{{members}}}");
            let view = read(&COMPLETIONS, Backend::Vllm, body.as_bytes())
                .unwrap_or_else(|bad| panic!("{body}: {bad:?}"));
            assert_eq!((view.prompt, view.sequences), (size, sequences), "{body}");
        }
    }

    #[test]
    fn chat_names_are_not_read_here() {
        let view =
            read(&COMPLETIONS, Backend::Vllm, br#"{"max_completion_tokens":5,"messages":[1],"messages":2}"#)
                .unwrap();
        assert!(view.limits.is_empty());
    }

    #[test]
    fn pieces_beside_ids_are_one_prompt_to_llama_cpp() {
        for (prompt, sequences) in
            [(r#"["a",1,"b",2]"#, 1), (r#"["a","b"]"#, 2), (r#"[[1],"b",[2,"c"]]"#, 3), ("[1,2]", 1)]
        {
            let body = format!("{{\"prompt\":{prompt}}}");
            let view = read(&COMPLETIONS, Backend::LlamaCpp, body.as_bytes()).unwrap();
            assert_eq!(view.sequences, sequences, "{prompt}");
        }
    }
}
