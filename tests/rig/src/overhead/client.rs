//! The client: connections that send one request after the other, or requests at moments set beforehand.

use super::chat::Answer;
use super::machine;
use super::upstream::END;
use crate::http1::length;
use anyhow::{Result, ensure};
use rand::Rng as _;
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;
use serde::Serialize;
use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// Before this has passed nothing counts.
const WARM_UP: Duration = Duration::from_millis(100);

/// What one turn of a target came to.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Turn {
    /// Requests per second, by the bytes of their answers: one that is half through counts half.
    pub per_second: f64,
    /// Envoy's CPU time a request.
    pub cpu_micros: f64,
    /// The part of the time that Envoy was at work: near 1 where nothing else is short.
    pub busy: f64,
    /// Pieces in which an answer was read.
    pub pieces: f64,
    /// CPU time that neither Envoy nor this bench used, as a part of the machine's.
    pub others: f64,
}

/// Whose CPU time is whose.
#[derive(Clone, Copy)]
pub struct Pids {
    pub envoy: u32,
    pub upstream: u32,
}

/// For `time` sends each of `requests` again and again on a connection of its own. An answer other than 200 is an error.
pub async fn hammer(
    address: SocketAddr,
    pids: Pids,
    requests: &[Rc<[u8]>],
    answer: Answer,
    time: Duration,
) -> Result<Turn> {
    let start = Instant::now() + WARM_UP;
    let end = start + time;
    let seen = Rc::new(Cell::new((0_u64, 0_u64, 0_u64)));
    let mut clients = JoinSet::new();
    for request in requests {
        let mut stream = connect(address).await?;
        let (seen, request) = (Rc::clone(&seen), Rc::clone(request));
        clients.spawn_local(async move {
            let mut received = Vec::with_capacity(256 * 1024);
            while Instant::now() < end {
                stream.write_all(&request).await?;
                received.clear();
                while !is_whole(&received, answer)? {
                    let count = stream.read_buf(&mut received).await?;
                    ensure!(count > 0, "the connection ended within an answer");
                    let now = Instant::now();
                    if (start..end).contains(&now) {
                        let (bytes, pieces, length) = seen.get();
                        seen.set((bytes + count as u64, pieces + 1, length));
                    }
                }
                let (bytes, pieces, _) = seen.get();
                seen.set((bytes, pieces, received.len() as u64));
            }
            anyhow::Ok(())
        });
    }
    tokio::time::sleep_until(start.into()).await;
    let own = std::process::id();
    let clock = || {
        let (envoy, upstream) = (machine::cpu_time(pids.envoy)?, machine::cpu_time(pids.upstream)?);
        let known = envoy + upstream + machine::cpu_time(own)?;
        anyhow::Ok((Instant::now(), envoy, known, machine::machine_time()?))
    };
    let before = clock()?;
    tokio::time::sleep_until(end.into()).await;
    let after = clock()?;
    let (bytes, pieces, length) = seen.get();
    while let Some(client) = clients.join_next().await {
        client??;
    }
    let length = length.max(seen.get().2);
    ensure!(bytes > 0 && length > 0, "no answer came");
    let (lasted, cpu) = ((after.0 - before.0).as_secs_f64(), (after.1 - before.1).as_secs_f64());
    let count = bytes as f64 / length as f64;
    let others = (after.3.saturating_sub(before.3)).saturating_sub(after.2 - before.2).as_secs_f64();
    Ok(Turn {
        per_second: count / lasted,
        cpu_micros: cpu / count * 1e6,
        busy: cpu / lasted,
        pieces: pieces as f64 / count,
        others: others / lasted / machine::all_cpus() as f64,
    })
}

/// Milliseconds from a request's first byte to its answer's last, of requests that come at random moments, `rate` a
/// second on average, whether those before have been answered or not.
pub async fn open_loop(
    address: SocketAddr,
    requests: &[Rc<[u8]>],
    rate: f64,
    time: Duration,
) -> Result<Vec<f64>> {
    let mut random = ChaCha8Rng::seed_from_u64(1);
    // Connections that are not in use; one is opened where there is none.
    let idle = Rc::new(RefCell::new(vec![connect(address).await?]));
    let start = tokio::time::Instant::now();
    let mut at = Duration::ZERO;
    let mut clients = JoinSet::new();
    while at < WARM_UP + time {
        at += Duration::from_secs_f64(-(1.0 - random.random::<f64>()).ln() / rate);
        tokio::time::sleep_until(start + at).await;
        let (idle, request) = (Rc::clone(&idle), Rc::clone(&requests[clients.len() % requests.len()]));
        let counts = at >= WARM_UP;
        clients.spawn_local(async move {
            let free = idle.borrow_mut().pop();
            let mut stream = match free {
                Some(stream) => stream,
                None => connect(address).await?,
            };
            let began = Instant::now();
            stream.write_all(&request).await?;
            let mut received = Vec::with_capacity(4096);
            while !is_whole(&received, Answer::Whole)? {
                ensure!(stream.read_buf(&mut received).await? > 0, "the connection ended within an answer");
            }
            let took = began.elapsed();
            idle.borrow_mut().push(stream);
            anyhow::Ok(counts.then_some(took.as_secs_f64() * 1e3))
        });
    }
    let mut latencies = Vec::new();
    while let Some(client) = clients.join_next().await {
        latencies.extend(client??);
    }
    Ok(latencies)
}

/// Sends one request and returns once its answer is there. One other than 200 is an error.
pub async fn once(address: SocketAddr, request: &[u8]) -> Result<()> {
    let mut stream = send(address, request).await?;
    let mut received = Vec::with_capacity(4096);
    while !is_whole(&received, Answer::Whole)? {
        ensure!(stream.read_buf(&mut received).await? > 0, "the connection ended within an answer");
    }
    Ok(())
}

/// A connection on which `bytes` have been sent.
pub async fn send(address: SocketAddr, bytes: &[u8]) -> Result<TcpStream> {
    let mut stream = connect(address).await?;
    stream.write_all(bytes).await?;
    Ok(stream)
}

async fn connect(address: SocketAddr) -> Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

fn is_whole(received: &[u8], answer: Answer) -> Result<bool> {
    ensure!(
        received.len() < 12 || received.starts_with(b"HTTP/1.1 200"),
        "answered {}",
        String::from_utf8_lossy(received)
    );
    Ok(match answer {
        Answer::Events => received.ends_with(END),
        Answer::Whole | Answer::Never => length(received).is_some_and(|length| length <= received.len()),
    })
}
