//! `rig compare`: the same traffic through several ways to a model server, in turns, and what came of it.

pub mod figures;
mod page;
pub mod policy;
pub mod promise;
mod rates;
pub mod real;
pub mod record;
pub mod scenario;
mod search;
pub mod segment;
mod simulated;
pub mod stage;
mod table;
pub mod target;
mod timeline;

use crate::envoy::root;
use crate::model::http::ModelServer;
use crate::peers::Peer;
use crate::peers::llama::Llama;
use crate::report::html::Page;
use crate::report::record::Record;
use crate::sim::options::Options as Server;
use anyhow::{Result, ensure};
use clap::{Args, ValueEnum};
use scenario::{Results, Scenario};
use std::path::{Path, PathBuf};
use std::time::Duration;
use target::Target;

/// What to compare.
#[derive(Args, Debug)]
pub struct Options {
    /// Which scenarios; all of them where none is named.
    #[arg(long, value_enum, value_delimiter = ',')]
    scenario: Vec<Which>,
    /// Only these targets, as far as a scenario has them; all where none is named.
    #[arg(long, value_delimiter = ',', value_parser = Target::named)]
    target: Vec<Target>,
    /// Before llama.cpp's server in place of the simulated one.
    #[arg(long)]
    real: bool,
    /// Slots of llama.cpp's server, one comparison for each.
    #[arg(long, value_delimiter = ',', default_values_t = [2, 4])]
    slots: Vec<usize>,
    /// Threads of llama.cpp's server.
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Decides every prompt, length and moment.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Short requests of a turn before llama.cpp's server.
    #[arg(long, default_value_t = 4)]
    shorts: usize,
    /// How often each target has its turn; where not given, as often as the scenario needs.
    #[arg(long)]
    rounds: Option<usize>,
    /// How long requests arrive in a turn, in seconds; where not given, as long as the scenario needs.
    #[arg(long)]
    seconds: Option<u64>,
    /// With the other gateways that are installed, too.
    #[arg(long)]
    peers: bool,
    /// Where the page goes; `target/report/compare.html` or `real.html` where not given.
    #[arg(long)]
    out: Option<PathBuf>,
    /// Writes a record under `benches/record`, too, under this name; `compare` or `real` where none is given.
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = "", value_parser = record::name)]
    record: Option<String>,
    /// The simulated server.
    #[command(flatten)]
    server: Server,
}

/// The scenarios before the simulated server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Which {
    /// Short and long requests at 85 % of the server's capacity.
    Mixed,
    /// More long requests than there is room for.
    Overload,
    /// A server for each class.
    Two,
    /// A public trace of a chat service, drawn together to 85 % of the server's capacity.
    Trace,
}

/// Plays, prints a table for each scenario, and writes the page.
pub async fn compare(options: Options) -> Result<()> {
    let zero = [
        ("rounds", options.rounds == Some(0)),
        ("seconds", options.seconds == Some(0)),
        ("shorts", options.shorts == 0),
    ];
    for (name, is_zero) in zero {
        ensure!(!is_zero, "--{name} 0 would measure nothing; it takes 1 or more");
    }
    ensure!(options.seconds.is_none_or(|seconds| seconds <= 3_600), "--seconds takes an hour (3600) at most");
    for slots in options.slots.iter().filter(|_| options.real) {
        ensure!(*slots >= 2, "of {slots} slots none can be kept for short requests: --slots takes 2 or more");
    }
    let results = if options.real { real(&options).await? } else { simulated(&options).await? };
    conclude(&keep(&options, &results)?, &results)
}

/// Writes the page, and the record where one is asked for, of what has been played: after each scenario, since a later
/// one may fail or be ended.
fn keep(options: &Options, results: &[Results]) -> Result<Vec<PathBuf>> {
    let name = if options.real { "real" } else { "compare" };
    let path = options.out.clone().unwrap_or_else(|| root().join(format!("target/report/{name}.html")));
    let record = record::of(results, options.seed);
    write("Sluice beside other ways to a model server", &path, results, &record)?;
    let mut written = vec![path];
    if let Some(named) = &options.record {
        let name = if named.is_empty() { name } else { named };
        written.push(record::keep(name, &record)?);
    }
    Ok(written)
}

async fn simulated(options: &Options) -> Result<Vec<Results>> {
    let spec = options.server.spec()?;
    let size = |rounds, seconds| rates::Size {
        seed: options.seed,
        rounds: options.rounds.unwrap_or(rounds),
        span: Duration::from_secs(options.seconds.unwrap_or(seconds)),
    };
    let mut scenarios = options.scenario.clone();
    if scenarios.is_empty() {
        scenarios = Which::value_variants().into();
    }
    let found = search::find(spec, size(2, 30))?;
    let servers = [ModelServer::start(0, spec).await?, ModelServer::start(0, spec).await?];
    let servers = servers.each_ref().map(ModelServer::address);
    let mut chosen = Vec::new();
    for which in scenarios {
        let mut scenario = match which {
            Which::Mixed => {
                let targets = vec![Target::Direct, Target::Envoy, Target::Breakers, Target::Sluice];
                let targets = with(targets, peers(options.peers), &[Target::Bound, Target::Alone]);
                simulated::mixed(spec, size(2, 30), found, &servers, targets)
            }
            Which::Overload => {
                let targets = vec![Target::Envoy, Target::Breakers, Target::Sluice];
                let targets = with(targets, Vec::new(), &[Target::Bound]);
                simulated::overload(spec, size(2, 15), found, &servers, targets)?
            }
            Which::Two => {
                let targets = vec![Target::Envoy, Target::SluiceTwo, Target::Alone];
                simulated::two(spec, size(2, 15), &servers, targets)?
            }
            Which::Trace => {
                let targets = vec![Target::Envoy, Target::Sluice, Target::Bound];
                simulated::trace(spec, size(2, 20), &servers, targets)?
            }
        };
        scenario.about.insert(0, options.server.said()?);
        chosen.push(scenario.only(&options.target)?);
    }
    let mut results = Vec::new();
    for scenario in chosen {
        results.push(play(scenario).await?);
        keep(options, &results)?;
    }
    Ok(results)
}

async fn real(options: &Options) -> Result<Vec<Results>> {
    let llama = Llama::find()?;
    println!("llama.cpp's server, {}, with {}", llama.version()?, llama.model());
    let mut results = Vec::new();
    for &slots in &options.slots {
        let size =
            real::Size { seed: options.seed, rounds: options.rounds.unwrap_or(3), shorts: options.shorts };
        let server = llama.start(slots, options.threads).await?;
        let targets = with(
            vec![Target::Direct, Target::Envoy],
            available(&[Peer::Gateway]),
            &[Target::Sluice, Target::Bound, Target::Alone],
        );
        let scenario = real::scenario(slots, slots / 2, size, server.address(), targets);
        results.push(play(scenario.only(&options.target)?).await?);
        keep(options, &results)?;
    }
    Ok(results)
}

/// Plays a scenario and prints its table and its promises.
pub async fn play(scenario: Scenario) -> Result<Results> {
    println!("\n{}: about {} s", scenario.name, scenario.lasts().as_secs());
    for paragraph in &scenario.about {
        println!("{paragraph}");
    }
    let results = scenario.play().await?;
    println!("{}", table::table(&results));
    for promise in (results.promises)(&results) {
        println!("{promise}");
    }
    for warning in results.warnings() {
        println!("warning, {warning}");
    }
    Ok(results)
}

/// Targets before the peers, the peers, targets after them.
fn with(mut targets: Vec<Target>, peers: Vec<Target>, last: &[Target]) -> Vec<Target> {
    targets.extend(peers);
    targets.extend(last);
    targets
}

/// The gateway is compared with wherever it is installed, the others when asked for.
fn peers(all: bool) -> Vec<Target> {
    if all { available(&Peer::ALL) } else { available(&[Peer::Gateway]) }
}

fn available(peers: &[Peer]) -> Vec<Target> {
    let (here, missing): (Vec<Peer>, Vec<Peer>) = peers.iter().partition(|peer| peer.installed());
    for peer in missing {
        println!("{} is left out: it is not installed (./build.sh bench --peers)", peer.name());
    }
    here.into_iter().map(Target::Peer).collect()
}

/// Writes the page of some results and their record.
pub fn write(title: &str, path: &Path, results: &[Results], record: &Record) -> Result<()> {
    let mut page = Page::new(title);
    for results in results {
        page = page::add(page, results, &(results.promises)(results))?;
    }
    page = page::facts(page, record);
    page.write(path)
}

/// Says where they are. An error where figures among them mean nothing.
pub fn conclude(written: &[PathBuf], results: &[Results]) -> Result<()> {
    println!();
    for path in written {
        let what = if path.extension().is_some_and(|end| end == "html") { "pictures" } else { "record" };
        println!("The {what}: {}", path.display());
    }
    let objections = results.iter().flat_map(Results::objections).collect::<Vec<_>>();
    ensure!(objections.is_empty(), "the runs cannot be compared: {}", objections.join("; "));
    Ok(())
}
