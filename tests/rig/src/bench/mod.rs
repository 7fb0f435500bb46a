//! `rig bench-admission`: what the admission over all workers costs and how well it uses its slots, on a real Envoy.

mod burst;
mod client;
mod log;
pub mod median;
pub mod server;
mod stay;

use crate::envoy::{Config, Envoy};
use anyhow::{Context, Result};
use burst::{Burst, Views};
use clap::Args;
use client::{Rate, hammer};
use comfy_table::{Table, presets};
use median::median;
use server::Server;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::task::block_in_place;

/// What to measure.
#[derive(Args, Debug)]
pub struct Options {
    /// A module to compare with, which counts slots on each worker apart; without it only this one is measured.
    #[arg(long, env = "SLUICE_WASM_BASELINE")]
    baseline: Option<PathBuf>,
    /// How often each module has its turn; 0 leaves the rates out.
    #[arg(long, default_value_t = 9)]
    pairs: usize,
    /// How long a turn lasts.
    #[arg(long, default_value_t = 3)]
    seconds: u64,
    /// Connections that send one request after the other.
    #[arg(long, default_value_t = 32)]
    connections: usize,
    /// Worker threads of Envoy.
    #[arg(long, default_value_t = 2)]
    workers: u32,
    /// How often a burst is sent.
    #[arg(long, default_value_t = 5)]
    bursts: usize,
}

/// A load: its name and the slots there are for it.
const LOADS: [(&str, usize); 2] = [("nobody waits", 64), ("most wait", 8)];
const BURST: usize = 400;
const SLOTS: usize = 4;
const SERVICE: Duration = Duration::from_millis(10);

/// Measures and prints.
pub async fn admission(options: Options) -> Result<()> {
    let Options { baseline, pairs, seconds, connections, workers, bursts } = options;
    println!(
        "{workers} workers, {connections} connections, {pairs} turns of {seconds} s each, interleaved\n"
    );
    for (load, slots) in LOADS.into_iter().filter(|_| pairs > 0) {
        let server = Server::start(Duration::ZERO).await?;
        let mut modules = vec![Contestant::start("this module", None, workers, slots, &server)?];
        if let Some(path) = &baseline {
            // It counts on each worker apart.
            let share = slots / usize::try_from(workers)?.max(1);
            modules.push(Contestant::start("baseline", Some(path), workers, share, &server)?);
        }
        for turn in 0..pairs {
            // Each is first as often as the other.
            let first = turn % modules.len();
            for place in 0..modules.len() {
                let at = (first + place) % modules.len();
                modules[at].turn(connections, Duration::from_secs(seconds)).await?;
            }
        }
        println!("instant answers, {slots} slots: {load}");
        modules.iter().for_each(Contestant::print);
        if let [this, other] = &modules[..] {
            let ratios =
                this.rates.iter().zip(&other.rates).map(|(this, other)| this.per_second / other.per_second);
            println!("  requests per second, this against the baseline: {:.3}", median(ratios));
        }
        println!();
    }
    println!("bursts of {BURST}, {SLOTS} slots, {} ms of service", SERVICE.as_millis());
    let server = Server::start(SERVICE).await?;
    let contestant = Contestant::start("this module", None, workers, SLOTS, &server)?;
    let (mut waiting, mut alone) = (Vec::new(), Vec::new());
    for _ in 0..bursts {
        waiting.push(burst::send(&contestant.envoy, &server, BURST, SLOTS).await?);
        alone.push(burst::closed_loop(&contestant.envoy, &server, BURST, SLOTS).await?);
    }
    println!("{}", bursts_table(&waiting, &alone));
    Ok(())
}

/// One of the views.
type View = fn(&Views) -> &Burst;

/// What the bursts came to, and beside them as many clients as slots, of whom none waits.
fn bursts_table(waiting: &[Views], alone: &[Views]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::ASCII_MARKDOWN).set_header([
        "seen by",
        "clients",
        "at once",
        "all slots taken after, ms",
        "slots idle, median (most)",
        "out of order by, places",
    ]);
    let views: [(_, View); 2] =
        [("the model server", |views| &views.server), ("Envoy", |views| &views.envoy)];
    for (by, view) in views {
        for (clients, bursts) in [(format!("{BURST} at once"), waiting), (format!("{SLOTS} in turns"), alone)]
        {
            let most = |figure: fn(&Burst) -> f64| {
                bursts.iter().map(|burst| figure(view(burst))).fold(f64::NAN, f64::max)
            };
            let idle = median(bursts.iter().map(|burst| view(burst).idle));
            table.add_row([
                by.to_owned(),
                clients,
                format!("{:.0}", most(|burst| burst.peak as f64)),
                format!("{:.1}", most(|burst| burst.filled.as_secs_f64() * 1e3)),
                format!("{:.2} % ({:.2} %)", idle * 100.0, most(|burst| burst.idle) * 100.0),
                format!("{:.0}", most(|burst| burst.shift as f64)),
            ]);
        }
    }
    table
}

/// An Envoy with one of the modules, and what it has done so far.
struct Contestant {
    name: &'static str,
    envoy: Envoy,
    rates: Vec<Rate>,
}

impl Contestant {
    fn start(
        name: &'static str,
        module: Option<&Path>,
        workers: u32,
        slots: usize,
        server: &Server,
    ) -> Result<Contestant> {
        let mut config = Config::shipped("envoy.yaml")?;
        if let Some(module) = module {
            config.module = std::path::absolute(module)?;
        }
        config.policy = Some(format!(
            r#"{{"classes": [{{"name": "short", "concurrency": {slots},
                "queue": {{"capacity": 1000, "timeout": "30s"}}}}]}}"#
        ));
        config.concurrency = workers;
        config.clusters = vec![("llm_short".to_owned(), server.address())];
        config.log_fields = log::FIELDS.to_vec();
        let envoy = block_in_place(|| Envoy::start(&config)).with_context(|| name.to_owned())?;
        Ok(Contestant { name, envoy, rates: Vec::new() })
    }

    async fn turn(&mut self, connections: usize, time: Duration) -> Result<()> {
        self.rates.push(hammer(self.envoy.addr(), self.envoy.pid(), connections, time).await?);
        Ok(())
    }

    fn print(&self) {
        println!(
            "  {}: {:.0} requests per second, {:.1} us of Envoy's CPU each (medians)",
            self.name,
            median(self.rates.iter().map(|rate| rate.per_second)),
            median(self.rates.iter().map(|rate| rate.cpu_micros)),
        );
    }
}
