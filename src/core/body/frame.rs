//! Arrays and objects of shapes that are open while a body is walked over: how they open and close.

use super::BadBody;
use super::holder::{self, Form, Holder};
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
    /// The byte offset behind what opened it.
    pub at: usize,
    /// The place of the holder that it is, where it is one.
    pub holder: usize,
    /// What its `data` holds, which may be text.
    pub data: Option<Text>,
    /// Whether its `type` says that it is text.
    pub plain: bool,
}

/// An array or an object.
pub enum Kind {
    /// With the index of the next item.
    Array(usize),
    /// With a bit for each of the shape's fields that has come.
    Object(u64),
}

/// What the items of an array are.
#[derive(Clone, Copy, Debug, Default)]
pub struct Items {
    /// Each is a prompt of its own.
    pub prompts: bool,
    /// None may be anything but an object.
    pub objects: bool,
    /// There has to be one.
    pub some: bool,
}

impl Frame {
    /// One that has just been opened.
    pub fn new(shape: &'static Shape, key: &'static str, kind: Kind, items: Items, at: usize) -> Frame {
        Frame { shape, key, kind, items, first: true, at, holder: 0, data: None, plain: false }
    }
}

impl Walk<'_> {
    /// The object with the output limit, or the objects.
    pub(super) fn settings(&mut self, key: &'static str, settings: &'static Settings) -> Result<(), BadBody> {
        match self.scanner.token() {
            Some(b'{') => self.enter(key, settings.shape, Items::default()),
            Some(b'[') if settings.list => {
                self.enter(key, settings.shape, Items { prompts: false, objects: true, some: true })
            }
            Some(b'n') => {
                let start = self.scanner.at();
                self.scanner.literal()?;
                let (true, Holds::Here(inject)) = (settings.null, settings.shape.holds) else {
                    return Ok(());
                };
                let span = start..self.scanner.at();
                holder::push(&mut self.holders, Holder { span, inject, form: Form::Object, comma: false })
            }
            _ => Err(self.wrong(key, "an object")),
        }
    }

    /// Opens an array or object of `shape`; anything else is text.
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
        let at = self.scanner.at();
        let mut frame = Frame::new(shape, key, kind, items, at);
        if let (Kind::Object(_), Holds::Here(inject)) = (&frame.kind, shape.holds) {
            frame.holder = self.holders.len();
            // A peek only: the members are checked by the walk.
            let comma = Scanner::clone(&self.scanner).token() != Some(b'}');
            holder::push(&mut self.holders, Holder { span: at..at, inject, form: Form::Member, comma })?;
        }
        self.open.push(frame);
        Ok(())
    }

    /// Closes the innermost array or object; `empty` tells that nothing stood in it.
    pub(super) fn close(&mut self, empty: bool) -> Result<(), BadBody> {
        let Some(frame) = self.open.last() else { return Ok(()) };
        if frame.items.some && empty {
            return Err(self.wrong("", "an object"));
        }
        match (frame.data, frame.plain) {
            (Some(text), true) => self.prompt.add(text),
            (Some(_), false) => self.prompt.media += 1,
            (None, _) => {}
        }
        if let (Kind::Object(seen), Holds::Within(inject)) = (&frame.kind, frame.shape.holds) {
            let (within, _) = inject.keys();
            let fields = frame.shape.fields.iter().enumerate();
            let mut come = fields.filter(|(place, _)| seen >> place & 1 == 1);
            if !come.any(|(_, field)| Some(field.key) == within) {
                let holder = Holder { span: frame.at..frame.at, inject, form: Form::Whole, comma: !empty };
                holder::push(&mut self.holders, holder)?;
            }
        }
        self.open.pop();
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

/// The fault of a field that comes a second time, as `key`, in the innermost of the frames.
#[cold]
pub fn twice(open: &[Frame], place: usize, key: &Str) -> BadBody {
    let name = open.last().and_then(|frame| frame.shape.fields.get(place)).map_or("", |field| field.key);
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
