//! The rig's command line.

use anyhow::{Context as _, Result, ensure};
use clap::{Parser, Subcommand};
use rig::model::http::ModelServer;
use rig::sim::options::Options;
use rig::{advise, bench, compare, curve, demo, front, load, overhead, run, sweep};
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};

/// Test ground of Sluice: a simulated model server, Envoy before it, and load.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve a simulated OpenAI-compatible model on 127.0.0.1.
    Serve {
        /// Where to listen; 0 takes a free port.
        #[arg(long, default_value_t = 8_000)]
        port: u16,
        #[command(flatten)]
        server: Options,
    },
    /// Run Envoy with the shipped configuration before a model server, simulated or one's own, to be tried with curl.
    Run(run::Options),
    /// Send the same mixed traffic through Envoy without the filter and with it, and compare.
    Demo {
        /// Decides every prompt, length and moment.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Writes a record under `benches/record`, too.
        #[arg(long)]
        record: bool,
    },
    /// Send the same traffic through several ways to a model server, in turns, and compare.
    Compare(compare::Options),
    /// Measure what a real server needs for its steps and prompts, and hold the simulated one against it.
    Curve(Box<curve::Options>),
    /// Try a grid of policies on a trace in virtual time, and say which to take.
    Advise(Box<advise::Options>),
    /// Run Envoy before a server of one's own until standard input ends; prints where it listens.
    Front(front::Options),
    /// Show, in virtual time, what batch size does to throughput and P99, and where the knee is.
    Batch(Box<sweep::Options>),
    /// Send a workload to any server of OpenAI's chat, and say how it fared.
    Load(Box<load::command::Arguments>),
    /// Measure what admission over all workers costs, beside another module, and how well it uses its slots.
    BenchAdmission(bench::Options),
    /// Measure what the filter costs, beside an Envoy without it and one with only the buffer filter.
    Overhead(overhead::Options),
    /// The upstream of `overhead`.
    #[command(name = overhead::upstream::COMMAND, hide = true)]
    OverheadUpstream,
}

fn main() -> Result<()> {
    let command = Arguments::parse().command;
    let mut runtime = match command {
        Command::Overhead(_) | Command::OverheadUpstream => Builder::new_current_thread(),
        _ => Builder::new_multi_thread(),
    };
    runtime.enable_all().build()?.block_on(run_to_end(command))
}

async fn run_to_end(command: Command) -> Result<()> {
    use Command::{Advise, Batch, Front, OverheadUpstream, Run, Serve};
    let endless = matches!(command, Serve { .. } | Run(_) | Front(_) | OverheadUpstream);
    if matches!(command, Advise(_) | Batch(_)) {
        // They only compute and have nothing to clean up: a signal may end them as it ends any program.
        return execute(command).await;
    }
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    // On a signal the command's future is dropped, and with it every process that it started.
    tokio::select! {
        result = execute(command) => return result,
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        _ = hangup.recv() => {}
    }
    ensure!(endless, "ended by a signal before all was measured");
    Ok(())
}

async fn execute(command: Command) -> Result<()> {
    match command {
        Command::Serve { port, server } => serve(port, &server).await,
        Command::Run(options) => run::run(options).await,
        Command::Demo { seed, record } => demo::demo(seed, record).await,
        Command::Compare(options) => compare::compare(options).await,
        Command::Curve(options) => curve::curve(*options).await,
        Command::Advise(options) => advise::advise(&options),
        Command::Front(options) => front::front(options).await,
        Command::Batch(options) => sweep::batch(&options),
        Command::Load(arguments) => load::command::load(*arguments).await,
        Command::BenchAdmission(options) => bench::admission(options).await,
        Command::Overhead(options) => overhead::overhead(&options).await,
        Command::OverheadUpstream => overhead::upstream::serve().await,
    }
}

async fn serve(port: u16, server: &Options) -> Result<()> {
    let server = ModelServer::start(port, server.spec()?).await;
    let server = server.context("choose another port with --port; 0 takes a free one")?;
    println!("serving on http://{}", server.address());
    std::future::pending().await
}
