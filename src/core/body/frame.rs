//! Arrays and objects of shapes that are open while a body is walked over: how they open and close.

use super::BadBody;
use super::holder::{self, Holder, Inject};
use super::scan::{MAX_DEPTH, Scanner, too_deep};
use super::shape::{Holds, Settings, Shape};
use super::string::Str;
use super::text::Text;
use super::walk::Walk;

/// An array or object that is open.
pub struct Frame {
    /// What it, or each of its items, looks like.
    pub shape: &'static Shape,
    /// The key that led here; empty for the body itself and for items.
    pub key: &'static str,
    /// Which of the two it is.
    pub kind: Kind,
    /// What its items are, where it is an array.
    pub items: Items,
    /// Whether nothing has been read of it.
    pub first: bool,
    /// For a holder its place among them; for all else the byte offset behind its opening brace.
    pub mark: usize,
}

/// An array or an object.
pub enum Kind {
    /// With the index of the next item.
    Array(usize),
    /// With a bit for each of the shape's fields that has come.
    Object(u64),
}

/// What the items of an array are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Items {
    /// Anything, as in most.
    Any,
    /// Anything, each a prompt of its own.
    Prompts,
    /// Objects and nothing else, each a prompt of its own.
    Instances,
    /// Objects and nothing else, one at least.
    Settings,
}

/// What an object says of data that may be text or media, or media that the server may have. Few have any, so it is
/// kept beside the frames.
pub struct Source {
    /// How many frames are open where it stands.
    pub depth: usize,
    /// The length of its `data`.
    pub data: Option<Text>,
    /// Whether its `type` says that it is text.
    pub plain: bool,
    /// Whether it names media that the server may have kept.
    pub kept: bool,
}

impl Frame {
    /// One that has just been opened.
    pub fn new(shape: &'static Shape, key: &'static str, kind: Kind, items: Items, mark: usize) -> Frame {
        Frame { shape, key, kind, items, first: true, mark }
    }
}

impl Walk<'_> {
    /// The object with the output limit, or the objects.
    pub(super) fn settings(&mut self, key: &'static str, settings: &'static Settings) -> Result<(), BadBody> {
        match self.scanner.token() {
            Some(b'{') => self.enter(key, settings.shape, Items::Any),
            Some(b'[') if settings.list => self.enter(key, settings.shape, Items::Settings),
            Some(b'n') => {
                let start = self.scanner.at();
                self.scanner.literal()?;
                let (inject, missing) = match settings.shape.holds {
                    Holds::Here(inject) if settings.null => (inject, 1),
                    Holds::Within(inject, missing) if settings.null => (inject, missing),
                    _ => return Ok(()),
                };
                let span = start..self.scanner.at();
                let holder = Holder { span, inject, missing, braced: true, comma: false };
                holder::push(&mut self.holders, holder)
            }
            _ => Err(self.wrong(key, "an object")),
        }
    }

    /// Opens an array or object of `shape`; anything else is text.
    #[inline]
    pub(super) fn enter(
        &mut self,
        key: &'static str,
        shape: &'static Shape,
        items: Items,
    ) -> Result<(), BadBody> {
        let kind = match self.scanner.token() {
            Some(b'[') => Kind::Array(0),
            Some(b'{') => Kind::Object(0),
            _ => return self.text(self.depth()),
        };
        if self.open.len() >= MAX_DEPTH {
            return Err(too_deep(self.scanner.at()));
        }
        self.scanner.take();
        let mut mark = self.scanner.at();
        if let (Kind::Object(_), Holds::Here(inject)) = (&kind, shape.holds) {
            mark = self.hold(inject, mark)?;
        }
        self.open.push(Frame::new(shape, key, kind, items, mark));
        Ok(())
    }

    /// Notes the object that begins at `at` as one that holds a limit: its place among them.
    #[cold]
    fn hold(&mut self, inject: &'static Inject, at: usize) -> Result<usize, BadBody> {
        // A peek only: the members are checked by the walk.
        let comma = Scanner::clone(&self.scanner).token() != Some(b'}');
        holder::push(&mut self.holders, Holder { span: at..at, inject, missing: 1, braced: false, comma })?;
        Ok(self.holders.len() - 1)
    }

    /// Takes note of an item that is to be read, where not anything may come.
    #[cold]
    pub(super) fn item(&mut self, items: Items) -> Result<(), BadBody> {
        self.prompts.0 += u64::from(items != Items::Settings);
        if items != Items::Prompts && self.scanner.token() != Some(b'{') {
            return Err(self.wrong("", "an object"));
        }
        Ok(())
    }

    /// Closes the innermost array or object; `empty` tells that nothing stood in it.
    #[inline]
    pub(super) fn close(&mut self, empty: bool) -> Result<(), BadBody> {
        let Some(frame) = self.open.last() else { return Ok(()) };
        let special = frame.items == Items::Settings || matches!(frame.shape.holds, Holds::Within(..));
        if special || !self.sources.is_empty() {
            self.settle(empty)?;
        }
        self.open.pop();
        Ok(())
    }

    /// What is left to do for some of them.
    #[cold]
    fn settle(&mut self, empty: bool) -> Result<(), BadBody> {
        let Some(frame) = self.open.last() else { return Ok(()) };
        if frame.items == Items::Settings && empty {
            return Err(self.wrong("", "an object"));
        }
        let mark = frame.mark;
        if let (Kind::Object(seen), Holds::Within(inject, missing)) = (&frame.kind, frame.shape.holds) {
            let within = inject.key(missing);
            let fields = frame.shape.fields.iter().enumerate();
            let mut come = fields.filter(|(place, _)| seen >> place & 1 == 1);
            if !come.any(|(_, field)| Some(field.key) == within) {
                let span = frame.mark..frame.mark;
                let holder = Holder { span, inject, missing, braced: false, comma: !empty };
                holder::push(&mut self.holders, holder)?;
            }
        }
        if let Some(source) = self.sources.pop_if(|source| source.depth == self.open.len()) {
            match source.data {
                Some(text) if source.plain => self.prompt.add(text),
                data => self.prompt.media += u64::from(data.is_some()),
            }
            self.prompt.media += u64::from(source.kept && self.media_end <= mark);
        }
        Ok(())
    }

    /// The fault of the next value, which has to be `due`.
    #[cold]
    pub(super) fn wrong(&mut self, key: &str, due: &str) -> BadBody {
        self.scanner.token();
        let path = path(&self.open, key);
        BadBody { at: self.scanner.at(), message: format!("{path} must be {due}"), param: Some(path) }
    }
}

/// The fault of the field `name` that comes a second time, as `key`, in the innermost of the frames.
#[cold]
pub fn twice(open: &[Frame], name: &str, key: &Str) -> BadBody {
    let path = path(open, name);
    let message = format!("{path} is given twice; once is allowed");
    BadBody { at: key.inside.start.saturating_sub(1), param: Some(path), message }
}

/// The path of the member `name` of the innermost frame.
pub fn path(open: &[Frame], name: &str) -> String {
    let mut path = String::new();
    for frame in open {
        dot(&mut path, frame.key);
        if let Kind::Array(next) = frame.kind {
            path.push_str(&format!("[{}]", next.saturating_sub(1)));
        }
    }
    dot(&mut path, name);
    path
}

fn dot(path: &mut String, key: &str) {
    if !path.is_empty() && !key.is_empty() {
        path.push('.');
    }
    path.push_str(key);
}
