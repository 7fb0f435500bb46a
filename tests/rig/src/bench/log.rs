//! A burst by Envoy's own clock, as its access log has it.
//!
//! There a slot is in use from the moment its request is sent upstream to the moment the answer's last byte is read,
//! and it is a request's turn by the moment its own last byte was read. So no time counts that clients, model server
//! and kernel take, and no order but the one that Envoy saw.

use super::stay::Stay;
use crate::envoy::Envoy;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::thread;
use std::time::{Duration, Instant};

/// What the access log has to hold beside the shipped fields.
pub const FIELDS: [(&str, &str); 4] = [
    ("began", "%START_TIME(%s.%6f)%"),
    ("read_us", "%COMMON_DURATION(DS_RX_BEG:DS_RX_END:us)%"),
    ("sent_us", "%COMMON_DURATION(DS_RX_BEG:US_TX_BEG:us)%"),
    ("answered_us", "%COMMON_DURATION(DS_RX_BEG:US_RX_END:us)%"),
];
const PATIENCE: Duration = Duration::from_secs(5);

/// The stays of the `count` requests that follow the first `skip` in the log, in the order in which they began.
pub fn stays(envoy: &Envoy, skip: usize, count: usize) -> Result<Vec<Stay>> {
    let deadline = Instant::now() + PATIENCE;
    let lines = loop {
        let lines = envoy.access_log()?;
        if lines.len() >= skip + count {
            break lines;
        }
        ensure!(Instant::now() < deadline, "the access log has {} lines of {}", lines.len(), skip + count);
        thread::sleep(Duration::from_millis(20));
    };
    of_lines(&lines[skip..])
}

fn of_lines(lines: &[Value]) -> Result<Vec<Stay>> {
    let points = |line: &Value| {
        let began = line["began"].as_str().and_then(micros).with_context(|| line.to_string())?;
        let after = |field: &str| {
            let passed = line[field].as_u64().with_context(|| format!("{field} in {line}"))?;
            anyhow::Ok(began + Duration::from_micros(passed))
        };
        anyhow::Ok([after("read_us")?, after("sent_us")?, after("answered_us")?])
    };
    let mut points = lines.iter().map(points).collect::<Result<Vec<_>>>()?;
    points.sort();
    let stay = |(turn, [_, from, to]): (usize, [Duration; 3])| Stay { turn, from, to };
    let mut stays: Vec<Stay> = points.into_iter().enumerate().map(stay).collect();
    stays.sort_by_key(|stay| stay.from);
    Ok(stays)
}

/// Seconds and microseconds as `1.000002`.
fn micros(time: &str) -> Option<Duration> {
    let (seconds, micros) = time.split_once('.')?;
    Some(Duration::from_secs(seconds.parse().ok()?) + Duration::from_micros(micros.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn turns_go_by_what_was_read_and_slots_by_what_was_sent() {
        let line = |began, read, sent, answered| json!({"began": began, "read_us": read, "sent_us": sent, "answered_us": answered});
        let lines = [line("7.000001", 9, 30, 50), line("7.000002", 1, 20, 40), line("6.999990", 5, 40, 90)];
        let stays = of_lines(&lines).unwrap();
        assert_eq!(stays.iter().map(|stay| stay.turn).collect::<Vec<_>>(), [1, 0, 2]);
        assert_eq!(stays[0].to - stays[0].from, Duration::from_micros(20));
        assert_eq!(stays[2].from, Duration::from_micros(7_000_031));
        assert!(of_lines(&[json!({"began": "7.000001"})]).is_err());
    }
}
