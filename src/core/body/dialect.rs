//! The dialects that the filter speaks. A new one is a new file and a line in [`ALL`].

use std::fmt;

use super::backend::{BACKENDS, Backend, Backends};
use super::escape::unescape;
use super::scan::{Scanner, bad};
use super::shape::Shape;
use super::walk::Walk;
use super::{BadBody, View};
use super::{bare, chat, completions, invocations, llamacpp, messages, ollama, responses, sglang, tgi, vllm};
use crate::core::refusal::Family;

/// How the bodies of one family of endpoints are read.
pub struct Dialect {
    /// Its name, as in the policy's `endpoints`; several of one name are the same to different backends.
    pub name: &'static str,
    /// The paths that speak it, as suffixes of whole segments.
    pub paths: &'static [&'static str],
    /// The backends that serve it there.
    pub on: Backends,
    /// The backend that reads it, where it is always the same one.
    pub by: Option<Backend>,
    /// The error shape that its clients understand.
    pub family: Family,
    /// The members of a body that are read.
    pub root: &'static Shape,
    /// Whether an answer is streamed where the body does not say.
    pub streams: bool,
    /// The dialects that a body may be of instead, by the member that tells each; none for most.
    pub choices: &'static [(&'static str, &'static Dialect)],
}

/// Every dialect.
pub static ALL: &[&Dialect] = &[
    &chat::CHAT,
    &chat::STRICT_CHAT,
    &chat::LLAMACPP_CHAT,
    &chat::CHAT_BATCH,
    &completions::COMPLETIONS,
    &responses::RESPONSES,
    &messages::MESSAGES,
    &vllm::VLLM,
    &sglang::SGLANG,
    &sglang::SGLANG_VERTEX,
    &tgi::TGI,
    &tgi::TGI_STREAM,
    &tgi::TGI_VERTEX,
    &ollama::OLLAMA,
    &ollama::SGLANG_OLLAMA,
    &llamacpp::LLAMACPP,
    &invocations::INVOCATIONS,
    &invocations::TGI_INVOCATIONS,
    &bare::PROMPT,
];

/// The paths that a backend serves, and the dialect of each.
pub fn paths(backend: Backend) -> impl Iterator<Item = (&'static str, &'static Dialect)> {
    let served = ALL.iter().filter(move |dialect| dialect.on.has(backend));
    served.flat_map(|dialect| dialect.paths.iter().map(|path| (*path, *dialect)))
}

/// The dialect of a name: the backend's own one, or else that of another.
pub fn named(name: &str, backend: Backend) -> Option<&'static Dialect> {
    let all = || ALL.iter().copied().filter(|dialect| dialect.name == name);
    all().find(|dialect| dialect.on.has(backend)).or_else(|| all().next())
}

/// Reads `body` in one pass, without copying or allocating per string. Time is linear in its length.
///
/// # Errors
/// Where it is not one JSON object of RFC 8259 in UTF-8 (nested over 128 levels counts as not), where a limit is
/// nothing that can be bounded, or where a key that is read comes twice.
pub fn read<'a>(dialect: &Dialect, backend: Backend, body: &'a [u8]) -> Result<View<'a>, BadBody> {
    let dialect = dialect.chosen(body)?;
    let walk = Walk::over(dialect.root, dialect.spoken_by(backend), body)?;
    let (prompts, prompts_param) = walk.prompts;
    let (copies, copies_param) = walk.copies;
    Ok(View {
        body,
        prompt: walk.prompt,
        hidden: walk.hidden,
        limits: walk.limits,
        holders: walk.holders,
        min_tokens: walk.min_tokens,
        budget: walk.budget,
        sequences: prompts.max(1).saturating_mul(copies),
        sequences_param: if prompts > copies { prompts_param } else { copies_param },
        stream: walk.stream.unwrap_or(dialect.streams),
        model: walk.model,
        user: walk.user,
        background: walk.background,
    })
}

impl Dialect {
    /// One that every backend serves at these paths.
    pub const fn new(
        name: &'static str,
        paths: &'static [&'static str],
        family: Family,
        root: &'static Shape,
    ) -> Dialect {
        Dialect { name, paths, on: Backends::ALL, by: None, family, root, streams: false, choices: &[] }
    }

    /// Who reads it: `backend`, or, where that does not speak it, one that does. So it is where a policy lists a path
    /// with the dialect of another server.
    fn spoken_by(&self, backend: Backend) -> Backend {
        let mut speak = BACKENDS.iter().map(|(_, backend)| *backend).filter(|backend| self.on.has(*backend));
        let spoken = if self.on.has(backend) { Some(backend) } else { speak.next() };
        self.by.or(spoken).unwrap_or(backend)
    }

    /// The dialect that the body is of. A body that could be of two is refused: what bounds it in one may not in the
    /// other.
    fn chosen(&self, body: &[u8]) -> Result<&Dialect, BadBody> {
        let mut scanner = Scanner::new(body);
        if self.choices.is_empty() || scanner.token() != Some(b'{') {
            return Ok(self);
        }
        scanner.take();
        let (mut chosen, mut first) = (None, true);
        while let Some(key) = scanner.member(first)? {
            first = false;
            let spelled = body.get(key.inside.clone()).unwrap_or_default();
            let given = scanner.token() != Some(b'n');
            scanner.skip(1)?;
            let tells = |(member, _): &&(&str, _)| unescape(spelled).eq(member.bytes());
            let Some((member, dialect)) = self.choices.iter().find(tells).filter(|_| given) else { continue };
            if let Some((other, _)) = chosen {
                let message = format!("{member} and {other} are both given; one of them is allowed here");
                let param = Some((*member).to_owned());
                return Err(BadBody { param, ..bad(key.inside.start.saturating_sub(1), &message) });
            }
            chosen = Some((*member, *dialect));
        }
        Ok(chosen.map_or(self, |(_, dialect)| dialect))
    }
}

// By name: shapes may refer to themselves, so they cannot be printed or compared member by member.
impl fmt::Debug for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Dialect({})", self.name)
    }
}

impl PartialEq for Dialect {
    fn eq(&self, other: &Dialect) -> bool {
        self.name == other.name && self.on == other.on
    }
}

impl Eq for Dialect {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::body::shape::{Holds, LONGEST_KEY, Rule};

    /// Every shape of every dialect; they may refer to themselves.
    fn shapes() -> Vec<&'static Shape> {
        let mut found: Vec<&'static Shape> = ALL.iter().map(|dialect| dialect.root).collect();
        let mut next = 0;
        while let Some(shape) = found.get(next).copied() {
            next += 1;
            for field in shape.fields {
                let inner = match field.rule {
                    Rule::Inside(inner) | Rule::Each(inner) | Rule::Instances(inner) => inner,
                    Rule::Settings(settings) => settings.shape,
                    _ => continue,
                };
                if !found.iter().any(|known| std::ptr::eq(*known, inner)) {
                    found.push(inner);
                }
            }
        }
        found
    }

    #[test]
    fn names_and_paths_are_unique_to_a_backend() {
        for (place, one) in ALL.iter().enumerate() {
            for other in &ALL[..place] {
                let both = BACKENDS.iter().any(|(_, backend)| one.on.has(*backend) && other.on.has(*backend));
                assert!(!both || one.name != other.name, "{one:?}");
                assert!(!both || one.paths.iter().all(|suffix| !other.paths.contains(suffix)), "{one:?}");
            }
            assert!(one.paths.iter().all(|suffix| suffix.starts_with('/')));
        }
    }

    #[test]
    fn shapes_fit_what_the_walk_can_remember() {
        for shape in shapes() {
            assert!(shape.fields.len() <= 64);
            for (place, field) in shape.fields.iter().enumerate() {
                assert!(field.key.len() <= LONGEST_KEY && field.key.is_ascii(), "{}", field.key);
                assert_eq!(field.key, field.key.to_ascii_lowercase());
                let twin = |other: &&super::super::shape::Field| {
                    let both = |backend| field.on.has(backend) && other.on.has(backend);
                    other.key == field.key && BACKENDS.iter().any(|(_, backend)| both(*backend))
                };
                assert!(!shape.fields[..place].iter().any(|other| twin(&other)), "{} twice", field.key);
            }
        }
    }

    #[test]
    fn limits_stand_where_they_would_be_put_in() {
        for shape in shapes() {
            let limits = || shape.fields.iter().filter(|field| matches!(field.rule, Rule::Limit(..)));
            match shape.holds {
                Holds::Nothing => assert_eq!(limits().count(), 0),
                Holds::Here(inject) => {
                    assert!(limits().any(|field| Some(field.key) == inject.key(1)), "{inject:?}");
                }
                Holds::Within(inject, missing) => {
                    assert_eq!(limits().count(), 0);
                    let object = shape.fields.iter().find(|field| Some(field.key) == inject.key(missing));
                    let Some(Rule::Settings(settings)) = object.map(|field| field.rule) else {
                        panic!("{inject:?} has nowhere to go")
                    };
                    assert!(match settings.shape.holds {
                        Holds::Here(inner) => inner == inject && missing == 2,
                        Holds::Within(inner, less) => inner == inject && missing == less + 1,
                        Holds::Nothing => false,
                    });
                }
            }
        }
    }

    #[test]
    fn every_backend_serves_its_paths() {
        let dialect = |backend, path| paths(backend).find(|(known, _)| *known == path).map(|row| row.1.name);
        for (path, names) in [
            ("/chat/completions", [Some("chat"); 6]),
            ("/generate", [None, Some("sglang"), Some("tgi"), None, None, None]),
            ("/", [None, None, Some("tgi"), None, None, None]),
            ("/vertex", [None, None, Some("tgi_vertex"), None, None, None]),
            ("/vertex_generate", [None, Some("sglang_vertex"), None, None, None, None]),
            ("/completion", [None, None, None, Some("llamacpp"), None, None]),
            ("/infill", [None, None, None, Some("llamacpp"), None, None]),
            ("/invocations", [Some("invocations"); 6]),
            ("/messages", [Some("messages"); 6]),
            (
                "/api/chat",
                [Some("ollama"), Some("ollama"), None, Some("llamacpp_chat"), Some("ollama"), Some("ollama")],
            ),
            ("/inference/v1/generate", [Some("vllm"), None, None, Some("vllm"), Some("vllm"), Some("vllm")]),
        ] {
            for ((name, backend), want) in BACKENDS.iter().zip(names) {
                assert_eq!(dialect(*backend, path), want, "{path} on {name}");
            }
        }
        assert_eq!(named("tgi", Backend::Vllm).map(|dialect| dialect.name), Some("tgi"));
        assert!(std::ptr::eq(named("chat", Backend::OpenAi).unwrap(), &chat::STRICT_CHAT));
        assert!(named("pass", Backend::Vllm).is_none());
    }

    #[test]
    fn the_members_say_what_an_invocation_is() {
        let name = |backend, body: &str| {
            named("invocations", backend).unwrap().chosen(body.as_bytes()).map(|dialect| dialect.name)
        };
        for (body, anywhere, tgi) in [
            (r#"{"messages":[]}"#, "chat", "chat"),
            (r#"{"a":{"messages":[]},"prompt":""}"#, "completions", "completions"),
            (r#"{"in\u0070ut":[]}"#, "responses", "invocations"),
            (r#"{"inputs":"x","messages":null}"#, "tgi", "tgi"),
            ("{}", "invocations", "invocations"),
        ] {
            assert_eq!(name(Backend::Vllm, body), Ok(anywhere), "{body}");
            assert_eq!(name(Backend::Tgi, body), Ok(tgi), "{body}");
        }
        for body in [r#"{"messages":[],"prompt":"x"}"#, r#"{"prompt":"","prompt":""}"#] {
            assert_eq!(name(Backend::Vllm, body).unwrap_err().param.as_deref(), Some("prompt"), "{body}");
        }
    }
}
