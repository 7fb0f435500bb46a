//! The scanner against a naive twin on `serde_json::Value`: the same sizes, limits and edits for whatever JSON comes.

use proptest::prelude::*;
use serde_json::{Map, Value};
use sluice::core::body::{Amount, Backend, BadBody, Dialect, View, dialect};
use sluice::core::clamp::{Clamped, clamp};
use sluice::core::config;
use sluice::core::policy::Limits;

/// Keys that some shape reads, so that arbitrary JSON meets them often.
const KEYS: [&str; 24] = [
    "messages",
    "content",
    "text",
    "refusal",
    "thinking",
    "reasoning",
    "reasoning_content",
    "image_url",
    "file",
    "role",
    "input_audio",
    "tool_calls",
    "function_call",
    "function",
    "arguments",
    "tools",
    "response_format",
    "documents",
    "prompt",
    "suffix",
    "prompt_embeds",
    "model",
    "stream",
    "metadata",
];
const LIMITS: [&str; 5] = ["max_tokens", "max_completion_tokens", "min_tokens", "n", "best_of"];

fn read<'a>(dialect: &Dialect, body: &'a [u8]) -> Result<View<'a>, BadBody> {
    dialect::read(dialect, Backend::Vllm, body)
}

fn chat() -> &'static Dialect {
    dialect::ALL.iter().find(|dialect| dialect.name == "chat").unwrap()
}

fn completions() -> &'static Dialect {
    dialect::ALL.iter().find(|dialect| dialect.name == "completions").unwrap()
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(|number| Value::Number(number.into())),
        // Quarters: serde_json reads back only roughly what has more digits.
        any::<i32>().prop_map(|number| Value::from(f64::from(number) / 4.0)),
        words().prop_map(Value::String),
    ];
    leaf.prop_recursive(6, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
            prop::collection::vec((key(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn words() -> impl Strategy<Value = String> {
    prop_oneof![any::<String>(), "[a-z \"\\\\]{0,40}", "[你好世界，é😀 a]{0,30}"]
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof![8 => prop::sample::select(&KEYS[..]).prop_map(str::to_owned), 1 => words()]
}

fn amount() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => (-3i64..3000).prop_map(Value::from),
        1 => any::<u64>().prop_map(Value::from),
        2 => (-3i64..3000).prop_map(|number| Value::from(number as f64)),
        2 => (-3i64..3000).prop_map(|number| Value::from(format!(" {number}"))),
        2 => Just(Value::Null),
        1 => prop::sample::select(vec![Value::from(1.5), Value::from(true), Value::from("x"), Value::Array(vec![])]),
    ]
}

/// A request's body: any members under keys that are read, and limits of every kind.
fn body() -> impl Strategy<Value = Value> {
    let members = prop::collection::vec((key(), json()), 0..6);
    let limits = prop::collection::vec((prop::sample::select(&LIMITS[..]), amount()), 0..4);
    (members, limits).prop_map(|(members, limits)| {
        let limits = limits.into_iter().map(|(key, value)| (key.to_owned(), value));
        Value::Object(members.into_iter().chain(limits).collect())
    })
}

/// Writes JSON with white space and escapes where `dice` says so.
struct Writer {
    dice: u64,
    out: String,
}

impl Writer {
    fn write(value: &Value, seed: u64) -> String {
        let mut writer = Writer { dice: seed | 1, out: String::new() };
        writer.value(value);
        writer.out
    }

    fn roll(&mut self, sides: u64) -> u64 {
        self.dice = self.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.dice >> 33) % sides
    }

    fn space(&mut self) {
        let space = ["", "", "", "", " ", "\n", "\t\r ", "  "][self.roll(8) as usize];
        self.out.push_str(space);
    }

    fn value(&mut self, value: &Value) {
        self.space();
        match value {
            Value::String(text) => self.string(text),
            Value::Array(items) => {
                self.out.push('[');
                self.list(items.iter(), |writer, item| writer.value(item));
                self.out.push(']');
            }
            Value::Object(members) => {
                self.out.push('{');
                self.list(members.iter(), |writer, (key, value)| {
                    writer.space();
                    writer.string(key);
                    writer.space();
                    writer.out.push(':');
                    writer.value(value);
                });
                self.out.push('}');
            }
            plain => self.out.push_str(&plain.to_string()),
        }
        self.space();
    }

    fn list<T>(&mut self, items: impl Iterator<Item = T>, one: impl Fn(&mut Writer, T)) {
        for (place, item) in items.enumerate() {
            if place > 0 {
                self.out.push(',');
            }
            one(self, item);
        }
        self.space();
    }

    fn string(&mut self, text: &str) {
        self.out.push('"');
        for char in text.chars() {
            if matches!(char, '"' | '\\' | '\0'..='\x1f') || self.roll(6) == 0 {
                for unit in char.encode_utf16(&mut [0; 2]) {
                    self.out.push_str(&format!("\\u{unit:04x}"));
                }
            } else {
                self.out.push(char);
            }
        }
        self.out.push('"');
    }
}

/// What the naive walk finds.
#[derive(Debug, Default, PartialEq)]
struct Twin {
    text: String,
    media: u64,
    ids: u64,
    prompts: u64,
}

impl Twin {
    fn text(&mut self, value: &Value) {
        match value {
            Value::Null => {}
            Value::String(text) => self.text.push_str(text),
            other => self.text.push_str(&compact(other)),
        }
    }

    fn chat(body: &Map<String, Value>) -> Twin {
        let mut twin = Twin::default();
        for (key, value) in body {
            match key.as_str() {
                "messages" => twin.inside(value, &Twin::message),
                "tools" | "response_format" | "documents" => twin.text(value),
                _ => {}
            }
        }
        twin
    }

    fn completions(body: &Map<String, Value>) -> Twin {
        let mut twin = Twin::default();
        for (key, value) in body {
            match key.as_str() {
                "suffix" | "response_format" => twin.text(value),
                "prompt" => twin.prompts(value),
                "prompt_embeds" => {
                    let all = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
                    let some = all.iter().filter(|value| !value.is_null()).count() as u64;
                    twin.prompts += some;
                    twin.media += some;
                }
                _ => {}
            }
        }
        twin
    }

    fn inside(&mut self, value: &Value, member: &dyn Fn(&mut Twin, &str, &Value)) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.inside(item, member)),
            Value::Object(members) => members.iter().for_each(|(key, value)| member(self, key, value)),
            other => self.text(other),
        }
    }

    /// A role or a name counts where it is longer than such words are.
    fn label(&mut self, value: &Value) {
        let before = self.text.len();
        self.text(value);
        if self.text[before..].chars().count() <= 64 {
            self.text.truncate(before);
        }
    }

    fn message(&mut self, key: &str, value: &Value) {
        match key {
            "role" | "name" | "tool_call_id" => self.label(value),
            "tools" => self.text(value),
            "content" => self.inside(value, &Twin::part),
            "reasoning" | "reasoning_content" | "refusal" | "thinking" => self.text(value),
            "tool_calls" => self.inside(value, &Twin::call),
            "function_call" => self.inside(value, &Twin::function),
            _ => {}
        }
    }

    fn part(&mut self, key: &str, value: &Value) {
        match key {
            "content" => self.inside(value, &Twin::part),
            "text" | "refusal" | "thinking" | "reasoning" => self.text(value),
            "image_url" | "file" | "input_audio" => self.media += u64::from(!value.is_null()),
            _ => {}
        }
    }

    fn call(&mut self, key: &str, value: &Value) {
        if key == "function" {
            self.inside(value, &Twin::function);
        }
    }

    fn function(&mut self, key: &str, value: &Value) {
        match key {
            "arguments" => self.text(value),
            "name" => self.label(value),
            _ => {}
        }
    }

    fn prompts(&mut self, value: &Value) {
        let Value::Array(items) = value else { return self.one_prompt(value) };
        for item in items {
            match item {
                Value::Number(_) => self.ids += 1,
                Value::Array(inner) => {
                    self.prompts += 1;
                    // An array within is a row of numbers where a backend takes any: one token.
                    let (ids, text): (Vec<_>, Vec<_>) =
                        inner.iter().partition(|item| item.is_number() || item.is_array());
                    self.ids += ids.len() as u64;
                    text.into_iter().for_each(|item| self.text(item));
                }
                other => self.one_prompt(other),
            }
        }
        self.prompts += u64::from(items.iter().any(Value::is_number));
    }

    fn one_prompt(&mut self, value: &Value) {
        self.prompts += u64::from(!value.is_null());
        match value {
            Value::Number(_) => self.ids += 1,
            Value::Object(members) => members.values().for_each(|value| self.text(value)),
            other => self.text(other),
        }
    }
}

/// JSON without white space and with strings as they read.
fn compact(value: &Value) -> String {
    let list = |items: Vec<String>| items.join(",");
    match value {
        Value::String(text) => format!("\"{text}\""),
        Value::Array(items) => format!("[{}]", list(items.iter().map(compact).collect())),
        Value::Object(members) => {
            format!(
                "{{{}}}",
                list(members.iter().map(|(key, value)| format!("\"{key}\":{}", compact(value))).collect())
            )
        }
        plain => plain.to_string(),
    }
}

/// What the generated limits say; `None` where they are to be refused.
fn twin_amount(value: &Value) -> Option<Amount> {
    let count = |number: f64, exact: u64| match number {
        _ if number.fract() != 0.0 => None,
        _ if number == 0.0 => Some(Amount::Zero),
        _ if number < 0.0 => Some(Amount::Negative),
        _ => Some(Amount::Count(exact)),
    };
    match value {
        Value::Null => Some(Amount::Unset),
        Value::Number(number) => {
            let float = number.as_f64().unwrap();
            count(float, number.as_u64().unwrap_or(float as u64))
        }
        Value::String(text) => {
            text.trim().parse().ok().and_then(|number: i64| count(number as f64, number as u64))
        }
        _ => None,
    }
}

/// The first member that the reader has to refuse, in the body's order.
fn first_bad_limit<'a>(body: &'a Map<String, Value>, read: &[&str]) -> Option<&'a str> {
    let bad = |(key, value): &(&String, &Value)| read.contains(&key.as_str()) && twin_amount(value).is_none();
    body.iter().find(bad).map(|(key, _)| key.as_str())
}

/// Under which no size is refused.
fn limits() -> Limits {
    let policy = br#"{"limits":{"prompt_chars":null,"prompt_tokens":null}}"#;
    Limits { sequences: u64::MAX, ..config::parse(policy).expect("a policy").limits }
}

/// The body as the naive twin would edit it.
fn twin_edit(mut body: Map<String, Value>, names: &[&str]) -> Map<String, Value> {
    let amount =
        |body: &Map<String, Value>, name: &str| body.get(name).and_then(twin_amount).unwrap_or(Amount::Unset);
    let set: Vec<_> = names.iter().filter(|name| amount(&body, name) != Amount::Unset).copied().collect();
    let (mut in_force, mut ours) = (0, false);
    for name in &set {
        match amount(&body, name) {
            Amount::Count(asked) => {
                ours |= asked > 1024;
                in_force = in_force.max(asked.min(1024));
                if asked > 1024 || body[*name].is_string() {
                    body.insert((*name).to_owned(), asked.min(1024).into());
                }
            }
            _ => in_force = 1024,
        }
    }
    if set.is_empty() {
        let null = names.iter().find(|name| body.contains_key(**name)).unwrap_or(&names[0]);
        body.insert((*null).to_owned(), 256.into());
        (in_force, ours) = (256, true);
    }
    if ours && matches!(amount(&body, "min_tokens"), Amount::Count(min) if min > in_force) {
        body.insert("min_tokens".to_owned(), in_force.into());
    }
    body
}

/// Takes the edits out of `after`: whatever stands between the places that may change must stand in both.
fn assert_untouched(view: &View, clamped: &Clamped, before: &str, after: &str) {
    let mut spans: Vec<_> =
        view.limits.iter().chain(&view.min_tokens).map(|limit| limit.span.clone()).collect();
    let [holder] = &view.holders[..] else { panic!("one object holds the limit: the body") };
    spans.push(holder.span.clone());
    spans.sort_by_key(|span| span.start);
    let insertion = format!("\"{}\":{}", holder.inject.name, clamped.max_tokens);
    let (mut old, mut new) = (0, after);
    for span in spans {
        new = new.strip_prefix(&before[old..span.start]).expect("bytes between edits are the same");
        new = match new.strip_prefix(&before[span.clone()]) {
            Some(rest) if span.is_empty() && view.limits.is_empty() => {
                let rest = rest.strip_prefix(&insertion).expect("the default is put in");
                rest.strip_prefix(',').unwrap_or(rest)
            }
            Some(rest) if span.is_empty() || !rest.starts_with(|next: char| next.is_ascii_digit()) => rest,
            _ => new.trim_start_matches(|digit: char| digit.is_ascii_digit()),
        };
        old = span.end;
    }
    assert_eq!(new, &before[old..]);
}

fn check(dialect: &Dialect, body: &Value, text: &str) -> Result<(), TestCaseError> {
    let members = body.as_object().unwrap();
    let chat = dialect.name == "chat";
    let names = if chat { &["max_tokens", "max_completion_tokens"][..] } else { &["max_tokens"][..] };
    let numbers: Vec<&str> = names.iter().copied().chain(["min_tokens", "n", "best_of"]).collect();
    let view = match (read(dialect, text.as_bytes()), first_bad_limit(members, &numbers)) {
        (Ok(view), None) => view,
        (Err(bad), Some(name)) => {
            prop_assert_eq!(bad.param.as_deref(), Some(name));
            return Ok(());
        }
        (got, want) => {
            return Err(TestCaseError::fail(format!("{got:?}, but the twin's first bad limit is {want:?}")));
        }
    };
    let twin = if chat { Twin::chat(members) } else { Twin::completions(members) };
    prop_assert_eq!(view.prompt.chars, twin.text.chars().count() as u64);
    prop_assert_eq!(view.prompt.utf8_bytes, twin.text.len() as u64);
    prop_assert_eq!((view.prompt.media, view.prompt.token_ids), (twin.media, twin.ids));
    let copies =
        ["n", "best_of"].iter().filter_map(|name| twin_amount(members.get(*name)?)).filter_map(|amount| {
            match amount {
                Amount::Count(copies) => Some(copies),
                _ => None,
            }
        });
    prop_assert_eq!(view.sequences, twin.prompts.max(1).saturating_mul(copies.max().unwrap_or(1).max(1)));
    for limit in &view.limits {
        prop_assert_eq!(Some(limit.amount), twin_amount(&members[limit.name]));
    }
    prop_assert_eq!(view.limits.len(), names.iter().filter(|name| members.contains_key(**name)).count());
    let model = view.model.map(|escaped| sluice::core::body::unescaped(escaped).into_owned());
    prop_assert_eq!(
        model,
        members.get("model").and_then(Value::as_str).map(|model| model.as_bytes().to_vec())
    );

    let clamped = clamp(&view, &limits()).expect("nothing here is refused");
    let after = match &clamped.prefix {
        Some(prefix) => String::from_utf8(prefix.apply(text.as_bytes())).unwrap(),
        None => text.to_owned(),
    };
    prop_assert_eq!(after.len(), clamped.body_len);
    let parsed: Map<String, Value> = serde_json::from_str(&after).expect("an edited body is still JSON");
    prop_assert_eq!(parsed, twin_edit(members.clone(), names));
    assert_untouched(&view, &clamped, text, &after);
    Ok(())
}

/// Whether our answer to arbitrary bytes agrees with serde_json's. Three differences are meant: limits and duplicates
/// that we refuse (they carry a `param`), lone surrogates and numbers beyond f64 that we accept and serde does not.
fn assert_agreement(bytes: &[u8]) -> Result<(), TestCaseError> {
    let theirs = serde_json::from_slice::<Value>(bytes).map(|value| value.is_object());
    match (read(chat(), bytes), theirs) {
        (Ok(_), Ok(true)) | (Err(BadBody { param: Some(_), .. }), _) => Ok(()),
        (Err(_), Ok(false) | Err(_)) => Ok(()),
        (Ok(_), Err(theirs))
            if ["surrogate", "hex escape", "out of range"]
                .iter()
                .any(|what| theirs.to_string().contains(what)) =>
        {
            Ok(())
        }
        (ours, theirs) => Err(TestCaseError::fail(format!("{ours:?} but serde_json says {theirs:?}"))),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn chat_reads_as_the_twin(body in body(), seed in any::<u64>()) {
        check(chat(), &body, &Writer::write(&body, seed))?;
    }

    #[test]
    fn completions_read_as_the_twin(body in body(), seed in any::<u64>()) {
        check(completions(), &body, &Writer::write(&body, seed))?;
    }

    #[test]
    fn mutations_are_judged_as_serde_json_judges_them(
        body in body(),
        seed in any::<u64>(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0..4u8, any::<u8>(), prop::sample::select(&b"\"\\{}[]:,0e-. u\xe4\xf0\x80\n"[..])), 1..4),
    ) {
        let mut bytes = Writer::write(&body, seed).into_bytes();
        for (place, kind, any, telling) in edits {
            let at = place.index(bytes.len().max(1));
            match kind {
                _ if bytes.is_empty() => {}
                0 => drop(bytes.remove(at)),
                1 => bytes.insert(at, telling),
                2 => bytes[at] = telling,
                _ => bytes[at] = any,
            }
        }
        assert_agreement(&bytes)?;
    }

    #[test]
    fn arbitrary_bytes_are_judged_alike(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        assert_agreement(&bytes)?;
        assert_agreement(&[b"{\"messages\":\"", &bytes[..], b"\"}"].concat())?;
    }

    #[test]
    fn a_body_cut_anywhere_is_refused(body in body(), seed in any::<u64>()) {
        let text = Writer::write(&body, seed);
        let whole = text.trim_end();
        for len in 0..whole.len() {
            prop_assert!(read(chat(), &whole.as_bytes()[..len]).is_err(), "cut at {}", len);
        }
    }
}

/// The kinds of text that JSON parsers are known to disagree on, each as a member's value.
#[test]
fn every_kind_of_doubtful_value_is_judged_by_the_rfc() {
    let accepted: &[&[u8]] = &[
        b"[]",
        b"[ ]",
        b"{}",
        b"[[]   ]",
        b"[1\n]",
        b" [1]",
        b"[\"\"]",
        b"0",
        b"-0",
        b"-1",
        b"1E22",
        b"1e-2",
        b"1E+2",
        b"0e1",
        b"0e+1",
        b"123.456789",
        b"123e65",
        b"1.5e+9999",
        b"-123123123123123123123123123123",
        b"0.000000000000000000000000000000000000000000001",
        b"true",
        b"false",
        b"null",
        b"\"a\"",
        b"\"\x7f\"",
        b"\"\\u0000\"",
        b"\"\\u0012\"",
        b"\"\\u005C\"",
        b"\"\\\"\"",
        b"\"\\\\n\"",
        b"\"\\/\"",
        b"\"\\uDBFF\\uDFFF\"",
        b"\"\\uD83D\"",
        b"\"\\uDE00\\uD83D\"",
        b"\"\\uFFFE\"",
        "\"\u{2028}\u{2029}\"".as_bytes(),
        "\"\u{10ffff}\u{feff}\u{ffff}\"".as_bytes(),
        b"\"/* no comment */\"",
        b"{\"\":0}",
        b"{\"a\":1,\"a\":2}",
        b"{\"\\u0000\":1}",
        b"[null,1,\"1\",{}]",
    ];
    let refused: &[&[u8]] = &[
        b"",
        b" ",
        b"[1 true]",
        b"[1,]",
        b"[,1]",
        b"[1,,2]",
        b"[,]",
        b"[1",
        b"[1,",
        b"1]",
        b"[\"a\"",
        b"[a]",
        b"[\"\": 1]",
        b"[3[4]]",
        b"[*]",
        b"[}",
        b"{]",
        b"{\"a\"}",
        b"{\"a\":}",
        b"{\"a\" 1}",
        b"{\"a\":1,}",
        b"{,\"a\":1}",
        b"{\"a\":1,,\"b\":2}",
        b"{\"a\":1 \"b\":2}",
        b"{\"a\"::1}",
        b"{a:1}",
        b"{'a':1}",
        b"{1:1}",
        b"{null:1}",
        b"{\"a\":\"b\"",
        b"{\"a\":1/**/}",
        b"{\"a\":1//\n}",
        b"{\"a\":1}#",
        b"{\"a\":1}}",
        b"/**/1",
        b"[1]x",
        b"+1",
        b"-",
        b"--1",
        b"01",
        b"-01",
        b"00",
        b"1.",
        b".1",
        b"-.1",
        b"1.e1",
        b"1e",
        b"1e+",
        b"1ee1",
        b"1e1.5",
        b"1.2.3",
        b"0x1",
        b"1_000",
        b"1 000",
        b"1a",
        b"- 1",
        b"NaN",
        b"-NaN",
        b"Infinity",
        b"-Infinity",
        b"inf",
        b"2.e3",
        b"0e",
        b"0.e1",
        "１".as_bytes(),
        "−1".as_bytes(),
        b"1\x00",
        b"0xFF",
        b"1/2",
        b"1+2",
        b"nul",
        b"True",
        b"TRUE",
        b"tru",
        b"truex",
        b"undefined",
        b"nan",
        b"fals",
        b"None",
        b"\"",
        b"\"a",
        b"a",
        b"'a'",
        b"\"\\",
        b"\"\\\"",
        b"\"\\x00\"",
        b"\"\\a\"",
        b"\"\\'\"",
        b"\"\\u\"",
        b"\"\\u00\"",
        b"\"\\u00g0\"",
        b"\"\\U0041\"",
        b"\"\\u{41}\"",
        b"\"\\uD800\\\"",
        b"\"\\uD800\\u\"",
        b"\"\\uD800\\u1\"",
        b"\"\\uD800\\u1x\"",
        b"\"\\\xe5\"",
        b"\"\n\"",
        b"\"\t\"",
        b"\"\x00\"",
        b"\"\x1f\"",
        b"\"a\"b\"",
        b"\"\\ \"",
        b"\\n",
        b"\\u0020\"a\"",
        b"\"\xff\"",
        b"\"\x80\"",
        b"\"\xe9\"",
        b"\"\xc0\xaf\"",
        b"\"\xe0\x80\xaf\"",
        b"\"\xf0\x80\x80\xaf\"",
        b"\"\xed\xa0\x80\"",
        b"\"\xf4\x90\x80\x80\"",
        b"\"\xf5\x80\x80\x80\"",
        b"\"\xfc\x83\xbf\xbf\xbf\xbf\"",
        b"\"\xe4\xbd\"",
        b"\xe5",
        b"\xef\xbb\xbf1",
        b"\x0c1",
        b"\x0b1",
        "\u{a0}1".as_bytes(),
        "\u{2060}1".as_bytes(),
        b"<null>",
        b"[<null>]",
        b"@",
        b"&",
        b"%41",
    ];
    for (values, accept) in [(accepted, true), (refused, false)] {
        for value in values {
            // In a member that is skipped, one that is measured, one that is walked, and as an item within it.
            for (before, after) in [
                ("{\"x\":", "}"),
                ("{\"tools\":", ",\"y\":0}"),
                ("{\"messages\":", "}"),
                ("{\"messages\":[", "]}"),
            ] {
                let item =
                    before.ends_with('[') && value.is_empty() || before.ends_with('[') && value == b" ";
                let body = [before.as_bytes(), value, after.as_bytes()].concat();
                assert_eq!(read(chat(), &body).is_ok(), accept || item, "{}", String::from_utf8_lossy(&body));
            }
        }
    }
}

/// Time grows with the bytes alone. The sizes are such that anything quadratic would take minutes.
#[test]
fn hostile_sizes_take_no_time() {
    let million = 1_000_000;
    for body in [
        format!("{{{}\"a\":1}}", "\"a\":1,".repeat(million)),
        format!("{{\"messages\":[{}0]}}", "{\"content\":[{}]},".repeat(million / 8)),
        format!("{{\"{}\":1}}", "k".repeat(million)),
        format!("{{\"{}\":1}}", "\\u0061".repeat(million)),
        format!("{{\"max_tokens\":{}}}", "9".repeat(million)),
        format!("{{\"max_tokens\":1{}e-{}}}", "0".repeat(million), million),
        format!("{{\"max_tokens\":\"{}1\"}}", "0".repeat(million)),
        format!("{{\"messages\":\"{}\"}}", "\\ud83d".repeat(million)),
        format!("{{\"messages\":\"{}\"}}", "é ".repeat(million)),
        format!("{{\"prompt\":[{}0]}}", "1,".repeat(million)),
    ] {
        for dialect in dialect::ALL {
            assert!(read(dialect, body.as_bytes()).is_ok(), "{}…", &body[..20]);
        }
    }
}
