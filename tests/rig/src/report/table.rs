//! The table: both runs beside each other, by class.

use super::summary::{ClassSummary, Latency, Summary};
use crate::load::traffic::Class;
use comfy_table::{CellAlignment, Table, presets};

/// What both runs came to.
pub fn table(without: &Summary, with: &Summary) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_FULL_CONDENSED);
    table.set_header(["class", "figure", "without filter", "with Sluice", "change"]);
    for class in Class::ALL {
        class_rows(&mut table, class.name(), without.class(class), with.class(class));
    }
    let ratio = with.tokens_per_second / without.tokens_per_second;
    table.add_row([
        "all".to_owned(),
        "output tokens/s".to_owned(),
        format!("{:.0}", without.tokens_per_second),
        format!("{:.0}", with.tokens_per_second),
        format!("{ratio:.2}x"),
    ]);
    for (figure, of) in [
        ("first arrival to last end", (|run| seconds(run.span.as_secs_f64())) as fn(&Summary) -> String),
        ("longest line in the model server", |run| run.server_line_peak.to_string()),
    ] {
        table.add_row(["".to_owned(), figure.to_owned(), of(without), of(with), String::new()]);
    }
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn class_rows(table: &mut Table, name: &str, without: &ClassSummary, with: &ClassSummary) {
    let counts = [without, with].map(|class| class.sent.to_string());
    let [counted_without, counted_with] = counts;
    table.add_row([
        name.to_owned(),
        "requests sent".to_owned(),
        counted_without,
        counted_with,
        String::new(),
    ]);
    for (figure, without, with) in [
        ("first token", &without.first_token, &with.first_token),
        ("whole answer", &without.whole, &with.whole),
    ] {
        for (quantile, part) in [("P50", 0.5), ("P95", 0.95), ("P99", 0.99)] {
            table.add_row(latency_row(&format!("{figure} {quantile}"), without, with, part));
        }
    }
    for (figure, of) in [
        ("errors by status", errors as fn(&ClassSummary) -> String),
        ("queue timeouts", |class| class.queue_timeouts().to_string()),
    ] {
        table.add_row(["".to_owned(), figure.to_owned(), of(without), of(with), String::new()]);
    }
}

fn latency_row(figure: &str, without: &Latency, with: &Latency, part: f64) -> [String; 5] {
    let [without, with] = [without, with].map(|latency| latency.quantile(part).as_secs_f64());
    let change = match without / with.max(f64::MIN_POSITIVE) {
        lower if lower >= 1.0 => format!("{lower:.1}x lower"),
        higher => format!("{:.1}x higher", 1.0 / higher.max(f64::MIN_POSITIVE)),
    };
    ["".to_owned(), figure.to_owned(), seconds(without), seconds(with), change]
}

fn errors(class: &ClassSummary) -> String {
    if class.failures.is_empty() {
        return "none".to_owned();
    }
    let counted = class.failures.iter().map(|(failure, count)| format!("{count} x {failure}"));
    counted.collect::<Vec<_>>().join("\n")
}

fn seconds(seconds: f64) -> String {
    format!("{seconds:.3} s")
}
