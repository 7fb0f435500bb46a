//! `rig overhead`: what the filter costs beside an Envoy without it, and beside one that only holds bodies.
//!
//! One worker, kept on a CPU of its own; client and upstream have the others. The targets take turns, each as often
//! first as the others, and are compared turn by turn, so that a machine that drifts does not favour one.

mod chat;
mod client;
mod machine;
mod memory;
mod tables;
mod target;
pub mod upstream;

use crate::bench::median::median;
use crate::envoy::Envoy;
use anyhow::{Context, Result, bail};
use chat::{Answer, request};
use clap::{Args, ValueEnum};
use client::{Pids, Turn, hammer, open_loop};
use indicatif::{ProgressBar, ProgressStyle};
use memory::{Parked, parked};
use serde::Serialize;
use std::fs;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;
use target::{KINDS, Kind};
use tokio::task::LocalSet;
use upstream::Upstream;

/// What to measure.
#[derive(Args, Debug)]
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
    /// Only these parts.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "rates,events,latency,memory")]
    only: Vec<Part>,
    /// Where to put the record of all turns, as JSON.
    #[arg(long)]
    record: Option<PathBuf>,
}

/// A part of the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Requests per second and CPU time.
    Rates,
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
    events: Vec<Load<Turn>>,
    /// Milliseconds.
    latency: Vec<Load<Vec<f64>>>,
    parked: Vec<Parked>,
}

/// A load, and what each turn of each target came to under it.
#[derive(Debug, Serialize)]
struct Load<T> {
    body_bytes: usize,
    turns: Vec<(Kind, Vec<T>)>,
}

impl<T> Load<T> {
    fn of(&self, kind: Kind) -> &[T] {
        self.turns.iter().find(|(of, _)| *of == kind).map_or(&[], |(_, turns)| turns)
    }
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
    let bench = Bench::start(*first)?;
    let mut report = Report::default();
    for part in &options.only {
        match part {
            Part::Rates => {
                report.rates = bench.rates(options, &options.sizes, Answer::Whole, options.millis).await?;
                println!("{}\n", tables::rates(&report.rates));
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
                for kind in [Kind::Buffer, Kind::Sluice] {
                    report.parked.push(parked(kind, options.parked, 2048, *first).await?);
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

/// The targets before one upstream.
struct Bench {
    upstream: Upstream,
    envoys: Vec<(Kind, Envoy)>,
}

impl Bench {
    fn start(cpu: usize) -> Result<Bench> {
        let upstream = Upstream::start()?;
        let start = |kind| Ok((kind, target::start(kind, upstream.address(), cpu, None)?));
        let envoys = KINDS.into_iter().map(start).collect::<Result<_>>()?;
        Ok(Bench { upstream, envoys })
    }

    async fn rates(
        &self,
        options: &Options,
        sizes: &[usize],
        answer: Answer,
        millis: u64,
    ) -> Result<Vec<Load<Turn>>> {
        self.loads(options, sizes, answer, options.connections, async |envoy, requests| {
            let pids = Pids { envoy: envoy.pid(), upstream: self.upstream.pid() };
            hammer(envoy.addr(), pids, requests, answer, Duration::from_millis(millis)).await
        })
        .await
    }

    async fn latency(&self, options: &Options) -> Result<Vec<Load<Vec<f64>>>> {
        let time = Duration::from_millis(options.millis);
        self.loads(options, &options.sizes, Answer::Whole, 16, async |envoy, requests| {
            open_loop(envoy.addr(), requests, options.rate, time).await
        })
        .await
    }

    /// Lets the targets take turns under each load.
    async fn loads<T>(
        &self,
        options: &Options,
        sizes: &[usize],
        answer: Answer,
        requests: u64,
        turn: impl AsyncFn(&Envoy, &[Rc<[u8]>]) -> Result<T>,
    ) -> Result<Vec<Load<T>>> {
        let bar = ProgressBar::new((options.rounds * self.envoys.len() * sizes.len()) as u64)
            .with_style(ProgressStyle::with_template("{bar:40} {pos}/{len} turns, {elapsed}")?);
        let mut loads = Vec::new();
        for size in sizes {
            let requests: Vec<Rc<[u8]>> =
                (0..requests).map(|seed| request(*size, answer, seed).into()).collect();
            let mut turns: Vec<(Kind, Vec<T>)> =
                self.envoys.iter().map(|(kind, _)| (*kind, Vec::new())).collect();
            for round in 0..options.rounds {
                for place in 0..self.envoys.len() {
                    let at = (round + place) % self.envoys.len();
                    let (kind, envoy) = &self.envoys[at];
                    turns[at].1.push(turn(envoy, &requests).await.with_context(|| kind.name())?);
                    bar.inc(1);
                }
            }
            loads.push(Load { body_bytes: *size, turns });
        }
        bar.finish_and_clear();
        Ok(loads)
    }
}

/// The median over the turns of one target of what `figure` says of each beside the buffer filter's in the same round.
fn ratio(load: &Load<Turn>, kind: Kind, figure: fn(&Turn) -> f64) -> f64 {
    let turns = load.of(kind).iter().zip(load.of(Kind::Buffer));
    median(turns.map(|(this, other)| figure(this) / figure(other)))
}
