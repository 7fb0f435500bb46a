//! What the stories say again and again.

use std::time::Duration;

use serde_json::Value;

use super::{Answer, Arrival, Body, Protocol, Request, Response, Sent, World};

/// The path of most stories.
pub const CHAT: &str = "/v1/chat/completions";

impl Request {
    /// A POST of JSON, whole and over HTTP/1.
    pub fn post(path: &str, body: impl Into<Vec<u8>>) -> Request {
        Request {
            method: "POST".to_owned(),
            path: path.to_owned(),
            headers: vec![("content-type".to_owned(), b"application/json".to_vec())],
            body: Body::Whole(body.into()),
            protocol: Protocol::Http1,
        }
    }

    /// A GET.
    pub fn get(path: &str) -> Request {
        Request { method: "GET".to_owned(), headers: Vec::new(), ..Request::post(path, "") }
    }

    pub fn header(mut self, name: &str, value: impl Into<Vec<u8>>) -> Request {
        self.headers.retain(|(present, _)| present != name || name.starts_with("x-"));
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    pub fn body(self, body: Body) -> Request {
        Request { body, ..self }
    }

    pub fn http2(self) -> Request {
        Request { protocol: Protocol::Http2, ..self }
    }
}

impl Response {
    /// The header's value, where there is exactly one.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.iter().filter(|(present, _)| present == name).map(|(_, value)| value);
        let first = values.next()?;
        assert_eq!(values.next(), None, "{name} stands there twice");
        Some(first)
    }

    /// Asserts that this is our refusal, in OpenAI's shape; gives its `error`.
    pub fn refused(&self, status: u16, reason: &str) -> Value {
        let text = String::from_utf8_lossy(&self.body);
        assert_eq!((self.status, self.header("x-sluice-reason")), (status, Some(reason)), "{text}");
        assert_eq!(self.header("content-type"), Some("application/json"));
        let body: Value =
            serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {text}"));
        let error = &body["error"];
        assert_eq!(error["code"], reason, "{text}");
        for member in ["message", "type"] {
            assert!(error[member].as_str().is_some_and(|text| !text.is_empty()), "{member} in {text}");
        }
        assert!(error.get("param").is_some(), "param in {text}");
        let retried = matches!(status, 408 | 429 | 503);
        assert_eq!(self.header("x-should-retry"), (!retried).then_some("false"), "{text}");
        error.clone()
    }

    /// Asserts that the refusal says when to come back.
    pub fn says_when_to_retry(&self) {
        let number = |name| self.header(name).and_then(|value| value.parse::<u64>().ok());
        let seconds = number("retry-after").expect("retry-after in whole seconds");
        assert!((1..=60).contains(&seconds), "retry-after: {seconds}");
        let millis = number("retry-after-ms").expect("retry-after-ms");
        assert_eq!(millis.div_ceil(1000), seconds, "retry-after-ms: {millis}");
        assert_eq!(self.header("x-envoy-ratelimited"), Some("true"));
    }
}

impl Arrival {
    pub fn header(&self, name: &str) -> Option<&[u8]> {
        self.headers.iter().find(|(present, _)| present == name).map(|(_, value)| value.as_slice())
    }

    /// Asserts that exactly this has arrived, with a content-length that fits.
    pub fn has_body(&self, body: impl AsRef<[u8]>) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).chars().take(2000).collect::<String>();
        assert_eq!(text(&self.body), text(body.as_ref()));
        assert!(self.body == body.as_ref(), "the bodies differ beyond their first characters");
        if let Some(length) = self.header("content-length") {
            assert_eq!(text(length), self.body.len().to_string());
        }
    }
}

/// The body of a chat request with `prompt` and `more` members, such as `,"max_tokens":10`.
pub fn chat_body(prompt: &str, more: &str) -> String {
    format!(r#"{{"model":"m","messages":[{{"role":"user","content":"{prompt}"}}]{more}}}"#)
}

/// A chat request of class `short` that is not edited.
pub fn short() -> Request {
    Request::post(CHAT, chat_body("hi", r#","max_tokens":10"#))
}

/// The same with a prompt to know it by.
pub fn short_named(name: &str) -> Request {
    Request::post(CHAT, chat_body(name, r#","max_tokens":10"#))
}

/// A chat request of class `long` (where the policy has one) that is not edited.
pub fn long() -> Request {
    Request::post(CHAT, chat_body(&"long ".repeat(100), r#","max_tokens":1000"#))
}

/// A plain answer.
pub fn ok() -> Answer {
    answer(200)
}

/// A plain answer with a status.
pub fn answer(status: u16) -> Answer {
    let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
    Answer::Whole { status, headers, body: br#"{"choices":[]}"#.to_vec() }
}

/// Sends a request that arrives as the next one, has it answered, and gives both ends.
pub fn exchange(world: &mut dyn World, request: &Request) -> (Arrival, Response) {
    let before = world.arrived();
    let sent = world.send(request);
    let arrival = arrival(world, before);
    world.answer(before, ok());
    let response = world.response(sent);
    assert_eq!(
        (response.status, response.complete),
        (200, true),
        "{}",
        String::from_utf8_lossy(&response.body)
    );
    (arrival, response)
}

/// Sends a request that never gets to the model server, and gives the answer.
pub fn refused(world: &mut dyn World, request: &Request) -> Response {
    let before = world.arrived();
    let sent = world.send(request);
    let response = world.response(sent);
    assert_eq!(world.arrived(), before, "it reached the model server");
    response
}

/// The `index`-th arrival, awaited.
pub fn arrival(world: &mut dyn World, index: usize) -> Arrival {
    world.arrivals(index + 1).swap_remove(index)
}

/// Takes the only slot of the request's class, so that those that follow have to wait.
pub fn take_slot(world: &mut dyn World, request: &Request) -> Sent {
    let before = world.arrived();
    let sent = world.send(request);
    world.arrivals(before + 1);
    sent
}

/// Asserts that requests still go through as ever.
pub fn still_serves(world: &mut dyn World) {
    exchange(world, &short());
    assert!(world.healthy());
}

/// Longer than any timeout of the hasty policies, and than the filter's timer takes to notice.
pub const LONG_ENOUGH: Duration = Duration::from_millis(700);
