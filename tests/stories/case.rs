//! A case of the corpus: a request, and what is right for it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::Value;

use super::{Arrival, Body, Protocol, Request, Response};

/// One line of the corpus.
pub struct Case(Value);

/// What came of a case.
pub struct Outcome {
    pub response: Response,
    /// What the model server got, if anything.
    pub arrival: Option<Arrival>,
}

impl Case {
    pub fn parse(line: &str) -> Case {
        Case(serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line}")))
    }

    pub fn id(&self) -> &str {
        word(&self.0["id"])
    }

    /// The backend that it is for.
    pub fn backend(&self) -> &str {
        self.0["backend"].as_str().unwrap_or("vllm")
    }

    /// The request, travelling as the case has it.
    pub fn request(&self) -> Request {
        let bytes = self.body();
        let pieces = |size: usize| Body::Chunks(bytes.chunks(size).map(<[u8]>::to_vec).collect());
        let transport = self.0["transport"].as_str().unwrap_or_default();
        let body = match transport {
            "" | "h2, END_STREAM on HEADERS" => Body::Whole(bytes),
            "1-byte chunks" => pieces(1),
            "h2, DATA frames of 8192 bytes" => pieces(8192),
            "headers only, body withheld" => Body::Withheld(Vec::new()),
            text if text.contains("TRAILERS {x-t: 1}") => {
                Body::Trailers(vec![bytes], vec![("x-t".to_owned(), "1".to_owned())])
            }
            other => panic!("{}: no such transport: {other}", self.id()),
        };
        Request {
            method: word(&self.0["method"]).to_owned(),
            path: word(&self.0["path"]).to_owned(),
            headers: self.headers(),
            body,
            protocol: if transport.starts_with("h2") { Protocol::Http2 } else { Protocol::Http1 },
        }
    }

    /// Why the outcome is wrong.
    pub fn judge(&self, Outcome { response, arrival }: &Outcome) -> Result<(), String> {
        let want = &self.0["want"];
        if !response.complete {
            return Err(format!("no whole answer: {response:?}"));
        }
        if let Some(refusal) = want.get("refuse") {
            return match arrival {
                Some(_) => Err("it reached the model server".to_owned()),
                None => refused(refusal, response),
            };
        }
        let Some(arrival) = arrival else {
            return Err(format!("refused with {}: {}", response.status, start(&response.body)));
        };
        let right = if want["pass"] == true {
            arrival.body == self.body()
        } else if let Some(body) = want["body"].as_str() {
            arrival.body == body.as_bytes()
        } else if let Some(inject) = want.get("inject") {
            self.injected(inject, &arrival.body)
        } else {
            panic!("{}: no such want: {want}", self.id())
        };
        if right { Ok(()) } else { Err(format!("the model server got {}", start(&arrival.body))) }
    }

    /// Whether `got` is the request's body with one more member, and nothing else.
    fn injected(&self, inject: &Value, got: &[u8]) -> bool {
        let sent = self.body();
        let Some(more) = got.len().checked_sub(sent.len()).filter(|more| *more > 0) else { return false };
        let same = sent.iter().zip(got).take_while(|(a, b)| a == b).count();
        // What follows the insertion is the rest; it may begin with what the insertion begins with.
        let only_inserted = (0..=same).any(|at| sent[at..] == got[at + more..]);
        let pointer = format!("/{}", word(&inject["member"]).replace('.', "/"));
        let value = serde_json::from_slice::<Value>(got).ok();
        only_inserted && value.is_some_and(|value| value.pointer(&pointer) == Some(&inject["value"]))
    }

    fn headers(&self) -> Vec<(String, Vec<u8>)> {
        // How the body travels follows from the transport.
        let plain = self.0["headers"].as_object().into_iter().flatten();
        let plain = plain.filter(|(name, _)| *name != "transfer-encoding");
        let mut headers: Vec<_> =
            plain.map(|(name, value)| (name.clone(), word(value).as_bytes().to_vec())).collect();
        for pair in self.0["headers_raw_b64"].as_array().into_iter().flatten() {
            let raw = |index: usize| BASE64.decode(word(&pair[index])).expect("base64");
            headers.push((String::from_utf8(raw(0)).expect("a name in ASCII"), raw(1)));
        }
        headers
    }

    fn body(&self) -> Vec<u8> {
        let Some(recipe) = self.0.get("body_gen") else { return bytes(&self.0) };
        let part = |name: &str| recipe[name].as_str().unwrap_or_default();
        let count = usize::try_from(recipe["count"].as_u64().expect("a count")).expect("64 bits");
        let (units, closes) = (part("unit").repeat(count), part("close_unit").repeat(count));
        [part("prefix"), &units, part("suffix"), &closes, part("tail")].concat().into_bytes()
    }
}

fn refused(want: &Value, response: &Response) -> Result<(), String> {
    let body: Value = serde_json::from_slice(&response.body).unwrap_or_default();
    let error = &body["error"];
    let text = |value: &Value, member: &str| value[member].is_string();
    let shape = want["shape"].as_str().unwrap_or("openai");
    let shaped = want["status"] == response.status
        && match shape {
            "openai" => {
                text(error, "message")
                    && text(error, "type")
                    && error.get("param").is_some()
                    && error["code"] == want["reason"]
                    && want.get("param").is_none_or(|param| error["param"] == *param)
            }
            "anthropic" => body["type"] == "error" && text(error, "message") && text(error, "type"),
            "tgi" => error.is_string() && text(&body, "error_type"),
            "ollama" => error.is_string(),
            other => panic!("no such shape: {other}"),
        };
    // Envoy puts a refusal of gRPC into gRPC's own shape, with status 200; the headers stay.
    let right = want["reason"] == response.header("x-sluice-reason").unwrap_or_default()
        && (shaped || response.header("grpc-status").is_some());
    if right {
        Ok(())
    } else {
        Err(format!("{want}: answered {} {}", response.status, start(&response.body)))
    }
}

/// The text under `body`, or the bytes under `body_b64`; empty where there is neither.
fn bytes(case: &Value) -> Vec<u8> {
    match (case["body"].as_str(), case["body_b64"].as_str()) {
        (Some(text), _) => text.as_bytes().to_vec(),
        (None, Some(encoded)) => BASE64.decode(encoded).expect("base64"),
        (None, None) => Vec::new(),
    }
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("text, not {value}"))
}

fn start(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(300)]).into_owned()
}
