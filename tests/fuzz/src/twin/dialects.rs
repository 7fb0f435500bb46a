//! The members of each dialect, as the model servers read them.

use std::ops::Range;

use super::json::{Node, Text, Value};
use super::walk::{Found, Kind, Walk, flag, is_null};
use sluice::core::body::Backend::{self, LlamaCpp, Ollama, OpenAi, Sglang, Tgi, Vllm};

/// What `body` says in the dialect of this name. A backend of its own reads what no other one serves.
pub fn read(dialect: &str, backend: Backend, body: &[(Text, Node)], start: usize) -> Found {
    let root = Root { body, start };
    match dialect {
        "chat" | "llamacpp_chat" => chat(root, backend, false),
        "chat_batch" => chat(root, backend, true),
        "completions" => completions(root, backend, "max_tokens"),
        "llamacpp" => completions(root, LlamaCpp, "n_predict"),
        "prompt" => bare(root, backend),
        "responses" => responses(root, backend),
        "messages" => messages(root, backend),
        "vllm" => vllm(root, backend),
        "sglang" => sglang(root),
        "sglang_vertex" => sglang_vertex(root),
        "tgi" => tgi(root),
        "tgi_stream" => streams(tgi(root)),
        "tgi_vertex" => vertex(root),
        "ollama" => streams(ollama(root, if backend == Sglang { Sglang } else { Ollama })),
        "invocations" => invocations(root, backend),
        other => panic!("the twin does not know {other}"),
    }
}

/// The body, and the byte behind its brace.
#[derive(Clone, Copy)]
struct Root<'a> {
    body: &'a [(Text, Node)],
    start: usize,
}

impl Root<'_> {
    /// A walk over a body that holds its limit itself.
    fn holding(self, backend: Backend, name: &'static str, strict: bool) -> Walk {
        let mut walk = Walk::new(backend);
        walk.hold(behind(self.start, name, self.body), name, strict);
        walk
    }
}

/// Where and how a first member goes into an object.
fn behind(start: usize, name: &str, members: &[(Text, Node)]) -> (Range<usize>, String, String) {
    (start..start, format!("\"{name}\":"), if members.is_empty() { "" } else { "," }.to_owned())
}

fn streams(mut found: Found) -> Found {
    found.stream.get_or_insert(true);
    found
}

/// What most bodies have at the top.
fn common(walk: &mut Walk, key: &str, node: &Node) -> bool {
    match key {
        "model" | "user" => {}
        "stream" => walk.found.stream = flag(node),
        _ => return false,
    }
    true
}

fn chat(root: Root, backend: Backend, batch: bool) -> Found {
    let strict = backend == OpenAi && !batch;
    let name = if strict { "max_completion_tokens" } else { "max_tokens" };
    let mut walk = root.holding(backend, name, strict);
    walk.members(root.body, true, &|walk, key, node| {
        match (key, backend) {
            ("messages", _) => {
                if let (true, Value::Array(items)) = (batch, &node.value) {
                    walk.found.prompts += items.len() as u64;
                }
                walk.inside(node, &message);
            }
            ("max_tokens", _) => walk.limit("max_tokens", node, Kind::Sure, false),
            ("max_completion_tokens", Ollama) => walk.limit("max_completion_tokens", node, Kind::Wish, false),
            ("max_completion_tokens", _) => walk.limit("max_completion_tokens", node, Kind::Sure, false),
            ("n_predict", LlamaCpp) => walk.limit("n_predict", node, Kind::Sure, false),
            ("min_tokens", Vllm | Sglang) => walk.minimum("min_tokens", node),
            ("n", _) => walk.copies("n", node),
            ("best_of", _) => walk.copies("best_of", node),
            ("n_cmpl", LlamaCpp) => walk.copies("n_cmpl", node),
            ("tool_choice", _) => walk.label(node),
            ("input_ids", Sglang) => walk.token_ids(node),
            ("session_params", Sglang) => walk.found.hidden |= !is_null(node),
            (
                "tools"
                | "functions"
                | "documents"
                | "chat_template"
                | "chat_template_kwargs"
                | "response_format"
                | "structured_outputs"
                | "structural_tag"
                | "guided_json"
                | "guided_regex"
                | "guided_choice"
                | "guided_grammar"
                | "grammar"
                | "json_schema"
                | "regex"
                | "ebnf"
                | "tool_prompt"
                | "guideline",
                _,
            ) => walk.text(node),
            _ => return common(walk, key, node),
        }
        true
    });
    walk.found
}

fn message(walk: &mut Walk, key: &str, node: &Node) -> bool {
    match key {
        "content" => parts(walk, node),
        "role" | "name" | "tool_call_id" => walk.label(node),
        "reasoning" | "reasoning_content" | "refusal" | "thinking" | "tools" => walk.text(node),
        "audio" => walk.media(node),
        "tool_calls" => walk.inside(node, &call),
        "function_call" => walk.inside(node, &function),
        _ => return false,
    }
    true
}

/// Media may be known to the server by a name, which counts where they do not come with it.
fn parts(walk: &mut Walk, node: &Node) {
    match &node.value {
        Value::Array(items) => items.iter().for_each(|item| parts(walk, item)),
        Value::Object(members) => {
            let before = walk.found.media;
            walk.members(members, true, &part);
            let named = members.iter().any(|(key, node)| walk.key(key) == "uuid" && !is_null(node));
            if walk.backend == Vllm && named && walk.found.media == before {
                walk.found.media += 1;
            }
        }
        _ => walk.text(node),
    }
}

fn part(walk: &mut Walk, key: &str, node: &Node) -> bool {
    match key {
        "uuid" if walk.backend == Vllm => {}
        "text" | "refusal" | "thinking" | "reasoning" | "input_text" | "output_text" | "stdout"
        | "stderr" => walk.text(node),
        "content" => parts(walk, node),
        "image_url" | "input_image" | "image" | "image_pil" | "image_embeds" | "input_audio"
        | "audio_url" | "audio" | "audio_embeds" | "video_url" | "video_embeds" | "data" | "input_video"
        | "video" | "file" | "file_url" | "file_data" | "file_id" | "input_file" => walk.media(node),
        _ => return false,
    }
    true
}

fn call(walk: &mut Walk, key: &str, node: &Node) -> bool {
    match key {
        "id" => walk.label(node),
        "function" | "custom" => walk.inside(node, &function),
        _ => return false,
    }
    true
}

fn function(walk: &mut Walk, key: &str, node: &Node) -> bool {
    match key {
        "name" => walk.label(node),
        "arguments" | "input" | "parameters" | "description" => walk.text(node),
        _ => return false,
    }
    true
}

fn completions(root: Root, backend: Backend, name: &'static str) -> Found {
    let mut walk = root.holding(backend, name, false);
    walk.members(root.body, true, &|walk, key, node| {
        match (key, backend) {
            ("prompt", _) => walk.prompts(node),
            ("prompt_embeds", _) => walk.embeds(node),
            ("max_tokens", _) => walk.limit("max_tokens", node, Kind::Sure, false),
            ("max_completion_tokens", LlamaCpp) => {
                walk.limit("max_completion_tokens", node, Kind::Sure, false)
            }
            ("n_predict", LlamaCpp) => walk.limit("n_predict", node, Kind::Sure, false),
            ("min_tokens", Vllm | Sglang) => walk.minimum("min_tokens", node),
            ("n", _) => walk.copies("n", node),
            ("best_of", _) => walk.copies("best_of", node),
            ("n_cmpl", LlamaCpp) => walk.copies("n_cmpl", node),
            ("session_params", Sglang) => walk.found.hidden |= !is_null(node),
            (
                "suffix" | "response_format" | "structured_outputs" | "structural_tag" | "guided_json"
                | "guided_regex" | "guided_choice" | "guided_grammar" | "grammar" | "json_schema" | "regex"
                | "ebnf" | "input_prefix" | "input_suffix" | "input_extra",
                _,
            ) => walk.text(node),
            _ => return common(walk, key, node),
        }
        true
    });
    walk.found
}

fn bare(root: Root, backend: Backend) -> Found {
    let mut walk = root.holding(backend, "max_tokens", false);
    walk.members(root.body, false, &|walk, key, node| {
        match key {
            "prompt" => walk.prompts(node),
            "max_tokens" => walk.limit("max_tokens", node, Kind::Sure, false),
            _ => return common(walk, key, node),
        }
        true
    });
    walk.found
}

fn responses(root: Root, backend: Backend) -> Found {
    let mut walk = root.holding(backend, "max_output_tokens", false);
    walk.members(root.body, true, &|walk, key, node| {
        match (key, backend) {
            ("input", _) => walk.inside(node, &item),
            (
                "instructions"
                | "tools"
                | "text"
                | "response_format"
                | "structured_outputs"
                | "chat_template_kwargs"
                | "previous_response",
                _,
            ) => walk.text(node),
            ("tool_choice", _) => walk.label(node),
            ("previous_input_messages", _) => walk.inside(node, &harmony),
            ("previous_response_id" | "conversation" | "prompt", _) => walk.found.hidden |= !is_null(node),
            ("background", _) => walk.found.background = flag(node) == Some(true),
            ("max_output_tokens", _) => walk.limit("max_output_tokens", node, Kind::Sure, false),
            ("max_tokens", LlamaCpp) => walk.limit("max_tokens", node, Kind::Perhaps, false),
            ("max_completion_tokens", LlamaCpp) => {
                walk.limit("max_completion_tokens", node, Kind::Perhaps, false)
            }
            ("n_predict", LlamaCpp) => walk.limit("n_predict", node, Kind::Perhaps, false),
            ("n", LlamaCpp) => walk.copies("n", node),
            ("n_cmpl", LlamaCpp) => walk.copies("n_cmpl", node),
            ("grammar" | "json_schema", LlamaCpp) => walk.text(node),
            _ => return common(walk, key, node),
        }
        true
    });
    walk.found
}

fn item(walk: &mut Walk, key: &str, node: &Node) -> bool {
    match key {
        "type" => {
            let stored = matches!(&node.value, Value::Text(text) if text.word() == "item_reference");
            walk.found.hidden |= stored;
        }
        "role" | "name" | "id" | "call_id" | "namespace" => walk.label(node),
        "content" | "summary" | "output" => parts(walk, node),
        "text" | "arguments" | "input" | "code" | "action" | "queries" | "results" | "operation"
        | "tools" | "error" | "reason" | "encrypted_content" => walk.text(node),
        "outputs" => walk.inside(node, &|walk, key, node| {
            match key {
                "logs" => walk.text(node),
                "url" => walk.media(node),
                _ => return false,
            }
            true
        }),
        "reasoning_content" | "tool_calls" | "tool_call_id" if walk.backend == LlamaCpp => {
            return message(walk, key, node);
        }
        "image_url" | "result" | "file_data" | "file_url" | "file_id" => walk.media(node),
        _ => return false,
    }
    true
}

fn harmony(walk: &mut Walk, key: &str, node: &Node) -> bool {
    match key {
        "role" | "name" | "recipient" => walk.label(node),
        "author" => walk.inside(node, &|walk, key, node| {
            let named = matches!(key, "role" | "name");
            if named {
                walk.label(node);
            }
            named
        }),
        "content" => walk.inside(node, &|walk, key, node| {
            let shown = matches!(key, "text" | "instructions" | "model_identity" | "tools");
            if shown {
                walk.text(node);
            }
            shown
        }),
        _ => return false,
    }
    true
}

fn messages(root: Root, backend: Backend) -> Found {
    let mut walk = root.holding(backend, "max_tokens", false);
    walk.members(root.body, true, &|walk, key, node| {
        match (key, backend) {
            ("messages", _) => walk.inside(node, &|walk, key, node| {
                match key {
                    "content" => walk.inside(node, &block),
                    "role" => walk.label(node),
                    "reasoning_content" | "tool_calls" | "tool_call_id" | "name" if backend == LlamaCpp => {
                        return message(walk, key, node);
                    }
                    _ => return false,
                }
                true
            }),
            ("system", _) => walk.inside(node, &block),
            ("tool_choice", _) => walk.label(node),
            ("tools" | "output_format" | "output_config" | "chat_template_kwargs", _) => walk.text(node),
            ("thinking", _) => walk.inside(node, &|walk, key, node| {
                if key == "budget_tokens" {
                    walk.budget("thinking.budget_tokens", node);
                }
                key == "budget_tokens"
            }),
            ("max_tokens", _) => walk.limit("max_tokens", node, Kind::Sure, false),
            ("max_completion_tokens", LlamaCpp) => {
                walk.limit("max_completion_tokens", node, Kind::Perhaps, false)
            }
            ("n_predict", LlamaCpp) => walk.limit("n_predict", node, Kind::Perhaps, false),
            _ => return common(walk, key, node),
        }
        true
    });
    walk.found
}

fn block(walk: &mut Walk, key: &str, node: &Node) -> bool {
    match key {
        "id" | "tool_use_id" | "name" => walk.label(node),
        "text" | "thinking" | "data" | "input" | "title" | "context" => walk.text(node),
        "url" if walk.backend == Ollama => walk.text(node),
        "content" => {
            let backend = walk.backend;
            let knows = |key: &str| match key {
                "url" => backend == Ollama,
                _ => BLOCK.contains(&key),
            };
            walk.loose(node, &knows, &block);
        }
        "source" => source(walk, node),
        _ => return false,
    }
    true
}

/// What a block is known by, but for what only one backend reads.
const BLOCK: [&str; 11] = [
    "id",
    "tool_use_id",
    "name",
    "text",
    "thinking",
    "data",
    "input",
    "title",
    "context",
    "content",
    "source",
];

/// Where a document comes from: its `data` is text where the `type` beside it says so, or else media.
fn source(walk: &mut Walk, node: &Node) {
    match &node.value {
        Value::Array(items) => items.iter().for_each(|item| source(walk, item)),
        Value::Object(members) => {
            let is_text = |node: &Node| matches!(&node.value, Value::Text(text) if text.word() == "text");
            let plain = members.iter().any(|(key, node)| walk.key(key) == "type" && is_text(node));
            walk.members(members, true, &|walk, key, node| {
                match key {
                    "type" => {}
                    "data" if plain && matches!(node.value, Value::Text(_)) => walk.text(node),
                    "data" | "url" | "file_id" => walk.media(node),
                    "content" => walk.inside(node, &block),
                    _ => return false,
                }
                true
            });
        }
        _ => walk.text(node),
    }
}

/// What a body says whose limit stands in an object of its own.
struct Within {
    key: &'static str,
    limit: &'static str,
    /// The limit's whole name.
    name: &'static str,
    /// What follows the limit where that object has to be made.
    end: &'static str,
    /// Whether `null` is as good as nothing, and whether a list may stand there.
    null: bool,
    list: bool,
}

impl Within {
    fn read(&self, walk: &mut Walk, node: &Node, member: super::walk::Member) {
        let limit = self.limit;
        let one = |walk: &mut Walk, node: &Node| {
            let Value::Object(members) = &node.value else { return walk.fault(self.key) };
            walk.hold(behind(node.span.start + 1, limit, members), self.name, false);
            walk.members(members, false, member);
        };
        match &node.value {
            Value::Null if self.null => {
                let text = format!("{{\"{limit}\":");
                walk.hold((node.span.clone(), text, self.end.to_owned()), self.name, false);
            }
            Value::Null => {}
            Value::Array(items) if self.list && !items.is_empty() => {
                items.iter().for_each(|item| one(walk, item))
            }
            _ => one(walk, node),
        }
    }

    /// Where the object is missing from one whose first member would stand at `start`.
    fn missing(&self, walk: &mut Walk, start: usize, members: &[(Text, Node)]) {
        if members.iter().any(|(key, _)| walk.key(key) == self.key) {
            return;
        }
        let comma = if members.is_empty() { "" } else { "," };
        let text = format!("\"{}\":{{\"{}\":", self.key, self.limit);
        walk.hold((start..start, text, format!("{}{comma}", self.end)), self.name, false);
    }
}

fn vllm(root: Root, backend: Backend) -> Found {
    let within = Within {
        key: "sampling_params",
        limit: "max_tokens",
        name: "sampling_params.max_tokens",
        end: "}",
        null: true,
        list: false,
    };
    let mut walk = Walk::new(backend);
    walk.members(root.body, true, &|walk, key, node| {
        match key {
            "token_ids" | "prompt_token_ids" | "prompt" => walk.prompts(node),
            "features" => walk.media(node),
            "sampling_params" => within.read(walk, node, &|walk, key, node| {
                match key {
                    "max_tokens" => walk.limit("sampling_params.max_tokens", node, Kind::Sure, true),
                    "min_tokens" => walk.minimum("sampling_params.min_tokens", node),
                    "n" => walk.copies("sampling_params.n", node),
                    "best_of" => walk.copies("sampling_params.best_of", node),
                    "structured_outputs" | "guided_decoding" => walk.text(node),
                    _ => return false,
                }
                true
            }),
            _ => return common(walk, key, node),
        }
        true
    });
    within.missing(&mut walk, root.start, root.body);
    walk.found
}

fn sampling(name: &'static str) -> Within {
    Within { key: "sampling_params", limit: "max_new_tokens", name, end: "}", null: true, list: true }
}

fn sampled(name: &'static str, walk: &mut Walk, key: &str, node: &Node) -> bool {
    match key {
        "max_new_tokens" => walk.limit(name, node, Kind::Sure, true),
        "min_new_tokens" => walk.minimum("sampling_params.min_new_tokens", node),
        "n" => walk.copies("sampling_params.n", node),
        "beam_width" => walk.copies("sampling_params.beam_width", node),
        "json_schema" | "regex" | "ebnf" | "structural_tag" => walk.text(node),
        _ => return false,
    }
    true
}

fn sglang(root: Root) -> Found {
    const NAME: &str = "sampling_params.max_new_tokens";
    let mut walk = Walk::new(Sglang);
    walk.members(root.body, true, &|walk, key, node| {
        match key {
            "text" | "input_ids" => walk.prompts(node),
            "input_embeds" => walk.rows(node),
            "image_data" | "audio_data" | "video_data" => walk.medias(node),
            "session_params" => walk.found.hidden |= !is_null(node),
            "sampling_params" => {
                sampling(NAME).read(walk, node, &|walk, key, node| sampled(NAME, walk, key, node))
            }
            _ => return common(walk, key, node),
        }
        true
    });
    sampling(NAME).missing(&mut walk, root.start, root.body);
    walk.found
}

/// Several prompts, and all else two objects deep.
fn sglang_vertex(root: Root) -> Found {
    const NAME: &str = "parameters.sampling_params.max_new_tokens";
    const INNER: &str = "\"sampling_params\":{\"max_new_tokens\":";
    let mut walk = Walk::new(Sglang);
    walk.members(root.body, true, &|walk, key, node| {
        match (key, &node.value) {
            ("instances", _) => {
                if let Value::Array(items) = &node.value {
                    walk.found.prompts += items.len() as u64;
                }
                walk.inside(node, &|walk, key, node| {
                    match key {
                        "text" => walk.text(node),
                        "input_ids" | "input_embeds" => walk.token_ids(node),
                        "image_data" => walk.medias(node),
                        _ => return false,
                    }
                    true
                });
            }
            ("parameters", Value::Null) => {
                walk.hold((node.span.clone(), format!("{{{INNER}"), "}}".to_owned()), NAME, false);
            }
            ("parameters", Value::Object(members)) => {
                walk.members(members, true, &|walk, key, node| {
                    match key {
                        "audio_data" | "video_data" => walk.medias(node),
                        "session_params" => walk.found.hidden |= !is_null(node),
                        "stream" => walk.found.stream = flag(node),
                        "sampling_params" => {
                            sampling(NAME).read(walk, node, &|walk, key, node| sampled(NAME, walk, key, node))
                        }
                        _ => return false,
                    }
                    true
                });
                sampling(NAME).missing(walk, node.span.start + 1, members);
            }
            ("parameters", _) => walk.fault("parameters"),
            _ => return false,
        }
        true
    });
    if root.body.iter().all(|(key, _)| walk.key(key) != "parameters") {
        let comma = if root.body.is_empty() { "" } else { "," };
        let text = format!("\"parameters\":{{{INNER}");
        walk.hold((root.start..root.start, text, format!("}}}}{comma}")), NAME, false);
    }
    walk.found
}

/// TGI samples without any `parameters`, and does not with some that do not say so.
fn parameters(null: bool) -> Within {
    Within {
        key: "parameters",
        limit: "max_new_tokens",
        name: "parameters.max_new_tokens",
        end: ",\"do_sample\":true}",
        null,
        list: false,
    }
}

fn parameter(walk: &mut Walk, key: &str, node: &Node) -> bool {
    match key {
        "max_new_tokens" => walk.limit("parameters.max_new_tokens", node, Kind::Sure, true),
        "best_of" => walk.copies("parameters.best_of", node),
        "grammar" => walk.text(node),
        _ => return false,
    }
    true
}

fn tgi(root: Root) -> Found {
    let mut walk = Walk::new(Tgi);
    walk.members(root.body, true, &|walk, key, node| {
        match key {
            "inputs" => walk.text(node),
            "parameters" => parameters(false).read(walk, node, &parameter),
            _ => return common(walk, key, node),
        }
        true
    });
    parameters(false).missing(&mut walk, root.start, root.body);
    walk.found
}

fn vertex(root: Root) -> Found {
    let mut walk = Walk::new(Tgi);
    walk.members(root.body, true, &|walk, key, node| {
        if key != "instances" {
            return false;
        }
        let Value::Array(items) = &node.value else {
            walk.fault("instances");
            return true;
        };
        walk.found.prompts += items.len() as u64;
        for item in items {
            let Value::Object(members) = &item.value else {
                walk.fault("instances");
                continue;
            };
            walk.members(members, true, &|walk, key, node| {
                match key {
                    "inputs" => walk.text(node),
                    "parameters" => parameters(true).read(walk, node, &parameter),
                    "messages" if is_null(node) => {}
                    "messages" => walk.fault("messages"),
                    _ => return false,
                }
                true
            });
            parameters(true).missing(walk, item.span.start + 1, members);
        }
        true
    });
    walk.found
}

fn ollama(root: Root, backend: Backend) -> Found {
    let within = Within {
        key: "options",
        limit: "num_predict",
        name: "options.num_predict",
        end: "}",
        null: true,
        list: false,
    };
    let mut walk = Walk::new(backend);
    walk.members(root.body, true, &|walk, key, node| {
        match key {
            "prompt" | "suffix" | "system" | "template" | "tools" | "format" => walk.text(node),
            "context" => walk.token_ids(node),
            "images" => walk.medias(node),
            "messages" => walk.inside(node, &|walk, key, node| {
                match key {
                    "role" | "name" | "tool_name" | "tool_call_id" => walk.label(node),
                    "content" | "thinking" => walk.text(node),
                    "images" => walk.medias(node),
                    "tool_calls" => walk.inside(node, &call),
                    _ => return false,
                }
                true
            }),
            "options" => within.read(walk, node, &|walk, key, node| {
                if key == "num_predict" {
                    walk.limit("options.num_predict", node, Kind::Sure, true);
                }
                key == "num_predict"
            }),
            _ => return common(walk, key, node),
        }
        true
    });
    within.missing(&mut walk, root.start, root.body);
    walk.found
}

/// The members say what it is; of two it must not be.
fn invocations(root: Root, backend: Backend) -> Found {
    let telling: &[(&str, &str)] = match backend {
        Tgi => &[("inputs", "tgi"), ("messages", "chat"), ("prompt", "completions")],
        _ => &[
            ("messages", "chat"),
            ("prompt", "completions"),
            ("prompt_embeds", "completions"),
            ("input", "responses"),
            ("inputs", "tgi"),
        ],
    };
    let told: Vec<&(&str, &str)> = root
        .body
        .iter()
        .filter(|(_, node)| !is_null(node))
        .filter_map(|(key, _)| telling.iter().find(|(name, _)| key.word() == *name))
        .collect();
    match (told.as_slice(), backend) {
        ([], Tgi) => tgi(root),
        ([], _) => completions(root, backend, "max_tokens"),
        // OpenAI's strict form of chat is not at this path.
        ([(_, "chat")], _) => chat(root, if backend == OpenAi { Backend::Vllm } else { backend }, false),
        ([(_, dialect)], _) => read(dialect, backend, root.body, root.start),
        ([_, (other, _), ..], _) => {
            let mut walk = Walk::new(backend);
            walk.fault(other);
            walk.found
        }
    }
}
