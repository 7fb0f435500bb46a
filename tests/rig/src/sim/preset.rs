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
    /// Llama-2-7B in FP16 on one NVIDIA A40 of 48 GB, as vLLM starts it: a small GPU, whose KV cache holds 13 full
    /// contexts of 4,096. See [`Profiled`] for the source.
    A40,
    /// Llama-3-8B in BF16 on one NVIDIA A100 of 80 GB, as vLLM starts it: a large GPU. See [`Profiled`] for the source.
    A100,
    /// A 135M model under llama.cpp on two CPU cores, 4 slots. Fitted to the real server by `rig curve`: 125 tokens a
    /// second alone, 190 with four, about 290 prompt tokens a second.
    Cpu,
}

impl Preset {
    /// Where the figures come from.
    pub fn source(self) -> &'static str {
        match self {
            Preset::Gpu => "round figures in the order of an 8B model on one large GPU, not measured",
            Preset::A40 => "Vidur's profile of Llama-2-7B on an A40, and NVIDIA's data sheet",
            Preset::A100 => "Vidur's profile of Llama-3-8B on an A100, and NVIDIA's data sheet",
            Preset::Cpu => "fitted to llama.cpp's server with SmolLM2 135M on two cores",
        }
    }

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
            Preset::A40 => Profiled {
                base: 23_595.0,
                per_sequence: 110.0,
                per_prefill_token: 113.5,
                weights: 13.5e9,
                memory: 48e9,
                bandwidth: 696e9,
                kv_token: 524_288,
                max_model_len: 4_096,
            }
            .spec(),
            Preset::A100 => Profiled {
                base: 9_859.0,
                per_sequence: 22.5,
                per_prefill_token: 64.3,
                weights: 16.1e9,
                memory: 80e9,
                bandwidth: 2_039e9,
                kv_token: 131_072,
                max_model_len: 8_192,
            }
            .spec(),
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
                base: Duration::from_micros(3_850),
                per_sequence: Duration::from_micros(4_600),
                per_prefill_token: Duration::from_micros(3_400),
                per_context_token: Duration::from_nanos(3_600),
            },
        }
    }
}

/// A GPU with a model, from published figures.
///
/// `base`, `per_sequence` and `per_prefill_token` (in microseconds) are straight lines through the profiles that Vidur
/// (Agrawal et al., "Vidur: A Large-Scale Simulation Framework for LLM Inference", MLSys 2024; repository
/// microsoft/vidur, `data/profiling/compute/*/meta-llama/*/mlp.csv`, medians, one GPU) took of all operators of a layer
/// but attention, times 32 layers: the first two through 1 to 64 tokens, which is what a step of decodes computes, the
/// third through 512 to 4,096. Deviations are in `benches/record/2026-11-30-model-server.md`.
///
/// Attention has to read the keys and values of the context, which is their size (2 x layers x KV heads x head dimension
/// x 2 bytes a token) over the memory's bandwidth, as in NVIDIA's data sheets. What vLLM does by default is from its
/// sources: 90 % of the memory for weights and KV cache, blocks of 16 tokens, 256 sequences and 2,048 tokens a step.
///
/// Not in it: sampling, the host's own work, activations, attention's quadratic part of a prompt.
struct Profiled {
    base: f64,
    per_sequence: f64,
    per_prefill_token: f64,
    /// In bytes, as is `memory`.
    weights: f64,
    memory: f64,
    /// In bytes a second.
    bandwidth: f64,
    /// Bytes of KV cache that a token takes.
    kv_token: u32,
    max_model_len: u32,
}

const BLOCK_SIZE: u32 = 16;
const MEMORY_UTILIZATION: f64 = 0.9;

impl Profiled {
    fn spec(self) -> Spec {
        let micros = |micros: f64| Duration::from_nanos((micros * 1e3) as u64);
        let kv_cache = self.memory * MEMORY_UTILIZATION - self.weights;
        Spec {
            max_num_seqs: 256,
            max_num_batched_tokens: 2_048,
            chunked_prefill: true,
            scheduling: Scheduling::Fifo,
            max_model_len: self.max_model_len,
            kv_blocks: (kv_cache / f64::from(self.kv_token * BLOCK_SIZE)) as u32,
            block_size: BLOCK_SIZE,
            prefix_caching: true,
            gpus: 1,
            base: micros(self.base),
            per_sequence: micros(self.per_sequence),
            per_prefill_token: micros(self.per_prefill_token),
            per_context_token: micros(f64::from(self.kv_token) / self.bandwidth * 1e6),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::spec::Work;
    use super::*;

    /// Agrawal et al., "Taming Throughput-Latency Tradeoff in LLM Inference with Sarathi-Serve" (OSDI 2024), table 3: the
    /// strict objective of 0.1 s for Mistral-7B on an A100 is five times what a step of 32 decodes takes beside contexts of
    /// 4,096. That model's layers are those of Llama-3-8B.
    #[test]
    fn a_step_of_the_a100_is_about_what_others_measured() {
        let work = Work { sequences: 32, prefill_tokens: 0, context_tokens: 32 * 4_096 };
        let lasts = Preset::A100.spec().lasts(work).as_secs_f64();
        assert!((lasts / 0.02 - 1.0).abs() < 0.1, "{lasts}");
    }

    #[test]
    fn the_small_one_is_short_of_cache_and_the_large_one_is_not() {
        let contexts = |preset: Preset| {
            let spec = preset.spec();
            spec.kv_blocks * spec.block_size / spec.max_model_len
        };
        assert_eq!((contexts(Preset::A40), contexts(Preset::A100)), (13, 52));
    }
}
