//! What a simulated server is: how it schedules, what it has room for, what a step costs.

use anyhow::{Result, ensure};
use clap::ValueEnum;
use std::time::Duration;

/// One simulated server. Names and meanings are vLLM's; each GPU is a replica with all of this to itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Most sequences in the batch at once.
    pub max_num_seqs: usize,
    /// Most tokens that one step may compute, decodes and prompts together.
    pub max_num_batched_tokens: u32,
    /// Whether prompts are read in chunks that share their steps with the decodes. Otherwise a prompt is read whole, in
    /// a step of its own (with others that enter), while every decode stands still, as vLLM's first engine did.
    pub chunked_prefill: bool,
    /// Who waits first and who is preempted first.
    pub scheduling: Scheduling,
    /// Most tokens of a prompt and its answer together.
    pub max_model_len: u32,
    /// Blocks of the KV cache.
    pub kv_blocks: u32,
    /// Tokens in a block.
    pub block_size: u32,
    /// Whether blocks are kept when they are free, to be found by prompts that begin alike.
    pub prefix_caching: bool,
    /// Replicas behind the one port; a request goes to the least loaded.
    pub gpus: usize,
    /// What every step costs: reading the weights once.
    pub base: Duration,
    /// What each sequence adds to a step that computes for it.
    pub per_sequence: Duration,
    /// What each prompt token adds to the step that reads it.
    pub per_prefill_token: Duration,
    /// What each token of context, of each sequence in the step, adds to it: reading the KV cache.
    pub per_context_token: Duration,
}

/// The order of the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Scheduling {
    /// First come, first served; last come, first preempted (vLLM's `fcfs`).
    Fifo,
    /// By the request's `priority`, the lowest number first, and by arrival among equals.
    Priority,
}

/// What one step computes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Sequences that it computes for.
    pub sequences: u32,
    /// Tokens of prompts, and of answers that are computed anew after a preemption.
    pub prefill_tokens: u32,
    /// Tokens of context that all of its sequences have at its end.
    pub context_tokens: u32,
}

const MOST_SEQUENCES: usize = 65_536;
const MOST_TOKENS: usize = 16_777_216;
const MOST_COST: Duration = Duration::from_secs(60);

impl Spec {
    /// How long a step lasts: the four costs, each times its count.
    pub fn lasts(&self, work: Work) -> Duration {
        self.base
            + self.per_sequence * work.sequences
            + self.per_prefill_token * work.prefill_tokens
            + self.per_context_token * work.context_tokens
    }

    /// Whether a server can be started with this; the conditions are those that vLLM starts under, and any job that
    /// fits into `max_model_len` comes to its end under them. The error names every field that is wrong.
    pub fn check(&self) -> Result<()> {
        let mut wrong = Vec::new();
        for (name, value) in [
            ("max_num_seqs", self.max_num_seqs),
            ("max_num_batched_tokens", self.max_num_batched_tokens as usize),
            ("max_model_len", self.max_model_len as usize),
            ("block_size", self.block_size as usize),
            ("gpus", self.gpus),
        ] {
            if value == 0 {
                wrong.push(format!("{name} must be at least 1"));
            }
        }
        if (self.max_num_batched_tokens as usize) < self.max_num_seqs {
            wrong.push(format!(
                "max_num_batched_tokens ({}) must be at least max_num_seqs ({}), or some would never get a token",
                self.max_num_batched_tokens, self.max_num_seqs
            ));
        }
        if !self.chunked_prefill && self.max_num_batched_tokens < self.max_model_len {
            wrong.push(format!(
                "without chunked_prefill, max_num_batched_tokens ({}) must be at least max_model_len ({}), or a long \
                 prompt could never be read",
                self.max_num_batched_tokens, self.max_model_len
            ));
        }
        let cached = u64::from(self.kv_blocks) * u64::from(self.block_size);
        if cached < u64::from(self.max_model_len) {
            wrong.push(format!(
                "kv_blocks x block_size ({cached} tokens) must hold one sequence of max_model_len ({})",
                self.max_model_len
            ));
        }
        // So that no sum of tokens or times overflows.
        for (name, value, most) in [
            ("max_num_seqs", self.max_num_seqs, MOST_SEQUENCES),
            ("max_model_len", self.max_model_len as usize, MOST_TOKENS),
            ("block_size", self.block_size as usize, MOST_TOKENS),
            ("gpus", self.gpus, MOST_SEQUENCES),
        ] {
            if value > most {
                wrong.push(format!("{name} ({value}) may be at most {most}"));
            }
        }
        for (name, cost) in [
            ("base", self.base),
            ("per_sequence", self.per_sequence),
            ("per_prefill_token", self.per_prefill_token),
            ("per_context_token", self.per_context_token),
        ] {
            if cost > MOST_COST {
                wrong.push(format!("{name} ({cost:?}) may be at most {MOST_COST:?}"));
            }
        }
        ensure!(wrong.is_empty(), "{}", wrong.join("; "));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::preset::Preset;
    use super::*;

    #[test]
    fn every_preset_can_be_started() {
        for preset in Preset::value_variants() {
            preset.spec().check().unwrap();
        }
    }

    #[test]
    fn every_mistake_is_named() {
        let spec = Spec {
            max_num_seqs: 0,
            block_size: 0,
            gpus: 0,
            max_num_batched_tokens: 10,
            chunked_prefill: false,
            max_model_len: 11,
            ..Preset::Gpu.spec()
        };
        let error = spec.check().unwrap_err().to_string();
        for said in [
            "max_num_seqs must",
            "block_size must",
            "gpus must",
            "must be at least max_model_len",
            "kv_blocks",
        ] {
            assert!(error.contains(said), "{said}: {error}");
        }
    }
}
