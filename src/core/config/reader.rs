//! A typed walk over the tree. A key is known by being asked for; what nobody asked for is a mistake.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use super::mistakes::{Mistake, Wrong, shown};
use super::near::nearest;
use super::node::{Kind, Node, WHOLE};
use super::values::{not_yet, wrong_kind};

/// What a walk gathers.
#[derive(Default)]
pub(super) struct Walk {
    pub mistakes: Vec<Mistake>,
    /// Paths asked for, `[]` for any place in a list.
    pub known: BTreeSet<String>,
}

impl Walk {
    /// Whether nothing at or below the path was wrong, so that its value may be held against others.
    pub fn good(&self, path: &str) -> bool {
        !self.mistakes.iter().any(|mistake| mistake.path.starts_with(path))
    }
}

/// One object being read. Every reading method answers with the default where the key is absent or wrong.
pub(super) struct Reader<'n, 'w> {
    pub walk: &'w mut Walk,
    path: String,
    members: &'n [(String, Node)],
    asked: Vec<&'static str>,
}

impl<'n> Reader<'n, '_> {
    /// Reads the configuration itself.
    pub fn whole<R>(tree: &'n Node, walk: &mut Walk, read: impl FnOnce(&mut Reader) -> R) -> R {
        Reader::over(tree, walk, String::new(), read)
    }

    /// A value that may be left out.
    pub fn read<T>(
        &mut self,
        key: &'static str,
        default: T,
        value: impl FnOnce(&Node) -> Result<T, Wrong>,
    ) -> T {
        match self.take(key).map(value) {
            None => default,
            Some(Ok(value)) => value,
            Some(Err(wrong)) => {
                self.wrong(key, wrong);
                default
            }
        }
    }

    /// A value that may not be left out; `None` where it is absent or wrong.
    pub fn require<T>(
        &mut self,
        key: &'static str,
        value: impl FnOnce(&Node) -> Result<T, Wrong>,
    ) -> Option<T> {
        if !self.members.iter().any(|(name, _)| name == key) {
            self.wrong(key, Wrong::new("is missing", "it has no default"));
        }
        self.read(key, None, |node| value(node).map(Some))
    }

    /// An object within; absent, it is one without members.
    pub fn object<R>(&mut self, key: &'static str, read: impl FnOnce(&mut Reader) -> R) -> R {
        let node = self.take(key).unwrap_or(&NOTHING);
        Reader::over(node, self.walk, self.path_of(key), read)
    }

    /// An object within, or `null`, which is what it is when absent.
    pub fn object_or_null<R>(&mut self, key: &'static str, read: impl FnOnce(&mut Reader) -> R) -> Option<R> {
        match self.take(key).unwrap_or(&Node::Null) {
            Node::Null => None,
            node @ Node::Object(_) => Some(Reader::over(node, self.walk, self.path_of(key), read)),
            node => {
                self.wrong(key, wrong_kind(node, "an object, or null"));
                None
            }
        }
    }

    /// A list of objects; absent, it is `default`. Outside `length` it is read all the same, for its other mistakes.
    pub fn objects<R>(
        &mut self,
        key: &'static str,
        default: &Node,
        length: RangeInclusive<usize>,
        mut read: impl FnMut(&mut Reader, usize) -> R,
    ) -> Vec<R> {
        let node = self.take(key).unwrap_or(default);
        let Node::List(items) = node else {
            self.wrong(key, wrong_kind(node, "a list of objects"));
            return Vec::new();
        };
        if !length.contains(&items.len()) {
            let allowed = format!("allowed are {} to {}", length.start(), length.end());
            self.wrong(key, Wrong::new(format!("holds {} entries", items.len()), allowed));
        }
        let path = self.path_of(key);
        let each = |(place, item)| {
            Reader::over(item, self.walk, format!("{path}[{place}]"), |item| read(item, place))
        };
        items.iter().enumerate().map(each).collect()
    }

    /// A key whose feature comes with a later version: only its default is allowed, all else is refused by name.
    pub fn reserved(&mut self, key: &'static str, default: &Node, kind: Kind) {
        self.read(key, (), |node| match node {
            node if node == default => Ok(()),
            node if node.kind() == kind => Err(not_yet("this key", "leaving it out")),
            node => Err(wrong_kind(node, &kind.to_string())),
        });
    }

    /// Notes a mistake at a key of this object.
    pub fn wrong(&mut self, key: &str, wrong: Wrong) {
        let path = self.path_of(key);
        self.walk.mistakes.push(wrong.at(path));
    }

    /// Whether the values of all these keys were read without a mistake.
    pub fn good(&self, keys: &[&str]) -> bool {
        keys.iter().all(|key| self.walk.good(&self.path_of(key)))
    }

    fn over<R>(node: &'n Node, walk: &mut Walk, path: String, read: impl FnOnce(&mut Reader) -> R) -> R {
        let Node::Object(members) = node else {
            let at = if path.is_empty() { WHOLE.to_owned() } else { path.clone() };
            walk.mistakes.push(wrong_kind(node, "an object").at(at));
            let so_far = walk.mistakes.len();
            let result = read(&mut Reader { walk, path, members: &[], asked: Vec::new() });
            // What is missing from something that is no object is not worth a line.
            walk.mistakes.truncate(so_far);
            return result;
        };
        let mut reader = Reader { walk, path, members, asked: Vec::new() };
        let result = read(&mut reader);
        reader.finish();
        result
    }

    fn take(&mut self, key: &'static str) -> Option<&'n Node> {
        self.asked.push(key);
        let known = without_places(&self.path_of(key));
        self.walk.known.insert(known);
        self.members.iter().find(|(name, _)| name == key).map(|(_, node)| node)
    }

    fn finish(mut self) {
        let mut seen = BTreeSet::new();
        for (name, _) in self.members {
            let twice = !seen.insert(name);
            let known = self.asked.contains(&name.as_str());
            if twice {
                self.wrong(&shown(name), Wrong::new("given twice", "allowed is once"));
            } else if !known {
                let allowed = match nearest(name, &self.asked) {
                    Some(near) => format!("did you mean {near}?"),
                    None => format!("allowed are {}", self.asked.join(", ")),
                };
                self.wrong(&shown(name), Wrong::new("unknown key", allowed));
            }
        }
    }

    fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }
}

static NOTHING: Node = Node::Object(Vec::new());

/// `classes[3].name` -> `classes[].name`.
fn without_places(path: &str) -> String {
    let mut inside = false;
    path.chars()
        .filter(|&c| {
            inside = c == '[' || (inside && c != ']');
            !inside || c == '['
        })
        .collect()
}
