//! `rig advise`: the filter's own engine over a trace in virtual time, for a grid of policies, and which of them to take.
//!
//! Nothing of the filter is written anew here: requests pass through its streams, workers and records as they do in
//! Envoy, only that the host, the clock and the server are simulated.

mod advice;
#[cfg(test)]
mod agrees;
pub mod ask;
pub mod bound;
mod filter;
mod front;
mod grid;
mod host;
mod input;
mod options;
mod page;
pub mod run;
mod score;
mod server;
mod table;
mod trial;

pub use options::Options;

use crate::load::traffic::Class;
use advice::Advice;
use anyhow::{Context, Result};
use ask::Ask;
use grid::{Candidate, Limits};
use indicatif::{ProgressBar, ProgressStyle};
use run::Setting;
use std::fs;
use std::time::{Duration, Instant};
use trial::Trial;

/// Tries the grid and prints what to take.
///
/// # Errors
/// With what is wrong with an option, the trace or a policy, or where an output cannot be written.
pub fn advise(options: &Options) -> Result<()> {
    let server = options.server.spec();
    let setting = Setting { server, policy: None, workers: options.workers, hop: options.hop()? };
    let slo = options.slo()?;
    let given = options.policy.iter().map(|file| {
        let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
        Candidate::read(file.display().to_string(), &text)
    });
    let given = given.collect::<Result<Vec<_>>>()?;
    let asks = options.source.asks(server)?;
    let load = input::demand(server, &asks)?;
    let traffic = in_words(&asks, load);
    println!("{traffic}");

    let trial = Trial { asks: &asks, setting, slo };
    let mut candidates =
        trial.distinct(options.lists.candidates(server.max_num_seqs * server.gpus, limits(&asks)?)?)?;
    candidates.extend(given);
    let without = trial.score(None)?;
    let began = Instant::now();
    let scores = trial.scores(&candidates, &progress(candidates.len())?)?;
    let took = began.elapsed().as_secs_f64();
    println!(
        "{} policies of {} requests each, in {took:.1} s: {:.0} requests a second\n",
        candidates.len(),
        asks.len(),
        (candidates.len() * asks.len()) as f64 / took
    );

    let advice = Advice::new(crate::report::record::command(), traffic, load, without, candidates, scores);
    println!("{}\n{}; times in seconds", table::table(&advice, options.all), page::FRONT);
    page::page(&advice)?.write(&options.html)?;
    println!("\nthe picture: {}", options.html.display());
    if let Some(file) = &options.json {
        let json = serde_json::to_string_pretty(&advice)?;
        fs::write(file, json).with_context(|| format!("cannot write {}", file.display()))?;
    }
    for missed in &advice.not_kept {
        println!("no policy of the grid keeps everything that is asked; the recommended one: {missed}");
    }
    println!("\nrecommended: {}\n{}", advice.recommended, advice.configuration());
    Ok(())
}

/// Limits that let every request through whole: nothing is won by refusing or cutting off.
fn limits(asks: &[Ask]) -> Result<Limits> {
    let prompt_chars = asks.iter().map(|ask| ask.prompt_chars as u64).max().unwrap_or_default();
    let max_tokens = asks.iter().filter_map(|ask| ask.max_tokens).max().unwrap_or_default();
    Limits::above(prompt_chars, u64::from(max_tokens))
}

fn in_words(asks: &[Ask], load: Option<f64>) -> String {
    let short = asks.iter().filter(|ask| ask.class == Class::Short).count();
    let span = asks.last().map_or(Duration::ZERO, |ask| ask.at).as_secs_f64();
    let load = match load {
        Some(load) if load > 1.0 => {
            format!("{load:.2} of what the server can do, so that its line only grows")
        }
        Some(load) => format!("{load:.2} of what the server can do"),
        None => "all at one moment".to_owned(),
    };
    format!(
        "{} requests within {span:.0} s, {short} short and {} long: {load}.",
        asks.len(),
        asks.len() - short
    )
}

fn progress(policies: usize) -> Result<ProgressBar> {
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} policies, {elapsed}, {eta} left")?;
    let bar = ProgressBar::new(policies as u64).with_style(style);
    bar.enable_steady_tick(Duration::from_millis(250));
    Ok(bar)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::envoy::Config;
    use clap::Parser;
    use serde_json::Value;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    #[test]
    fn envoy_loads_what_is_recommended() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str| dir.path().join(name).display().to_string();
        let flags =
            ["--long-concurrency", "6,8", "--html", &file("page.html"), "--json", &file("advice.json")];
        advise(&Line::parse_from(["advise"].into_iter().chain(flags)).options).unwrap();
        let advice: Value = serde_json::from_str(&fs::read_to_string(file("advice.json")).unwrap()).unwrap();
        let mut policies = advice["policies"].as_array().unwrap().iter();
        let chosen = policies.find(|tried| tried["name"] == advice["recommended"]).unwrap();
        let mut config = Config::shipped("envoy.yaml").unwrap();
        config.policy = Some(chosen["configuration"].as_str().unwrap().to_owned());
        config.validate().unwrap();
        config.policy = Some(r#"{"no_such_key": 1}"#.to_owned());
        assert!(format!("{:#}", config.validate().unwrap_err()).contains("no_such_key"));
    }
}
