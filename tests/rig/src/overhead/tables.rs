//! The tables.

use super::client::Turn;
use super::memory::Parked;
use super::steps::STEPS;
use super::target::Target;
use super::turns::{Load, added, ratio};
use super::upstream::EVENTS;
use crate::bench::median::median;
use comfy_table::{CellAlignment, Table, presets};

/// Requests per second and CPU time by size of body.
pub fn rates(loads: &[Load<Turn>]) -> Table {
    let mut table = table(&[
        "body, bytes",
        "Envoy with",
        "requests/s",
        "CPU a request, us",
        "Envoy at work",
        "requests/s beside buffer",
        "CPU beside buffer",
        "others' CPU",
    ]);
    for load in loads {
        for (target, turns) in &load.turns {
            let figure = |figure: fn(&Turn) -> f64| median(turns.iter().map(figure));
            table.add_row([
                load.body_bytes.to_string(),
                target.name().to_owned(),
                format!("{:.0}", figure(|turn| turn.per_second)),
                format!("{:.1}", figure(|turn| turn.cpu_micros)),
                format!("{:.0} %", figure(|turn| turn.busy) * 100.0),
                format!("{:.3}", ratio(load, target, |turn| turn.per_second)),
                format!("{:.3}", ratio(load, target, |turn| turn.cpu_micros)),
                format!("{:.1} %", figure(|turn| turn.others) * 100.0),
            ]);
        }
    }
    table
}

/// What each step of the bare module adds to those before, and Sluice to all of them.
pub fn calls(loads: &[Load<Turn>]) -> Table {
    let mut table = table(&[
        "body, bytes",
        "Envoy with",
        "calls",
        "requests/s",
        "beside buffer",
        "CPU a request, us",
        "its own, us",
        "in the middle half of turns",
        "a call, us",
    ]);
    for load in loads {
        let mut before = &Target::Buffer;
        for (target, turns) in &load.turns {
            let own = added(load, target, before, |turn| turn.cpu_micros);
            let [low, middle, high] = [0.25, 0.5, 0.75].map(|part| quantile(own.clone(), part));
            let calls = match target {
                Target::Bare { step, times } => STEPS[*step].calls_a_request(*times),
                _ => 0.0,
            };
            let some = |is: bool, text: String| if is { text } else { String::new() };
            table.add_row([
                load.body_bytes.to_string(),
                target.name().to_owned(),
                some(calls > 0.0, calls.to_string()),
                format!("{:.0}", median(turns.iter().map(|turn| turn.per_second))),
                format!("{:.3}", ratio(load, target, |turn| turn.per_second)),
                format!("{:.1}", median(turns.iter().map(|turn| turn.cpu_micros))),
                some(target != before, format!("{middle:+.1}")),
                some(target != before, format!("{low:+.1} to {high:+.1}")),
                some(calls > 0.0, format!("{:.2}", middle / calls)),
            ]);
            if !matches!(target, Target::Sluice | Target::Build(_)) {
                before = target;
            }
        }
    }
    table
}

/// CPU time of answers in many pieces, which come at their own pace.
pub fn events(loads: &[Load<Turn>]) -> Table {
    let mut table = table(&[
        "answer",
        "Envoy with",
        "CPU an answer, ms",
        "CPU an event, us",
        "answers/s a core",
        "CPU beside buffer",
        "pieces an answer",
        "others' CPU",
    ]);
    for load in loads {
        for (target, turns) in &load.turns {
            let figure = |figure: fn(&Turn) -> f64| median(turns.iter().map(figure));
            let micros = figure(|turn| turn.cpu_micros);
            table.add_row([
                format!("{EVENTS} events"),
                target.name().to_owned(),
                format!("{:.2}", micros / 1e3),
                format!("{:.2}", micros / f64::from(EVENTS)),
                format!("{:.0}", 1e6 / micros),
                format!("{:.3}", ratio(load, target, |turn| turn.cpu_micros)),
                format!("{:.0}", figure(|turn| turn.pieces)),
                format!("{:.1} %", figure(|turn| turn.others) * 100.0),
            ]);
        }
    }
    table
}

/// Latency at a low rate, all turns together.
pub fn latency(loads: &[Load<Vec<f64>>]) -> Table {
    let mut table =
        table(&["body, bytes", "Envoy with", "P50, ms", "P99, ms", "P50 added", "P99 added", "of"]);
    for load in loads {
        let of = |target: &Target, part| quantile(load.of(target).concat(), part);
        for (target, turns) in &load.turns {
            let [p50, p99] = [0.5, 0.99].map(|part| of(target, part));
            let [plain50, plain99] = [0.5, 0.99].map(|part| of(&Target::Plain, part));
            table.add_row([
                load.body_bytes.to_string(),
                target.name().to_owned(),
                format!("{p50:.3}"),
                format!("{p99:.3}"),
                format!("{:+.3}", p50 - plain50),
                format!("{:+.3}", p99 - plain99),
                turns.iter().map(Vec::len).sum::<usize>().to_string(),
            ]);
        }
    }
    table
}

/// Memory of requests that wait.
pub fn parked(parked: &[Parked]) -> Table {
    let mut table = table(&["held by", "requests", "Envoy's memory each, bytes", "the module's each, bytes"]);
    for Parked { target, count, resident, module } in parked {
        table.add_row([
            target.name().to_owned(),
            count.to_string(),
            format!("{resident:.0}"),
            format!("{module:.0}"),
        ]);
    }
    table
}

/// The value below which this part of them lies; NaN where there is none.
fn quantile(mut values: Vec<f64>, part: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a place in a list")]
    let place = (values.len() as f64 * part) as usize;
    values.get(place).copied().unwrap_or(f64::NAN)
}

fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::ASCII_MARKDOWN).set_header(header);
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
