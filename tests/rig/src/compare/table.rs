//! The table of a scenario: a row for each target.

use super::figures::{ClassFigures, Figures, quantile};
use super::scenario::{Played, Results};
use comfy_table::{CellAlignment, Table, presets};

/// What the columns are; the first one is the target.
pub const HEAD: [&str; 12] = [
    "target",
    "short sent",
    "first token P50",
    "P99",
    "whole P50",
    "P99",
    "served",
    "long sent",
    "whole P50",
    "P99",
    "served",
    "tokens/s",
];

/// The rows as they are measured: seconds, parts of those sent, tokens a second.
pub fn rows(results: &Results) -> Vec<[String; 12]> {
    results.targets.iter().map(row).collect()
}

/// The same as ratios to the reference; none where that was not sent anything.
pub fn ratios(results: &Results) -> Vec<[String; 12]> {
    let Some(reference) = results.figures(results.reference) else { return Vec::new() };
    results.targets.iter().map(|played| ratio_row(played, reference)).collect()
}

/// The rows with their ratios to the reference, for a terminal.
pub fn table(results: &Results) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_FULL_CONDENSED);
    table.set_header(HEAD);
    let mut ratios = ratios(results).into_iter();
    for row in rows(results) {
        let ratios = ratios.next().unwrap_or_default();
        let cell = |(at, (value, ratio)): (usize, (String, String))| match at {
            2..=5 if !ratio.is_empty() => format!("{value}\n{ratio}"),
            _ => value,
        };
        table.add_row(row.into_iter().zip(ratios).enumerate().map(cell));
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn row(played: &Played) -> [String; 12] {
    let Figures { short, long, tokens_per_second, .. } = &played.figures;
    let [short_first_50, short_first_99] = times(&short.first_token);
    let [short_50, short_99] = times(&short.whole);
    let [long_50, long_99] = times(&long.whole);
    [
        played.target.name().to_owned(),
        short.sent.to_string(),
        short_first_50,
        short_first_99,
        short_50,
        short_99,
        served(short),
        long.sent.to_string(),
        long_50,
        long_99,
        served(long),
        format!("{tokens_per_second:.0}"),
    ]
}

fn ratio_row(played: &Played, reference: &Figures) -> [String; 12] {
    let Figures { short, long, tokens_per_second, .. } = &played.figures;
    let [short_first_50, short_first_99] = against(&short.first_token, &reference.short.first_token);
    let [short_50, short_99] = against(&short.whole, &reference.short.whole);
    let [long_50, long_99] = against(&long.whole, &reference.long.whole);
    [
        played.target.name().to_owned(),
        String::new(),
        short_first_50,
        short_first_99,
        short_50,
        short_99,
        times_said(short.served() / reference.short.served()),
        String::new(),
        long_50,
        long_99,
        times_said(long.served() / reference.long.served()),
        times_said(tokens_per_second / reference.tokens_per_second),
    ]
}

fn times(values: &[f64]) -> [String; 2] {
    [0.5, 0.99].map(|part| match quantile(values, part) {
        none if none.is_nan() => String::new(),
        seconds => format!("{seconds:.3} s"),
    })
}

fn against(values: &[f64], reference: &[f64]) -> [String; 2] {
    [0.5, 0.99].map(|part| times_said(quantile(values, part) / quantile(reference, part)))
}

fn times_said(ratio: f64) -> String {
    if ratio.is_finite() { format!("{ratio:.2} x") } else { String::new() }
}

fn served(class: &ClassFigures) -> String {
    if class.sent == 0 { String::new() } else { format!("{:.1} %", class.served() * 100.0) }
}
