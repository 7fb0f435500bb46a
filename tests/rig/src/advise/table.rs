//! The table: a policy a line.

use super::advice::{Advice, Tried};
use super::score::Score;
use comfy_table::{CellAlignment, Table, presets};

/// The columns. Times are in seconds; P50 and P99 are over all requests sent.
pub const COLUMNS: [&str; 10] = [
    "policy",
    "short first P50",
    "short first P99",
    "short whole P99",
    "long first P99",
    "long whole P99",
    "refused short / long",
    "served well",
    "tokens/s",
    "",
];

/// The rows: without the filter, then the policies on the front, those given as files and the recommended one; `all`
/// of them where that is asked for.
pub fn rows(advice: &Advice, all: bool) -> Vec<[String; 10]> {
    let shown =
        |tried: &&Tried| all || tried.front || tried.point.is_none() || tried.name == advice.recommended;
    let without = row("without the filter", &advice.without, "");
    let policies = advice.policies.iter().filter(shown).map(|tried| {
        let mark = match (tried.name == advice.recommended, tried.front) {
            (true, true) => "front, recommended",
            (true, false) => "recommended",
            (false, true) => "front",
            (false, false) => "",
        };
        row(&tried.name, &tried.score, mark)
    });
    std::iter::once(without).chain(policies).collect()
}

/// The same for a terminal.
pub fn table(advice: &Advice, all: bool) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_FULL_CONDENSED);
    table.set_header(COLUMNS);
    table.add_rows(rows(advice, all));
    for column in table.column_iter_mut().skip(1).take(8) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn row(name: &str, score: &Score, mark: &str) -> [String; 10] {
    let Score { short, long, .. } = score;
    let seconds = |seconds: f64| format!("{seconds:.3}");
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    [
        name.to_owned(),
        seconds(short.first_token.p50),
        seconds(short.first_token.p99),
        seconds(short.whole.p99),
        seconds(long.first_token.p99),
        seconds(long.whole.p99),
        format!("{} / {}", percent(short.refused), percent(long.refused)),
        percent(score.good),
        format!("{:.0}", score.tokens_per_second),
        mark.to_owned(),
    ]
}
