//! The walk over a body by its dialect's shapes: one pass, an explicit stack, duplicate keys noticed on the way.

use super::escape::unescape;
use super::prompt::Prompt;
use super::scan::{MAX_DEPTH, Scanner, bad, too_deep};
use super::shape::{Rule, Shape};
use super::string::Str;
use super::{Amount, BadBody, Insertion, Limit};

/// A body being read, and what has been found in it so far.
pub struct Walk<'a> {
    pub(super) scanner: Scanner<'a>,
    /// The arrays and objects of shapes that are open, outermost first.
    open: Vec<Frame>,
    pub(super) prompt: Prompt,
    /// Prompts, where they are counted.
    pub(super) prompts: u64,
    pub(super) limits: Vec<Limit>,
    pub(super) min_tokens: Option<Limit>,
    /// The largest of `n` and `best_of`, and which of them it is.
    pub(super) copies: (u64, &'static str),
    pub(super) stream: bool,
    pub(super) model: Option<&'a [u8]>,
    pub(super) user: Result<Option<&'a [u8]>, BadBody>,
    pub(super) insertion: Insertion,
}

/// An array or object that is open.
struct Frame {
    shape: &'static Shape,
    /// The key that led here; empty for the body itself and for items.
    key: &'static str,
    kind: Kind,
    /// Whether nothing has been read of it.
    first: bool,
}

enum Kind {
    /// With the index of the next item.
    Array(usize),
    /// With a bit for each of the shape's fields that has come.
    Object(u64),
}

impl<'a> Walk<'a> {
    /// Reads the whole of `body`.
    ///
    /// # Errors
    /// Where it is not one JSON object, or a member that is read cannot be.
    pub fn over(root: &'static Shape, body: &'a [u8]) -> Result<Walk<'a>, BadBody> {
        let mut walk = Walk {
            scanner: Scanner::new(body),
            open: Vec::with_capacity(8),
            prompt: Prompt::default(),
            prompts: 0,
            limits: Vec::new(),
            min_tokens: None,
            copies: (1, "n"),
            stream: false,
            model: None,
            user: Ok(None),
            insertion: Insertion { at: 0, empty: false },
        };
        walk.begin(root)?;
        while walk.step()? {}
        match walk.scanner.token() {
            None => Ok(walk),
            Some(_) => Err(bad(walk.scanner.at(), "something follows behind the JSON object")),
        }
    }

    /// How many arrays and objects are open.
    pub(super) fn depth(&self) -> usize {
        self.open.len()
    }

    /// Counts the next value as text: a string's own, nothing for `null`, else its compact JSON. `depth` = how many
    /// arrays and objects are open around it.
    pub(super) fn text(&mut self, depth: usize) -> Result<(), BadBody> {
        let text = match self.scanner.token() {
            Some(b'"') => self.scanner.string()?.text,
            Some(b'n') => {
                self.scanner.literal()?;
                return Ok(());
            }
            _ => self.scanner.value(depth)?,
        };
        self.prompt.add(text);
        Ok(())
    }

    fn begin(&mut self, root: &'static Shape) -> Result<(), BadBody> {
        let what = match (self.scanner.token(), self.scanner.bytes()) {
            (Some(b'{'), bytes) => {
                self.scanner.take();
                let at = self.scanner.at();
                // A peek only: the members are checked by the walk.
                let empty = Scanner::clone(&self.scanner).token() == Some(b'}');
                self.insertion = Insertion { at, empty };
                self.open.push(Frame { shape: root, key: "", kind: Kind::Object(0), first: true });
                // NUL behind the brace is UTF-16 or UTF-32 in disguise.
                if bytes.get(at) != Some(&0) {
                    return Ok(());
                }
                "the body is not UTF-8"
            }
            (None, _) => "the body is empty; a JSON object is due",
            (_, [0xef, 0xbb, 0xbf, ..]) => "the body begins with a byte order mark; plain UTF-8 is due",
            (_, [0xfe, 0xff, ..] | [0xff, 0xfe, ..] | [0, ..]) => "the body is not UTF-8",
            _ => "the body is not a JSON object",
        };
        Err(bad(0, what))
    }

    /// Moves on by one item or member, or closes what has no more; false once everything is closed.
    fn step(&mut self) -> Result<bool, BadBody> {
        let Some(frame) = self.open.last_mut() else { return Ok(false) };
        let first = std::mem::take(&mut frame.first);
        match frame.kind {
            Kind::Array(index) => {
                if self.scanner.item(first)? {
                    frame.kind = Kind::Array(index + 1);
                    let shape = frame.shape;
                    self.enter("", shape)?;
                    return Ok(true);
                }
            }
            Kind::Object(seen) => {
                let shape = frame.shape;
                if let Some(key) = self.scanner.member(first)? {
                    match find(shape, &key, self.scanner.bytes()) {
                        None => drop(self.scanner.value(self.open.len())?),
                        Some((place, rule)) if seen >> place & 1 == 1 => {
                            let twice = self.twice(shape, place, &key);
                            let Rule::User = rule else { return Err(twice) };
                            self.user = Err(twice);
                            self.scanner.value(self.open.len())?;
                        }
                        Some((place, rule)) => {
                            frame.kind = Kind::Object(seen | 1 << place);
                            let name = shape.fields.get(place).map_or("", |field| field.key);
                            self.read(name, rule)?;
                        }
                    }
                    return Ok(true);
                }
            }
        }
        self.open.pop();
        Ok(!self.open.is_empty())
    }

    fn read(&mut self, key: &'static str, rule: Rule) -> Result<(), BadBody> {
        match rule {
            Rule::Text => self.text(self.depth()),
            Rule::Media => self.media(),
            Rule::Inside(shape) => self.enter(key, shape),
            Rule::Prompts => self.prompts(),
            Rule::Embeds => self.embeds(),
            Rule::Limit(name) => {
                let limit = self.limit(name)?;
                self.limits.push(limit);
                Ok(())
            }
            Rule::MinTokens(name) => {
                self.min_tokens = Some(self.limit(name)?);
                Ok(())
            }
            Rule::Copies(name) => {
                if let Amount::Count(copies) = self.limit(name)?.amount
                    && copies > self.copies.0
                {
                    self.copies = (copies, name);
                }
                Ok(())
            }
            Rule::Stream => self.stream(),
            Rule::Model => {
                self.model = self.name()?;
                Ok(())
            }
            Rule::User => {
                self.user = Ok(self.name()?);
                Ok(())
            }
        }
    }

    /// Opens an array or object of `shape`; anything else is text.
    fn enter(&mut self, key: &'static str, shape: &'static Shape) -> Result<(), BadBody> {
        let kind = match self.scanner.token() {
            Some(b'[') => Kind::Array(0),
            Some(b'{') => Kind::Object(0),
            _ => return self.text(self.depth()),
        };
        if self.open.len() >= MAX_DEPTH {
            return Err(too_deep(self.scanner.at()));
        }
        self.scanner.take();
        self.open.push(Frame { shape, key, kind, first: true });
        Ok(())
    }

    #[cold]
    fn twice(&self, shape: &Shape, place: usize, key: &Str) -> BadBody {
        let mut path = String::new();
        for frame in &self.open {
            dot(&mut path, frame.key);
            if let Kind::Array(next) = frame.kind {
                path.push_str(&format!("[{}]", next.saturating_sub(1)));
            }
        }
        dot(&mut path, shape.fields.get(place).map_or("", |field| field.key));
        let message = format!("{path} is given twice; once is allowed");
        BadBody { at: key.inside.start.saturating_sub(1), param: Some(path), message }
    }
}

fn dot(path: &mut String, key: &str) {
    if !path.is_empty() && !key.is_empty() {
        path.push('.');
    }
    path.push_str(key);
}

/// The field of `shape` that `key` names, whatever its spelling: its place and its rule.
#[inline]
fn find(shape: &Shape, key: &Str, body: &[u8]) -> Option<(usize, Rule)> {
    let spelled = body.get(key.inside.clone()).unwrap_or_default();
    let len = key.text.bytes;
    let named = |name: &str| {
        name.len() == len
            && if key.is_escaped() { unescape(spelled).eq(name.bytes()) } else { spelled == name.as_bytes() }
    };
    shape
        .fields
        .iter()
        .enumerate()
        .find(|(_, field)| named(field.key))
        .map(|(place, field)| (place, field.rule))
}

#[cfg(test)]
mod tests {
    use crate::core::body::{BadBody, View, dialect};

    fn read(body: &[u8]) -> Result<View<'_>, BadBody> {
        dialect::read(dialect::ALL[0], body)
    }

    #[test]
    fn a_key_that_is_read_may_not_come_twice() {
        for (body, param) in [
            (r#"{"max_tokens":1,"max_tokens":1}"#, "max_tokens"),
            (r#"{"max_tokens":1,"max\u005ftokens":1}"#, "max_tokens"),
            (r#"{"messages":[],"\u006dessages":[]}"#, "messages"),
            (r#"{"messages":[{"content":"a"},{"content":"a","content":"b"}]}"#, "messages[1].content"),
            (r#"{"messages":[{"content":["a",{"text":"a","text":"b"}]}]}"#, "messages[0].content[1].text"),
            (
                r#"{"messages":[{"tool_calls":[{"function":{"arguments":"","arguments":""}}]}]}"#,
                "messages[0].tool_calls[0].function.arguments",
            ),
        ] {
            let bad = read(body.as_bytes()).unwrap_err();
            assert_eq!(bad.param.as_deref(), Some(param), "{body}");
            assert!(body[bad.at..].starts_with('"'), "{body}");
        }
        for body in
            [r#"{"a":1,"a":2}"#, r#"{"tools":[{"a":1,"a":1}],"metadata":{"max_tokens":1,"max_tokens":2}}"#]
        {
            assert!(read(body.as_bytes()).is_ok(), "{body}");
        }
    }

    #[test]
    fn only_one_utf8_object_is_a_body() {
        for (body, says) in [
            (&b""[..], "empty"),
            (b" \n ", "empty"),
            (b"[]", "not a JSON object"),
            (b"\"x\"", "not a JSON object"),
            (b"null", "not a JSON object"),
            (b"{} {}", "follows"),
            (b"{}x", "follows"),
            (b"\xef\xbb\xbf{}", "byte order mark"),
            (b"\xff\xfe{\0}\0", "not UTF-8"),
            (b"{\0}\0", "not UTF-8"),
            (b"\0\0\0{\0\0\0}", "not UTF-8"),
            (b"{", "ends within"),
        ] {
            let bad = read(body).unwrap_err();
            assert!(bad.message.contains(says), "{body:x?}: {}", bad.message);
            assert_eq!(bad.param, None);
        }
        assert!(read(b" \t\r\n{ } \n").is_ok());
    }

    #[test]
    fn depth_is_bounded_wherever_it_grows() {
        // The levels are: the body, then as many as `fill` is repeated, the rest being around it.
        for (before, open, close, after, around) in [
            ("{\"x\":", "[", "]", "}", 1),
            ("{\"x\":", "{\"y\":", "}", "}", 1),
            ("{\"tools\":", "[", "]", "}", 1),
            ("{\"messages\":", "[", "]", "}", 1),
            ("{\"messages\":[{\"content\":", "{\"content\":", "}", "}]}", 3),
        ] {
            let body =
                |levels: usize| format!("{before}{}0{}{after}", open.repeat(levels), close.repeat(levels));
            assert!(read(body(128 - around).as_bytes()).is_ok(), "{before}{open}");
            let bad = read(body(129 - around).as_bytes()).unwrap_err();
            assert!(bad.message.contains("128"), "{before}{open}: {}", bad.message);
            assert!(read(body(100_000).as_bytes()).is_err());
        }
    }
}
