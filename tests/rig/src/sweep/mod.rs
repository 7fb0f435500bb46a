//! `rig batch`: what batch size costs and brings, in virtual time: continuous batching as LLM servers do it, dynamic
//! batching as classifier and embedding servers do.

pub mod continuous;
pub mod dynamic;
pub mod knee;
mod page;

use crate::load::published::Published;
use crate::load::trace::Trace;
use crate::sim::dynamic::{Model, Waits};
use crate::sim::options::Options as Server;
use anyhow::{Context as _, Result, ensure};
use clap::{Args, ValueEnum};
use comfy_table::{Table, presets::UTF8_FULL_CONDENSED};
use indicatif::{ProgressBar, ProgressStyle};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::path::PathBuf;
use std::time::Duration;

/// What is swept, under which load.
#[derive(Args, Clone, Debug)]
pub struct Options {
    #[command(flatten)]
    pub server: Server,
    /// Values of max_num_seqs to try.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2, 4, 8, 16, 32, 64, 128, 256])]
    pub sizes: Vec<usize>,
    /// A trace (Azure's or BurstGPT's columns) whose lengths the generations have; without one, lengths are drawn from
    /// what was published about Azure's conversations.
    #[arg(long)]
    pub trace: Option<PathBuf>,
    /// Most seconds that the P99 of a whole answer may have.
    #[arg(long, default_value_t = 30.0)]
    pub slo: f64,
    /// The classifier or embedding model of the dynamic batching.
    #[arg(long, value_enum, default_value = "bert-a100")]
    pub model: Model,
    /// Values of its max_batch to try.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2, 4, 8, 16, 32, 64, 128])]
    pub max_batch: Vec<usize>,
    /// Values of its max_wait to try, in milliseconds.
    #[arg(long, value_delimiter = ',', default_values_t = [0.0, 2.0, 5.0, 10.0, 20.0])]
    pub max_wait_ms: Vec<f64>,
    /// From when on a batch waits for others: as in Triton or as in TorchServe.
    #[arg(long, value_enum, default_value = "since-arrival")]
    pub waits: Waits,
    /// Most milliseconds that its P99 may have.
    #[arg(long, default_value_t = 50.0)]
    pub model_slo_ms: f64,
    /// Loads, each as a share of what a batch size can do at most.
    #[arg(long, value_delimiter = ',', default_values_t = [0.5, 0.7, 0.85])]
    pub shares: Vec<f64>,
    /// Requests of each run.
    #[arg(long, default_value_t = 4_000)]
    pub requests: usize,
    /// Decides every length and moment.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Where the page goes.
    #[arg(long, default_value = "target/report/batch.html")]
    pub out: PathBuf,
}

/// Requests at the beginning of a run that are not counted: the server is still filling.
const WARM_UP: f64 = 0.1;
/// Fewer would not have a P99.
const LEAST_REQUESTS: usize = 200;
const MOST_REQUESTS: usize = 1_000_000;

/// Sweeps both, prints the tables and writes the page.
pub fn batch(options: &Options) -> Result<()> {
    options.check()?;
    let spec = options.server.spec()?;
    let lengths = options.lengths()?;
    let bar = progress(options.sizes.len() * options.shares.len() + options.shares.len());
    let continuous = continuous::sweep(spec, &lengths, options, &bar)?;
    let dynamic = dynamic::sweep(options, &bar)?;
    bar.finish_and_clear();
    println!("Continuous batching, preset {}: {}\n", flag(&options.server.preset), continuous.about);
    println!("{}\n{}\n", table(&continuous::HEAD, continuous.rows()), continuous.verdict(options));
    println!("Dynamic batching, model {}, {}\n", flag(&options.model), flag(&options.waits));
    println!("{}\n{}\n", table(&dynamic::HEAD, dynamic.rows()), dynamic.verdict(options));
    page::write(options, &continuous, &dynamic)?;
    println!("pictures: {}", options.out.display());
    Ok(())
}

impl Options {
    fn check(&self) -> Result<()> {
        for (flag, empty) in [
            ("--sizes", self.sizes.is_empty()),
            ("--max-batch", self.max_batch.is_empty()),
            ("--max-wait-ms", self.max_wait_ms.is_empty()),
            ("--shares", self.shares.is_empty()),
        ] {
            ensure!(!empty, "{flag} has no value");
        }
        for (flag, sizes) in [("--sizes", &self.sizes), ("--max-batch", &self.max_batch)] {
            ensure!(
                sizes.is_sorted_by(|one, next| one < next)
                    && sizes.iter().all(|size| (1..=65_536).contains(size)),
                "{flag} must be numbers from 1 to 65536, each larger than the one before"
            );
        }
        for share in &self.shares {
            ensure!(
                *share > 0.0 && *share < 1.0,
                "--shares must lie between 0 and 1 ({share} does not): at 1 and above a line grows for ever"
            );
        }
        ensure!(
            self.shares.is_sorted_by(|one, next| one < next),
            "--shares must each be larger than the one before"
        );
        for wait in &self.max_wait_ms {
            ensure!((0.0..=60_000.0).contains(wait), "--max-wait-ms must be 0 to 60000; {wait} is not");
        }
        for (flag, slo) in [("--slo", self.slo), ("--model-slo-ms", self.model_slo_ms)] {
            ensure!(slo > 0.0, "{flag} must be above 0; {slo} is not");
        }
        ensure!(
            (LEAST_REQUESTS..=MOST_REQUESTS).contains(&self.requests),
            "--requests must be {LEAST_REQUESTS} to {MOST_REQUESTS}; {} is not",
            self.requests
        );
        Ok(())
    }

    /// As many requests as are asked for, over and over where the trace has fewer; their moments are of no account.
    fn lengths(&self) -> Result<Trace> {
        let trace = match &self.trace {
            Some(file) => Trace::read(file)?,
            None => Published::AzureConv.generate(1.0, self.requests, self.seed)?,
        };
        Trace::new(trace.arrivals().iter().copied().cycle().take(self.requests).collect())
    }

    /// The last and highest of the shares, by which the verdicts go.
    fn highest_share(&self) -> f64 {
        self.shares.last().copied().unwrap_or_default()
    }
}

/// Moments of independent arrivals at `rate` a second, decided by `seed`.
fn poisson(rate: f64, count: usize, seed: u64) -> Result<Vec<Duration>> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let (mut at, mut moments) = (0.0, Vec::with_capacity(count));
    for _ in 0..count {
        // 1 minus what lies in 0..1 is never 0.
        at -= (1.0 - random.random::<f64>()).ln() / rate;
        moments
            .push(Duration::try_from_secs_f64(at).with_context(|| format!("arrivals at {rate} a second"))?);
    }
    Ok(moments)
}

/// The P99 of what comes after the warm-up, in seconds.
fn p99(times: impl IntoIterator<Item = Duration>) -> f64 {
    let mut times: Vec<Duration> = times.into_iter().collect();
    let mut counted = times.split_off((times.len() as f64 * WARM_UP) as usize);
    counted.sort_unstable();
    let place = (counted.len() * 99).div_ceil(100).saturating_sub(1);
    counted.get(place).map_or(f64::NAN, Duration::as_secs_f64)
}

fn table(head: &[&str], rows: Vec<Vec<String>>) -> Table {
    let mut table = Table::new();
    table.load_preset(UTF8_FULL_CONDENSED).set_header(head).add_rows(rows);
    table
}

fn progress(runs: usize) -> ProgressBar {
    let bar = ProgressBar::new(runs as u64);
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos}/{len} runs, {elapsed}") {
        bar.set_style(style);
    }
    bar
}

/// A value as it stands on the command line.
fn flag(value: &impl ValueEnum) -> String {
    value.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

/// Three digits that count.
fn digits(value: f64) -> String {
    let decimals = (2.0 - value.abs().log10().floor()).clamp(0.0, 6.0);
    if value == 0.0 { "0".to_owned() } else { format!("{value:.0$}", decimals as usize) }
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

    pub(super) fn options(flags: &str) -> Options {
        Line::try_parse_from(flags.split_whitespace()).unwrap().options
    }

    #[test]
    fn nonsense_is_named() {
        for (flags, said) in [
            ("rig --shares 0.5,1", "between 0 and 1"),
            ("rig --shares 0.7,0.5", "larger than the one before"),
            ("rig --sizes 4,2", "--sizes must be"),
            ("rig --sizes 0,2", "--sizes must be"),
            ("rig --max-batch 0", "--max-batch must be"),
            ("rig --max-wait-ms NaN", "--max-wait-ms must be"),
            ("rig --slo 0", "--slo must be above 0"),
            ("rig --requests 10", "--requests must be 200"),
            ("rig --trace /nowhere.csv", "/nowhere.csv"),
            ("rig --sizes 1,4096", "max_num_batched_tokens"),
        ] {
            let mut options = options(flags);
            options.out = PathBuf::from("/dev/null");
            if flags.contains("4096") {
                options.server = Line::try_parse_from(["rig", "--preset", "cpu"]).unwrap().options.server;
            }
            let error = format!("{:#}", batch(&options).unwrap_err());
            assert!(error.contains(said), "{flags}: {error}");
        }
    }

    #[test]
    fn arrivals_come_at_the_rate_that_was_asked_for() {
        let moments = poisson(50.0, 20_000, 1).unwrap();
        let rate = moments.len() as f64 / moments.last().unwrap().as_secs_f64();
        assert!((rate / 50.0 - 1.0).abs() < 0.03, "{rate}");
        assert!(moments.is_sorted());
    }

    #[test]
    fn figures_have_three_digits() {
        assert_eq!(
            [0.0, 0.012345, 1.2345, 12.345, 1_234.5].map(digits),
            ["0", "0.0123", "1.23", "12.3", "1234"]
        );
    }

    #[test]
    fn a_p99_leaves_the_warm_up_out() {
        let times = (0..1_000).map(|n| Duration::from_secs(if n < 100 { 10_000 } else { n - 99 }));
        assert_eq!(p99(times), 891.0);
    }
}
