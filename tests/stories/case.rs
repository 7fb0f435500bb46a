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

    /// Why the outcome is wrong; any one of several answers may be right.
    pub fn judge(&self, outcome: &Outcome) -> Result<(), String> {
        let want = &self.0["want"];
        let any = want["any_of"].as_array().map_or(std::slice::from_ref(want), Vec::as_slice);
        let wrong: Vec<String> = any.iter().filter_map(|want| self.judge_one(want, outcome).err()).collect();
        if wrong.len() < any.len() { Ok(()) } else { Err(wrong.join("; ")) }
    }

    fn judge_one(&self, want: &Value, Outcome { response, arrival }: &Outcome) -> Result<(), String> {
        let action = word(&want["action"]);
        if !response.complete {
            return Err(format!("{action}: no whole answer: {response:?}"));
        }
        if action == "reject" {
            return match arrival {
                Some(_) => Err("reject: it reached the model server".to_owned()),
                None => refusal(want, response),
            };
        }
        let Some(arrival) = arrival else {
            return Err(format!("{action}: refused with {}: {}", response.status, start(&response.body)));
        };
        let right = match action {
            "pass" => arrival.body == self.body(),
            "rewrite" => arrival.body == bytes(want, "upstream_body"),
            "inject" => self.injected(want, &arrival.body),
            other => panic!("{}: no such action: {other}", self.id()),
        };
        if !right {
            return Err(format!("{action}: the model server got {}", start(&arrival.body)));
        }
        let removed = want["headers_removed"].as_array().map_or(&[][..], Vec::as_slice);
        match arrival.headers.iter().find(|(name, _)| removed.iter().any(|gone| gone == name)) {
            Some((name, _)) => Err(format!("{action}: {name} reached the model server")),
            None => Ok(()),
        }
    }

    /// Whether `got` is the request's body with one more member, and nothing else.
    fn injected(&self, want: &Value, got: &[u8]) -> bool {
        let sent = self.body();
        let Some(more) = got.len().checked_sub(sent.len()).filter(|more| *more > 0) else { return false };
        let same = sent.iter().zip(got).take_while(|(a, b)| a == b).count();
        // What follows the insertion is the rest; it may begin with what the insertion begins with.
        let only_inserted = (0..=same).any(|at| sent[at..] == got[at + more..]);
        let pointer = format!("/{}", word(&want["member"]).replace('.', "/"));
        let value = serde_json::from_slice::<Value>(got).ok();
        only_inserted && value.is_some_and(|value| value.pointer(&pointer) == Some(&want["value"]))
    }

    fn headers(&self) -> Vec<(String, Vec<u8>)> {
        let mut headers = Vec::new();
        for (name, value) in self.0["headers"].as_object().into_iter().flatten() {
            // How the body travels follows from the transport.
            if name != "transfer-encoding" {
                headers.push((name.clone(), word(value).as_bytes().to_vec()));
            }
        }
        for pair in self.0["headers_list"].as_array().into_iter().flatten() {
            headers.push((word(&pair[0]).to_owned(), word(&pair[1]).as_bytes().to_vec()));
        }
        for pair in self.0["headers_raw_b64"].as_array().into_iter().flatten() {
            let raw = |index: usize| BASE64.decode(word(&pair[index])).expect("base64");
            headers.push((String::from_utf8(raw(0)).expect("a name in ASCII"), raw(1)));
        }
        headers
    }

    fn body(&self) -> Vec<u8> {
        let Some(recipe) = self.0.get("body_gen") else { return bytes(&self.0, "body") };
        let part = |name: &str| recipe[name].as_str().unwrap_or_default();
        let count = usize::try_from(recipe["count"].as_u64().expect("a count")).expect("64 bits");
        let (units, closes) = (part("unit").repeat(count), part("close_unit").repeat(count));
        [part("prefix"), &units, part("suffix"), &closes, part("tail")].concat().into_bytes()
    }
}

fn refusal(want: &Value, response: &Response) -> Result<(), String> {
    let body: Value = serde_json::from_slice(&response.body).unwrap_or_default();
    let error = &body["error"];
    let shaped = ["message", "type", "code"].iter().all(|member| error[member].is_string());
    let right = shaped
        && error.get("param").is_some()
        && want["status"] == response.status
        && want.get("param").is_none_or(|param| error["param"] == *param);
    if right {
        Ok(())
    } else {
        Err(format!("{want}: answered {} {}", response.status, start(&response.body)))
    }
}

/// The text under `name`, or the bytes under `<name>_b64`; empty where there is neither.
fn bytes(value: &Value, name: &str) -> Vec<u8> {
    match (value[name].as_str(), value[format!("{name}_b64")].as_str()) {
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
