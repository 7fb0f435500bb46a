//! Single values of a body: media, limits, flags.

use std::ops::Range;

use super::escape::unescape;
use super::frame::Source;
use super::shape::Sway;
use super::walk::Walk;
use super::{Amount, BadBody, Limit, number};

impl Walk<'_> {
    /// Skips the next value; whether it is other than `null`.
    pub(super) fn given(&mut self) -> Result<bool, BadBody> {
        let given = self.scanner.token() != Some(b'n');
        self.scanner.skip(self.depth())?;
        Ok(given)
    }

    /// One media, unless it is `null`.
    pub(super) fn media(&mut self) -> Result<(), BadBody> {
        if self.given()? {
            self.prompt.media += 1;
            self.media_end = self.scanner.at();
        }
        Ok(())
    }

    /// The name of one that may not have to be sent again.
    pub(super) fn kept_media(&mut self) -> Result<(), BadBody> {
        if self.given()? {
            self.source(|source| source.kept = true);
        }
        Ok(())
    }

    /// A string that may turn out to be text once the object around it is closed.
    pub(super) fn data(&mut self) -> Result<(), BadBody> {
        if self.scanner.token() != Some(b'"') {
            return self.media();
        }
        let text = self.scanner.string()?.text;
        self.source(|source| source.data = Some(text));
        Ok(())
    }

    /// What decides that.
    pub(super) fn data_type(&mut self) -> Result<(), BadBody> {
        let plain = self.name()?.is_some_and(|name| unescape(name).eq(*b"text"));
        self.source(|source| source.plain = plain);
        Ok(())
    }

    /// Whether an item stands for what the server keeps.
    pub(super) fn item_type(&mut self) -> Result<(), BadBody> {
        self.hidden |= self.name()?.is_some_and(|name| unescape(name).eq(*b"item_reference"));
        Ok(())
    }

    /// Notes something of the innermost object, which is a source.
    fn source(&mut self, note: impl FnOnce(&mut Source)) {
        let depth = self.depth();
        match self.sources.last_mut().filter(|source| source.depth == depth) {
            Some(source) => note(source),
            None => {
                let mut source = Source { depth, data: None, plain: false, kept: false };
                note(&mut source);
                self.sources.push(source);
            }
        }
    }

    /// An output limit under one of its names.
    pub(super) fn output_limit(&mut self, name: &'static str, sway: Sway) -> Result<(), BadBody> {
        if sway == Sway::Wish {
            // The backend does not look at it, so whatever it is, it is no fault.
            let (span, amount, _) = self.amount()?;
            let limit = amount.map(|amount| self.limit_of(name, span, amount));
            self.limits.extend(limit.map(|limit| Limit { sway, ..limit }));
            return Ok(());
        }
        let limit = self.limit(name)?;
        let settings = self.open.last().is_some_and(|frame| frame.shape.settings);
        let low = self.backend.low(limit.amount, limit.quoted, settings).ok_or_else(|| BadBody {
            at: limit.span.start,
            param: Some(name.to_owned()),
            message: format!("{name} must be 1 or more; less would be no limit to the server"),
        });
        self.limits.push(Limit { amount: low?, sway, ..limit });
        Ok(())
    }

    /// A value that a backend reads as a whole number.
    pub(super) fn limit(&mut self, name: &'static str) -> Result<Limit, BadBody> {
        let (span, amount, what) = self.amount()?;
        let amount = amount.ok_or_else(|| BadBody {
            at: span.start,
            param: Some(name.to_owned()),
            message: format!("{name} must be a whole number or null; {what}"),
        })?;
        Ok(self.limit_of(name, span, amount))
    }

    fn limit_of(&self, name: &'static str, span: Range<usize>, amount: Amount) -> Limit {
        let quoted = self.scanner.bytes().get(span.start) == Some(&b'"');
        let holder = self.open.last().map_or(0, |frame| frame.mark);
        Limit { name, span, amount, quoted, sway: Sway::Set, holder }
    }

    /// The next value as a number: where it stands, what it says, and what is wrong where it says nothing.
    fn amount(&mut self) -> Result<(Range<usize>, Option<Amount>, &'static str), BadBody> {
        let token = self.scanner.token();
        let start = self.scanner.at();
        let (amount, what) = match token {
            Some(b'"') => {
                let string = self.scanner.string()?;
                let inside = self.scanner.bytes().get(string.inside).unwrap_or_default();
                (number::quoted_amount(inside), "this one is a string that is none")
            }
            Some(b'-' | b'0'..=b'9') => (number::amount(self.scanner.number()?), "this one has a fraction"),
            Some(b'[' | b'{') => {
                self.scanner.skip(self.depth())?;
                (None, "this one is an array or object")
            }
            _ => match self.scanner.literal()? {
                "null" => (Some(Amount::Unset), ""),
                _ => (None, "this one is true or false"),
            },
        };
        Ok((start..self.scanner.at(), amount, what))
    }

    /// What pydantic takes for true; `None` for `null`; all else is false here, and the backend's to refuse.
    pub(super) fn flag(&mut self) -> Result<Option<bool>, BadBody> {
        let flag = match self.scanner.token() {
            Some(b't') => self.scanner.literal()? == "true",
            Some(b'-' | b'0'..=b'9') => number::amount(self.scanner.number()?) == Some(Amount::Count(1)),
            Some(b'"') => {
                let string = self.scanner.string()?;
                let inside = self.scanner.bytes().get(string.inside).unwrap_or_default();
                let is =
                    |word: &&str| unescape(inside).map(|byte| byte.to_ascii_lowercase()).eq(word.bytes());
                ["true", "t", "yes", "y", "on", "1"].iter().any(is)
            }
            _ => return Ok(self.given()?.then_some(false)),
        };
        Ok(Some(flag))
    }
}

#[cfg(test)]
mod tests {
    use crate::core::body::{Amount, BACKENDS, Backend, BadBody, View, dialect};

    fn read(body: &str) -> Result<View<'_>, BadBody> {
        dialect::read(dialect::ALL[0], Backend::Vllm, body.as_bytes())
    }

    #[test]
    fn a_limit_is_a_whole_number_or_null() {
        for (value, amount, quoted) in [
            ("7", Amount::Count(7), false),
            ("1e3", Amount::Count(1000), false),
            ("\" 7 \"", Amount::Count(7), true),
            ("null", Amount::Unset, false),
            ("-3", Amount::Negative, false),
            ("0.0", Amount::Zero, false),
        ] {
            let body = format!("{{\"max_tokens\" : {value} }}");
            let view = read(&body).unwrap();
            let [limit] = &view.limits[..] else { panic!("{body}") };
            assert_eq!((limit.amount, limit.quoted, &body[limit.span.clone()]), (amount, quoted, value));
        }
        for field in ["max_tokens", "max_completion_tokens", "min_tokens", "n", "best_of"] {
            for value in ["1.5", "true", "false", "[]", "[5]", "{}", "\"\"", "\"abc\"", "\"1e3\"", "\"1.5\""]
            {
                let body = format!("{{\"a\":1,\"{field}\":{value}}}");
                let bad = read(&body).unwrap_err();
                assert_eq!(bad.param.as_deref(), Some(field), "{body}");
                assert_eq!(bad.at, body.len() - 1 - value.len(), "{body}");
                assert!(bad.message.contains("whole number"), "{}", bad.message);
            }
        }
    }

    #[test]
    fn copies_that_are_not_positive_count_as_one() {
        for (members, sequences, param) in [
            ("", 1, "n"),
            ("\"n\":3", 3, "n"),
            ("\"n\":null", 1, "n"),
            ("\"n\":0", 1, "n"),
            ("\"n\":-5,\"best_of\":2", 2, "best_of"),
            ("\"best_of\":2,\"n\":\"4\"", 4, "n"),
            ("\"n\":1e400", u64::MAX, "n"),
        ] {
            let body = format!("{{{members}}}");
            let view = read(&body).unwrap();
            assert_eq!((view.sequences, view.sequences_param), (sequences, param), "{body}");
        }
    }

    #[test]
    fn stream_is_what_pydantic_takes_for_true() {
        for value in
            ["true", "1", "1.0", "1e0", "\"true\"", "\"YES\"", "\"on\"", "\"t\"", "\"y\"", "\"\\u0031\""]
        {
            assert!(read(&format!("{{\"stream\":{value}}}")).unwrap().stream, "{value}");
        }
        for value in
            ["false", "0", "2", "-1", "null", "\"\"", "\"no\"", "\"true \"", "\"truest\"", "[1]", "{}"]
        {
            assert!(!read(&format!("{{\"stream\":{value}}}")).unwrap().stream, "{value}");
        }
    }

    #[test]
    fn the_model_is_a_string_as_escaped() {
        assert_eq!(read(r#"{"model":"a\u0062"}"#).unwrap().model, Some(&br"a\u0062"[..]));
        assert_eq!(read(r#"{"model":null}"#).unwrap().model, None);
        assert_eq!(read(r#"{"model":["a"]}"#).unwrap().model, None);
    }

    #[test]
    fn what_is_below_one_is_what_the_backend_makes_of_it() {
        for (name, backend) in BACKENDS {
            let amount = |value: &str| {
                let body = format!("{{\"max_tokens\":{value}}}");
                dialect::read(dialect::ALL[0], backend, body.as_bytes()).map(|view| view.limits[0].amount)
            };
            let endless = Ok(Amount::Count(u64::MAX));
            for (value, amount, plain) in [
                ("0", amount("0"), Amount::Zero),
                ("-1", amount("-1"), Amount::Negative),
                ("\"-1\"", amount("\"-1\""), Amount::Negative),
                ("\"0.0\"", amount("\"0.0\""), Amount::Zero),
            ] {
                match (backend, plain) {
                    (Backend::Sglang, _) => assert!(amount.is_err(), "{name} {value}"),
                    (Backend::Ollama, _) | (Backend::LlamaCpp, Amount::Negative) => {
                        assert_eq!(amount, endless, "{name} {value}");
                    }
                    (Backend::LlamaCpp, _) if value.starts_with('"') => {
                        assert_eq!(amount, endless, "{name} {value}")
                    }
                    _ => assert_eq!(amount, Ok(plain), "{name} {value}"),
                }
            }
        }
    }
}
