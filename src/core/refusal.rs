//! Every "no": its reason, status, message, retry advice and body. The only table of refusals.

use std::time::Duration;

use serde_json::json;

use crate::core::units::millis;

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The body is larger than `body_bytes`.
    BodyTooLarge,
    /// The prompt is larger than `prompt_chars` or `prompt_tokens`.
    PromptTooLong,
    /// The output limit is over `max_tokens` and `over_max_tokens` is `reject`.
    MaxTokensTooLarge,
    /// More than `sequences` answers are asked for.
    TooManySequences,
    /// `background: true` where it is not allowed.
    UnsupportedBackground,
    /// The body cannot be read.
    InvalidBody,
    /// The body is compressed.
    UnsupportedEncoding,
    /// The body is gRPC or multipart.
    UnsupportedType,
    /// An upgrade or extended CONNECT on a guarded path.
    UnsupportedUpgrade,
    /// The body did not end within `body_timeout`.
    BodyTimeout,
    /// The class's queue is full.
    QueueFull,
    /// The wait in the queue was too long.
    QueueTimeout,
    /// `buffered_bytes` are in use.
    Overloaded,
    /// A POST to a path that is neither guarded nor listed, with `unlisted_posts: reject`.
    UnlistedEndpoint,
    /// Envoy is set up in a way that the filter cannot work in.
    Misconfigured,
}

struct Row {
    reason: Reason,
    status: u16,
    /// `%RESPONSE_CODE_DETAILS%`: the reason's name behind `sluice_`.
    details: &'static str,
    /// OpenAI's error type.
    kind: &'static str,
}

const PREFIX: &str = "sluice_";
const INVALID: &str = "invalid_request_error";

#[rustfmt::skip]
const TABLE: [Row; 15] = [
    Row { reason: Reason::BodyTooLarge,        status: 413, details: "sluice_body_too_large",        kind: INVALID },
    Row { reason: Reason::PromptTooLong,       status: 413, details: "sluice_prompt_too_long",       kind: INVALID },
    Row { reason: Reason::MaxTokensTooLarge,   status: 400, details: "sluice_max_tokens_too_large",  kind: INVALID },
    Row { reason: Reason::TooManySequences,    status: 400, details: "sluice_too_many_sequences",    kind: INVALID },
    Row { reason: Reason::UnsupportedBackground, status: 400, details: "sluice_unsupported_background", kind: INVALID },
    Row { reason: Reason::InvalidBody,         status: 400, details: "sluice_invalid_body",          kind: INVALID },
    Row { reason: Reason::UnsupportedEncoding, status: 415, details: "sluice_unsupported_encoding",  kind: INVALID },
    Row { reason: Reason::UnsupportedType,     status: 415, details: "sluice_unsupported_type",      kind: INVALID },
    Row { reason: Reason::UnsupportedUpgrade,  status: 400, details: "sluice_unsupported_upgrade",   kind: INVALID },
    Row { reason: Reason::BodyTimeout,         status: 408, details: "sluice_body_timeout",          kind: "timeout_error" },
    Row { reason: Reason::QueueFull,           status: 429, details: "sluice_queue_full",            kind: "rate_limit_error" },
    Row { reason: Reason::QueueTimeout,        status: 503, details: "sluice_queue_timeout",         kind: "overloaded_error" },
    Row { reason: Reason::Overloaded,          status: 503, details: "sluice_overloaded",            kind: "overloaded_error" },
    Row { reason: Reason::UnlistedEndpoint,    status: 404, details: "sluice_unlisted_endpoint",     kind: INVALID },
    Row { reason: Reason::Misconfigured,       status: 500, details: "sluice_misconfigured",         kind: "server_error" },
];

impl Reason {
    /// Every reason, in the table's order.
    pub fn all() -> impl Iterator<Item = Reason> {
        TABLE.iter().map(|row| row.reason)
    }

    /// The name that clients, metrics and access logs know it by.
    pub fn name(self) -> &'static str {
        self.details().strip_prefix(PREFIX).unwrap_or_default()
    }

    /// `%RESPONSE_CODE_DETAILS%` of the refusal: the name behind `sluice_`.
    pub fn details(self) -> &'static str {
        self.row().map_or("", |row| row.details)
    }

    fn row(self) -> Option<&'static Row> {
        TABLE.iter().find(|row| row.reason == self)
    }
}

/// The error shape that a family of endpoints answers in, so that its clients raise their proper exceptions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// `{"error": {"message", "type", "param", "code"}}`
    OpenAi,
    /// `{"type": "error", "error": {"type", "message"}}`
    Anthropic,
    /// `{"error", "error_type"}`
    Tgi,
    /// `{"error"}`
    Ollama,
}

/// One "no".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Why.
    pub reason: Reason,
    /// HTTP status; the table's unless the policy names another.
    pub status: u16,
    /// What was wrong and what is allowed, for the client to read.
    pub message: String,
    /// The field to blame, as a path into the body.
    pub param: Option<String>,
    /// When to come back; sent with 429 and 503 only.
    pub retry_after: Option<Duration>,
}

impl Refusal {
    /// A refusal with the table's status.
    pub fn new(reason: Reason, message: impl Into<String>) -> Refusal {
        let status = reason.row().map_or(500, |row| row.status);
        Refusal { reason, status, message: message.into(), param: None, retry_after: None }
    }

    /// Blames a field.
    pub fn param(mut self, param: impl Into<String>) -> Refusal {
        self.param = Some(param.into());
        self
    }

    /// Takes the policy's status in place of the table's.
    pub fn status(mut self, status: u16) -> Refusal {
        self.status = status;
        self
    }

    /// Says when to come back.
    pub fn retry_after(mut self, wait: Duration) -> Refusal {
        self.retry_after = Some(wait);
        self
    }

    /// The response's headers beside the body's type, names in lower case.
    pub fn headers(&self) -> Vec<(&'static str, String)> {
        let mut headers = vec![("x-sluice-reason", self.reason.name().to_owned())];
        if matches!(self.status, 429 | 503) {
            if let Some(wait) = self.retry_after {
                headers.push(("retry-after", millis(wait).div_ceil(1000).to_string()));
                headers.push(("retry-after-ms", millis(wait).to_string()));
            }
            headers.push(("x-envoy-ratelimited", "true".to_owned()));
        }
        let final_answer = (400..500).contains(&self.status) && !matches!(self.status, 408 | 429);
        if final_answer || self.reason == Reason::Misconfigured {
            headers.push(("x-should-retry", "false".to_owned()));
        }
        headers
    }

    /// The response's JSON body in the family's shape.
    pub fn body(&self, family: Family) -> String {
        match family {
            Family::OpenAi => json!({"error": {
                "message": self.message,
                "type": self.reason.row().map(|row| row.kind),
                "param": self.param,
                "code": self.reason.name(),
            }})
            .to_string(),
            Family::Anthropic => json!({
                "type": "error",
                "error": { "type": anthropic_type(self.status), "message": self.message },
            })
            .to_string(),
            Family::Tgi => json!({ "error": self.message, "error_type": tgi_type(self.status) }).to_string(),
            Family::Ollama => json!({ "error": self.message }).to_string(),
        }
    }
}

/// Anthropic's name for an error of this status. Its own "overloaded" is 529, which no SDK but its own knows.
fn anthropic_type(status: u16) -> &'static str {
    match status {
        404 => "not_found_error",
        408 => "timeout_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        503 => "overloaded_error",
        500.. => "api_error",
        _ => INVALID,
    }
}

/// The name by which TGI's clients choose their exception.
fn tgi_type(status: u16) -> &'static str {
    match status {
        429 | 503 => "overloaded",
        500.. => "generation",
        _ => "validation",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_a_row_of_its_own_name() {
        for reason in Reason::all() {
            let snake = format!("{reason:?}").chars().fold(String::new(), |mut name, c| {
                if c.is_uppercase() && !name.is_empty() {
                    name.push('_');
                }
                name.extend(c.to_lowercase());
                name
            });
            assert_eq!(reason.name(), snake);
        }
    }

    #[test]
    fn retry_advice_goes_with_429_and_503_only() {
        let wait = Duration::from_millis(1200);
        let full = Refusal::new(Reason::QueueFull, "full").retry_after(wait);
        assert_eq!(
            full.headers(),
            [
                ("x-sluice-reason", "queue_full".to_owned()),
                ("retry-after", "2".to_owned()),
                ("retry-after-ms", "1200".to_owned()),
                ("x-envoy-ratelimited", "true".to_owned()),
            ]
        );
        let long = Refusal::new(Reason::PromptTooLong, "long").retry_after(wait);
        assert_eq!(
            long.headers(),
            [("x-sluice-reason", "prompt_too_long".to_owned()), ("x-should-retry", "false".to_owned())]
        );
        let slow = Refusal::new(Reason::BodyTimeout, "slow");
        assert_eq!(slow.headers(), [("x-sluice-reason", "body_timeout".to_owned())]);
    }

    #[test]
    fn the_openai_body_names_code_type_and_field() {
        let refusal = Refusal::new(Reason::InvalidBody, "max_tokens: \"x\"").param("max_tokens");
        assert_eq!(
            refusal.body(Family::OpenAi),
            r#"{"error":{"code":"invalid_body","message":"max_tokens: \"x\"","param":"max_tokens","type":"invalid_request_error"}}"#
        );
    }

    #[test]
    fn each_family_has_its_own_shape() {
        let bad = Refusal::new(Reason::InvalidBody, "m").param("max_tokens");
        let full = Refusal::new(Reason::QueueFull, "m");
        for (refusal, family, body) in [
            (
                &bad,
                Family::Anthropic,
                r#"{"error":{"message":"m","type":"invalid_request_error"},"type":"error"}"#,
            ),
            (
                &full,
                Family::Anthropic,
                r#"{"error":{"message":"m","type":"rate_limit_error"},"type":"error"}"#,
            ),
            (&bad, Family::Tgi, r#"{"error":"m","error_type":"validation"}"#),
            (&full, Family::Tgi, r#"{"error":"m","error_type":"overloaded"}"#),
            (&bad, Family::Ollama, r#"{"error":"m"}"#),
        ] {
            assert_eq!(refusal.body(family), body);
        }
        for (reason, name) in [
            (Reason::PromptTooLong, "request_too_large"),
            (Reason::UnlistedEndpoint, "not_found_error"),
            (Reason::BodyTimeout, "timeout_error"),
            (Reason::QueueTimeout, "overloaded_error"),
            (Reason::Misconfigured, "api_error"),
        ] {
            assert!(Refusal::new(reason, "m").body(Family::Anthropic).contains(name), "{name}");
        }
    }
}
