//! `rig curve`: what a real server needs for its steps and prompts, the simulated server's costs fitted to it, and how
//! far the simulated one then is from it.

mod closeness;
pub mod fit;
pub mod measure;

use crate::compare::record::keep;
use crate::load::command::{endpoint, reachable};
use crate::peers::llama::Llama;
use crate::report::record::Record;
use crate::sim::preset::Preset;
use crate::sim::spec::Spec;
use anyhow::{Result, ensure};
use clap::Args;
use comfy_table::Table;
use comfy_table::presets::UTF8_FULL_CONDENSED;
use fit::Curve;
use indicatif::{ProgressBar, ProgressStyle};
use reqwest::Url;
use serde_json::{Map, Value, json};

/// What to measure.
#[derive(Args, Debug)]
pub struct Options {
    /// A server of OpenAI's chat that runs already; llama.cpp's is started where none is named.
    #[arg(long)]
    url: Option<Url>,
    /// Up to how many answers at once; as many slots has llama.cpp's server.
    #[arg(long, default_value_t = 8)]
    most: u32,
    /// Threads of llama.cpp's server.
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// How often each point is measured; the median counts.
    #[arg(long, default_value_t = 3)]
    repeats: usize,
    /// In place of the curve: short requests beside long ones before llama.cpp's server, and as the simulated server
    /// says that they fare.
    #[arg(long, conflicts_with = "url")]
    closeness: bool,
    /// Short requests for each number of long ones.
    #[arg(long, default_value_t = 6)]
    shorts: usize,
    /// Writes a record under `benches/record`, too.
    #[arg(long)]
    record: bool,
    /// The simulated server that is held against it.
    #[arg(long, value_enum, default_value = "cpu")]
    preset: Preset,
}

/// Measures, fits, and prints both.
pub async fn curve(options: Options) -> Result<()> {
    ensure!((1..=256).contains(&options.most), "--most takes 1 to 256; {} is not", options.most);
    ensure!((1..=100).contains(&options.repeats), "--repeats takes 1 to 100; {} is not", options.repeats);
    ensure!((1..=100).contains(&options.shorts), "--shorts takes 1 to 100; {} is not", options.shorts);
    let spec = options.preset.spec();
    let (name, figures) = match &options.url {
        Some(url) => {
            let url = endpoint(url)?;
            reachable(&url).await?;
            ("curve", show(&measured(url.as_str(), &options).await?, &spec))
        }
        None => {
            let llama = Llama::find()?;
            println!("llama.cpp's server, {}, with {}", llama.version()?, llama.model());
            if options.closeness {
                ("closeness", closeness::closeness(&llama, spec, options.shorts, options.threads).await?)
            } else {
                let server = llama.start(options.most as usize, options.threads).await?;
                let url = format!("http://{}/v1/chat/completions", server.address());
                ("curve", show(&measured(&url, &options).await?, &spec))
            }
        }
    };
    if options.record {
        let record = Record::new("A model server beside the simulated one", &[1], figures);
        println!("The record: {}", keep(name, &record)?.display());
    }
    Ok(())
}

/// The costs of a step in microseconds, by the flags of `rig serve`.
fn costs(spec: &Spec) -> [(&'static str, f64); 4] {
    let costs = [
        ("--base-us", spec.base),
        ("--per-sequence-us", spec.per_sequence),
        ("--per-prefill-token-us", spec.per_prefill_token),
        ("--per-context-token-us", spec.per_context_token),
    ];
    costs.map(|(flag, cost)| (flag, (cost.as_secs_f64() * 1e7).round() / 10.0))
}

/// Prints the curve beside the lines through it and beside `spec`, and returns it and them for a record.
fn show(curve: &Curve, spec: &Spec) -> Value {
    let fitted = curve.fit(*spec);
    let costs = costs(&fitted);
    println!("{}", table(curve, &fitted, spec));
    println!("fitted: {}", costs.map(|(flag, micros)| format!("{flag} {micros}")).join(" "));
    let Curve { steps, prompts, contexts } = curve;
    let fitted: Map<String, Value> =
        costs.map(|(flag, micros)| (flag.to_owned(), json!(micros))).into_iter().collect();
    json!({ "steps": steps, "prompts": prompts, "contexts": contexts, "fitted": fitted })
}

async fn measured(url: &str, options: &Options) -> Result<Curve> {
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} points, {elapsed}")?;
    let bar = ProgressBar::new(1).with_style(style);
    let curve = measure::measure(url, options.most, options.repeats, &bar).await;
    bar.finish_and_clear();
    curve
}

/// A row for each point: measured, by the line fitted, by the simulated server asked for.
fn table(curve: &Curve, fitted: &Spec, spec: &Spec) -> Table {
    let mut table = new_table(["what", "", "measured, ms", "fitted", "", "preset", ""]);
    for ((what, n, measured, by_fit), (.., by_spec)) in
        curve.beside(fitted).into_iter().zip(curve.beside(spec))
    {
        let (of_fit, of_spec) = (ratio(by_fit, measured), ratio(by_spec, measured));
        let ms = |seconds: f64| format!("{:.2}", seconds * 1e3);
        table.add_row([
            what.to_owned(),
            n.to_string(),
            ms(measured),
            ms(by_fit),
            of_fit,
            ms(by_spec),
            of_spec,
        ]);
    }
    table
}

fn new_table<const N: usize>(head: [&str; N]) -> Table {
    let mut table = Table::new();
    table.load_preset(UTF8_FULL_CONDENSED).set_header(head);
    table
}

fn ratio(one: f64, other: f64) -> String {
    format!("{:.2} x", one / other)
}
