//! What a dialect's bodies look like: tables of the members that are read, and how.

/// An object whose members matter. Where a body has an array in its place, each item is taken as such an object; where
/// it has anything else, that counts as text.
pub struct Shape {
    /// The members that are read, at most 64. All others are skipped unread, and may repeat.
    pub fields: &'static [Field],
}

/// A member of an object that is read. Given twice, in whatever spelling, it spoils the body.
pub struct Field {
    /// Its key, unescaped.
    pub key: &'static str,
    /// How its value is read.
    pub rule: Rule,
}

/// How a value is read.
#[derive(Clone, Copy)]
pub enum Rule {
    /// Text of the prompt: a string's own, nothing for `null`, of all else the compact JSON.
    Text,
    /// One image, sound, video or file, unless it is `null`; whatever it holds is not text.
    Media,
    /// An object, or an array of such, read member by member.
    Inside(&'static Shape),
    /// The prompts of the completions dialect: text, token ids, or an array of either.
    Prompts,
    /// Prompts given as embeddings: each one prompt and one media.
    Embeds,
    /// An output limit, known by this name.
    Limit(&'static str),
    /// `min_tokens`, known by this name.
    MinTokens(&'static str),
    /// How many answers each prompt gets, known by this name.
    Copies(&'static str),
    /// Whether the answer is to be streamed.
    Stream,
    /// The model's name.
    Model,
    /// Who asks, as the client says. Given twice it spoils the body only for those who read it, which few policies do.
    User,
}

/// Members that hold text.
pub const fn text(key: &'static str) -> Field {
    Field { key, rule: Rule::Text }
}

/// Members that hold media.
pub const fn media(key: &'static str) -> Field {
    Field { key, rule: Rule::Media }
}

/// Members that hold objects.
pub const fn inside(key: &'static str, shape: &'static Shape) -> Field {
    Field { key, rule: Rule::Inside(shape) }
}

/// Output limits at the top of a body.
pub const fn limit(key: &'static str) -> Field {
    Field { key, rule: Rule::Limit(key) }
}

/// Members that all dialects of one kind read.
pub const fn field(key: &'static str, rule: Rule) -> Field {
    Field { key, rule }
}
