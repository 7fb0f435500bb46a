//! Where the requests come from: a trace, or the demo's kind of traffic.

use super::ask::Ask;
use super::bound::capacity;
use crate::demo;
use crate::load::trace::{Arrival, Trace};
use crate::load::traffic::{Class, Mix};
use crate::sim::spec::Spec;
use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

/// What is sent, and what of a trace is made of it.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "The requests")]
pub struct Source {
    /// A trace (CSV with the columns of the Azure LLM inference traces or of BurstGPT); without it, the demo's traffic.
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Decides the demo's traffic.
    #[arg(long, default_value_t = 1, conflicts_with = "trace")]
    pub seed: u64,
    /// Only so many requests, from the first one on.
    #[arg(long, value_name = "COUNT")]
    pub requests: Option<usize>,
    /// Stretches or squeezes time so that the requests ask for this share of what the server can do (0.85, say).
    #[arg(long, value_name = "SHARE")]
    pub load: Option<f64>,
    /// A request of a trace is short if its prompt has at most so many tokens, and …
    #[arg(long, value_name = "TOKENS", default_value_t = 500)]
    pub short_prompt_tokens: u32,
    /// … its answer at most so many.
    #[arg(long, value_name = "TOKENS", default_value_t = 256)]
    pub short_output_tokens: u32,
    /// What clients of a trace, which knows only the answers' lengths, ask for as max_tokens.
    #[arg(long, value_enum, default_value = "rounded")]
    pub asked: Asked,
    /// Characters of prompt to a token of a trace: what the filter sees, over what the server reads.
    #[arg(long, value_name = "CHARS", default_value_t = 4.0)]
    pub chars_per_token: f64,
}

/// The output limit of a request whose answer's length is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Asked {
    /// The answer's length: clients know what they will get.
    Exact,
    /// The next power of two from 64 on: clients leave room, and the model stops by itself.
    Rounded,
    /// None: the policy's default is put in, and cuts off what is longer.
    None,
}

impl Source {
    /// The requests, in order.
    ///
    /// # Errors
    /// With what is wrong with the trace or with one of the figures.
    pub fn asks(&self, server: Spec) -> Result<Vec<Ask>> {
        ensure!(
            (0.1..=100.0).contains(&self.chars_per_token),
            "--chars-per-token is {}; allowed is 0.1 to 100",
            self.chars_per_token
        );
        let mut asks = match &self.trace {
            Some(file) => Trace::read(file)?.arrivals().iter().map(|arrival| self.traced(arrival)).collect(),
            None => planned(Mix { seed: self.seed, ..demo::MIX })?,
        };
        asks.truncate(self.requests.unwrap_or(asks.len()));
        ensure!(!asks.is_empty(), "--requests is 0: there is nothing to send");
        if let Some(share) = self.load {
            ensure!(
                share.is_finite() && share > 0.0,
                "--load is {share}; it must be above 0 (0.85 = 85 % of what the server can do)"
            );
            let slower = demand(server, &asks)?
                .context("all requests come at one moment: there is no load to set")?
                / share;
            for ask in &mut asks {
                ask.at = Duration::try_from_secs_f64(ask.at.as_secs_f64() * slower)
                    .with_context(|| format!("at a load of {share} the requests take too long to come"))?;
            }
        }
        Ok(asks)
    }

    fn traced(&self, arrival: &Arrival) -> Ask {
        let &Arrival { at, prompt_tokens, output_tokens } = arrival;
        let short = prompt_tokens <= self.short_prompt_tokens && output_tokens <= self.short_output_tokens;
        let prompt_chars = (f64::from(prompt_tokens) * self.chars_per_token).ceil() as usize;
        let max_tokens = match self.asked {
            Asked::Exact => Some(output_tokens),
            Asked::Rounded => Some(output_tokens.max(64).checked_next_power_of_two().unwrap_or(u32::MAX)),
            Asked::None => None,
        };
        let class = if short { Class::Short } else { Class::Long };
        Ask { at, class, prompt_tokens, prompt_chars, output_tokens, max_tokens }
    }
}

/// What the requests ask for as a share of what the server can do; `None` where all come at one moment.
///
/// # Errors
/// As [`capacity`].
pub fn demand(server: Spec, asks: &[Ask]) -> Result<Option<f64>> {
    let span = asks.last().map_or(Duration::ZERO, |ask| ask.at).as_secs_f64();
    Ok((span > 0.0).then_some(asks.len() as f64 / span / capacity(server, asks)?))
}

/// The demo's kind of traffic.
///
/// # Errors
/// As [`Ask::planned`].
pub fn planned(mix: Mix) -> Result<Vec<Ask>> {
    mix.plan().iter().map(Ask::planned).collect()
}
