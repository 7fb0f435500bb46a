//! The order of things: from headers and bytes to a verdict. The only file that knows it.

use std::rc::Rc;
use std::time::Duration;

use crate::core::admission::Admission;
use crate::core::body::{self, BadBody, Dialect, Prefix, Size, dialect};
use crate::core::clamp::{Action, ClampRefusal, LEAST_BUDGET, PromptUnit, clamp};
use crate::core::classify::classify;
use crate::core::fairness;
use crate::core::head::Head;
use crate::core::intake::Intake;
use crate::core::paths::Table;
use crate::core::policy::{Class, Policy};
use crate::core::refusal::{Family, Reason, Refusal};
use crate::core::units::{ClassId, StreamId, Time};

/// What is to become of a request by its headers alone.
#[derive(Debug)]
pub enum Gate {
    /// Not ours: untouched, unbuffered, uncounted.
    Pass,
    /// Hold it until the body has been read.
    Guard(&'static Dialect),
    /// Hold it until the body has come, then refuse it: an HTTP/1 connection whose body was not read cannot serve the
    /// next request.
    Doom(&'static Dialect, Refusal),
    /// Refuse it at once, in this shape.
    Refuse(Family, Refusal),
}

/// A request whose body was read, bounded and classified.
#[derive(Debug)]
pub struct Judged {
    /// Its class.
    pub class: ClassId,
    /// Its prompt's size.
    pub prompt: Size,
    /// The output limit in force, in tokens.
    pub max_tokens: u64,
    /// What it weighs in token budgets: prompt and all of its output, estimated.
    pub tokens: u64,
    /// Whose turn it takes by its body; `None` where the body has no say in that.
    pub key: Option<u64>,
    /// What was done to the output limit.
    pub action: Action,
    /// Whether a streamed answer is asked for.
    pub stream: bool,
    /// The bytes to change, if any.
    pub edit: Option<Prefix>,
}

/// One worker's whole state under one policy.
#[derive(Debug)]
pub struct Engine {
    /// The policy in force.
    pub policy: Rc<Policy>,
    /// Slots and lines.
    pub admission: Admission,
    /// Bodies on their way in.
    pub intake: Intake,
    /// By path; `None` for one that the policy lists to let it pass.
    guarded: Table<Option<&'static Dialect>>,
}

impl Engine {
    /// An engine that nothing has passed through yet.
    pub fn new(policy: Rc<Policy>, now: Time) -> Engine {
        let listed = policy.endpoints.iter().map(|endpoint| (endpoint.path.as_str(), endpoint.dialect));
        let known = dialect::paths(policy.backend).map(|(path, dialect)| (path, Some(dialect)));
        Engine {
            admission: Admission::new(&policy, now),
            intake: Intake::new(policy.limits.buffered_bytes, policy.limits.body_timeout),
            guarded: Table::new(listed.chain(known)),
            policy,
        }
    }

    /// Decides by the headers; `ended` tells that no body follows.
    pub fn gate(&self, head: &Head, ended: bool) -> Gate {
        if !head.post && !head.upgrade {
            return Gate::Pass;
        }
        let dialect = match self.guarded.find(&head.path) {
            Some(Some(dialect)) => *dialect,
            None if head.post && self.policy.reject_unlisted => return self.unlisted(head, ended),
            _ => return Gate::Pass,
        };
        if let Some(refusal) = self.refuse_head(head, ended) {
            return Gate::Refuse(dialect.family, refusal);
        }
        match refuse_kind(head) {
            Some(refusal) if head.length.is_some() => Gate::Doom(dialect, refusal),
            Some(refusal) => Gate::Refuse(dialect.family, refusal),
            None => Gate::Guard(dialect),
        }
    }

    /// Decides by a whole body.
    pub fn judge(&self, dialect: &Dialect, body: &[u8]) -> Result<Judged, Refusal> {
        let view = body::read(dialect, self.policy.backend, body).map_err(unreadable)?;
        let key = fairness::body_key(self.policy.fairness.as_ref(), &view).map_err(unreadable)?;
        let clamped = clamp(&view, &self.policy.limits).map_err(over_limit)?;
        let output = clamped.max_tokens.saturating_mul(view.sequences);
        // What the filter does not see is within no bound.
        let seen = if view.hidden { Size { chars: u64::MAX, tokens: u64::MAX } } else { clamped.prompt };
        Ok(Judged {
            class: classify(&self.policy, seen.chars, seen.tokens, output, view.model),
            prompt: clamped.prompt,
            max_tokens: clamped.max_tokens,
            tokens: clamped.prompt.tokens.saturating_add(output),
            key,
            action: clamped.action,
            stream: view.stream,
            edit: clamped.prefix,
        })
    }

    /// The refusal of a request for which there is neither a slot nor a place in line.
    pub fn queue_full(&self, now: Time, stream: StreamId, class: ClassId) -> Refusal {
        let (name, status, most) = match self.class(class) {
            Some(class) => (class.name.as_str(), class.queue.overflow_status, class.queue.capacity),
            None => ("none", 429, 0),
        };
        let waiting = self.admission.ahead(class);
        let message = if usize::try_from(waiting).is_ok_and(|waiting| waiting < most) {
            format!("no free slot of class {name}, and the request was not to wait for one; try again later")
        } else {
            format!(
                "no free slot of class {name} and no place in its queue ({waiting} of {most} requests wait); try again later"
            )
        };
        self.later(now, stream, Some(class), Refusal::new(Reason::QueueFull, message).status(status))
    }

    /// The refusal of a request that has waited for `waited` in vain.
    pub fn queue_timeout(&self, now: Time, stream: StreamId, class: ClassId, waited: Duration) -> Refusal {
        let (name, status) = match self.class(class) {
            Some(class) => (class.name.as_str(), class.queue.timeout_status),
            None => ("none", 503),
        };
        let message = format!(
            "no slot of class {name} became free within {} s; try again later",
            waited.as_millis() as f64 / 1e3
        );
        self.later(now, stream, Some(class), Refusal::new(Reason::QueueTimeout, message).status(status))
    }

    /// Takes note of `size` bytes of a body so far, and refuses what is too large; whether it has grown.
    pub fn receive(&mut self, stream: StreamId, size: u64) -> Result<bool, Refusal> {
        let most = self.policy.limits.body_bytes;
        if size > most { Err(too_large(size, most)) } else { Ok(self.intake.grow(stream, size)) }
    }

    /// The key of the record in which workers tell each other how many bytes they hold.
    pub fn buffered_key(&self) -> String {
        format!("sluice.1.{}.buffered", self.policy.domain)
    }

    /// The refusal of a body that does not fit beside others.
    pub fn overloaded(&self, now: Time, stream: StreamId) -> Refusal {
        let message = "too many request bodies are being read at once; try again later";
        self.later(now, stream, None, Refusal::new(Reason::Overloaded, message))
    }

    /// The refusal of a body that does not end.
    pub fn body_timeout(&self) -> Refusal {
        let seconds = self.policy.limits.body_timeout.as_secs_f64();
        Refusal::new(Reason::BodyTimeout, format!("the request body did not end within {seconds} s"))
    }

    /// The class's rules.
    pub fn class(&self, class: ClassId) -> Option<&Class> {
        self.policy.classes.get(class.index())
    }

    /// Refuses what is neither known nor listed; a body that can be awaited is, as for others.
    fn unlisted(&self, head: &Head, ended: bool) -> Gate {
        let message = "this path is not served here: it is neither a known endpoint nor listed";
        let refusal = Refusal::new(Reason::UnlistedEndpoint, message);
        let awaited = !ended && head.length.is_some_and(|length| length <= self.policy.limits.body_bytes);
        match dialect::named("prompt", self.policy.backend).filter(|_| awaited) {
            Some(plain) => Gate::Doom(plain, refusal),
            None => Gate::Refuse(Family::OpenAi, refusal),
        }
    }

    fn refuse_head(&self, head: &Head, ended: bool) -> Option<Refusal> {
        let most = self.policy.limits.body_bytes;
        if head.upgrade {
            let message = "this endpoint takes plain POST requests, no upgrade or CONNECT";
            return Some(Refusal::new(Reason::UnsupportedUpgrade, message));
        }
        if let Some(length) = head.length.filter(|length| *length > most) {
            return Some(too_large(length, most));
        }
        ended.then(|| {
            Refusal::new(Reason::InvalidBody, "the body is empty; one JSON object is expected (at byte 0)")
        })
    }

    fn later(&self, now: Time, stream: StreamId, class: Option<ClassId>, refusal: Refusal) -> Refusal {
        let chance = splitmix(now.0 ^ (u64::from(stream.0) << 32));
        refusal.retry_after(self.admission.retry_after(now, class, chance))
    }
}

/// Refuses a body that cannot be read whatever it holds.
fn refuse_kind(head: &Head) -> Option<Refusal> {
    if head.encoded {
        let message =
            "content-encoding: the body must not be encoded (identity only), so that it can be read";
        return Some(Refusal::new(Reason::UnsupportedEncoding, message));
    }
    let message = "content-type: this endpoint takes one JSON object, no multipart or gRPC";
    head.foreign.then(|| Refusal::new(Reason::UnsupportedType, message))
}

fn too_large(size: u64, most: u64) -> Refusal {
    Refusal::new(
        Reason::BodyTooLarge,
        format!("the body has {size} bytes or more; at most {most} are allowed"),
    )
}

fn unreadable(bad: BadBody) -> Refusal {
    let refusal = Refusal::new(Reason::InvalidBody, format!("{} (at byte {})", bad.message, bad.at));
    Refusal { param: bad.param, ..refusal }
}

fn over_limit(refusal: ClampRefusal) -> Refusal {
    match refusal {
        ClampRefusal::Background => {
            let message = "background must be false or left out; answers are given while the request lasts";
            Refusal::new(Reason::UnsupportedBackground, message).param("background")
        }
        ClampRefusal::TooManySequences { param, asked, limit } => {
            let message = format!("{asked} answers are asked for; at most {limit} a request are allowed");
            Refusal::new(Reason::TooManySequences, message).param(param)
        }
        ClampRefusal::PromptTooLong { unit, size, limit } => {
            let (unit, key) = match unit {
                PromptUnit::Chars => ("characters", "prompt_chars"),
                PromptUnit::Tokens => ("tokens (estimated)", "prompt_tokens"),
            };
            let message = format!("the prompt has {size} {unit}; {key} allows at most {limit}");
            Refusal::new(Reason::PromptTooLong, message)
        }
        ClampRefusal::NoRoomToThink { param, asked, max_tokens } => {
            let message = format!(
                "{param} is {asked} and has to be below the output limit, which is {max_tokens} here; a budget has \
                 {LEAST_BUDGET} tokens at least. Ask for a larger limit, where that is allowed, or disable thinking"
            );
            Refusal::new(Reason::MaxTokensTooLarge, message).param(param)
        }
        ClampRefusal::MaxTokensTooLarge { param, asked, limit } => {
            let message = match asked {
                u64::MAX => format!("{param} is without limit; at most {limit} is allowed"),
                asked => format!("{param} is {asked}; at most {limit} is allowed"),
            };
            Refusal::new(Reason::MaxTokensTooLarge, message).param(param)
        }
    }
}

/// One step of SplitMix64: numbers that differ a little come out far apart.
fn splitmix(seed: u64) -> u64 {
    let z = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
