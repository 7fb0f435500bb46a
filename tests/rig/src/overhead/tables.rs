//! The tables.

use super::client::Turn;
use super::memory::Parked;
use super::target::{KINDS, Kind};
use super::upstream::EVENTS;
use super::{Load, ratio};
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
        for kind in KINDS {
            let figure = |figure: fn(&Turn) -> f64| median(load.of(kind).iter().map(figure));
            table.add_row([
                load.body_bytes.to_string(),
                kind.name().to_owned(),
                format!("{:.0}", figure(|turn| turn.per_second)),
                format!("{:.1}", figure(|turn| turn.cpu_micros)),
                format!("{:.0} %", figure(|turn| turn.busy) * 100.0),
                format!("{:.3}", ratio(load, kind, |turn| turn.per_second)),
                format!("{:.3}", ratio(load, kind, |turn| turn.cpu_micros)),
                format!("{:.1} %", figure(|turn| turn.others) * 100.0),
            ]);
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
        for kind in KINDS {
            let figure = |figure: fn(&Turn) -> f64| median(load.of(kind).iter().map(figure));
            let micros = figure(|turn| turn.cpu_micros);
            table.add_row([
                format!("{EVENTS} events"),
                kind.name().to_owned(),
                format!("{:.2}", micros / 1e3),
                format!("{:.2}", micros / f64::from(EVENTS)),
                format!("{:.0}", 1e6 / micros),
                format!("{:.3}", ratio(load, kind, |turn| turn.cpu_micros)),
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
        let quantile = |kind: Kind, part: f64| {
            let mut all: Vec<f64> = load.of(kind).iter().flatten().copied().collect();
            all.sort_by(f64::total_cmp);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a place in a list")]
            let place = (all.len() as f64 * part) as usize;
            all.get(place).copied().unwrap_or(f64::NAN)
        };
        for kind in KINDS {
            let [p50, p99] = [0.5, 0.99].map(|part| quantile(kind, part));
            let [plain50, plain99] = [0.5, 0.99].map(|part| quantile(Kind::Plain, part));
            table.add_row([
                load.body_bytes.to_string(),
                kind.name().to_owned(),
                format!("{p50:.3}"),
                format!("{p99:.3}"),
                format!("{:+.3}", p50 - plain50),
                format!("{:+.3}", p99 - plain99),
                load.of(kind).iter().map(Vec::len).sum::<usize>().to_string(),
            ]);
        }
    }
    table
}

/// Memory of requests that wait.
pub fn parked(parked: &[Parked]) -> Table {
    let mut table = table(&["held by", "requests", "Envoy's memory each, bytes", "the module's each, bytes"]);
    for Parked { kind, count, resident, module } in parked {
        table.add_row([
            kind.name().to_owned(),
            count.to_string(),
            format!("{resident:.0}"),
            format!("{module:.0}"),
        ]);
    }
    table
}

fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::ASCII_MARKDOWN).set_header(header);
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
