//! What a request says, found by walking over its tree: the naive twin of `sluice`'s one pass over the bytes.

use std::collections::HashSet;
use std::ops::Range;

use super::json::{Node, Text, Value};
use super::number::{Amount, amount};
use sluice::core::body::Backend;

/// Most objects with a limit in one body.
const HOLDERS: usize = 1024;
/// The longest role or name that does not count as text of the prompt, in characters.
const LABEL: u64 = 64;

/// What has been found.
#[derive(Debug, Default)]
pub struct Found {
    pub chars: u64,
    pub utf8_bytes: u64,
    pub token_ids: u64,
    pub media: u64,
    pub prompts: u64,
    pub copies: u64,
    pub hidden: bool,
    pub background: bool,
    pub stream: Option<bool>,
    /// Objects that hold a limit, or have to.
    pub holders: Vec<Holder>,
    pub budget: Option<Limit>,
    /// The fields for which the body has to be refused.
    pub faults: Vec<String>,
    /// Whether `user` comes more than once.
    pub users: bool,
}

/// An object that holds a limit, or has to.
#[derive(Debug)]
pub struct Holder {
    /// Where it has none: the bytes that go, and what is written before and behind the number.
    pub put_in: (Range<usize>, String, String),
    /// The spelling that is put in, and whether a `null` under another name stays.
    pub name: &'static str,
    pub strict: bool,
    pub limits: Vec<Limit>,
    pub minima: Vec<Limit>,
}

/// A limit as it stands.
#[derive(Clone, Debug)]
pub struct Limit {
    pub name: &'static str,
    pub node: Node,
    pub amount: Amount,
    pub kind: Kind,
}

/// What a spelling is to the backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The limit.
    Sure,
    /// To some versions.
    Perhaps,
    /// Not read, but what the client wishes.
    Wish,
}

/// What is done with a member of an object, by its key; whether the key is one that is read.
pub type Member<'f> = &'f dyn Fn(&mut Walk, &str, &Node) -> bool;

/// A walk, and what it has found.
#[derive(Debug)]
pub struct Walk {
    pub backend: Backend,
    pub found: Found,
}

impl Walk {
    pub fn new(backend: Backend) -> Walk {
        Walk { backend, found: Found { copies: 1, ..Found::default() } }
    }

    /// The members of an object, each key as the backend knows it. One that is read may not come twice.
    pub fn members(&mut self, members: &[(Text, Node)], folds: bool, member: Member) {
        let mut seen = HashSet::new();
        for (key, node) in members {
            let key = if folds { self.key(key) } else { key.word() };
            if member(self, &key, node) && !seen.insert(key.clone()) {
                match key.as_str() {
                    "user" => self.found.users = true,
                    _ => self.fault(&key),
                }
            }
        }
    }

    /// As `inside`, where what `knows` none of counts as labels do, its key included.
    pub fn loose(&mut self, node: &Node, knows: &dyn Fn(&str) -> bool, member: Member) {
        match &node.value {
            Value::Array(items) => items.iter().for_each(|item| self.loose(item, knows, member)),
            Value::Object(members) => {
                self.members(members, true, member);
                let strangers: Vec<_> = members.iter().filter(|(key, _)| !knows(&self.key(key))).collect();
                for (key, node) in strangers {
                    let before = (self.found.chars, self.found.utf8_bytes);
                    self.count(key);
                    self.text(node);
                    self.forget_label(before);
                }
            }
            _ => self.text(node),
        }
    }

    /// A key as the backend knows it.
    pub fn key(&self, key: &Text) -> String {
        if self.backend == Backend::Ollama { folded(key) } else { key.word() }
    }

    /// An object, or an array of such, however deep; anything else is text.
    pub fn inside(&mut self, node: &Node, member: Member) {
        match &node.value {
            Value::Array(items) => items.iter().for_each(|item| self.inside(item, member)),
            Value::Object(members) => self.members(members, true, member),
            _ => self.text(node),
        }
    }

    pub fn fault(&mut self, key: &str) {
        self.found.faults.push(key.to_owned());
    }

    /// Text of the prompt: a string's own, nothing for null, the compact JSON of all else.
    pub fn text(&mut self, node: &Node) {
        match &node.value {
            Value::Null => {}
            Value::Text(text) => self.count(text),
            _ => self.compact(node),
        }
    }

    /// A role or a name.
    pub fn label(&mut self, node: &Node) {
        let before = (self.found.chars, self.found.utf8_bytes);
        self.text(node);
        self.forget_label(before);
    }

    fn forget_label(&mut self, before: (u64, u64)) {
        if self.found.chars - before.0 <= LABEL {
            (self.found.chars, self.found.utf8_bytes) = before;
        }
    }

    pub fn media(&mut self, node: &Node) {
        self.found.media += u64::from(!is_null(node));
    }

    /// One media, or a list of such or of lists of such.
    pub fn medias(&mut self, node: &Node) {
        let Value::Array(items) = &node.value else { return self.media(node) };
        for item in items {
            match &item.value {
                Value::Array(inner) => inner.iter().for_each(|item| self.media(item)),
                _ => self.media(item),
            }
        }
    }

    /// A prompt, or a list of prompts.
    pub fn prompts(&mut self, node: &Node) {
        let Value::Array(items) = &node.value else { return self.prompt(node) };
        let before = self.found.prompts;
        let is_number = |item: &&Node| matches!(item.value, Value::Number(_));
        let ids = items.iter().filter(is_number).count() as u64;
        for item in items {
            match &item.value {
                Value::Number(_) => self.found.token_ids += 1,
                Value::Array(inner) => {
                    self.found.prompts += 1;
                    self.ids(inner);
                }
                _ => self.prompt(item),
            }
        }
        self.found.prompts += u64::from(ids > 0);
        if ids > 0 && self.backend == Backend::LlamaCpp {
            self.found.prompts = before + 1;
        }
    }

    /// Token ids that are no prompt of their own, or rows of numbers.
    pub fn token_ids(&mut self, node: &Node) {
        match &node.value {
            Value::Array(items) => self.ids(items),
            _ => self.text(node),
        }
    }

    /// A prompt in rows of numbers, a row a token, or a list of such prompts.
    pub fn rows(&mut self, node: &Node) {
        let Value::Array(items) = &node.value else { return self.text(node) };
        let mut rows = 0;
        for item in items {
            match &item.value {
                Value::Array(row) if matches!(row.first(), Some(Node { value: Value::Array(_), .. })) => {
                    self.found.prompts += 1;
                    self.ids(row);
                }
                Value::Array(_) => rows += 1,
                _ => self.text(item),
            }
        }
        self.found.prompts += u64::from(rows > 0);
        self.found.token_ids += rows;
    }

    /// Token ids or rows, and text among them.
    fn ids(&mut self, items: &[Node]) {
        for item in items {
            match item.value {
                Value::Number(_) | Value::Array(_) => self.found.token_ids += 1,
                _ => self.text(item),
            }
        }
    }

    pub fn embeds(&mut self, node: &Node) {
        let all = if let Value::Array(items) = &node.value { &items[..] } else { std::slice::from_ref(node) };
        let some = all.iter().filter(|item| !is_null(item)).count() as u64;
        self.found.prompts += some;
        self.found.media += some;
    }

    fn prompt(&mut self, node: &Node) {
        self.found.prompts += u64::from(!is_null(node));
        match &node.value {
            Value::Number(_) => self.found.token_ids += 1,
            Value::Object(members) => {
                for (key, node) in members {
                    if key.word() == "multimodal_data" { self.medias(node) } else { self.text(node) }
                }
            }
            _ => self.text(node),
        }
    }

    /// An output limit in the innermost holder, known by `name`.
    pub fn limit(&mut self, name: &'static str, node: &Node, kind: Kind, settings: bool) {
        let Some(said) = amount(node) else {
            // What nobody reads is no fault.
            return if kind == Kind::Wish {
            } else {
                self.fault(name)
            };
        };
        let low = matches!(said, Amount::Zero | Amount::Negative);
        let amount = match self.backend {
            _ if kind == Kind::Wish || !low => said,
            Backend::Sglang if !settings => return self.fault(name),
            Backend::Ollama => Amount::Count(u64::MAX),
            Backend::LlamaCpp if said == Amount::Negative || is_text(node) => Amount::Count(u64::MAX),
            _ => said,
        };
        let limit = Limit { name, node: node.clone(), amount, kind };
        if let Some(holder) = self.found.holders.last_mut() {
            holder.limits.push(limit);
        }
    }

    pub fn minimum(&mut self, name: &'static str, node: &Node) {
        match (amount(node), self.found.holders.last_mut()) {
            (Some(amount), Some(holder)) => {
                holder.minima.push(Limit { name, node: node.clone(), amount, kind: Kind::Sure });
            }
            _ => self.fault(name),
        }
    }

    pub fn budget(&mut self, name: &'static str, node: &Node) {
        match amount(node) {
            Some(amount) => {
                self.found.budget = Some(Limit { name, node: node.clone(), amount, kind: Kind::Sure });
            }
            None => self.fault(name),
        }
    }

    pub fn copies(&mut self, name: &'static str, node: &Node) {
        match amount(node) {
            Some(Amount::Count(copies)) => self.found.copies = self.found.copies.max(copies),
            Some(_) => {}
            None => self.fault(name),
        }
    }

    /// A new innermost holder.
    pub fn hold(&mut self, put_in: (Range<usize>, String, String), name: &'static str, strict: bool) {
        if self.found.holders.len() == HOLDERS {
            self.fault(name);
        }
        self.found.holders.push(Holder { put_in, name, strict, limits: Vec::new(), minima: Vec::new() });
    }

    fn count(&mut self, text: &Text) {
        self.found.chars += text.0.len() as u64;
        self.found.utf8_bytes += text.utf8_len();
    }

    fn ascii(&mut self, len: usize) {
        self.found.chars += len as u64;
        self.found.utf8_bytes += len as u64;
    }

    /// JSON without white space, strings as they read.
    fn compact(&mut self, node: &Node) {
        match &node.value {
            Value::Null => self.ascii(4),
            Value::Bool(flag) => self.ascii(flag.to_string().len()),
            Value::Number(number) => self.ascii(number.len()),
            Value::Text(text) => {
                self.count(text);
                self.ascii(2);
            }
            Value::Array(items) => {
                items.iter().for_each(|item| self.compact(item));
                self.ascii(2 + items.len().saturating_sub(1));
            }
            Value::Object(members) => {
                for (key, node) in members {
                    self.count(key);
                    self.compact(node);
                }
                self.ascii(2 + members.len() * 3 + members.len().saturating_sub(1));
            }
        }
    }
}

pub fn is_null(node: &Node) -> bool {
    matches!(node.value, Value::Null)
}

pub fn is_text(node: &Node) -> bool {
    matches!(node.value, Value::Text(_))
}

/// Whether pydantic takes it for true; `None` for null.
pub fn flag(node: &Node) -> Option<bool> {
    Some(match &node.value {
        Value::Null => return None,
        Value::Bool(flag) => *flag,
        Value::Number(_) => amount(node) == Some(Amount::Count(1)),
        Value::Text(text) => {
            let word = text.word().to_ascii_lowercase();
            ["true", "t", "yes", "y", "on", "1"].contains(&word.as_str())
        }
        _ => false,
    })
}

/// A key as Go compares it.
fn folded(key: &Text) -> String {
    let fold = |char| match char {
        '\u{212a}' => 'k',
        '\u{17f}' => 's',
        _ => char.to_ascii_lowercase(),
    };
    key.word().chars().map(fold).collect()
}
