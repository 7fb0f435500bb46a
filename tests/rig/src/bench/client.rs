//! Clients as cheap as can be: one request after the other on connections that stay.

use crate::http1::next;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// Before this has passed nothing counts.
const WARM_UP: Duration = Duration::from_millis(500);
/// The unit of CPU times in /proc.
const TICKS_PER_SECOND: f64 = 100.0;

/// What came of a turn.
pub struct Rate {
    pub per_second: f64,
    /// Envoy's CPU time a request.
    pub cpu_micros: f64,
}

/// A chat with this number, which goes on unchanged.
pub fn request(number: usize) -> Vec<u8> {
    let body =
        r#"{"model":"m","messages":[{"role":"user","content":"How deep is the lock?"}],"max_tokens":16}"#;
    let length = body.len();
    format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: models.test\r\ncontent-type: application/json\r\n\
         x-number: {number}\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

/// Keeps `connections` busy for `time`. An answer that is not 200 is an error.
pub async fn hammer(address: SocketAddr, pid: u32, connections: usize, time: Duration) -> Result<Rate> {
    let start = Instant::now() + WARM_UP;
    let end = start + time;
    let mut clients = JoinSet::new();
    for _ in 0..connections {
        let mut stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        clients.spawn(async move {
            let request = request(0);
            let mut count = 0_u32;
            while Instant::now() < end {
                exchange(&mut stream, &request).await?;
                count += u32::from(Instant::now() >= start);
            }
            anyhow::Ok(count)
        });
    }
    tokio::time::sleep_until(start.into()).await;
    let (cpu, began) = (cpu_seconds(pid)?, Instant::now());
    tokio::time::sleep_until(end.into()).await;
    let (cpu, lasted) = (cpu_seconds(pid)? - cpu, began.elapsed().as_secs_f64());
    let mut count = 0;
    while let Some(client) = clients.join_next().await {
        count += client??;
    }
    let count = f64::from(count);
    Ok(Rate { per_second: count / lasted, cpu_micros: cpu / count * 1e6 })
}

/// Sends `request` and reads its answer.
pub async fn exchange(stream: &mut TcpStream, request: &[u8]) -> Result<()> {
    stream.write_all(request).await?;
    let mut answer = Vec::with_capacity(1024);
    let whole = next(stream, &mut answer).await?;
    ensure!(whole.is_some(), "the connection ended within an answer");
    ensure!(answer.starts_with(b"HTTP/1.1 200"), "answered {}", String::from_utf8_lossy(&answer));
    Ok(())
}

/// The CPU time that a process has used so far, in user and kernel.
fn cpu_seconds(pid: u32) -> Result<f64> {
    let path = format!("/proc/{pid}/stat");
    let text = fs::read_to_string(&path).with_context(|| path.clone())?;
    // The name, in parentheses, may hold anything; after it come state and numbers.
    let fields = text.rsplit(')').next().unwrap_or_default().split_whitespace();
    let times: Vec<f64> = fields.skip(11).take(2).filter_map(|field| field.parse().ok()).collect();
    ensure!(times.len() == 2, "{path}: {text}");
    Ok((times[0] + times[1]) / TICKS_PER_SECOND)
}
