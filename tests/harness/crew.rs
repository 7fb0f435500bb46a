//! The VMs of a process that live on its threads, the main thread's and the workers', and how time passes for them.

use std::sync::Arc;
use std::time::Duration;

use super::process::Process;
use super::root;
use super::vm;
use super::worker::Worker;

/// The main thread's VM and the workers'.
pub struct Crew {
    process: Arc<Process>,
    main: Worker,
    workers: Vec<Member>,
    /// How many VMs there have been, so that no two of them draw the same numbers.
    born: u64,
}

/// A worker thread.
struct Member {
    /// `None` once its VM has failed.
    vm: Option<Worker>,
    /// Neither messages nor timers get through to it.
    hangs: bool,
}

impl Crew {
    /// An Envoy started with `policy`, which the filter must accept.
    pub fn start(process: &Arc<Process>, workers: usize, policy: &str) -> Crew {
        let mut born = 0;
        let mut start = || {
            born += 1;
            let refused = || panic!("the filter refused the policy: {:?}", process.logs());
            Worker::configured(process, born, policy).unwrap_or_else(refused)
        };
        // The canary lives before the others and vanishes without a word.
        drop(start());
        let main = start();
        let workers = (0..workers).map(|_| Member { vm: Some(start()), hangs: false }).collect();
        Crew { process: process.clone(), main, workers, born }
    }

    /// How many worker threads there are.
    pub fn len(&self) -> usize {
        self.workers.len()
    }

    /// Whether another policy is accepted; if so, each VM has a root under it.
    pub fn configure(&mut self, policy: &str) -> bool {
        self.born += 1;
        if Worker::configured(&self.process, self.born, policy).is_none() {
            return false;
        }
        for vm in self.all() {
            let policy = policy.to_owned();
            let root = vm.run(move || root::configure(&policy));
            assert!(root.is_some(), "refused by a worker, not by the canary");
        }
        true
    }

    /// The worker's VM fails: it vanishes without a callback, and with it what was on its way there.
    pub fn lose(&mut self, worker: usize) {
        self.workers[worker].vm = None;
    }

    /// The worker has a fresh VM under `policy`, which was accepted before.
    pub fn renew(&mut self, worker: usize, policy: &str) {
        self.born += 1;
        let vm = Worker::configured(&self.process, self.born, policy).expect("a policy accepted before");
        self.workers[worker].vm = Some(vm);
    }

    /// The worker's thread hangs, or does so no longer.
    pub fn hang(&mut self, worker: usize, hangs: bool) {
        self.workers[worker].hangs = hangs;
    }

    /// Runs `job` on a worker's thread and waits for it; what follows of it is not waited for.
    pub fn run<T: Send + 'static>(&self, worker: usize, job: impl FnOnce() -> T + Send + 'static) -> T {
        self.workers[worker].vm.as_ref().expect("a VM that lives").run(job)
    }

    /// Whether the worker has a VM.
    pub fn lives(&self, worker: usize) -> bool {
        self.workers[worker].vm.is_some()
    }

    /// Runs `job` on every thread that has a VM.
    pub fn run_on_all<T: Send + 'static>(&self, job: fn() -> T) -> Vec<T> {
        self.all().map(|vm| vm.run(job)).collect()
    }

    /// Queue messages are delivered until there are none.
    pub fn settle(&self) {
        const ENDLESS: usize = 10_000;
        for _ in 0..ENDLESS {
            if self.awake().filter(|vm| vm.run(vm::settle)).count() == 0 {
                return;
            }
        }
        self.process.fault("workers wake each other for ever");
    }

    /// Moves the clock, stopping wherever a timer is due.
    pub fn pass(&self, time: Duration) {
        let end = self.process.clock.after(time);
        self.settle();
        loop {
            let due = self.awake().filter_map(|vm| vm.run(root::next_tick)).min();
            let Some(due) = due.filter(|due| *due <= end) else { break };
            self.process.clock.advance_to(due);
            self.awake().for_each(|vm| vm.run(root::tick));
            self.settle();
        }
        self.process.clock.advance_to(end);
    }

    fn all(&self) -> impl Iterator<Item = &Worker> {
        [&self.main].into_iter().chain(self.workers.iter().filter_map(|member| member.vm.as_ref()))
    }

    fn awake(&self) -> impl Iterator<Item = &Worker> {
        let workers = self.workers.iter().filter(|member| !member.hangs);
        [&self.main].into_iter().chain(workers.filter_map(|member| member.vm.as_ref()))
    }
}
