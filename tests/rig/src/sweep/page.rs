//! The sweeps as a page of pictures.

use super::continuous::{self, Run};
use super::{Options, dynamic, flag};
use crate::report::axis::Axis;
use crate::report::chart::Chart;
use crate::report::html::Page;
use crate::report::record;
use anyhow::Result;

/// Writes the page to where the options say.
pub fn write(options: &Options, llm: &continuous::Sweep, model: &dynamic::Sweep) -> Result<()> {
    let page = Page::new("Batch size, throughput and P99")
        .text("Computed by the simulator in virtual time; nothing of this was measured on a server.")
        .heading(&format!("Continuous batching: {}", flag(&options.server.preset)))
        .text(&llm.about)
        .text(&llm.verdict(options));
    let page = pictures_of_llm(page, options, llm)?;
    let page = page.table(continuous::HEAD, llm.rows());
    let page = page
        .heading(&format!("Dynamic batching: {}, {}", flag(&options.model), flag(&options.waits)))
        .text(&model.verdict(options));
    let page = pictures_of_model(page, options, model)?;
    let page = page.table(dynamic::HEAD, model.rows());
    page.heading("How this was made").code(&record::command()).write(&options.out)
}

fn pictures_of_llm(page: Page, options: &Options, sweep: &continuous::Sweep) -> Result<Page> {
    let share = percent(options.highest_share());
    let runs = sweep.highest();
    let by_size = |of: fn(&Run) -> f64| runs.iter().map(move |run| (run.max_num_seqs as f64, of(run)));
    let mut trade = Chart::new(format!("What a token costs more where more are made, at {share} load"))
        .x(Axis::linear("output tokens a second"))
        .y(Axis::linear("time per token, P99, ms"))
        .line("max_num_seqs", runs.iter().map(|run| (run.tokens_per_second, run.per_token_p99 * 1e3)));
    for (place, run) in runs.iter().enumerate() {
        let point = (run.tokens_per_second, run.per_token_p99 * 1e3);
        if Some(place) == sweep.knee() {
            trade = trade.at_point(point, format!("knee: {}", run.max_num_seqs));
        } else if place == 0 || place + 1 == runs.len() {
            trade = trade.at_point(point, run.max_num_seqs.to_string());
        }
    }
    let throughput = Chart::new("What a batch size can do at most")
        .x(Axis::log("max_num_seqs"))
        .y(Axis::linear("answers a second"))
        .line("at most", by_size(|run| run.capacity));
    let mut whole = Chart::new("P99 of whole answers")
        .x(Axis::log("max_num_seqs"))
        .y(Axis::log("seconds"))
        .at_y(options.slo, format!("objective: {} s", options.slo));
    let mut first = Chart::new("P99 of first tokens").x(Axis::log("max_num_seqs")).y(Axis::log("seconds"));
    for runs in &sweep.runs {
        let name = runs.first().map_or(String::new(), |run| format!("{} load", percent(run.share)));
        let line = |of: fn(&Run) -> f64| runs.iter().map(move |run| (run.max_num_seqs as f64, of(run)));
        whole = whole.line(name.clone(), line(|run| run.whole_p99));
        first = first.line(name, line(|run| run.first_token_p99));
    }
    if let Some(place) = sweep.largest_within(options.slo) {
        let run = &runs[place];
        whole = whole.at_point(
            (run.max_num_seqs as f64, run.whole_p99),
            format!("largest within: {}", run.max_num_seqs),
        );
    }
    Ok(page
        .picture(&trade.svg()?, "Each point is a batch size. Left of the knee more throughput costs little.")
        .picture(&throughput.svg()?, "Single requests are the first point.")
        .picture(
            &whole.svg()?,
            "The load is a share of what each batch size can do, so larger batches serve more.",
        )
        .picture(
            &first.svg()?,
            "Small batches keep requests waiting outside; large ones read more prompts at once.",
        ))
}

fn pictures_of_model(mut page: Page, options: &Options, sweep: &dynamic::Sweep) -> Result<Page> {
    for by_wait in &sweep.runs {
        let share = by_wait.iter().flatten().next().map_or(f64::NAN, |run| run.share);
        let mut chart = Chart::new(format!("Requests a second and P99, at {} load", percent(share)))
            .x(Axis::log("requests a second"))
            .y(Axis::log("P99, ms"))
            .at_y(options.model_slo_ms, format!("objective: {} ms", options.model_slo_ms));
        for runs in by_wait {
            let point = |run: &dynamic::Run| (run.capacity * run.share, run.p99 * 1e3);
            let name = runs.first().map_or(String::new(), |run| format!("holding {} ms", run.max_wait_ms));
            chart = chart.line(name, runs.iter().map(point));
            if let Some(run) = dynamic::Sweep::knee(runs).map(|place| &runs[place]) {
                chart = chart.at_point(point(run), format!("knee: {}", run.max_batch));
            }
        }
        page = page
            .picture(&chart.svg()?, "Along a line max_batch grows, from single requests at its left end.");
    }
    Ok(page)
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}
