//! One VM: its contexts, the rules of calling into it, and the actions that Envoy defers until a call returns.
//!
//! The state lies in a thread-local that host functions reach while the guest runs, so nothing borrows it across a call
//! into the guest: each borrow is one [`with`].

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::guest;
use super::headers::Headers;
use super::metrics::Metric;
use super::process::Process;
use super::root::Root;
use super::shared::Inbox;
use super::stream::Stream;
use super::{ending, request, response};

thread_local! {
    static VM: RefCell<Option<Vm>> = const { RefCell::new(None) };
}

/// What a host call asks for and Envoy does once the present call into the VM has returned.
#[derive(Debug)]
pub enum Action {
    /// Let the request of this stream go on.
    Resume(u32),
    /// Answer this stream in the upstream's place.
    Reply(u32, Reply),
    /// Close this stream.
    Close(u32),
}

/// A local reply.
#[derive(Clone, Debug, Default)]
pub struct Reply {
    pub status: u16,
    pub details: String,
    pub flags: u64,
    pub headers: Headers,
    pub body: Vec<u8>,
}

/// What a call into the VM came back with.
pub struct Returned<T> {
    pub value: T,
    /// Whether a local reply was asked for during the call, whose return value then no longer counts.
    pub stopped: bool,
}

/// The VM of this thread.
pub struct Vm {
    pub process: Arc<Process>,
    pub inbox: Arc<Inbox>,
    pub roots: BTreeMap<u32, Root>,
    pub streams: BTreeMap<u32, Stream>,
    /// The root that new streams belong to.
    pub root: u32,
    /// The plugin's configuration, readable while `on_configure` runs.
    pub configuration: Option<Vec<u8>>,
    /// Metrics by the id that the guest holds; each definition makes a new one.
    pub metrics: Vec<Metric>,
    pub actions: VecDeque<Action>,
    /// Whether a local reply was asked for during the present call.
    pub stop: bool,
    /// State of the seeded random generator.
    pub random: u64,
    current: u32,
    effective: u32,
    last_context: u32,
    depth: usize,
}

impl Vm {
    pub fn new(process: Arc<Process>, inbox: Arc<Inbox>, seed: u64) -> Vm {
        Vm {
            process,
            inbox,
            roots: BTreeMap::new(),
            streams: BTreeMap::new(),
            root: 0,
            configuration: None,
            metrics: Vec::new(),
            actions: VecDeque::new(),
            stop: false,
            random: seed,
            current: 0,
            effective: 0,
            last_context: 0,
            depth: 0,
        }
    }

    /// A context id; never used twice in one VM.
    pub fn next_context(&mut self) -> u32 {
        self.last_context += 1;
        self.last_context
    }

    /// The context that host calls act on: the effective one where it still lives, else the one called.
    pub fn context(&self) -> u32 {
        if self.lives(self.effective) { self.effective } else { self.current }
    }

    /// The context whose callback runs.
    pub fn current(&self) -> u32 {
        self.current
    }

    /// Chooses the context that host calls act on; with a dead one the choice made before stays in force.
    pub fn choose(&mut self, context: u32) -> bool {
        let lives = self.lives(context);
        if lives {
            self.effective = context;
        }
        lives
    }

    /// The root of a context, which is itself for a root.
    pub fn root_of(&self, context: u32) -> u32 {
        self.streams.get(&context).map_or(context, |stream| stream.root)
    }

    fn lives(&self, context: u32) -> bool {
        self.roots.contains_key(&context) || self.streams.contains_key(&context)
    }
}

/// Gives this thread its VM, or takes it away so that host calls of dying thread-locals fail.
pub fn install(vm: Option<Vm>) {
    VM.with(|slot| *slot.borrow_mut() = vm);
}

/// The VM of this thread, from the host's side.
pub fn with<T>(work: impl FnOnce(&mut Vm) -> T) -> T {
    try_with(work).expect("a thread with a VM, not borrowed across a call")
}

/// The VM of this thread, from a host function: `None` on a thread that has none (any more).
pub fn try_with<T>(work: impl FnOnce(&mut Vm) -> T) -> Option<T> {
    VM.try_with(|slot| slot.try_borrow_mut().ok()?.as_mut().map(work)).ok().flatten()
}

/// A stream, where it still lives.
pub fn stream<T>(id: u32, work: impl FnOnce(&mut Stream) -> T) -> Option<T> {
    with(|vm| vm.streams.get_mut(&id).map(work))
}

/// Calls into the VM as `context`, then does what was deferred meanwhile.
pub fn call<T>(context: u32, entry: impl FnOnce() -> T) -> Returned<T> {
    let before = with(|vm| {
        let before = (vm.current, vm.effective);
        (vm.current, vm.effective) = (context, 0);
        before
    });
    let value = entry();
    let stopped = with(|vm| {
        (vm.current, vm.effective) = before;
        std::mem::take(&mut vm.stop)
    });
    drain();
    Returned { value, stopped }
}

/// Delivers queue messages until there are none, as Envoy's event loop would; each is a callback of its own. Whether
/// there was any.
pub fn settle() -> bool {
    const ENDLESS: usize = 100_000;
    for delivered in 0..ENDLESS {
        let next = with(|vm| vm.inbox.lock().expect("inbox").pop_front());
        let Some((root, token)) = next else { return delivered > 0 };
        if with(|vm| vm.roots.contains_key(&root)) {
            call(root, || guest::proxy_on_queue_ready(root, token));
        }
    }
    with(|vm| vm.process.fault("queue messages never end"));
    false
}

/// One first-in-first-out list a VM, worked off when any call returns, so that an action that calls into the VM again
/// runs the rest of the list nested within itself.
fn drain() {
    while let Some(action) = with(|vm| vm.actions.pop_front()) {
        with(|vm| {
            vm.depth += 1;
            vm.process.nested(vm.depth);
        });
        match action {
            Action::Resume(id) => request::resume(id),
            Action::Reply(id, reply) => response::reply(id, reply),
            Action::Close(id) => ending::close(id),
        }
        with(|vm| vm.depth -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::process::Settings;

    #[test]
    fn a_dead_context_leaves_the_choice_made_before_in_force() {
        let process = Arc::new(Process::new(Settings::default()));
        let mut vm = Vm::new(process, Arc::default(), 1);
        vm.current = 1;
        for (context, root) in [(1, true), (2, false), (3, false)] {
            if root {
                vm.roots.insert(context, Root::default());
            } else {
                vm.streams.insert(context, Stream::new(1, 0, Headers::default(), 0));
            }
        }
        assert!(vm.choose(2));
        assert!(!vm.choose(4));
        assert_eq!(vm.context(), 2);
        vm.streams.remove(&2);
        assert_eq!(vm.context(), 1, "where the chosen one has gone it is the one called");
    }
}
