//! A sequence: how far it is, and which blocks of the KV cache it holds.

use super::blocks::{Blocks, Content, Text};
use super::job::Job;
use super::spec::Spec;

/// A place in the line, and in the order of who may stay: by priority, then by arrival.
pub type Place = (i32, u64);

/// A generation that waits or runs.
#[derive(Debug)]
pub struct Sequence<T> {
    pub owner: T,
    pub place: Place,
    pub job: Job,
    pub made: u32,
    /// Tokens of prompt and answer whose keys and values are in the cache.
    pub computed: u32,
    /// Tokens that the present step computes.
    pub scheduled: u32,
    /// None before it first entered.
    pub cached_tokens: Option<u32>,
    /// The blocks it uses, by content where that is known.
    blocks: Vec<Option<Content>>,
}

impl<T> Sequence<T> {
    /// A generation that has not run yet.
    pub fn new(owner: T, place: Place, job: Job) -> Sequence<T> {
        Sequence {
            owner,
            place,
            job,
            made: 0,
            computed: 0,
            scheduled: 0,
            cached_tokens: None,
            blocks: Vec::new(),
        }
    }

    /// Tokens of prompt and answer that there are.
    pub fn tokens(&self) -> u32 {
        self.job.prompt_tokens + self.made
    }

    /// Tokens that are still to be computed before the next one can be made.
    pub fn left(&self) -> u32 {
        self.tokens() - self.computed
    }

    /// Whether all that is computed for it is its latest token.
    pub fn decodes(&self) -> bool {
        self.made > 0 && self.left() == 1
    }

    /// The blocks that may be found in the cache. At least one token is left to compute, or there would be nothing to
    /// make the next one from.
    pub fn findable(&self, spec: &Spec) -> impl Iterator<Item = Content> {
        let block_size = spec.block_size;
        let full = if spec.prefix_caching { (self.tokens() - 1) / block_size } else { 0 };
        (0..full).map(move |index| self.content(index, block_size))
    }

    /// Takes its first `hits` blocks, which are known, from the cache.
    pub fn find(&mut self, hits: u32, spec: &Spec, blocks: &mut Blocks) {
        for index in 0..hits {
            let content = self.content(index, spec.block_size);
            if blocks.share(content) {
                self.blocks.push(Some(content));
                self.computed += spec.block_size;
            }
        }
    }

    /// Schedules `tokens` and takes the blocks that they need; false, and nothing is taken, when there are not enough.
    /// Blocks that will be full can be found from now on, by others that enter in the same step, too.
    pub fn grow(&mut self, tokens: u32, spec: &Spec, blocks: &mut Blocks) -> bool {
        let end = self.computed + tokens;
        let held = self.blocks.len() as u32;
        let wanted = end.div_ceil(spec.block_size).saturating_sub(held);
        if wanted > blocks.free() {
            return false;
        }
        for _ in 0..wanted {
            blocks.take();
            self.blocks.push(None);
        }
        for index in self.computed / spec.block_size..end / spec.block_size {
            let content = self.content(index, spec.block_size);
            if blocks.name(content) {
                self.blocks[index as usize] = Some(content);
            }
        }
        self.scheduled = tokens;
        true
    }

    /// Gives all of its blocks back, the end first, so that a beginning stays known the longest.
    pub fn leave(&mut self, blocks: &mut Blocks) {
        for content in self.blocks.drain(..).rev() {
            blocks.give_back(content);
        }
        self.computed = 0;
        self.scheduled = 0;
    }

    /// What stands in its block at `index`, once that is full.
    fn content(&self, index: u32, block_size: u32) -> Content {
        let end = (index + 1) * block_size;
        let text = match self.job.prefix {
            Some(prefix) if end <= prefix.tokens.min(self.job.prompt_tokens) => Text::Shared(prefix.id),
            _ => Text::Own(self.place.1),
        };
        Content { text, index }
    }
}
