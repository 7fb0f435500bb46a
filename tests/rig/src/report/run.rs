//! The report of a load: table, page, JSON and CSV.

use super::axis::Axis;
use super::chart::Chart;
use super::html::Page;
use super::record::Record;
use super::summary::{ClassSummary, Latency};
use crate::load::outcome::{self, Failure, Outcome};
use crate::load::traffic::Class;
use anyhow::{Context, Result};
use comfy_table::{CellAlignment, Table, presets};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

/// The quantiles that are reported, and their names.
const QUANTILES: [(&str, f64); 5] =
    [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p999", 0.999)];

/// What a load came to.
#[derive(Clone, Debug)]
pub struct Run {
    /// Each class, then all of them together where there are several.
    columns: Vec<(String, ClassSummary)>,
    /// From the first planned arrival to the last end.
    span: Duration,
    /// The most that a request was sent too late, by no fault of the server.
    latest: Duration,
    /// For the pictures: of each class, when requests were due and how long they took in seconds, failures as the patience.
    points: Vec<(String, Vec<(f64, f64)>)>,
}

/// Tokens that came in one packet are no time apart, which has no place on a logarithmic axis; in seconds.
const LEAST_SHOWN: f64 = 1e-4;

impl Run {
    /// Sums up `outcomes`, whose clients waited for `patience` at most; a failure counts as all of it.
    pub fn of(outcomes: &[Outcome], patience: Duration) -> Run {
        let classes: BTreeSet<Class> = outcomes.iter().map(|outcome| outcome.class).collect();
        let of = |class: Class| outcomes.iter().filter(move |outcome| outcome.class == class);
        let mut columns: Vec<_> = classes
            .iter()
            .map(|&class| (class.name().to_owned(), ClassSummary::of(of(class), patience)))
            .collect();
        if columns.len() > 1 {
            columns.push(("all".to_owned(), ClassSummary::of(outcomes.iter(), patience)));
        }
        let point = |outcome: &Outcome| (outcome.at.as_secs_f64(), outcome.counted(patience).1.as_secs_f64());
        Run {
            columns,
            span: outcome::span(outcomes),
            latest: outcome::latest(outcomes),
            points: classes
                .iter()
                .map(|&class| (class.name().to_owned(), of(class).map(point).collect()))
                .collect(),
        }
    }

    /// Requests with a complete answer.
    pub fn served(&self) -> usize {
        self.columns.last().map_or(0, |(_, summary)| summary.sent - summary.failed())
    }

    /// The most that a request was sent too late.
    pub fn latest(&self) -> Duration {
        self.latest
    }

    /// All figures: a name, and a column a class.
    pub fn rows(&self) -> Vec<Vec<String>> {
        let row = |name: &str, of: &dyn Fn(&ClassSummary) -> String| {
            let cells = self.columns.iter().map(|(_, summary)| of(summary));
            std::iter::once(name.to_owned()).chain(cells).collect()
        };
        let mut rows = vec![
            row("requests sent", &|summary| summary.sent.to_string()),
            row("complete answers", &|summary| (summary.sent - summary.failed()).to_string()),
            row("failures", &|summary| summary.failures.to_string().replace(", ", "\n")),
            row("attempts a request", &|summary| {
                format!("{:.2}", summary.attempts as f64 / summary.sent.max(1) as f64)
            }),
        ];
        for (figure, of) in LATENCIES {
            for (name, part) in QUANTILES.into_iter().filter(|(name, _)| *name != "p95") {
                let name = name.to_uppercase().replace("P999", "P99.9");
                rows.push(row(&format!("{figure} {name}"), &|summary| {
                    seconds(of(summary), |latency| latency.quantile(part))
                }));
            }
            rows.push(row(&format!("{figure} max"), &|summary| seconds(of(summary), Latency::max)));
        }
        let span = self.span.as_secs_f64().max(f64::MIN_POSITIVE);
        rows.push(row("requests per second", &|summary| format!("{:.1}", summary.sent as f64 / span)));
        rows.push(row("output tokens per second", &|summary| format!("{:.0}", summary.tokens as f64 / span)));
        rows
    }

    /// The table for the terminal.
    pub fn table(&self) -> Table {
        let mut table = Table::new();
        table.load_preset(presets::UTF8_FULL_CONDENSED).set_header(self.head());
        table.add_rows(self.rows());
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        table
    }

    /// The figures for a record; times in seconds, each with its histogram in HdrHistogram's V2 deflate form (microseconds).
    pub fn figures(&self) -> Result<Value> {
        let mut classes = serde_json::Map::new();
        for (name, summary) in &self.columns {
            let failures =
                summary.failures.0.iter().map(|(failure, count)| (failure.to_string(), json!(count)));
            let mut figures = json!({
                "sent": summary.sent,
                "served": summary.sent - summary.failed(),
                "attempts": summary.attempts,
                "failures": failures.collect::<serde_json::Map<_, _>>(),
                "output_tokens": summary.tokens,
            });
            for (figure, of) in LATENCIES {
                figures[figure.replace([' ', '-'], "_")] = distribution(of(summary))?;
            }
            classes.insert(name.clone(), figures);
        }
        Ok(json!({
            "classes": classes,
            "seconds": self.span.as_secs_f64(),
            "sent_late_max": self.latest.as_secs_f64(),
        }))
    }

    /// The page: pictures, the table, the facts of the record.
    pub fn page(&self, record: &Record, notes: &[String]) -> Result<Page> {
        let classes = &self.columns[..self.points.len()];
        let mut page = notes.iter().fold(Page::new(&record.what), |page, note| page.text(note));
        for (figure, of) in LATENCIES {
            if classes.iter().all(|(_, summary)| of(summary).count() == 0) {
                continue;
            }
            let chart = Chart::new(format!("Time: {figure}"))
                .x(Axis::log("seconds"))
                .y(Axis::linear("part that took no longer, %").to(100.0));
            let chart = classes.iter().fold(chart, |chart, (name, summary)| {
                let points = of(summary).cumulated();
                chart.step(name, points.map(|(seconds, part)| (seconds.max(LEAST_SHOWN), part * 100.0)))
            });
            page = page.picture(
                &chart.svg()?,
                "Further left is better; how flat the top runs out is the tail. What took under 0.1 ms stands there.",
            );
        }
        let chart = Chart::new("Each request")
            .x(Axis::linear("planned arrival, seconds"))
            .y(Axis::log("whole answer, seconds"));
        let chart = self
            .points
            .iter()
            .fold(chart, |chart, (name, points)| chart.scatter(name, points.iter().copied()));
        Ok(page
            .picture(
                &chart.svg()?,
                "Bursts and what they do to others show here. A failure stands as the client's patience.",
            )
            .heading("Figures")
            .table(self.head(), self.rows())
            .heading("How it was measured")
            .code(&record.command)
            .table(["fact", "value"], record.facts()))
    }

    fn head(&self) -> Vec<String> {
        std::iter::once("figure".to_owned())
            .chain(self.columns.iter().map(|(name, _)| name.clone()))
            .collect()
    }
}

/// A figure's name, and where it stands.
type Figure = (&'static str, fn(&ClassSummary) -> &Latency);

const LATENCIES: [Figure; 3] = [
    ("first token", |summary| &summary.first_token),
    ("inter-token", |summary| &summary.inter_token),
    ("whole answer", |summary| &summary.whole),
];

/// Writes a row a request: times in seconds, empty where there was no answer.
///
/// # Errors
///
/// With the path, when it cannot be written.
pub fn write_csv(outcomes: &[Outcome], path: &Path) -> Result<()> {
    let write = || -> Result<()> {
        let mut csv = csv::Writer::from_path(path)?;
        csv.write_record([
            "at",
            "class",
            "late",
            "attempts",
            "status",
            "reason",
            "first_token",
            "whole",
            "output_tokens",
            "longest_gap",
        ])?;
        for outcome in outcomes {
            let seconds = |time: Duration| format!("{:.6}", time.as_secs_f64());
            let (status, reason) = match &outcome.result {
                Ok(_) => ("200".to_owned(), String::new()),
                Err(Failure::Status(status, reason)) => (status.to_string(), reason.clone()),
                Err(failure) => (String::new(), failure.to_string()),
            };
            let [first_token, tokens, gap] = outcome.result.as_ref().map_or_else(
                |_| [const { String::new() }; 3],
                |served| {
                    let gap = served.gaps.iter().max().map(|&gap| seconds(gap)).unwrap_or_default();
                    [seconds(served.first_token), served.tokens.to_string(), gap]
                },
            );
            csv.write_record([
                seconds(outcome.at),
                outcome.class.name().to_owned(),
                seconds(outcome.late),
                outcome.attempts.to_string(),
                status,
                reason,
                first_token,
                seconds(outcome.took),
                tokens,
                gap,
            ])?;
        }
        Ok(csv.flush()?)
    };
    write().with_context(|| format!("cannot write the rows {}", path.display()))
}

fn distribution(latency: &Latency) -> Result<Value> {
    let mut figures = json!({ "count": latency.count(), "max": latency.max().as_secs_f64() });
    for (name, part) in QUANTILES {
        figures[name] = json!(latency.quantile(part).as_secs_f64());
    }
    figures["hdr"] = json!(latency.encoded()?);
    Ok(figures)
}

fn seconds(latency: &Latency, of: impl Fn(&Latency) -> Duration) -> String {
    match latency.count() {
        0 => "-".to_owned(),
        _ => format!("{:.4} s", of(latency).as_secs_f64()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::outcome::Served;

    fn outcomes() -> Vec<Outcome> {
        let millis = Duration::from_millis;
        let outcome = |class, at, took, attempts, result| Outcome {
            class,
            at: millis(at),
            late: millis(1),
            attempts,
            took: millis(took),
            result,
        };
        let served =
            |gaps| Served { first_token: millis(100), tokens: 3, gaps, tagged: None, limit_action: None };
        vec![
            outcome(Class::Short, 0, 500, 1, Ok(served(vec![millis(150), millis(250)]))),
            outcome(Class::Short, 500, 20, 3, Err(Failure::Status(429, "queue_full".into()))),
            outcome(Class::of("agent"), 1_000, 1_000, 1, Ok(served(Vec::new()))),
        ]
    }

    #[test]
    fn every_class_has_its_column_and_all_together() {
        let run = Run::of(&outcomes(), Duration::from_secs(30));
        assert_eq!(run.head(), ["figure", "short", "agent", "all"]);
        let rows = run.rows();
        let row = |name: &str| rows.iter().find(|row| row[0] == name).unwrap()[1..].to_vec();
        assert_eq!(row("requests sent"), ["2", "1", "3"]);
        assert_eq!(row("failures"), ["1 x 429 queue_full", "none", "1 x 429 queue_full"]);
        assert_eq!(row("attempts a request"), ["2.00", "1.00", "1.67"]);
        assert_eq!(row("inter-token max"), ["0.2500 s", "-", "0.2500 s"].map(|cell| cell.to_owned()));
        assert_eq!(row("output tokens per second"), ["2", "2", "3"]);
        assert!(row("whole answer P99")[0].starts_with("30."), "{:?}", row("whole answer P99"));
        assert_eq!((run.served(), run.latest()), (2, Duration::from_millis(1)));
    }

    #[test]
    fn one_class_alone_needs_no_sum() {
        let run = Run::of(&outcomes()[..2], Duration::from_secs(30));
        assert_eq!(run.head(), ["figure", "short"]);
        assert_eq!(run.served(), 1);
    }

    #[test]
    fn the_record_holds_what_the_table_shows() {
        let run = Run::of(&outcomes(), Duration::from_secs(30));
        let figures = run.figures().unwrap();
        assert_eq!(figures["classes"]["all"]["failures"], json!({"429 queue_full": 1}));
        assert_eq!(figures["classes"]["short"]["first_token"]["count"], 2);
        assert!(figures["classes"]["agent"]["whole_answer"]["p50"].as_f64().unwrap() > 0.99);
        assert!(figures["classes"]["agent"]["whole_answer"]["hdr"].as_str().unwrap().starts_with("HISTFAAA"));
        let page = run.page(&Record::new("A load", &[1], figures), &["a note".into()]).unwrap().html();
        for part in ["A load", "a note", "Time: first token", "Each request", "429 queue_full", "commit"] {
            assert!(page.contains(part), "{part}");
        }
    }

    #[test]
    fn rows_say_what_became_of_each_request() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("rows.csv");
        write_csv(&outcomes(), &path).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(
            text.lines().nth(1).unwrap(),
            "0.000000,short,0.001000,1,200,,0.100000,0.500000,3,0.250000"
        );
        assert_eq!(text.lines().nth(2).unwrap(), "0.500000,short,0.001000,3,429,queue_full,,0.020000,,");
        let error = write_csv(&outcomes(), &path.join("below-a-file")).unwrap_err();
        assert!(format!("{error:#}").contains("below-a-file"));
    }
}
