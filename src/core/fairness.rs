//! Whose turn a request takes, as a number: all that a line needs of the header or field that keys are made of.

use super::body::{BadBody, View, unescape};
use super::policy::Fairness;

/// The key of those who name nobody. They share it, and it has its turns as any other.
pub const NOBODY: u64 = 0xCBF2_9CE4_8422_2325;

/// The key of a value: FNV-1a over 64 bits. Whoever can choose values to collide can as well send another's value, so
/// that a keyed hash would guard nothing; what is to be trusted is said by a header that the client cannot set.
pub fn key(value: impl IntoIterator<Item = u8>) -> u64 {
    value.into_iter().fold(NOBODY, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3))
}

/// The key that stands in a body; `None` where keys are not made of bodies.
///
/// # Errors
/// Where the body names two.
pub fn body_key(fairness: Option<&Fairness>, view: &View) -> Result<Option<u64>, BadBody> {
    let name = match fairness {
        None | Some(Fairness::Header(_)) => return Ok(None),
        Some(Fairness::User) => view.user.clone()?,
        Some(Fairness::Model) => view.model,
    };
    // Unescaped, so that one name has one key in whatever spelling.
    Ok(Some(key(unescape(name.unwrap_or_default()))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::body::{Backend, dialect, read};

    #[test]
    fn the_hash_is_the_published_one() {
        assert_eq!(key(*b""), NOBODY);
        assert_eq!(key(*b"a"), 0xAF63_DC4C_8601_EC8C);
        assert_eq!(key(*b"foobar"), 0x8594_4171_F739_67E8);
    }

    #[test]
    fn a_name_has_one_key_in_every_spelling() {
        let keys = |body: &str| {
            let view = read(dialect::ALL[0], Backend::Vllm, body.as_bytes()).unwrap();
            [Fairness::User, Fairness::Model].map(|fairness| body_key(Some(&fairness), &view).unwrap())
        };
        let ann = Some(key(*b"ann"));
        assert_eq!(keys(r#"{"user":"ann","model":"m"}"#), [ann, Some(key(*b"m"))]);
        assert_eq!(keys(r#"{"us\u0065r":"\u0061nn"}"#), [ann, Some(NOBODY)]);
        for nobody in ["{}", r#"{"user":null}"#, r#"{"user":""}"#, r#"{"user":7}"#] {
            assert_eq!(keys(nobody), [Some(NOBODY); 2], "{nobody}");
        }
    }

    #[test]
    fn bodies_say_nothing_where_they_are_not_asked() {
        let view = read(dialect::ALL[0], Backend::Vllm, br#"{"user":"ann"}"#).unwrap();
        assert_eq!(body_key(None, &view), Ok(None));
        assert_eq!(body_key(Some(&Fairness::Header("x-tenant".to_owned())), &view), Ok(None));
    }

    #[test]
    fn two_users_are_a_mistake_only_where_turns_go_by_user() {
        let view = read(dialect::ALL[0], Backend::Vllm, br#"{"user":"ann","user":"bob"}"#).unwrap();
        assert!(body_key(Some(&Fairness::User), &view).is_err());
        assert_eq!(body_key(Some(&Fairness::Model), &view), Ok(Some(NOBODY)));
        assert_eq!(body_key(None, &view), Ok(None));
    }
}
