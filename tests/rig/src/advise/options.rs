//! What `rig advise` is asked for.

use super::grid::Lists;
use super::input::Source;
use super::score::Slo;
use crate::envoy::root;
use crate::sim::preset::Preset;
use anyhow::{Result, ensure};
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

/// Which policy to take for a server and its traffic, by simulation.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// The server to simulate.
    #[arg(long, value_enum, default_value = "gpu")]
    pub server: Preset,
    /// A policy of your own to put beside those of the grid (the filter's configuration as JSON); may be repeated.
    #[arg(long, value_name = "FILE")]
    pub policy: Vec<PathBuf>,
    /// Envoy's workers.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub workers: u32,
    /// A short request is served well if its first token comes within so many seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    pub slo_first_token: f64,
    /// A long one, if its whole answer does.
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0)]
    pub slo_whole: f64,
    /// What a message takes from one of client, Envoy and server to the next, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 0.3)]
    pub hop: f64,
    /// Show all policies in the table, not only the best.
    #[arg(long)]
    pub all: bool,
    /// Where the page with the picture goes.
    #[arg(long, value_name = "FILE", default_value_os_t = root().join("target/report/advise.html"))]
    pub html: PathBuf,
    /// Write all figures to this file, as JSON.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// What is sent.
    #[command(flatten)]
    pub source: Source,
    /// What is tried.
    #[command(flatten)]
    pub lists: Lists,
}

impl Options {
    /// When a request counts as served well.
    ///
    /// # Errors
    /// Where a time is none.
    pub fn slo(&self) -> Result<Slo> {
        Ok(Slo {
            short_first_token: seconds("--slo-first-token", self.slo_first_token)?,
            long_whole: seconds("--slo-whole", self.slo_whole)?,
        })
    }

    /// What one message takes.
    ///
    /// # Errors
    /// Where that is no time.
    pub fn hop(&self) -> Result<Duration> {
        ensure!((0.0..=1_000.0).contains(&self.hop), "--hop is {}; allowed is 0 to 1000 ms", self.hop);
        Ok(Duration::from_secs_f64(self.hop / 1_000.0))
    }
}

fn seconds(flag: &str, value: f64) -> Result<Duration> {
    ensure!((0.001..=86_400.0).contains(&value), "{flag} is {value}; allowed is 0.001 to 86400 seconds");
    Ok(Duration::from_secs_f64(value))
}
