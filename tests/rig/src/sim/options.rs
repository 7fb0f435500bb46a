//! A server by its preset and whatever of it is to be otherwise, from the command line.

use super::preset::Preset;
use super::spec::{Scheduling, Spec};
use anyhow::{Context as _, Result};
use clap::{ArgAction, Args, ValueEnum};
use std::time::Duration;

/// Flags named as vLLM's where it has them; what is not given is as in the preset.
#[derive(Args, Clone, Debug)]
#[group(id = "server")]
pub struct Options {
    /// The server to simulate.
    #[arg(long, value_enum, default_value = "gpu")]
    pub preset: Preset,
    /// Most sequences in the batch at once.
    #[arg(long)]
    pub max_num_seqs: Option<usize>,
    /// Most tokens that one step may compute.
    #[arg(long)]
    pub max_num_batched_tokens: Option<u32>,
    /// Whether prompts are read in chunks beside the decodes (true), or whole in steps of their own (false).
    #[arg(long, action = ArgAction::Set)]
    pub chunked_prefill: Option<bool>,
    /// Who waits first and is preempted last.
    #[arg(long, value_enum)]
    pub scheduling: Option<Scheduling>,
    /// Most tokens of a prompt and its answer together.
    #[arg(long)]
    pub max_model_len: Option<u32>,
    /// Blocks of the KV cache.
    #[arg(long)]
    pub kv_blocks: Option<u32>,
    /// Tokens in a block.
    #[arg(long)]
    pub block_size: Option<u32>,
    /// Whether blocks are kept for prompts that begin alike.
    #[arg(long, action = ArgAction::Set)]
    pub prefix_caching: Option<bool>,
    /// Replicas behind the one port.
    #[arg(long)]
    pub gpus: Option<usize>,
    /// What every step costs, in microseconds, as the other costs.
    #[arg(long, value_parser = micros)]
    pub base_us: Option<Duration>,
    /// What each sequence adds to a step.
    #[arg(long, value_parser = micros)]
    pub per_sequence_us: Option<Duration>,
    /// What each prompt token adds to the step that reads it.
    #[arg(long, value_parser = micros)]
    pub per_prefill_token_us: Option<Duration>,
    /// What each token of context adds to a step.
    #[arg(long, value_parser = micros)]
    pub per_context_token_us: Option<Duration>,
}

impl Options {
    /// The server; an error says what is wrong with it.
    pub fn spec(&self) -> Result<Spec> {
        let preset = self.preset.spec();
        let spec = Spec {
            max_num_seqs: self.max_num_seqs.unwrap_or(preset.max_num_seqs),
            max_num_batched_tokens: self.max_num_batched_tokens.unwrap_or(preset.max_num_batched_tokens),
            chunked_prefill: self.chunked_prefill.unwrap_or(preset.chunked_prefill),
            scheduling: self.scheduling.unwrap_or(preset.scheduling),
            max_model_len: self.max_model_len.unwrap_or(preset.max_model_len),
            kv_blocks: self.kv_blocks.unwrap_or(preset.kv_blocks),
            block_size: self.block_size.unwrap_or(preset.block_size),
            prefix_caching: self.prefix_caching.unwrap_or(preset.prefix_caching),
            gpus: self.gpus.unwrap_or(preset.gpus),
            base: self.base_us.unwrap_or(preset.base),
            per_sequence: self.per_sequence_us.unwrap_or(preset.per_sequence),
            per_prefill_token: self.per_prefill_token_us.unwrap_or(preset.per_prefill_token),
            per_context_token: self.per_context_token_us.unwrap_or(preset.per_context_token),
        };
        spec.check().context("the server cannot be simulated")?;
        Ok(spec)
    }

    /// The server in words: where its figures come from, which they are, and what of them is otherwise than there.
    pub fn said(&self) -> Result<String> {
        let (spec, preset) = (self.spec()?, self.preset.spec());
        let micros = |cost: Duration| cost.as_nanos() as f64 / 1e3;
        Ok(format!(
            "The server is the preset {} ({}){}: {} sequences, {} tokens a step at most; a step lasts {} us, {} us for each \
             sequence, {} us for each prompt token and {} us for each token of context.",
            self.preset.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default(),
            self.preset.source(),
            if spec == preset { "" } else { ", with changes" },
            spec.max_num_seqs,
            spec.max_num_batched_tokens,
            micros(spec.base),
            micros(spec.per_sequence),
            micros(spec.per_prefill_token),
            micros(spec.per_context_token),
        ))
    }
}

/// Microseconds, with a fraction if need be.
fn micros(text: &str) -> Result<Duration> {
    let micros: f64 = text.parse().context("not a number of microseconds")?;
    Duration::try_from_secs_f64(micros / 1e6).context("not a number of microseconds from 0 on")
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser, Debug)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    fn spec(flags: &str) -> Result<Spec> {
        Line::try_parse_from(flags.split_whitespace())?.options.spec()
    }

    #[test]
    fn a_flag_changes_its_field_and_no_other() {
        assert_eq!(spec("rig").unwrap(), Preset::Gpu.spec());
        let wanted = Spec {
            chunked_prefill: false,
            scheduling: Scheduling::Priority,
            per_context_token: Duration::from_nanos(64),
            ..Preset::Gpu.spec()
        };
        let flags = "rig --chunked-prefill false --scheduling priority --per-context-token-us 0.064";
        assert_eq!(spec(flags).unwrap(), wanted);
    }

    #[test]
    fn a_server_says_where_its_figures_come_from_and_whether_they_are_those() {
        let said =
            |flags: &str| Line::try_parse_from(flags.split_whitespace()).unwrap().options.said().unwrap();
        let a100 = said("rig --preset a100");
        assert!(
            a100.contains("a100 (Vidur") && a100.contains(": 256 sequences") && a100.contains("64.3 us"),
            "{a100}"
        );
        let fewer = said("rig --preset a100 --max-num-seqs 16");
        assert!(fewer.contains("with changes: 16 sequences"), "{fewer}");
    }

    #[test]
    fn nonsense_is_named() {
        for (flags, said) in [
            ("rig --max-num-seqs 0", "max_num_seqs must be at least 1"),
            ("rig --base-us=-1", "microseconds from 0 on"),
            ("rig --base-us NaN", "microseconds from 0 on"),
            ("rig --base-us 1e300", "microseconds from 0 on"),
            ("rig --kv-blocks 1", "kv_blocks x block_size (16 tokens) must hold"),
            ("rig --scheduling lifo", "fifo, priority"),
            ("rig --preset tpu", "possible values"),
        ] {
            let error = format!("{:#}", spec(flags).unwrap_err());
            assert!(error.contains(said), "{flags}: {error}");
        }
    }
}
