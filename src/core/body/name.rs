//! Names in a body: of the model, of who asks.

use super::BadBody;
use super::walk::Walk;

impl<'a> Walk<'a> {
    /// The next value where it is a string, as escaped in the body; all else is no name, and the backend's to refuse.
    pub(super) fn name(&mut self) -> Result<Option<&'a [u8]>, BadBody> {
        if self.scanner.token() == Some(b'"') {
            let inside = self.scanner.string()?.inside;
            return Ok(self.scanner.bytes().get(inside));
        }
        self.scanner.skip(self.depth())?;
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use crate::core::body::{Backend, Dialect, dialect, read};

    /// The dialects that have names at the top.
    fn named() -> impl Iterator<Item = &'static Dialect> {
        let has = |dialect: &&Dialect| dialect.root.fields.iter().any(|field| field.key == "user");
        dialect::ALL.iter().copied().filter(has)
    }

    #[test]
    fn a_name_is_a_string_as_escaped() {
        for dialect in named() {
            for (value, name) in [
                (r#""ab""#, Some(&b"ab"[..])),
                (r#""a\u0062""#, Some(br"a\u0062")),
                (r#""""#, Some(b"")),
                ("null", None),
                ("5", None),
                (r#"["a",{"user":"b"}]"#, None),
            ] {
                let body = format!(r#"{{"model":{value} , "x":{{"user":"other"}}, "user" : {value}}}"#);
                let view = read(dialect, Backend::Vllm, body.as_bytes())
                    .unwrap_or_else(|bad| panic!("{body}: {bad:?}"));
                assert_eq!((view.model, view.user), (name, Ok(name)), "{body}");
            }
        }
    }

    #[test]
    fn a_user_given_twice_spoils_nothing_but_itself() {
        for dialect in named() {
            let view =
                read(dialect, Backend::Vllm, br#"{"user":"a","us\u0065r":["a"],"model":"m","user":null}"#)
                    .unwrap();
            assert_eq!(view.user.unwrap_err().param.as_deref(), Some("user"));
            assert_eq!(view.model, Some(&b"m"[..]));
            assert!(read(dialect, Backend::Vllm, br#"{"user":"a","user":[}"#).is_err());
            assert!(read(dialect, Backend::Vllm, br#"{"model":"a","model":"a"}"#).is_err());
        }
    }
}
