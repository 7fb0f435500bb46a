//! The report: one page, pictures first.

use super::figures::{Figures, Round, quantile};
use super::promise::{Promise, Time};
use super::scenario::{Played, Results};
use super::table;
use super::target::Target;
use crate::load::client::PATIENCE;
use crate::load::traffic::Class;
use crate::report::axis::Axis;
use crate::report::chart::Chart;
use crate::report::html::Page;
use crate::report::record::Record;
use anyhow::Result;

/// Points of a distribution's line.
const POINTS: usize = 200;

/// Adds a scenario: what it is, its pictures, its tables, its promises.
pub fn add(page: Page, results: &Results, promises: &[Promise]) -> Result<Page> {
    let patience = PATIENCE.as_secs();
    let tail = if results.enough() { 0.99 } else { 0.5 };
    let mut page = page.heading(results.name);
    for paragraph in &results.about {
        page = page.text(paragraph);
    }
    page = page
        .picture(
            &bars(results, tail)?,
            &format!(
                "{:.0} of 100 requests are served within this. What was refused or failed counts as {patience} s.",
                tail * 100.0
            ),
        )
        .table(
            ["", "promise", "measured"],
            promises.iter().map(|promise| {
                let verdict = if promise.met { "met" } else { "MISSED" };
                [verdict, &promise.promise, &promise.measured]
            }),
        );
    for warning in results.warnings() {
        page = page.text(&format!("Warning: {warning}."));
    }
    page = page
        .picture(
            &distribution(results, Time::FirstToken)?,
            "The part of the short requests that had its first token by when. Further left is better.",
        )
        .picture(&distribution(results, Time::Whole)?, "The same for whole answers.");
    let highest = most_at_once(results);
    for played in results.targets.iter().filter(|played| shown(played.target)) {
        if let Some(round) = played.rounds.first() {
            page = page.picture(
                &timeline(played.target, round, highest)?,
                if watched(played.target) {
                    "First round: requests in the server's batch, in the server's own line, and held before the server."
                } else {
                    "First round: requests in the server's batch and in its own line."
                },
            );
        }
    }
    page = page.picture(
        &throughput(results)?,
        "Tokens of complete answers a second, from a segment's first arrival to its last end.",
    );
    let fails = |played: &Played| Class::ALL.iter().any(|&class| played.figures.class(class).served() < 1.0);
    page = if results.targets.iter().any(fails) {
        page.picture(&refusals(results)?, "Requests that were refused, failed, or were not over in time.")
    } else {
        page.text("No request was refused, failed, or was not over in time.")
    };
    page = page.table(table::HEAD, table::rows(results));
    if results.figures(results.reference).is_some() {
        page = page
            .text(&format!("The same as ratios to {}:", results.reference.name()))
            .table(table::HEAD, table::ratios(results));
    }
    page = page
        .text("What failed, how long lines grew, and how far behind its plan the load generator fell:")
        .table(
            [
                "target",
                "short failed",
                "long failed",
                "longest line in the server",
                "most held before it",
                "sent late",
            ],
            results.targets.iter().map(waits),
        )
        .table(
            ["target", "what it is"],
            results.targets.iter().map(|played| [played.target.name(), played.target.about()]),
        );
    Ok(page.text("The filter's policy:").code(&results.policy))
}

/// Adds what a reader needs to run it again: the command, versions, the machine.
pub fn facts(page: Page, record: &Record) -> Page {
    page.heading("How this was made").code(&record.command).table(["", ""], record.facts())
}

/// Whether a target's queue and batch are worth a picture: where there is something to queue.
fn shown(target: Target) -> bool {
    !matches!(target, Target::Direct | Target::Alone)
}

/// Whether what a target holds is seen: Envoy says it, the other gateways do not, and the bound holds nothing.
fn watched(target: Target) -> bool {
    matches!(target, Target::Envoy | Target::Breakers | Target::Sluice | Target::SluiceTwo)
}

fn bars(results: &Results, part: f64) -> Result<String> {
    let of = |values: fn(&Figures) -> &[f64]| {
        results.targets.iter().map(move |played| quantile(values(&played.figures), part))
    };
    Chart::new(format!("{}: P{:.0}", results.name, part * 100.0))
        .x(Axis::groups(results.targets.iter().map(|played| played.target.name())))
        .y(Axis::log("seconds"))
        .bars("short, first token", of(|figures| &figures.short.first_token))
        .bars("short, whole answer", of(|figures| &figures.short.whole))
        .bars("long, whole answer", of(|figures| &figures.long.whole))
        .svg()
}

fn distribution(results: &Results, time: Time) -> Result<String> {
    let chart = Chart::new(format!("{}: short requests, {}", results.name, time.name()))
        .x(Axis::log("seconds"))
        .y(Axis::linear("part of all sent").from(0.0).to(1.0));
    let line = |chart: Chart, played: &Played| {
        let values = time.of(&played.figures.short);
        let points = (1..=POINTS).map(|point| point as f64 / POINTS as f64);
        chart.line(played.target.name(), points.map(|part| (quantile(values, part), part)))
    };
    results.targets.iter().fold(chart, line).svg()
}

/// The most that ran or waited at once in any of the pictures, rounded up, so that all have one scale.
fn most_at_once(results: &Results) -> f64 {
    let shown = results.targets.iter().filter(|played| shown(played.target));
    let samples = shown.filter_map(|played| played.rounds.first()).flat_map(|round| &round.timeline);
    let most = samples.map(|sample| sample.running.max(sample.waiting).max(sample.held)).max();
    most.unwrap_or_default().next_multiple_of(5) as f64
}

fn timeline(target: Target, round: &Round, highest: f64) -> Result<String> {
    let of = |count: fn(&super::timeline::Sample) -> u64| {
        round.timeline.iter().map(move |sample| (sample.at.as_secs_f64(), count(sample) as f64))
    };
    let chart = Chart::new(format!("{}: queue and batch", target.name()))
        .x(Axis::linear("seconds"))
        .y(Axis::linear("requests").from(0.0).to(highest))
        .step("running", of(|sample| sample.running))
        .step("waiting in the server", of(|sample| sample.waiting));
    let held = || of(|sample| sample.held);
    if watched(target) { chart.step("held before it", held()) } else { chart }.svg()
}

fn throughput(results: &Results) -> Result<String> {
    Chart::new(format!("{}: throughput", results.name))
        .x(Axis::groups(results.targets.iter().map(|played| played.target.name())))
        .y(Axis::linear("output tokens per second").from(0.0))
        .bars("tokens/s", results.targets.iter().map(|played| played.figures.tokens_per_second))
        .svg()
}

fn refusals(results: &Results) -> Result<String> {
    let of = |class: Class| {
        results.targets.iter().map(move |played| (1.0 - played.figures.class(class).served()) * 100.0)
    };
    Chart::new(format!("{}: refused or failed", results.name))
        .x(Axis::groups(results.targets.iter().map(|played| played.target.name())))
        .y(Axis::linear("% of those sent").from(0.0))
        .bars("short", of(Class::Short))
        .bars("long", of(Class::Long))
        .svg()
}

fn waits(played: &Played) -> [String; 6] {
    let Figures { short, long, latest, most_waiting, most_held, .. } = &played.figures;
    [
        played.target.name().to_owned(),
        short.failures.to_string(),
        long.failures.to_string(),
        most_waiting.to_string(),
        if watched(played.target) { most_held.to_string() } else { "-".to_owned() },
        format!("{:.0} ms", latest.as_secs_f64() * 1e3),
    ]
}
