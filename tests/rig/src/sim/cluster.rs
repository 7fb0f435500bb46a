//! Several replicas behind one port, each stepping in its own time.

use super::batch::Batch;
use super::job::{Job, Stats, Token};
use super::spec::Spec;
use anyhow::Result;
use std::time::Duration;

/// The batches of all replicas and the moments at which their steps end. All times count from whenever the caller says.
///
/// The caller pushes what has come, then calls [`Cluster::advance`] with the present moment, and again at the latest
/// when a step is [due](Cluster::due): in real time by a timer, in virtual time at once.
#[derive(Debug)]
pub struct Cluster<T> {
    replicas: Vec<Replica<T>>,
}

#[derive(Debug)]
struct Replica<T> {
    batch: Batch<T>,
    /// When the step under way ends; none while it idles.
    due: Option<Duration>,
}

/// What happens to a generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// It left the waiting line for the first time.
    Entered,
    /// It has one token more.
    Token(Token),
}

impl<T> Cluster<T> {
    /// Idle replicas, as many as `spec` has GPUs; an error says what is wrong with `spec`.
    pub fn new(spec: Spec) -> Result<Cluster<T>> {
        spec.check()?;
        let replica = |_| Ok(Replica { batch: Batch::new(spec)?, due: None });
        Ok(Cluster { replicas: (0..spec.gpus).map(replica).collect::<Result<_>>()? })
    }

    /// Puts a generation into the line of the least loaded replica; one that waits counts as four that run, as in
    /// vLLM's own balancer (`DPLBAsyncMPClient` in `vllm/v1/engine/core_client.py`). An error: it is too long.
    pub fn push(&mut self, owner: T, job: Job) -> Result<()> {
        let load = |replica: &&mut Replica<T>| 4 * replica.batch.waiting() + replica.batch.running();
        match self.replicas.iter_mut().min_by_key(load) {
            Some(replica) => replica.batch.push(owner, job),
            None => Ok(()),
        }
    }

    /// Forgets all whose owner is not `wanted` any more.
    pub fn retain(&mut self, wanted: impl Fn(&T) -> bool) {
        for replica in &mut self.replicas {
            replica.batch.retain(&wanted);
        }
    }

    /// When the next step ends; none while all replicas idle.
    pub fn due(&self) -> Option<Duration> {
        self.replicas.iter().filter_map(|replica| replica.due).min()
    }

    /// Ends all steps that are due by `now`, in the order of their ends, and begins the next ones right then, however
    /// late it is; replicas that idled begin now. `tell` learns who had what, and when.
    pub fn advance(&mut self, now: Duration, mut tell: impl FnMut(&T, Duration, Event)) {
        while let Some((replica, edge)) = self.first_due(now) {
            replica.batch.finish(|owner, token| tell(owner, edge, Event::Token(token)));
            replica.begin(edge, &mut tell);
        }
        self.wake(now, tell);
    }

    /// Begins a step on each replica that idles, if it has something to do: all that [`Cluster::advance`] does where
    /// nothing is due.
    pub fn wake(&mut self, now: Duration, mut tell: impl FnMut(&T, Duration, Event)) {
        for replica in self.replicas.iter_mut().filter(|replica| replica.due.is_none()) {
            replica.begin(now, &mut tell);
        }
    }

    /// How many sequences run.
    pub fn running(&self) -> usize {
        self.replicas.iter().map(|replica| replica.batch.running()).sum()
    }

    /// How many sequences wait.
    pub fn waiting(&self) -> usize {
        self.replicas.iter().map(|replica| replica.batch.waiting()).sum()
    }

    /// The share of all KV caches that is in use, 0 to 1.
    pub fn kv_usage(&self) -> f64 {
        self.replicas.iter().map(|replica| replica.batch.kv_usage()).sum::<f64>() / self.replicas.len() as f64
    }

    /// What all replicas did since the start.
    pub fn stats(&self) -> Stats {
        self.replicas.iter().map(|replica| replica.batch.stats()).sum()
    }

    fn first_due(&mut self, now: Duration) -> Option<(&mut Replica<T>, Duration)> {
        let due = self.replicas.iter_mut().filter_map(|replica| replica.due.map(|edge| (replica, edge)));
        due.min_by_key(|(_, edge)| *edge).filter(|(_, edge)| *edge <= now)
    }
}

impl<T> Replica<T> {
    fn begin(&mut self, at: Duration, tell: &mut impl FnMut(&T, Duration, Event)) {
        self.due = self.batch.begin_telling(|owner| tell(owner, at, Event::Entered)).map(|lasts| at + lasts);
    }
}
