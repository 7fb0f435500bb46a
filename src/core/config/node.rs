//! The configuration as a tree that keeps what `serde_json::Value` drops: the order of keys and those given twice.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

use super::mistakes::{Mistake, Wrong};

/// One JSON value. A number is a float, as in the protobuf Struct that Istio sends: exact for every whole number that
/// a policy allows.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    Null,
    Bool(bool),
    Number(f64),
    Text(String),
    List(Vec<Node>),
    Object(Vec<(String, Node)>),
}

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Null,
    Bool,
    Number,
    Text,
    List,
    Object,
}

impl Node {
    /// Reads the text; blank text is an object without members, for a plugin without a configuration.
    pub fn parse(json: &[u8]) -> Result<Node, Mistake> {
        if json.trim_ascii().is_empty() {
            return Ok(Node::Object(Vec::new()));
        }
        serde_json::from_slice(json).map_err(|error| {
            // Envoy hands over any other message as its bytes.
            let message = json.iter().any(|byte| byte.is_ascii_control() && !byte.is_ascii_whitespace());
            let allowed = if message {
                "allowed is one JSON object, in a google.protobuf.StringValue; this looks like another protobuf message"
            } else {
                "allowed is one JSON object"
            };
            Wrong::new(format!("not JSON: {error}"), allowed).at(WHOLE.to_owned())
        })
    }

    pub fn kind(&self) -> Kind {
        match self {
            Node::Null => Kind::Null,
            Node::Bool(_) => Kind::Bool,
            Node::Number(_) => Kind::Number,
            Node::Text(_) => Kind::Text,
            Node::List(_) => Kind::List,
            Node::Object(_) => Kind::Object,
        }
    }
}

/// The path of the text as a whole.
pub(super) const WHOLE: &str = "configuration";

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Null => "null",
            Kind::Bool => "true or false",
            Kind::Number => "a number",
            Kind::Text => "a string",
            Kind::List => "a list",
            Kind::Object => "an object",
        })
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_any(Anything)
    }
}

struct Anything;

impl<'de> Visitor<'de> for Anything {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        Ok(Node::Number(value as f64))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Ok(Node::Number(value as f64))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Node, E> {
        Ok(Node::Number(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Node, E> {
        Ok(Node::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Node, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(Node::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Node, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = object.next_entry()? {
            members.push(member);
        }
        Ok(Node::Object(members))
    }
}
