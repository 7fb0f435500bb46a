//! What a step of the simulated server costs.

use clap::ValueEnum;
use std::time::Duration;

/// The figures of one simulated server. A step lasts
/// `base + per_sequence x running sequences + per_prompt_token x prompt tokens that enter in this step`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Most sequences in the batch at once (vLLM's `--max-num-seqs`).
    pub max_num_seqs: usize,
    /// What every step costs: reading the weights once.
    pub base: Duration,
    /// What each running sequence adds to a step.
    pub per_sequence: Duration,
    /// What each prompt token adds to the step that reads it, in which all others wait.
    pub per_prompt_token: Duration,
}

/// Servers to choose from.
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
    pub fn cost(self) -> Cost {
        match self {
            Preset::Gpu => Cost {
                max_num_seqs: 16,
                base: Duration::from_micros(4_000),
                per_sequence: Duration::from_micros(300),
                per_prompt_token: Duration::from_micros(20),
            },
            Preset::Cpu => Cost {
                max_num_seqs: 4,
                base: Duration::from_micros(4_000),
                per_sequence: Duration::from_micros(2_100),
                per_prompt_token: Duration::from_micros(2_200),
            },
        }
    }
}
