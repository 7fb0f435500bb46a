//! A strict scanner of RFC 8259 over bytes: a cursor that checks, skips and measures. Never recursive.

use super::string::{self, Str};
use super::text::Text;
use super::{BadBody, number};

/// Deepest nesting of arrays and objects that is read.
pub const MAX_DEPTH: usize = 128;

/// A place in a body. Everything before it has been checked, and what is not part of its compact text counted: so the
/// text between two places is measured by the distance alone, and what is only skipped costs no sums.
#[derive(Clone, Debug)]
pub struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Bytes that are white space, or that escapes take more than what they stand for.
    slack: usize,
    /// Bytes of the compact text that only continue a character.
    continuations: usize,
}

impl<'a> Scanner<'a> {
    /// The start of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Scanner<'a> {
        Scanner { bytes, at: 0, slack: 0, continuations: 0 }
    }

    /// The whole body.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The byte offset of what comes next.
    pub fn at(&self) -> usize {
        self.at
    }

    /// The first byte behind white space, not yet taken; `None` at the end of the body.
    #[inline(always)]
    pub fn token(&mut self) -> Option<u8> {
        let byte = self.bytes.get(self.at).copied();
        if !matches!(byte, Some(b' ' | b'\n' | b'\t' | b'\r')) {
            return byte;
        }
        let blank = blank_run(self.bytes, self.at);
        self.slack += blank;
        self.at += blank;
        self.bytes.get(self.at).copied()
    }

    /// Takes the one byte that [`token`](Self::token) has shown.
    #[inline(always)]
    pub fn take(&mut self) {
        self.at += 1;
    }

    /// Takes a string; its opening quote comes next.
    ///
    /// # Errors
    /// Where it is not a string of RFC 8259 in UTF-8.
    #[inline(always)]
    pub fn string(&mut self) -> Result<Str, BadBody> {
        let string = string::read(self.bytes, self.at + 1).map_err(|(at, what)| bad(at, what))?;
        self.slack += string.inside.len() - string.text.bytes;
        self.continuations += string.text.bytes - string.text.chars;
        self.at = string.inside.end + 1;
        Ok(string)
    }

    /// Takes a number and returns its text.
    ///
    /// # Errors
    /// Where it is not a number of RFC 8259.
    #[inline(always)]
    pub fn number(&mut self) -> Result<&'a [u8], BadBody> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let len = number::len(rest)
            .ok_or_else(|| bad(self.at, "a number is not written as JSON writes numbers"))?;
        self.at += len;
        Ok(rest.get(..len).unwrap_or_default())
    }

    /// Within an array: moves to the next item (true) or takes the closing bracket (false). `first` says whether the
    /// opening bracket was the last thing taken.
    ///
    /// # Errors
    /// Where neither comes next.
    #[inline(always)]
    pub fn item(&mut self, first: bool) -> Result<bool, BadBody> {
        match self.token() {
            Some(b']') => {
                self.take();
                Ok(false)
            }
            Some(b',') if !first => {
                self.take();
                match self.token() {
                    Some(b']') => Err(bad(self.at, "an array ends with a comma")),
                    _ => Ok(true),
                }
            }
            Some(_) if first => Ok(true),
            Some(_) => Err(bad(self.at, "a comma or a closing bracket is missing in an array")),
            None => Err(bad(self.at, "the body ends within an array")),
        }
    }

    /// Within an object: takes the next member's key and colon, or the closing brace (`None`). `first` as for
    /// [`item`](Self::item).
    ///
    /// # Errors
    /// Where neither comes next.
    #[inline(always)]
    pub fn member(&mut self, first: bool) -> Result<Option<Str>, BadBody> {
        let mut token = self.token();
        if token == Some(b'}') {
            self.take();
            return Ok(None);
        }
        if !first && token.is_some() {
            if token != Some(b',') {
                return Err(bad(self.at, "a comma or a closing brace is missing in an object"));
            }
            self.take();
            token = self.token();
        }
        if token != Some(b'"') {
            let what = match token {
                Some(_) => "a member of an object does not begin with a key in double quotes",
                None => "the body ends within an object",
            };
            return Err(bad(self.at, what));
        }
        let key = self.string()?;
        if self.token() != Some(b':') {
            return Err(bad(self.at, "a colon is missing behind a key"));
        }
        self.take();
        Ok(Some(key))
    }

    /// Takes any value and returns the length of its compact text: no white space, strings unescaped between their
    /// quotes, numbers as written. `depth` = how many arrays and objects are open around it.
    ///
    /// # Errors
    /// Where no value of RFC 8259 comes next, or nesting goes over [`MAX_DEPTH`].
    pub fn value(&mut self, depth: usize) -> Result<Text, BadBody> {
        self.token();
        let start = self.clone();
        self.skip(depth)?;
        let bytes = (self.at - start.at) - (self.slack - start.slack);
        Ok(Text { chars: bytes - (self.continuations - start.continuations), bytes })
    }

    /// The same unmeasured.
    ///
    /// # Errors
    /// As for [`value`](Self::value).
    pub fn skip(&mut self, depth: usize) -> Result<(), BadBody> {
        // A copy, which the compiler keeps in registers.
        let mut here = self.clone();
        let mut open = Open { objects: 0, depth, outer: depth };
        loop {
            let mut first = false;
            match here.token() {
                Some(b'"') => {
                    here.string()?;
                }
                Some(byte @ (b'{' | b'[')) => {
                    open.push(byte == b'{').ok_or_else(|| too_deep(here.at))?;
                    here.take();
                    first = true;
                }
                Some(b'-' | b'0'..=b'9') => {
                    here.number()?;
                }
                _ => {
                    here.literal()?;
                }
            }
            loop {
                let more = match open.innermost() {
                    None => {
                        *self = here;
                        return Ok(());
                    }
                    Some(Kind::Array) => here.item(first)?,
                    Some(Kind::Object) => here.member(first)?.is_some(),
                };
                if more {
                    break;
                }
                open.pop();
                first = false;
            }
        }
    }

    /// Takes `true`, `false` or `null` and returns it.
    ///
    /// # Errors
    /// Where none of the three comes next: the last resort of every reader, so this also says that no value came.
    #[inline(always)]
    pub fn literal(&mut self) -> Result<&'static str, BadBody> {
        let literal = literal(self.bytes, self.at)?;
        self.at += literal.len();
        Ok(literal)
    }
}

fn literal(bytes: &[u8], at: usize) -> Result<&'static str, BadBody> {
    let what = match bytes.get(at..).unwrap_or_default() {
        [b'n', b'u', b'l', b'l', ..] => return Ok("null"),
        [b't', b'r', b'u', b'e', ..] => return Ok("true"),
        [b'f', b'a', b'l', b's', b'e', ..] => return Ok("false"),
        [] => "the body ends where a value is due",
        _ => "a value is missing; allowed are objects, arrays, strings, numbers, true, false and null",
    };
    Err(bad(at, what))
}

/// How many bytes from `at` on are white space.
fn blank_run(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    rest.iter().take_while(|byte| matches!(byte, b' ' | b'\n' | b'\t' | b'\r')).count()
}

/// A fault of the text itself, with no field to blame.
#[cold]
pub fn bad(at: usize, what: &str) -> BadBody {
    BadBody { at, param: None, message: what.to_owned() }
}

/// Nesting over the limit.
#[cold]
pub fn too_deep(at: usize) -> BadBody {
    BadBody { at, param: None, message: format!("arrays and objects are nested over {MAX_DEPTH} levels") }
}

/// The arrays and objects open within one value, a bit each: no allocation, whatever the depth.
struct Open {
    /// From the innermost (bit 0) outwards: 1 = object.
    objects: u128,
    depth: usize,
    /// What was open around the value.
    outer: usize,
}

enum Kind {
    Array,
    Object,
}

impl Open {
    fn push(&mut self, object: bool) -> Option<()> {
        if self.depth >= MAX_DEPTH {
            return None;
        }
        self.objects = self.objects << 1 | u128::from(object);
        self.depth += 1;
        Some(())
    }

    fn pop(&mut self) {
        self.objects >>= 1;
        self.depth -= 1;
    }

    fn innermost(&self) -> Option<Kind> {
        match self.depth > self.outer {
            true if self.objects & 1 == 1 => Some(Kind::Object),
            true => Some(Kind::Array),
            false => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_as_long_as_its_compact_text() {
        for (json, compact) in [
            ("0", "0"),
            (" -1.50e3 ", "-1.50e3"),
            (r#" "\u4f60\n" "#, "\"你\n\""),
            ("[ ]", "[]"),
            ("{ }", "{}"),
            ("[ 1 , [ ] , { } , null ]", "[1,[],{},null]"),
            (
                "{ \"a\" : [ true , false ] , \"\\u0062\" : { \"c\" : \"d\" } }",
                "{\"a\":[true,false],\"b\":{\"c\":\"d\"}}",
            ),
        ] {
            let mut scanner = Scanner::new(json.as_bytes());
            let want = Text { chars: compact.chars().count(), bytes: compact.len() };
            assert_eq!(scanner.value(0), Ok(want), "{json}");
            assert_eq!(scanner.token(), None, "{json}");
        }
    }

    #[test]
    fn depth_counts_what_is_open_around() {
        let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        assert!(Scanner::new(nested(MAX_DEPTH).as_bytes()).value(0).is_ok());
        assert_eq!(Scanner::new(nested(MAX_DEPTH + 1).as_bytes()).value(0), Err(too_deep(MAX_DEPTH)));
        assert!(Scanner::new(b"[1]").value(MAX_DEPTH - 1).is_ok());
        assert_eq!(Scanner::new(b"[1]").value(MAX_DEPTH), Err(too_deep(0)));
        assert!(Scanner::new(b"1").value(MAX_DEPTH).is_ok());
    }

    #[test]
    fn a_fault_says_where_it_is() {
        for (json, at) in [
            ("", 0),
            ("  ", 2),
            ("[1,]", 3),
            ("[1 2]", 3),
            ("{\"a\" 1}", 5),
            ("{\"a\":1,}", 7),
            ("\"a\\x\"", 2),
            ("[tru]", 1),
            ("[01]", 1),
        ] {
            let bad = Scanner::new(json.as_bytes()).value(0).unwrap_err();
            assert_eq!(bad.at, at, "{json}: {}", bad.message);
        }
    }
}
