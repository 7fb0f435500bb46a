//! The page: the trade between short and long ones as a picture, the table, the policy.

use super::advice::{Advice, Tried};
use super::front::axes;
use super::table::{COLUMNS, rows};
use crate::report::axis::Axis;
use crate::report::chart::Chart;
use crate::report::html::Page;
use anyhow::Result;

/// What the front is, in words.
pub const FRONT: &str = "front: no other policy has both a lower P99 of short first tokens and a lower P99 of whole \
                         long answers";

/// The page.
///
/// # Errors
/// Where the picture cannot be drawn.
pub fn page(advice: &Advice) -> Result<Page> {
    let mut page = Page::new("Which policy to take")
        .text(&advice.traffic)
        .picture(
            &picture(advice)?,
            "Each mark is a policy. Further down, short requests have their first token sooner; further left, long \
             ones are over sooner. Whoever was refused or gave up counts as the client's whole patience.",
        )
        .heading("The policy to take")
        .text(&format!("{}. Write this into the filter's configuration:", advice.recommended))
        .code(advice.configuration());
    for missed in &advice.not_kept {
        page = page
            .text(&format!("No policy of the grid keeps everything that is asked. Of this one: {missed}."));
    }
    Ok(page
        .heading("The front")
        .text(&format!("{FRONT}. Times in seconds."))
        .table(COLUMNS, rows(advice, false))
        .heading("All policies")
        .table(COLUMNS, rows(advice, true))
        .heading("How this was made")
        .code(&advice.command))
}

fn picture(advice: &Advice) -> Result<String> {
    let point = |score: &super::score::Score| {
        let (short, long) = axes(score);
        (long, short)
    };
    let of = |wanted: &dyn Fn(&Tried) -> bool| -> Vec<(f64, f64)> {
        advice.policies.iter().filter(|tried| wanted(tried)).map(|tried| point(&tried.score)).collect()
    };
    let mut chart = Chart::new("Short first tokens against long answers")
        .x(Axis::log("whole long answer, P99 (s)"))
        .y(Axis::log("first token of a short answer, P99 (s)"))
        .scatter("policies", of(&|tried| !tried.front && tried.point.is_some()))
        .front("front", of(&|tried| tried.front))
        .scatter("without the filter", [point(&advice.without)]);
    let given = of(&|tried| tried.point.is_none());
    if !given.is_empty() {
        chart = chart.scatter("given as a file", given);
    }
    if let Some(chosen) = advice.chosen() {
        chart = chart.at_point(point(&chosen.score), "recommended");
    }
    chart.svg()
}
