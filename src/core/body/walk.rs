//! The walk over a body by its dialect's shapes: one pass, an explicit stack, duplicate keys noticed on the way.

use super::backend::Backend;
use super::frame::{Frame, Items, Kind, Source, twice};
use super::holder::Holder;
use super::prompt::Prompt;
use super::scan::{Scanner, bad};
use super::shape::{Rule, Shape};
use super::text::Text;
use super::{Amount, BadBody, Limit};

/// The longest role or name, in characters, as OpenAI bounds them.
const LABEL: u64 = 64;

/// A body being read, and what has been found in it so far.
pub struct Walk<'a> {
    pub(super) scanner: Scanner<'a>,
    pub(super) backend: Backend,
    /// The arrays and objects of shapes that are open, outermost first.
    pub(super) open: Vec<Frame>,
    /// Sources that are open, outermost first.
    pub(super) sources: Vec<Source>,
    pub(super) prompt: Prompt,
    /// The byte offset behind the last media that stood alone.
    pub(super) media_end: usize,
    pub(super) hidden: bool,
    /// Prompts, where they are counted, and the field that they were last counted in.
    pub(super) prompts: (u64, &'static str),
    pub(super) limits: Vec<Limit>,
    pub(super) holders: Vec<Holder>,
    pub(super) min_tokens: Vec<Limit>,
    pub(super) budget: Option<Limit>,
    /// The largest of `n`, `best_of` and their like, and which of them it is.
    pub(super) copies: (u64, &'static str),
    pub(super) stream: Option<bool>,
    pub(super) background: bool,
    pub(super) model: Option<&'a [u8]>,
    pub(super) user: Result<Option<&'a [u8]>, BadBody>,
}

impl<'a> Walk<'a> {
    /// Reads the whole of `body`.
    ///
    /// # Errors
    /// Where it is not one JSON object, or a member that is read cannot be.
    pub fn over(root: &'static Shape, backend: Backend, body: &'a [u8]) -> Result<Walk<'a>, BadBody> {
        let mut walk = Walk {
            scanner: Scanner::new(body),
            backend,
            open: Vec::with_capacity(8),
            sources: Vec::new(),
            prompt: Prompt::default(),
            media_end: 0,
            hidden: false,
            prompts: (0, "prompt"),
            limits: Vec::new(),
            holders: Vec::with_capacity(1),
            min_tokens: Vec::new(),
            budget: None,
            copies: (1, "n"),
            stream: None,
            background: false,
            model: None,
            user: Ok(None),
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

    /// The same where it is no longer than a role or a name, its key's text included, counts nothing.
    fn label(&mut self, key: Text) -> Result<(), BadBody> {
        let before = self.prompt;
        self.prompt.add(key);
        self.text(self.depth())?;
        if self.prompt.chars - before.chars <= LABEL {
            self.prompt = before;
        }
        Ok(())
    }

    fn begin(&mut self, root: &'static Shape) -> Result<(), BadBody> {
        let what = match (self.scanner.token(), self.scanner.bytes()) {
            (Some(b'{'), bytes) => {
                // NUL behind the brace is UTF-16 or UTF-32 in disguise.
                if bytes.get(self.scanner.at() + 1) != Some(&0) {
                    return self.enter("", root, Items::Any);
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
                    let (shape, items) = (frame.shape, frame.items);
                    if items != Items::Any {
                        self.item(items)?;
                    }
                    self.enter("", shape, Items::Any)?;
                    return Ok(true);
                }
            }
            Kind::Object(seen) => {
                let shape = frame.shape;
                if let Some(key) = self.scanner.member(first)? {
                    match shape.find(&key, self.scanner.bytes(), self.backend) {
                        None if shape.loose => self.label(key.text)?,
                        None => self.scanner.skip(self.open.len())?,
                        Some((place, field)) if seen >> place & 1 == 1 => {
                            let twice = twice(&self.open, field.key, &key);
                            let Rule::User = field.rule else { return Err(twice) };
                            self.user = Err(twice);
                            self.scanner.skip(self.open.len())?;
                        }
                        Some((place, field)) => {
                            frame.kind = Kind::Object(seen | 1 << place);
                            self.read(field.key, &field.rule)?;
                        }
                    }
                    return Ok(true);
                }
            }
        }
        self.close(first)?;
        Ok(!self.open.is_empty())
    }

    fn read(&mut self, key: &'static str, rule: &'static Rule) -> Result<(), BadBody> {
        match *rule {
            Rule::Text => return self.text(self.depth()),
            Rule::Label => return self.label(Text::default()),
            Rule::Media => return self.media(),
            Rule::Medias => return self.medias(),
            Rule::KeptMedia => return self.kept_media(),
            Rule::Data => return self.data(),
            Rule::DataType => return self.data_type(),
            Rule::Inside(shape) => return self.enter(key, shape, Items::Any),
            Rule::Each(shape) => {
                self.prompts.1 = key;
                return self.enter(key, shape, Items::Prompts);
            }
            Rule::Instances(shape) => {
                self.prompts.1 = key;
                if self.scanner.token() != Some(b'[') {
                    return Err(self.wrong(key, "an array of objects"));
                }
                return self.enter(key, shape, Items::Instances);
            }
            Rule::Settings(settings) => return self.settings(key, settings),
            Rule::Prompts => return self.prompts(key),
            Rule::Embeds => return self.embeds(),
            Rule::Rows => return self.rows(key),
            Rule::Ids => return self.token_ids(),
            Rule::Limit(name, sway) => return self.output_limit(name, sway),
            Rule::MinTokens(name) => {
                let limit = self.limit(name)?;
                self.min_tokens.push(limit);
            }
            Rule::Budget(name) => self.budget = Some(self.limit(name)?),
            Rule::Copies(name) => {
                if let Amount::Count(copies) = self.limit(name)?.amount
                    && copies > self.copies.0
                {
                    self.copies = (copies, name);
                }
            }
            Rule::Stream => self.stream = self.flag()?,
            Rule::Background => self.background = self.flag()? == Some(true),
            Rule::Hidden => self.hidden |= self.given()?,
            Rule::ItemType => return self.item_type(),
            Rule::Refused => {
                let wrong = self.wrong(key, "left out: the filter could not bound it");
                if self.given()? {
                    return Err(wrong);
                }
            }
            Rule::Model => self.model = self.name()?,
            Rule::User => self.user = Ok(self.name()?),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::core::body::{Backend, BadBody, View, dialect};

    fn read(body: &[u8]) -> Result<View<'_>, BadBody> {
        dialect::read(dialect::ALL[0], Backend::Vllm, body)
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
