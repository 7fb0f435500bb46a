//! What a batch is asked for, and what it gives.

/// A generation to be made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Job {
    /// Length of the prompt; 0 counts as 1.
    pub prompt_tokens: u32,
    /// Exact length of the answer; 0 counts as 1.
    pub output_tokens: u32,
    /// The lowest goes first; only looked at with [`Scheduling::Priority`](super::spec::Scheduling::Priority).
    pub priority: i32,
    /// What the prompt has in common with others.
    pub prefix: Option<Prefix>,
}

/// A beginning that prompts share, such as a system prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// Equal for equal texts.
    pub id: u64,
    /// How much of the prompt it is.
    pub tokens: u32,
}

/// One token of one sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// Its place in the answer, from 0.
    pub index: u32,
    /// Whether the answer ends with it.
    pub last: bool,
    /// How many tokens of the prompt were found in the cache when the sequence first entered.
    pub cached_tokens: u32,
}

/// What was done since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Steps begun.
    pub steps: u64,
    /// Prompts that entered, in tokens.
    pub prompt_tokens: u64,
    /// Tokens made.
    pub generation_tokens: u64,
    /// Sequences that lost their blocks to others.
    pub preemptions: u64,
    /// Tokens looked for in the prefix cache.
    pub prefix_queries: u64,
    /// Tokens found there.
    pub prefix_hits: u64,
}

impl std::iter::Sum for Stats {
    fn sum<I: Iterator<Item = Stats>>(all: I) -> Stats {
        all.fold(Stats::default(), |sum, one| Stats {
            steps: sum.steps + one.steps,
            prompt_tokens: sum.prompt_tokens + one.prompt_tokens,
            generation_tokens: sum.generation_tokens + one.generation_tokens,
            preemptions: sum.preemptions + one.preemptions,
            prefix_queries: sum.prefix_queries + one.prefix_queries,
            prefix_hits: sum.prefix_hits + one.prefix_hits,
        })
    }
}
