//! Servers to choose from.

use super::spec::{Scheduling, Spec};
use clap::ValueEnum;
use std::time::Duration;

/// A server whose figures are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Preset {
    /// Round figures in the order of an 8B model on one large GPU with room for 16 long sequences:
    /// 4.3 ms a step alone, 8.8 ms with all 16 running, 50,000 prompt tokens a second. Not measured.
    Gpu,
    /// A 135M model under llama.cpp on two CPU cores, 4 slots. Fitted to a run of the real server:
    /// 160 tokens a second alone, 320 with four, about 450 prompt tokens a second.
    Cpu,
}

impl Preset {
    /// The figures of this server.
    pub fn spec(self) -> Spec {
        match self {
            // As many tokens a step as may ever be: a prompt is read whole in the step in which it enters, which it
            // shares with the decodes.
            Preset::Gpu => Spec {
                max_num_seqs: 16,
                max_num_batched_tokens: 16 * 32_768,
                chunked_prefill: true,
                scheduling: Scheduling::Fifo,
                max_model_len: 32_768,
                kv_blocks: 16 * 2_048,
                block_size: 16,
                prefix_caching: true,
                gpus: 1,
                base: Duration::from_micros(4_000),
                per_sequence: Duration::from_micros(300),
                per_prefill_token: Duration::from_micros(20),
                per_context_token: Duration::ZERO,
            },
            Preset::Cpu => Spec {
                max_num_seqs: 4,
                max_num_batched_tokens: 2_048,
                chunked_prefill: true,
                scheduling: Scheduling::Fifo,
                max_model_len: 4_096,
                kv_blocks: 4 * 256,
                block_size: 16,
                prefix_caching: false,
                gpus: 1,
                base: Duration::from_micros(4_000),
                per_sequence: Duration::from_micros(2_100),
                per_prefill_token: Duration::from_micros(2_200),
                per_context_token: Duration::ZERO,
            },
        }
    }
}
