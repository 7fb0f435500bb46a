//! What a dialect's bodies look like: tables of the members that are read, and how.

use super::backend::{Backend, Backends};
use super::escape::unescape;
use super::holder::Inject;
use super::index::Index;
use super::string::Str;

/// An object whose members matter. Where a body has an array in its place, each item is taken as such an object; where
/// it has anything else, that counts as text.
pub struct Shape {
    /// The members that are read, at most 64. All others are skipped unread, and may repeat.
    pub fields: &'static [Field],
    /// The same by their keys.
    index: Index,
    /// Where such an object's output limit stands.
    pub holds: Holds,
    /// Whether it holds a model server's own sampling settings.
    pub settings: bool,
    /// Whether keys are read as they stand, whatever the backend: a map to it, or not of its own making.
    pub verbatim: bool,
    /// Whether the model may be shown the whole of it: members that are not listed then count as labels do.
    pub loose: bool,
}

/// Where the output limit of an object stands.
#[derive(Clone, Copy)]
pub enum Holds {
    /// It has none.
    Nothing,
    /// In the object itself.
    Here(&'static Inject),
    /// In an object that is a member of it, or within that: so many of the last keys of its path lead there.
    Within(&'static Inject, usize),
}

/// A member of an object that is read. Given twice, in whatever spelling, it spoils the body.
#[derive(Clone, Copy)]
pub struct Field {
    /// Its key, unescaped and in lower case.
    pub key: &'static str,
    /// How its value is read.
    pub rule: Rule,
    /// The backends that it is read for.
    pub on: Backends,
}

/// How a value is read.
#[derive(Clone, Copy)]
pub enum Rule {
    /// Text of the prompt: a string's own, nothing for `null`, of all else the compact JSON.
    Text,
    /// A role or a name: no text of the prompt as long as it is no longer than such words are, since templates and
    /// backends frame messages in words of their own; all of it beyond that, since the model would read it.
    Label,
    /// One image, sound, video or file, unless it is `null`; whatever it holds is not text.
    Media,
    /// The same, or an array of such.
    Medias,
    /// The name of media that the server may have kept: one, unless it is `null` or the object holds media itself.
    KeptMedia,
    /// A string that is text or media, as the `type` beside it says.
    Data,
    /// The `type` beside it.
    DataType,
    /// An object, or an array of such, read member by member.
    Inside(&'static Shape),
    /// The same, each item of the array a prompt of its own.
    Each(&'static Shape),
    /// An array of objects and nothing else, each a prompt with an output limit of its own.
    Instances(&'static Shape),
    /// The object in which the output limit stands.
    Settings(&'static Settings),
    /// Prompts: text, token ids, or an array of either.
    Prompts,
    /// Prompts given as embeddings: each one prompt and one media.
    Embeds,
    /// Prompts given as rows of numbers, a row for each token.
    Rows,
    /// Token ids that are no prompt of their own, or such rows.
    Ids,
    /// An output limit, known by this name.
    Limit(&'static str, Sway),
    /// `min_tokens`, known by this name.
    MinTokens(&'static str),
    /// The part of the output that may be spent on thinking, known by this name.
    Budget(&'static str),
    /// How many answers each prompt gets, known by this name.
    Copies(&'static str),
    /// Whether the answer is to be streamed.
    Stream,
    /// Whether the answer is only to be fetched later.
    Background,
    /// A prompt that the server has and the filter does not see, unless it is `null`.
    Hidden,
    /// The `type` of an item, which may be to stand for one that the server has.
    ItemType,
    /// What the filter could not bound: refused, unless it is `null`.
    Refused,
    /// The model's name.
    Model,
    /// Who asks, as the client says. Given twice it spoils the body only for those who read it, which few policies do.
    User,
}

/// What a spelling of the output limit is to the backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sway {
    /// A limit.
    Set,
    /// A limit to some versions: bounded, but nothing to rely on.
    Perhaps,
    /// Nothing: it only tells what the client wishes.
    Wish,
}

/// The object in which an output limit stands.
pub struct Settings {
    /// Its members.
    pub shape: &'static Shape,
    /// Whether an array of such objects may stand there.
    pub list: bool,
    /// Whether `null` in its place is as good as nothing; otherwise the backend refuses it, and it stays.
    pub null: bool,
}

impl Shape {
    /// An object with these members.
    pub const fn of(fields: &'static [Field]) -> Shape {
        let index = Index::of(fields);
        Shape { fields, index, holds: Holds::Nothing, settings: false, verbatim: false, loose: false }
    }

    /// One whose output limit stands there.
    pub const fn holding(self, holds: Holds) -> Shape {
        Shape { holds, ..self }
    }

    /// One whose keys are read as they stand.
    pub const fn verbatim(self) -> Shape {
        Shape { verbatim: true, ..self }
    }

    /// One that the model may be shown as it stands.
    pub const fn loose(self) -> Shape {
        Shape { loose: true, ..self }
    }

    /// One that holds sampling settings, an output limit among them.
    pub const fn settings(inject: &'static Inject, fields: &'static [Field]) -> Shape {
        Shape { settings: true, ..Shape::of(fields).holding(Holds::Here(inject)).verbatim() }
    }

    /// The field that `key` names to `backend`, whatever its spelling: its place and what it is.
    #[inline]
    pub(super) fn find(&self, key: &Str, body: &[u8], backend: Backend) -> Option<(usize, &'static Field)> {
        let spelled = body.get(key.inside.clone()).unwrap_or_default();
        let folds = backend.folds_keys() && !self.verbatim;
        if folds || key.is_escaped() {
            return self.find_spelled(spelled, folds, backend);
        }
        self.named(spelled, backend)
    }

    /// The same for a key that is not spelled as it reads. Takes no longer for a longer one.
    #[cold]
    fn find_spelled(&self, spelled: &[u8], folds: bool, backend: Backend) -> Option<(usize, &'static Field)> {
        let mut plain = [0; LONGEST_KEY];
        let mut bytes = unescape(spelled);
        let mut len = 0;
        while let Some(byte) = bytes.next() {
            let byte = if folds { folded(byte, &mut bytes)? } else { byte };
            *plain.get_mut(len)? = byte;
            len += 1;
        }
        self.named(plain.get(..len)?, backend)
    }

    #[inline]
    fn named(&self, name: &[u8], backend: Backend) -> Option<(usize, &'static Field)> {
        let mut place = self.index.first(name)?;
        loop {
            let field = self.fields.get(usize::from(place))?;
            if field.key.as_bytes() == name && field.on.has(backend) {
                return Some((usize::from(place), field));
            }
            place = self.index.behind(place)?;
        }
    }
}

/// The longest key of a field, in bytes.
pub const LONGEST_KEY: usize = 63;

/// What a letter is to Go, as far as it can be part of a name in lower case: K (U+212A) and ſ (U+017F) are the only
/// ones beyond ASCII that fold into it. `None` for all others there.
fn folded(byte: u8, behind: &mut impl Iterator<Item = u8>) -> Option<u8> {
    let letter = match byte {
        0..0x80 => return Some(byte.to_ascii_lowercase()),
        0xe2 if behind.next()? == 0x84 && behind.next()? == 0xaa => b'k',
        0xc5 if behind.next()? == 0xbf => b's',
        _ => return None,
    };
    Some(letter)
}

impl Field {
    /// Read for these backends only.
    pub const fn on(self, on: Backends) -> Field {
        Field { on, ..self }
    }
}

/// A member that is read by `rule`.
pub const fn field(key: &'static str, rule: Rule) -> Field {
    Field { key, rule, on: Backends::ALL }
}

/// Several lists of members as one of `N`.
pub const fn join<const N: usize>(lists: &[&[Field]]) -> [Field; N] {
    let mut all = [text(""); N];
    let mut room = all.as_mut_slice();
    let mut rest = lists;
    while let [list, more @ ..] = rest {
        let (these, behind) = room.split_at_mut(list.len());
        these.copy_from_slice(list);
        (room, rest) = (behind, more);
    }
    assert!(room.is_empty(), "N is how many members the lists have together");
    all
}

/// Forms that the answer has to have, under all the names that they go by: text, since servers put it into prompts or
/// compile it.
pub const FORMS: [Field; 11] = [
    text("response_format"),
    text("structured_outputs"),
    text("structural_tag"),
    text("guided_json"),
    text("guided_regex"),
    text("guided_choice"),
    text("guided_grammar"),
    text("grammar"),
    text("json_schema"),
    text("regex"),
    text("ebnf"),
];

/// Members that hold text.
pub const fn text(key: &'static str) -> Field {
    field(key, Rule::Text)
}

/// Members that hold a role or a name.
pub const fn label(key: &'static str) -> Field {
    field(key, Rule::Label)
}

/// Members that hold media.
pub const fn media(key: &'static str) -> Field {
    field(key, Rule::Media)
}

/// Members that hold objects.
pub const fn inside(key: &'static str, shape: &'static Shape) -> Field {
    field(key, Rule::Inside(shape))
}

/// Output limits at the top of a body.
pub const fn limit(key: &'static str) -> Field {
    field(key, Rule::Limit(key, Sway::Set))
}

/// Spellings of it that only some versions see.
pub const fn perhaps(key: &'static str) -> Field {
    field(key, Rule::Limit(key, Sway::Perhaps))
}

/// Spellings of it that are no more than a wish.
pub const fn wish(key: &'static str) -> Field {
    field(key, Rule::Limit(key, Sway::Wish))
}

/// `min_tokens` at the top of a body, which the others do not know.
pub const fn minimum() -> Field {
    field("min_tokens", Rule::MinTokens("min_tokens")).on(Backends::only(Backend::Vllm).and(Backend::Sglang))
}

/// How many answers each prompt gets, at the top of a body.
pub const fn copies(key: &'static str) -> Field {
    field(key, Rule::Copies(key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::body::scan::Scanner;

    static SHAPE: Shape = Shape::of(&[text("max_tokens"), text("max_tokenz"), text("k"), text("")]);

    fn found(key: &str, backend: Backend) -> Option<&'static str> {
        let body = format!("\"{key}\"");
        let key = Scanner::new(body.as_bytes()).string().unwrap();
        SHAPE.find(&key, body.as_bytes(), backend).map(|(_, field)| field.key)
    }

    #[test]
    fn go_folds_two_letters_beyond_ascii() {
        for (spelled, same) in [
            ("max_tokens", true),
            ("MAX_Tokens", true),
            ("max_to\u{212a}ens", true),
            ("max_token\u{17f}", true),
            ("max_to\\u212aen\\u017f", true),
            ("max_token", false),
            ("max_tokens_", false),
            ("max-tokens", false),
            ("ma\u{445}_tokens", false),
            ("max_token\u{df}", false),
            ("max_token\u{140}", false),
            ("max_to\u{212b}ens", false),
        ] {
            assert_eq!(found(spelled, Backend::Ollama) == Some("max_tokens"), same, "{spelled}");
            let exact = spelled == "max_tokens";
            assert_eq!(found(spelled, Backend::Vllm) == Some("max_tokens"), exact, "{spelled}");
        }
    }

    #[test]
    fn a_key_is_found_by_all_of_it() {
        for (spelled, key) in [
            ("max_tokens", Some("max_tokens")),
            ("max_tokenz", Some("max_tokenz")),
            (r"max\u005ftokenz", Some("max_tokenz")),
            ("k", Some("k")),
            ("", Some("")),
            ("max_tokfns", None),
            ("K", None),
        ] {
            assert_eq!(found(spelled, Backend::Vllm), key, "{spelled}");
        }
        let long = "k".repeat(LONGEST_KEY + 1);
        for backend in [Backend::Vllm, Backend::Ollama] {
            assert_eq!(found(&long, backend), None);
            assert_eq!(found(&long.replace('k', "\\u006b"), backend), None);
        }
    }
}
