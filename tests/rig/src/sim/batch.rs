//! The batch of one replica: who waits, who runs, what a step computes and how long it lasts. No clock and no socket;
//! the caller lets the time pass.

use super::blocks::Blocks;
use super::job::{Job, Stats, Token};
use super::sequence::{Place, Sequence};
use super::spec::{Scheduling, Spec, Work};
use anyhow::{Result, ensure};
use std::collections::BTreeMap;
use std::time::Duration;

/// Continuous batching in iterations: [`Batch::begin`] schedules and prices a step, [`Batch::finish`] ends it.
/// `T` is whatever the caller needs to tell whose token it is.
///
/// Scheduling is that of vLLM's V1 engine (`vllm/v1/core/sched/scheduler.py`): a sequence has tokens, of which some are
/// computed, and a step computes more of them within the token budget. First those that run, then those that wait
/// while seats and blocks last. Where a running one finds no block, the last in the order of [`Scheduling`] loses all
/// of its blocks and goes back to its place in the line, to be computed anew; nobody enters in such a step.
#[derive(Debug)]
pub struct Batch<T> {
    spec: Spec,
    waiting: BTreeMap<Place, Sequence<T>>,
    /// In the order in which they entered.
    running: Vec<Sequence<T>>,
    blocks: Blocks,
    arrivals: u64,
    stats: Stats,
}

impl<T> Batch<T> {
    /// An empty batch of one replica; an error says what is wrong with `spec`.
    pub fn new(spec: Spec) -> Result<Self> {
        spec.check()?;
        Ok(Batch {
            spec,
            waiting: BTreeMap::new(),
            running: Vec::new(),
            blocks: Blocks::new(spec.kv_blocks, spec.prefix_caching),
            arrivals: 0,
            stats: Stats::default(),
        })
    }

    /// Puts a generation at its place in the waiting line. An error: it is longer than the model takes.
    pub fn push(&mut self, owner: T, job: Job) -> Result<()> {
        let job =
            Job { prompt_tokens: job.prompt_tokens.max(1), output_tokens: job.output_tokens.max(1), ..job };
        ensure!(
            job.prompt_tokens.saturating_add(job.output_tokens) <= self.spec.max_model_len,
            "{} tokens of prompt and {} of answer are more than max_model_len ({}) allows",
            job.prompt_tokens,
            job.output_tokens,
            self.spec.max_model_len
        );
        let priority = match self.spec.scheduling {
            Scheduling::Fifo => 0,
            Scheduling::Priority => job.priority,
        };
        let place = (priority, self.arrivals);
        self.arrivals += 1;
        self.waiting.insert(place, Sequence::new(owner, place, job));
        Ok(())
    }

    /// Forgets, waiting or running, all whose owner is not `wanted` any more. At any time, also within a step.
    pub fn retain(&mut self, wanted: impl Fn(&T) -> bool) {
        self.waiting.retain(|_, sequence| wanted(&sequence.owner));
        let blocks = &mut self.blocks;
        self.running.retain_mut(|sequence| {
            let wanted = wanted(&sequence.owner);
            if !wanted {
                sequence.leave(blocks);
            }
            wanted
        });
    }

    /// Begins a step and says how long it lasts. `None` when there is nothing to do.
    pub fn begin(&mut self) -> Option<Duration> {
        self.begin_telling(|_| {})
    }

    /// Like [`Batch::begin`]; `entered` is called for each that runs for the first time.
    pub fn begin_telling(&mut self, entered: impl FnMut(&T)) -> Option<Duration> {
        let mut budget = self.spec.max_num_batched_tokens;
        for sequence in &mut self.running {
            sequence.scheduled = 0;
        }
        if self.spec.chunked_prefill {
            if !self.go_on(&mut budget) {
                self.admit(&mut budget, entered);
            }
        } else if !self.admit(&mut budget, entered) {
            self.go_on(&mut budget);
        }
        let work = self.work();
        (work.sequences > 0).then(|| {
            self.stats.steps += 1;
            self.spec.lasts(work)
        })
    }

    /// Ends the step: every sequence that has all of its tokens computed gets one more, those that have all of theirs
    /// leave. Without a step begun it does nothing.
    pub fn finish(&mut self, mut tell: impl FnMut(&T, Token)) {
        let Batch { running, blocks, stats, .. } = self;
        running.retain_mut(|sequence| {
            let scheduled = std::mem::take(&mut sequence.scheduled);
            sequence.computed += scheduled;
            if scheduled == 0 || sequence.left() > 0 {
                return true;
            }
            let token = Token {
                index: sequence.made,
                last: sequence.made + 1 >= sequence.job.output_tokens,
                cached_tokens: sequence.cached_tokens.unwrap_or(0),
            };
            sequence.made += 1;
            stats.generation_tokens += 1;
            tell(&sequence.owner, token);
            if token.last {
                sequence.leave(blocks);
            }
            !token.last
        });
    }

    /// How many sequences run.
    pub fn running(&self) -> usize {
        self.running.len()
    }

    /// How many sequences wait.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// The share of the KV cache that is in use, 0 to 1.
    pub fn kv_usage(&self) -> f64 {
        f64::from(self.blocks.used()) / f64::from(self.spec.kv_blocks)
    }

    /// What was done since the start.
    pub fn stats(&self) -> Stats {
        self.stats
    }

    /// Schedules those that run. True when one of them had to go.
    fn go_on(&mut self, budget: &mut u32) -> bool {
        let (mut at, mut preempted) = (0, false);
        while *budget > 0 && at < self.running.len() {
            let tokens = self.running[at].left().min(*budget);
            if self.running[at].grow(tokens, &self.spec, &mut self.blocks) {
                *budget -= tokens;
                at += 1;
                continue;
            }
            preempted = true;
            let last = (0..self.running.len()).max_by_key(|&index| self.running[index].place).unwrap_or(at);
            let mut sequence = self.running.remove(last);
            *budget += sequence.scheduled;
            sequence.leave(&mut self.blocks);
            self.stats.preemptions += 1;
            self.waiting.insert(sequence.place, sequence);
            at -= usize::from(last < at);
        }
        preempted
    }

    /// Lets in and schedules those that wait, in the order of the line, as far as budget, seats and blocks last; who
    /// does not fit holds up all behind. True when somebody entered.
    fn admit(&mut self, budget: &mut u32, mut entered: impl FnMut(&T)) -> bool {
        let before = self.running.len();
        while *budget > 0 && self.running.len() < self.spec.max_num_seqs {
            let Some(first) = self.waiting.first_entry() else { break };
            let sequence = first.get();
            let (hits, idle) = self.blocks.hits(sequence.findable(&self.spec));
            let found = hits * self.spec.block_size;
            let left = sequence.tokens() - found;
            let tokens = left.min(*budget);
            let new_blocks = (found + tokens).div_ceil(self.spec.block_size) - hits;
            let whole = tokens == left || self.spec.chunked_prefill;
            if !whole || new_blocks + idle > self.blocks.free() {
                break;
            }
            let mut sequence = first.remove();
            if self.spec.prefix_caching {
                self.stats.prefix_queries += u64::from(sequence.tokens());
                self.stats.prefix_hits += u64::from(found);
            }
            sequence.find(hits, &self.spec, &mut self.blocks);
            sequence.grow(tokens, &self.spec, &mut self.blocks);
            *budget -= tokens;
            if sequence.cached_tokens.is_none() {
                sequence.cached_tokens = Some(found);
                self.stats.prompt_tokens += u64::from(sequence.job.prompt_tokens);
                entered(&sequence.owner);
            }
            self.running.push(sequence);
        }
        self.running.len() > before
    }

    fn work(&self) -> Work {
        let mut work = Work::default();
        for sequence in self.running.iter().filter(|sequence| sequence.scheduled > 0) {
            work.sequences += 1;
            work.context_tokens = work.context_tokens.saturating_add(sequence.computed + sequence.scheduled);
            if !sequence.decodes() {
                work.prefill_tokens += sequence.scheduled;
            }
        }
        work
    }
}
