//! A thread with a VM of its own: a worker, the main thread's VM, or a canary.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use super::guest;
use super::process::Process;
use super::root;
use super::shared::Inbox;
use super::vm::{self, Vm};

/// The guest's start sets a logger for the whole test binary, so no two may start at once.
static START: Mutex<()> = Mutex::new(());

/// As large as a debug build needs for the deepest nesting allowed, and then some.
const STACK_BYTES: usize = 16 << 20;

type Job = Box<dyn FnOnce() + Send>;

/// A VM on its thread. Dropped, it vanishes without any callback, as a VM does that has failed or was a canary.
pub struct Worker {
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    /// A started VM without a root context.
    pub fn start(process: &Arc<Process>, seed: u64) -> Worker {
        let (jobs, todo) = channel::<Job>();
        let process = process.clone();
        let life = move || {
            vm::install(Some(Vm::new(process, Arc::new(Inbox::default()), seed)));
            {
                let _alone = START.lock().unwrap_or_else(PoisonError::into_inner);
                vm::call(0, || guest::_initialize());
            }
            for job in todo {
                job();
            }
            vm::install(None);
        };
        let thread =
            Builder::new().name("vm".to_owned()).stack_size(STACK_BYTES).spawn(life).expect("a thread");
        Worker { jobs: Some(jobs), thread: Some(thread) }
    }

    /// A VM with a root under `policy`; `None` where the filter refuses the policy.
    pub fn configured(process: &Arc<Process>, seed: u64, policy: &str) -> Option<Worker> {
        let worker = Worker::start(process, seed);
        let policy = policy.to_owned();
        worker.run(move || root::configure(&policy)).map(|_| worker)
    }

    /// Runs `job` on the VM's thread and waits for it.
    pub fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> T {
        let (done, result) = channel();
        let job = Box::new(move || {
            // Where the sender has gone, so has the test.
            let _ = done.send(catch_unwind(AssertUnwindSafe(job)));
        });
        self.jobs.as_ref().expect("jobs until dropped").send(job).expect("the VM's thread");
        match result.recv().expect("the job's end") {
            Ok(value) => value,
            Err(panic) => resume_unwind(panic),
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was already handed to the test by `run`.
            let _ = thread.join();
        }
    }
}
