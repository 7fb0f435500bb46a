//! Envoy's admin pages.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

const PATIENCE: Duration = Duration::from_secs(10);

/// Counters and gauges by name, at one moment.
#[derive(Clone, Debug)]
pub struct Stats(BTreeMap<String, u64>);

impl Stats {
    /// From the text of `/stats`. Histograms and text values are left out.
    pub fn parse(text: &str) -> Self {
        let numbers = text.lines().filter_map(|line| {
            let (name, value) = line.split_once(": ")?;
            Some((name.to_owned(), value.parse().ok()?))
        });
        Self(numbers.collect())
    }

    /// 0 where there is no such name: Envoy makes most at their first use.
    pub fn get(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(name, value)| (name.as_str(), *value))
    }
}

/// The body of the answer; an error where its status is not 200.
pub fn request(address: SocketAddr, method: &str, path: &str) -> Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nhost: envoy\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
    )?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).with_context(|| format!("no answer to {method} {path}"))?;
    let answer = String::from_utf8_lossy(&answer);
    let (head, body) = answer.split_once("\r\n\r\n").with_context(|| format!("no head in {answer:?}"))?;
    ensure!(head.starts_with("HTTP/1.1 200"), "{method} {path}: {head}\n{body}");
    let chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
    if chunked { unchunk(body) } else { Ok(body.to_owned()) }
}

/// Name and address of each listener, from `/listeners?format=json`.
pub fn listeners(page: &str) -> Result<Vec<(String, SocketAddr)>> {
    let page: Value = serde_json::from_str(page)?;
    let statuses = page["listener_statuses"].as_array().map_or(&[][..], Vec::as_slice);
    let address = |status: &Value| {
        let socket = &status["local_address"]["socket_address"];
        let (ip, port) = (socket["address"].as_str()?, socket["port_value"].as_u64()?);
        let address = SocketAddr::new(ip.parse().ok()?, u16::try_from(port).ok()?);
        Some((status["name"].as_str()?.to_owned(), address))
    };
    Ok(statuses.iter().filter_map(address).collect())
}

fn unchunk(mut rest: &str) -> Result<String> {
    let mut body = String::new();
    loop {
        let (size, after) = rest.split_once("\r\n").context("a chunk without a size")?;
        let size = usize::from_str_radix(size.trim(), 16)?;
        if size == 0 {
            return Ok(body);
        }
        body.push_str(after.get(..size).context("a chunk cut short")?);
        rest = after.get(size + 2..).context("a chunk without an end")?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stats_keeps_numbers_only() {
        let stats = Stats::parse("a.b: 3\nrun: \"x\"\nh: P0(nan,1) P25(nan,2)\n");
        assert_eq!(stats.iter().collect::<Vec<_>>(), [("a.b", 3)]);
        assert_eq!(stats.get("none"), 0);
    }

    #[test]
    fn unchunk_joins_the_pieces() {
        assert_eq!(unchunk("3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n").unwrap(), "abc0123456789");
        assert!(unchunk("3\r\nab").is_err());
    }
}
