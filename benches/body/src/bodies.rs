//! Bodies of every kind that clients send, in any size, and how many characters their prompts have.

use fastrand::Rng;
use serde_json::{Value, json};

use crate::text;

/// Bodies of one kind and size, which are read in turns: more than one where a processor would else learn by heart what
/// comes next, as it cannot of a client's next request.
pub struct Bodies {
    /// What they hold.
    pub kind: &'static str,
    /// The dialect that they are read by.
    pub dialect: &'static str,
    /// The bodies themselves, one at least, all of about one size.
    pub turns: Vec<Body>,
}

/// A body and what its reader has to find.
pub struct Body {
    /// The body itself.
    pub bytes: Vec<u8>,
    /// Characters of the prompt; a token id counts as 4, as under the default policy.
    pub chars: u64,
}

impl Bodies {
    fn one(kind: &'static str, dialect: &'static str, bytes: String, chars: usize) -> Bodies {
        Bodies { kind, dialect, turns: vec![Body { bytes: bytes.into_bytes(), chars: chars as u64 }] }
    }

    /// Bytes of one of them, on average.
    pub fn size(&self) -> f64 {
        self.turns.iter().map(|body| body.bytes.len()).sum::<usize>() as f64 / self.turns.len() as f64
    }
}

const ENGLISH: &str =
    "The quick brown fox jumps over the lazy dog, while the committee reviews the quarterly report. ";
const CHINESE: &str = "你好，请帮我总结一下这份文件的主要内容，并列出三个最重要的结论。";
const RUSSIAN: &str = "Пожалуйста, кратко перескажите этот документ и перечислите три главных вывода. ";
const CHINESE_AND_ENGLISH: &str = "请用 Python 写一个 HTTP server，支持 GET 和 POST，端口 8080，返回 JSON。";
const EMOJI: &str = "Great job 🎉🎉 see you 👋😀 tomorrow 🚀✨ at 10 ☕️ ";
const CODE: &str = "fn main() {\n\tlet name = \"world\";\n\tprintln!(\"hello, {name}\\n\");\n}\n";

/// How many bytes of different text are read in turns.
const VARIED: usize = 512 << 10;
/// The same words come in an order of their own in each body, and the same bodies in each run.
const SEED: u64 = 1;

/// Every kind at about `size` bytes.
pub fn all(size: usize) -> Vec<Bodies> {
    vec![
        chat("ASCII chat", ENGLISH, size, false),
        varied("prose", text::prose, size),
        varied("Markdown with code", text::markdown, size),
        chat("CJK", CHINESE, size, false),
        chat("Cyrillic", RUSSIAN, size, false),
        chat("CJK and ASCII mixed", CHINESE_AND_ENGLISH, size, false),
        chat("emoji", EMOJI, size, false),
        chat("code, escaped as usual", CODE, size, false),
        chat("CJK, all escaped", CHINESE, size, true),
        token_ids(size),
        tools(size),
        tiny_members(size),
    ]
}

/// As many bodies of different text as make [`VARIED`] bytes, in turns of about 600 bytes each.
fn varied(kind: &'static str, write: impl Fn(&mut Rng, usize) -> String, size: usize) -> Bodies {
    const TURN: usize = 600;
    let mut random = Rng::with_seed(SEED);
    let mut body = |_| {
        let (mut messages, mut chars) = (Vec::new(), 0);
        let mut left = size.saturating_sub(60);
        while left > 0 {
            let text = write(&mut random, left.min(TURN));
            let role = ["user", "assistant"][messages.len() % 2];
            let message = json!({"role": role, "content": text}).to_string();
            chars += text.chars().count() as u64;
            left = left.saturating_sub(message.len());
            messages.push(message);
        }
        Body { bytes: around(&messages).into_bytes(), chars }
    };
    Bodies { kind, dialect: "chat", turns: (0..VARIED.div_ceil(size.max(1))).map(&mut body).collect() }
}

fn around(messages: &[String]) -> String {
    format!(r#"{{"model":"llama-3-8b","messages":[{}],"max_tokens":100}}"#, messages.join(","))
}

/// Turns of at most 4 KB of text each; `ascii` spells everything else as escapes, as Python's `json.dumps` does.
fn chat(kind: &'static str, text: &str, size: usize, ascii: bool) -> Bodies {
    let write = |text: &str| {
        let plain = Value::from(text).to_string();
        if ascii { escaped(&plain) } else { plain }
    };
    let (unit, mut chars) = (write(text).len() - 2, 0);
    let mut left = size.saturating_sub(60) / unit;
    let mut turns = Vec::new();
    while left > 0 {
        let times = left.min((4096 / unit).max(1));
        left -= times;
        chars += text.chars().count() * times;
        let role = ["user", "assistant"][turns.len() % 2];
        turns.push(format!(r#"{{"role":"{role}","content":{}}}"#, write(&text.repeat(times))));
    }
    Bodies::one(kind, "chat", around(&turns), chars)
}

fn escaped(json: &str) -> String {
    let mut out = String::new();
    for char in json.chars() {
        match char {
            ' '..='~' => out.push(char),
            _ => {
                char.encode_utf16(&mut [0; 2]).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}")))
            }
        }
    }
    out
}

fn token_ids(size: usize) -> Bodies {
    let ids: Vec<String> =
        (0..size.saturating_sub(60) / 5).map(|place| (1000 + place * 7919 % 9000).to_string()).collect();
    let bytes = format!(r#"{{"model":"llama-3-8b","max_tokens":100,"prompt":[{}]}}"#, ids.join(","));
    Bodies::one("token ids", "completions", bytes, ids.len() * 4)
}

/// An agent's: half of it schemas, half calls and what came of them.
fn tools(size: usize) -> Bodies {
    let schema = json!({"type": "function", "function": {"name": "get_weather", "description": "The weather in a city.",
        "parameters": {"type": "object", "required": ["city"], "properties": {
            "city": {"type": "string", "description": "Its name"}, "days": {"type": "integer", "minimum": 1}}}}});
    let (arguments, result) =
        (r#"{"city":"Paris","days":3}"#, r#"{"temperature":[11,14,9],"unit":"celsius"}"#);
    let turn = format!(
        r#"{{"role":"assistant","content":null,"tool_calls":[{{"id":"call_1","type":"function","function":{{"name":"get_weather","arguments":{}}}}}]}},{{"role":"tool","tool_call_id":"call_1","content":{}}}"#,
        Value::from(arguments),
        Value::from(result)
    );
    let schema = schema.to_string();
    let schemas = (size / 2 / (schema.len() + 1)).max(1);
    let turns = (size / 2 / (turn.len() + 1)).max(1);
    let list = |unit: &str, times| vec![unit; times].join(",");
    let bytes = format!(
        r#"{{"model":"llama-3-8b","max_tokens":100,"messages":[{}],"tools":[{}]}}"#,
        list(&turn, turns),
        list(&schema, schemas)
    );
    let chars = turns * (arguments.len() + result.len()) + schemas * (schema.len() + 1) + 1;
    Bodies::one("tools", "chat", bytes, chars)
}

fn tiny_members(size: usize) -> Bodies {
    let members = vec![r#""ab":1"#; size.saturating_sub(60) / 7].join(",");
    let bytes = format!(r#"{{"model":"llama-3-8b","metadata":{{{members}}},"max_tokens":100}}"#);
    Bodies::one("tiny members", "chat", bytes, 0)
}

/// Shapes that somebody chose in order to be slow, at about `size` bytes. All are let through.
pub fn hostile(size: usize) -> Vec<Bodies> {
    let filled = |kind, before: &str, unit: &str, after: &str| {
        let times = size.saturating_sub(before.len() + after.len()) / unit.len();
        Bodies::one(kind, "chat", [before, &unit.repeat(times), after].concat(), 0)
    };
    let digits = format!("\"n_\":{},", "9".repeat(10_000));
    let nested = format!("{}{},", "[".repeat(120), "]".repeat(120));
    vec![
        filled("tiny members at the top", "{\"max_tokens\":1,", "\"a\":1,", "\"b\":1}"),
        filled("members of the length of known ones", "{\"max_tokens\":1,", "\"max_tokenz\":1,", "\"b\":1}"),
        filled("escaped members of that length", "{\"max_tokens\":1,", "\"m\\u0061x_tokenz\":1,", "\"b\":1}"),
        filled("empty messages", "{\"max_tokens\":1,\"messages\":[", "{},", "{}]}"),
        filled("one key", "{\"max_tokens\":1,\"", "k", "\":1}"),
        filled("one escaped key", "{\"max_tokens\":1,\"", "\\u006b", "\":1}"),
        filled("numbers of 10,000 digits", "{\"max_tokens\":1,", &digits, "\"b\":1}"),
        filled("nested 120 deep", "{\"max_tokens\":1,\"x\":[", &nested, "0]}"),
        filled("white space", "{\"max_tokens\":1", " \n", "}"),
        filled("wide and narrow in turns", "{\"max_tokens\":1,\"x\":\"", "éa", "\"}"),
        filled("escapes and text in turns", "{\"max_tokens\":1,\"x\":\"", "\\na", "\"}"),
    ]
}
