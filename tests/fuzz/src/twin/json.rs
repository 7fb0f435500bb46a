//! JSON as a tree, read in the plainest way: by recursion, character by character, keeping what serde_json forgets,
//! which is duplicate keys, numbers as written, lone surrogates and where everything stands.

use std::ops::Range;

/// As deep as a body may be.
const DEPTH: usize = 128;

/// A value and the bytes that it takes.
#[derive(Clone, Debug)]
pub struct Node {
    pub span: Range<usize>,
    pub value: Value,
}

#[derive(Clone, Debug)]
pub enum Value {
    Null,
    Bool(bool),
    /// As written.
    Number(String),
    Text(Text),
    Array(Vec<Node>),
    Object(Vec<(Text, Node)>),
}

/// Code points, lone surrogates among them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text(pub Vec<u32>);

impl Text {
    /// As a key or a word; a lone surrogate is no character of any.
    pub fn word(&self) -> String {
        self.0.iter().map(|code| char::from_u32(*code).unwrap_or('\u{fffd}')).collect()
    }

    pub fn utf8_len(&self) -> u64 {
        self.0.iter().map(|code| char::from_u32(*code).map_or(3, |char| char.len_utf8() as u64)).sum()
    }
}

/// The whole of `bytes` as one value, if it is that.
pub fn parse(bytes: &[u8]) -> Option<Node> {
    let mut parser = Parser { text: std::str::from_utf8(bytes).ok()?, at: 0 };
    let node = parser.value(0)?;
    parser.blank();
    parser.text[parser.at..].is_empty().then_some(node)
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn take(&mut self) -> Option<char> {
        let char = self.peek()?;
        self.at += char.len_utf8();
        Some(char)
    }

    fn takes(&mut self, word: &str) -> bool {
        let found = self.text[self.at..].starts_with(word);
        self.at += if found { word.len() } else { 0 };
        found
    }

    fn blank(&mut self) {
        while matches!(self.peek(), Some(' ' | '\t' | '\r' | '\n')) {
            self.at += 1;
        }
    }

    fn value(&mut self, depth: usize) -> Option<Node> {
        self.blank();
        let start = self.at;
        let value = match self.peek()? {
            '"' => Value::Text(self.string()?),
            '[' if depth < DEPTH => Value::Array(self.array(depth)?),
            '{' if depth < DEPTH => Value::Object(self.object(depth)?),
            '-' | '0'..='9' => Value::Number(self.number()?),
            _ if self.takes("null") => Value::Null,
            _ if self.takes("true") => Value::Bool(true),
            _ if self.takes("false") => Value::Bool(false),
            _ => return None,
        };
        Some(Node { span: start..self.at, value })
    }

    fn array(&mut self, depth: usize) -> Option<Vec<Node>> {
        let mut items = Vec::new();
        self.take();
        self.blank();
        if self.takes("]") {
            return Some(items);
        }
        loop {
            items.push(self.value(depth + 1)?);
            self.blank();
            match self.take()? {
                ',' => {}
                ']' => return Some(items),
                _ => return None,
            }
        }
    }

    fn object(&mut self, depth: usize) -> Option<Vec<(Text, Node)>> {
        let mut members = Vec::new();
        self.take();
        self.blank();
        if self.takes("}") {
            return Some(members);
        }
        loop {
            self.blank();
            if self.peek()? != '"' {
                return None;
            }
            let key = self.string()?;
            self.blank();
            if !self.takes(":") {
                return None;
            }
            members.push((key, self.value(depth + 1)?));
            self.blank();
            match self.take()? {
                ',' => {}
                '}' => return Some(members),
                _ => return None,
            }
        }
    }

    fn digits(&mut self) -> Option<()> {
        let start = self.at;
        while matches!(self.peek(), Some('0'..='9')) {
            self.at += 1;
        }
        (self.at > start).then_some(())
    }

    fn number(&mut self) -> Option<String> {
        let start = self.at;
        self.takes("-");
        if !self.takes("0") {
            self.digits()?;
        }
        if self.takes(".") {
            self.digits()?;
        }
        if self.takes("e") || self.takes("E") {
            let _ = self.takes("+") || self.takes("-");
            self.digits()?;
        }
        Some(self.text[start..self.at].to_owned())
    }

    fn string(&mut self) -> Option<Text> {
        self.take();
        let mut units = Vec::new();
        loop {
            match self.take()? {
                '"' => break,
                '\0'..='\x1f' => return None,
                '\\' => units.push(self.escape()?),
                char => units.push(u32::from(char)),
            }
        }
        Some(Text(join_surrogates(&units)))
    }

    /// What one escape stands for: a code point, or half of one.
    fn escape(&mut self) -> Option<u32> {
        Some(match self.take()? {
            '"' => 0x22,
            '\\' => 0x5c,
            '/' => 0x2f,
            'b' => 0x08,
            'f' => 0x0c,
            'n' => 0x0a,
            'r' => 0x0d,
            't' => 0x09,
            'u' => {
                let mut code = 0;
                for _ in 0..4 {
                    code = code * 16 + self.take()?.to_digit(16)?;
                }
                code
            }
            _ => return None,
        })
    }
}

/// Surrogates only come out of escapes: raw UTF-8 has none.
fn join_surrogates(units: &[u32]) -> Vec<u32> {
    let mut codes: Vec<u32> = Vec::new();
    for &unit in units {
        match codes.last().copied() {
            Some(high @ 0xd800..0xdc00) if (0xdc00..0xe000).contains(&unit) => {
                codes.pop();
                codes.push(0x1_0000 + (high - 0xd800) * 0x400 + (unit - 0xdc00));
            }
            _ => codes.push(unit),
        }
    }
    codes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_json_and_where_it_stands() {
        let node = parse(b" {\"a\" : [1.50, \"\\ud83d\\ude00\\ud83d\"], \"a\": null} ").unwrap();
        let Value::Object(members) = &node.value else { panic!("{node:?}") };
        assert_eq!((node.span.clone(), members.len(), members[0].1.span.clone()), (1..48, 2, 8..36));
        let Value::Array(items) = &members[0].1.value else { panic!("{node:?}") };
        let Value::Text(text) = &items[1].value else { panic!("{node:?}") };
        assert_eq!((text.0.as_slice(), text.utf8_len()), (&[0x1f600, 0xd83d][..], 7));
        for bad in ["", "{", "[1,]", "{\"a\"}", "01", "1.", "+1", "\"\n\"", "nul", "1 2", "\"\\x\""] {
            assert!(parse(bad.as_bytes()).is_none(), "{bad}");
        }
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(parse(nested(128).as_bytes()).is_some() && parse(nested(129).as_bytes()).is_none());
    }
}
