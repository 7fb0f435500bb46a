//! Traces: when requests came to a real service, and how long prompts and answers were.

use anyhow::{Context, Result, bail, ensure};
use csv::{Reader, ReaderBuilder, StringRecord};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::Offset;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

/// One request of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When it came, since the first one of the trace.
    pub at: Duration,
    /// The length of its prompt in tokens, at least 1.
    pub prompt_tokens: u32,
    /// The length of its answer in tokens, at least 1.
    pub output_tokens: u32,
}

/// Requests in the order of their arrival; at least one, the first of them at 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    arrivals: Vec<Arrival>,
    left_out: usize,
}

impl Trace {
    /// Reads a CSV file with the columns of a public trace, in any order and among others:
    ///
    /// - Azure LLM inference 2023 and 2024 (Splitwise, ISCA 2024; DynamoLLM, HPCA 2025): `TIMESTAMP` (date and time),
    ///   `ContextTokens`, `GeneratedTokens`;
    /// - BurstGPT (Wang et al., KDD 2025): `Timestamp` (seconds), `Request tokens`, `Response tokens`.
    ///
    /// Rows without prompt or answer (0 tokens: in BurstGPT, requests that failed) are [left out](Trace::left_out).
    ///
    /// # Errors
    ///
    /// With the file and the line, when it cannot be read, lacks a column, has a value that is none, or no request.
    pub fn read(path: &Path) -> Result<Trace> {
        let read = || Trace::parse(File::open(path)?);
        read().with_context(|| format!("trace {}", path.display()))
    }

    /// The same out of anything that can be read.
    pub fn parse(csv: impl Read) -> Result<Trace> {
        let mut reader = ReaderBuilder::new().trim(csv::Trim::All).from_reader(csv);
        let columns = Columns::find(&mut reader)?;
        let (mut rows, mut left_out, mut row) = (Vec::new(), 0, StringRecord::new());
        while reader.read_record(&mut row)? {
            let line = row.position().map_or(0, csv::Position::line);
            let (seconds, prompt_tokens, output_tokens) =
                columns.row(&row).with_context(|| format!("line {line}"))?;
            match (prompt_tokens, output_tokens) {
                (0, _) | (_, 0) => left_out += 1,
                _ => rows.push((seconds, prompt_tokens, output_tokens)),
            }
        }
        // Stable, so that requests of one moment keep their order.
        rows.sort_by(|(one, ..), (other, ..)| one.total_cmp(other));
        let first = rows.first().map_or(0.0, |(seconds, ..)| *seconds);
        let arrival = |(seconds, prompt_tokens, output_tokens)| {
            let at =
                Duration::try_from_secs_f64(seconds - first).context("the trace spans too long a time")?;
            Ok(Arrival { at, prompt_tokens, output_tokens })
        };
        let mut trace = Trace::new(rows.into_iter().map(arrival).collect::<Result<_>>()?)?;
        trace.left_out = left_out;
        Ok(trace)
    }

    /// A trace of these requests, moved so that the first one comes at 0.
    ///
    /// # Errors
    ///
    /// When there are none.
    pub fn new(mut arrivals: Vec<Arrival>) -> Result<Trace> {
        arrivals.sort_by_key(|arrival| arrival.at);
        let first = arrivals.first().context("there is no request in it")?.at;
        arrivals.iter_mut().for_each(|arrival| arrival.at -= first);
        Ok(Trace { arrivals, left_out: 0 })
    }

    /// The requests.
    pub fn arrivals(&self) -> &[Arrival] {
        &self.arrivals
    }

    /// Rows of the file that had no prompt or no answer.
    pub fn left_out(&self) -> usize {
        self.left_out
    }

    /// From the first arrival to the last.
    pub fn span(&self) -> Duration {
        self.arrivals.last().map_or(Duration::ZERO, |arrival| arrival.at)
    }

    /// Requests a second; none when all came at one moment.
    pub fn rate(&self) -> Option<f64> {
        let span = self.span().as_secs_f64();
        (span > 0.0).then(|| (self.arrivals.len() - 1) as f64 / span)
    }

    /// The same requests in the same rhythm at another rate, in requests a second.
    ///
    /// # Errors
    ///
    /// When the rate is none, or the trace has none to begin with.
    pub fn at_rate(mut self, rate: f64) -> Result<Trace> {
        ensure!(
            rate.is_finite() && rate > 0.0,
            "a rate must be above 0 requests a second; this one is {rate}"
        );
        let slower =
            self.rate().context("all requests of the trace come at one moment: it has no rate")? / rate;
        for arrival in &mut self.arrivals {
            arrival.at = Duration::try_from_secs_f64(arrival.at.as_secs_f64() * slower)
                .with_context(|| format!("at {rate} requests a second the trace takes too long"))?;
        }
        Ok(self)
    }

    /// What came within `length` from `from` on; the first one of it is at 0 again.
    ///
    /// # Errors
    ///
    /// When nothing came then; it says how long the trace is.
    pub fn window(&self, from: Duration, length: Duration) -> Result<Trace> {
        let within = |arrival: &&Arrival| arrival.at >= from && arrival.at - from < length;
        let arrivals = self.arrivals.iter().filter(within).copied().collect();
        Trace::new(arrivals).with_context(|| {
            format!("no request came within {length:?} from {from:?} on; the trace lasts {:?}", self.span())
        })
    }

    /// The first `count` requests.
    ///
    /// # Errors
    ///
    /// When `count` is 0.
    pub fn first(mut self, count: usize) -> Result<Trace> {
        self.arrivals.truncate(count);
        Trace::new(self.arrivals)
    }
}

/// Where the three figures of a row stand.
struct Columns {
    time: usize,
    prompt: usize,
    output: usize,
    names: StringRecord,
}

const PROMPT: [&str; 2] = ["ContextTokens", "Request tokens"];
const OUTPUT: [&str; 2] = ["GeneratedTokens", "Response tokens"];

impl Columns {
    fn find(reader: &mut Reader<impl Read>) -> Result<Columns> {
        let names = reader.headers()?.clone();
        let find = |wanted: &[&str]| {
            let is_wanted = |name: &str| wanted.iter().any(|wanted| wanted.eq_ignore_ascii_case(name));
            names.iter().position(is_wanted).with_context(|| {
                let found = names.iter().collect::<Vec<_>>().join(", ");
                format!("line 1: there is no column {}; the columns are: {found}", wanted.join(" or "))
            })
        };
        Ok(Columns { time: find(&["TIMESTAMP"])?, prompt: find(&PROMPT)?, output: find(&OUTPUT)?, names })
    }

    /// Seconds, prompt tokens, output tokens.
    fn row(&self, row: &StringRecord) -> Result<(f64, u32, u32)> {
        let cell = |column: usize| row.get(column).unwrap_or_default();
        let tokens = |column: usize| {
            cell(column).parse::<u32>().ok().with_context(|| {
                let name = self.names.get(column).unwrap_or_default();
                format!("{name} must be a whole number of tokens; this one is {:?}", cell(column))
            })
        };
        Ok((seconds(cell(self.time))?, tokens(self.prompt)?, tokens(self.output)?))
    }
}

/// A moment as seconds since some beginning.
fn seconds(text: &str) -> Result<f64> {
    if let Ok(seconds) = text.parse::<f64>() {
        ensure!(seconds.is_finite(), "the time must be finite; this one is {text:?}");
        return Ok(seconds);
    }
    // With an offset from UTC, as of 2024, or without one, as of 2023.
    if let Ok(moment) = text.parse::<Timestamp>() {
        return Ok(moment.as_duration().as_secs_f64());
    }
    match text.parse::<DateTime>().map(|moment| Offset::UTC.to_timestamp(moment)) {
        Ok(Ok(moment)) => Ok(moment.as_duration().as_secs_f64()),
        _ => bail!(
            "the time must be seconds, as 12.5, or a date and time, as 2023-11-16 18:15:46.6805900; this one is {text:?}"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrival(millis: u64, prompt_tokens: u32, output_tokens: u32) -> Arrival {
        Arrival { at: Duration::from_millis(millis), prompt_tokens, output_tokens }
    }

    /// Seconds since 1970 as f64 are good to a quarter of a microsecond.
    fn rounded(trace: &Trace) -> Vec<Arrival> {
        let round = |at: Duration| Duration::from_millis((at.as_secs_f64() * 1e3).round() as u64);
        trace.arrivals().iter().map(|arrival| Arrival { at: round(arrival.at), ..*arrival }).collect()
    }

    #[test]
    fn every_published_form_is_read() {
        let expected = [arrival(0, 374, 44), arrival(4_250, 396, 109)];
        for csv in [
            "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6800000,374,44\n2023-11-16 18:15:50.930,396,109",
            "TIMESTAMP,ContextTokens,GeneratedTokens\r\n2024-05-10 00:00:00.009930+00:00,374,44\r\n2024-05-10 00:00:04.259930+00:00,396,109\r\n",
            "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,ChatGPT,374,44,418,Conversation log\n9.25,GPT-4,396,109,505,API log\n",
            "\u{feff}Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n9.25,,1,GPT-4,396,109,505,API log\n5,a,1,ChatGPT,374,44,418,Conversation log\n",
        ] {
            assert_eq!(rounded(&Trace::parse(csv.as_bytes()).unwrap()), expected, "{csv}");
        }
    }

    #[test]
    fn requests_that_failed_are_left_out_and_counted() {
        let csv = "Timestamp,Request tokens,Response tokens\n1,10,5\n2,10,0\n3,0,0\n4,11,6\n";
        let trace = Trace::parse(csv.as_bytes()).unwrap();
        assert_eq!((rounded(&trace), trace.left_out()), (vec![arrival(0, 10, 5), arrival(3_000, 11, 6)], 2));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        const HEAD: &str = "Timestamp,Request tokens,Response tokens\n";
        for (csv, parts) in [
            ("", &["line 1", "no column TIMESTAMP"][..]),
            ("Timestamp,Tokens\n", &["line 1", "ContextTokens or Request tokens", "Timestamp, Tokens"]),
            (HEAD, &["no request"]),
            (&format!("{HEAD}1,2,0\n"), &["no request"]),
            (&format!("{HEAD}1,2,3\n2,many,3\n"), &["line 3", "Request tokens", "\"many\""]),
            (&format!("{HEAD}1,2,-3\n"), &["line 2", "Response tokens", "\"-3\""]),
            (&format!("{HEAD}1,2,4294967296\n"), &["line 2", "Response tokens"]),
            (&format!("{HEAD}soon,2,3\n"), &["line 2", "\"soon\""]),
            (&format!("{HEAD}NaN,2,3\n"), &["line 2", "finite"]),
            (&format!("{HEAD}1,2,3\n1e300,2,3\n"), &["too long"]),
            (&format!("{HEAD}1,2\n"), &["line: 2"]),
        ] {
            let error = format!("{:#}", Trace::parse(csv.as_bytes()).unwrap_err());
            assert!(parts.iter().all(|part| error.contains(part)), "{csv:?}: {error}");
        }
        let error = format!("{:#}", Trace::read(Path::new("/nowhere/trace.csv")).unwrap_err());
        assert!(error.contains("/nowhere/trace.csv"), "{error}");
    }

    #[test]
    fn a_trace_keeps_its_rhythm_at_another_rate() {
        let trace = Trace::new(vec![arrival(0, 1, 1), arrival(1_000, 2, 2), arrival(4_000, 3, 3)]).unwrap();
        assert_eq!(trace.rate(), Some(0.5));
        let faster = trace.clone().at_rate(2.0).unwrap();
        assert_eq!(rounded(&faster), [arrival(0, 1, 1), arrival(250, 2, 2), arrival(1_000, 3, 3)]);
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-300] {
            assert!(trace.clone().at_rate(rate).is_err(), "{rate}");
        }
        assert!(trace.first(1).unwrap().at_rate(1.0).is_err());
    }

    #[test]
    fn a_window_begins_anew() {
        let seconds = Duration::from_secs;
        let trace = Trace::new((0..10).map(|n| arrival(n * 1_000, 1, 1)).collect()).unwrap();
        let window = trace.window(seconds(3), seconds(4)).unwrap();
        assert_eq!(
            (window.arrivals().len(), window.arrivals()[0].at, window.span()),
            (4, Duration::ZERO, seconds(3))
        );
        let error = format!("{:#}", trace.window(seconds(60), seconds(4)).unwrap_err());
        assert!(error.contains("60s") && error.contains("9s"), "{error}");
        assert!(trace.window(seconds(0), Duration::MAX).is_ok());
        assert!(trace.first(0).is_err());
    }
}
