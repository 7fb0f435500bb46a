//! `rig overhead`: what the filter costs beside an Envoy without it, and beside one that only holds bodies.
//!
//! One worker, kept on a CPU of its own; client and upstream have the others. The targets take turns, each as often
//! first as the others, and are compared turn by turn, so that a machine that drifts does not favour one.

mod chat;
mod client;
mod machine;
mod memory;
pub mod steps;
mod tables;
mod target;
mod turns;
pub mod upstream;

use anyhow::{Context, Result, bail};
use chat::Answer;
use clap::{Args, ValueEnum};
use client::Turn;
use memory::{Parked, parked};
use serde::Serialize;
use std::fs;
use std::path::PathBuf;
use target::{Build, Target};
use tokio::task::LocalSet;
use turns::{Bench, Load};

/// How often each step has a new Envoy: part of what two processes differ by lasts as long as they do, and could pass for
/// the cost of a call.
const DRAWS: usize = 3;

/// What to measure.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// How often each target has its turn.
    #[arg(long, default_value_t = 9)]
    rounds: usize,
    /// Milliseconds of a turn that count.
    #[arg(long, default_value_t = 1_200)]
    millis: u64,
    /// Sizes of request bodies, in bytes.
    #[arg(long, value_delimiter = ',', default_value = "512,2048,20480,204800")]
    sizes: Vec<usize>,
    /// Connections that send one request after the other.
    #[arg(long, default_value_t = 32)]
    connections: u64,
    /// Requests per second where latency is measured.
    #[arg(long, default_value_t = 200.0)]
    rate: f64,
    /// Requests that wait where memory is measured.
    #[arg(long, default_value_t = 2_000)]
    parked: usize,
    /// How often the bare module makes each call: what a call costs once its code is at hand shows best with 10 or more.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    times: u32,
    /// Only these parts.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "rates,calls,events,latency,memory")]
    only: Vec<Part>,
    /// Another build of the module to measure beside the built one, as NAME=PATH; may be given several times.
    #[arg(long, value_name = "NAME=PATH")]
    module: Vec<Build>,
    /// Where to put the record of all turns, as JSON.
    #[arg(long)]
    record: Option<PathBuf>,
}

/// A part of the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Requests per second and CPU time.
    Rates,
    /// What each call of the host costs, and the floor that they make together.
    Calls,
    /// CPU time of answers that come as many events.
    Events,
    /// Added latency at a low rate.
    Latency,
    /// Memory of requests that wait.
    Memory,
}

/// All that was measured.
#[derive(Debug, Default, Serialize)]
struct Report {
    rates: Vec<Load<Turn>>,
    calls: Vec<Load<Turn>>,
    events: Vec<Load<Turn>>,
    /// Milliseconds.
    latency: Vec<Load<Vec<f64>>>,
    parked: Vec<Parked>,
}

/// Measures and prints, on a runtime of one thread: a client with as little in its own way as can be.
pub async fn overhead(options: &Options) -> Result<()> {
    LocalSet::new().run_until(measure(options)).await
}

async fn measure(options: &Options) -> Result<()> {
    let cpus = machine::cpus()?;
    let [first, rest @ ..] = &cpus[..] else { bail!("no CPU") };
    let others = if rest.is_empty() { &cpus[..] } else { rest };
    println!(
        "Envoy's worker on CPU {first}, client and upstream on CPU {others:?}; {} rounds",
        options.rounds
    );
    machine::pin(std::process::id(), others)?;
    let builds = options.module.iter().cloned().map(Target::Build);
    let ways = [Target::Plain, Target::Buffer, Target::Sluice].into_iter().chain(builds.clone());
    let bench = Bench::start(ways, *first)?;
    let mut report = Report::default();
    for part in &options.only {
        match part {
            Part::Rates => {
                report.rates = bench.rates(options, &options.sizes, Answer::Whole, options.millis).await?;
                println!("{}\n", tables::rates(&report.rates));
            }
            Part::Calls => {
                let ways =
                    [Target::Buffer].into_iter().chain(steps::targets(options.times)).chain([Target::Sluice]);
                let ways: Vec<Target> = ways.chain(builds.clone()).collect();
                let some = Options { rounds: options.rounds.div_ceil(DRAWS), ..options.clone() };
                for _ in 0..DRAWS.min(options.rounds) {
                    let bench = Bench::start(ways.iter().cloned(), *first)?;
                    bench.compare_routes(&options.sizes).await?;
                    let loads = bench.rates(&some, &options.sizes, Answer::Whole, options.millis).await?;
                    turns::append(&mut report.calls, loads);
                }
                println!("{}\n", tables::calls(&report.calls));
            }
            Part::Events => {
                let millis = options.millis.max(2_000);
                report.events = bench.rates(options, &[512], Answer::Events, millis).await?;
                println!("{}\n", tables::events(&report.events));
            }
            Part::Latency => {
                report.latency = bench.latency(options).await?;
                println!("{}\n", tables::latency(&report.latency));
            }
            Part::Memory => {
                for target in [Target::Buffer, Target::Sluice] {
                    report.parked.push(parked(target, options.parked, 2048, *first).await?);
                }
                println!("{}\n", tables::parked(&report.parked));
            }
        }
    }
    if let Some(path) = &options.record {
        fs::write(path, serde_json::to_vec(&report)?).with_context(|| path.display().to_string())?;
    }
    Ok(())
}
