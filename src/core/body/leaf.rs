//! Single values of a body: media, limits, `stream`.

use super::escape::unescape;
use super::walk::Walk;
use super::{Amount, BadBody, Limit, number};

impl Walk<'_> {
    /// One media, unless it is `null`.
    pub(super) fn media(&mut self) -> Result<(), BadBody> {
        self.prompt.media += u64::from(self.scanner.token() != Some(b'n'));
        self.scanner.value(self.depth())?;
        Ok(())
    }

    /// A value that a backend reads as a whole number.
    pub(super) fn limit(&mut self, name: &'static str) -> Result<Limit, BadBody> {
        let token = self.scanner.token();
        let start = self.scanner.at();
        let (amount, what) = match token {
            Some(b'"') => {
                let string = self.scanner.string()?;
                let inside = self.scanner.bytes().get(string.inside).unwrap_or_default();
                (number::quoted_amount(inside), "this one is a string that is none")
            }
            Some(b'-' | b'0'..=b'9') => (number::amount(self.scanner.number()?), "this one has a fraction"),
            Some(b'[' | b'{') => (None, "this one is an array or object"),
            _ => match self.scanner.literal()? {
                "null" => (Some(Amount::Unset), ""),
                _ => (None, "this one is true or false"),
            },
        };
        let amount = amount.ok_or_else(|| BadBody {
            at: start,
            param: Some(name.to_owned()),
            message: format!("{name} must be a whole number or null; {what}"),
        })?;
        Ok(Limit { name, span: start..self.scanner.at(), amount, quoted: token == Some(b'"') })
    }

    /// What pydantic takes for true; all else is false here, and the backend's to refuse.
    pub(super) fn stream(&mut self) -> Result<(), BadBody> {
        self.stream = match self.scanner.token() {
            Some(b't') => self.scanner.literal()? == "true",
            Some(b'-' | b'0'..=b'9') => number::amount(self.scanner.number()?) == Some(Amount::Count(1)),
            Some(b'"') => {
                let string = self.scanner.string()?;
                let inside = self.scanner.bytes().get(string.inside).unwrap_or_default();
                let is =
                    |word: &&str| unescape(inside).map(|byte| byte.to_ascii_lowercase()).eq(word.bytes());
                ["true", "t", "yes", "y", "on", "1"].iter().any(is)
            }
            _ => {
                self.scanner.value(self.depth())?;
                false
            }
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::core::body::{Amount, BadBody, View, dialect};

    fn read(body: &str) -> Result<View<'_>, BadBody> {
        dialect::read(dialect::ALL[0], body.as_bytes())
    }

    #[test]
    fn a_limit_is_a_whole_number_or_null() {
        for (value, amount, quoted) in [
            ("7", Amount::Count(7), false),
            ("1e3", Amount::Count(1000), false),
            ("\" 7 \"", Amount::Count(7), true),
            ("null", Amount::Unset, false),
            ("-3", Amount::NotPositive, false),
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
}
