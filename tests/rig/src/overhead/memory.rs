//! What a request that waits takes of memory: parked by Sluice, or held by the buffer filter because its body is not
//! whole yet, which takes the same connection, headers and body.

use super::chat::{Answer, request};
use super::client::send;
use super::machine;
use super::target::{ONE_SLOT, Target, start};
use super::upstream::Upstream;
use crate::envoy::Envoy;
use anyhow::{Result, ensure};
use serde::Serialize;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::time::sleep;

const QUEUED: &str = "wasmcustom.sluice.queued.domain.default.class.short";
const ACTIVE: &str = "http.clients.downstream_rq_active";
const PATIENCE: Duration = Duration::from_secs(20);

/// Bytes that each of the requests that wait takes.
#[derive(Debug, Serialize)]
pub struct Parked {
    pub target: Target,
    pub count: usize,
    /// Of Envoy's resident memory: connection, headers and body with all buffers around them.
    pub resident: f64,
    /// Of the module's memory.
    pub module: f64,
}

/// Lets `count` requests of `size` bytes wait.
pub async fn parked(target: Target, count: usize, size: usize, cpu: usize) -> Result<Parked> {
    let upstream = Upstream::start()?;
    let envoy = start(&target, upstream.address(), cpu, Some(ONE_SLOT))?;
    let mut open = Vec::new();
    // The first of them makes the pools and tables that the others only fill.
    let early = count / 10;
    let before = fill(&envoy, &target, &mut open, early, size).await?;
    let after = fill(&envoy, &target, &mut open, early + count, size).await?;
    let each = |from: u64, to: u64| (to as f64 - from as f64) / count as f64;
    Ok(Parked {
        target,
        count,
        resident: each(before.resident, after.resident),
        module: each(before.modules, after.modules),
    })
}

/// Sends until `count` of them wait, and measures.
async fn fill(
    envoy: &Envoy,
    target: &Target,
    open: &mut Vec<TcpStream>,
    count: usize,
    size: usize,
) -> Result<machine::Memory> {
    while open.len() < count {
        let bytes = request(size, Answer::Never, open.len() as u64);
        // Of the last byte the buffer filter is kept in want.
        let sent = if *target == Target::Sluice { &bytes[..] } else { &bytes[..bytes.len() - 1] };
        open.push(send(envoy.addr(), sent).await?);
    }
    // One has Sluice's only slot.
    let (gauge, wanted) = if *target == Target::Sluice { (QUEUED, count - 1) } else { (ACTIVE, count) };
    let deadline = Instant::now() + PATIENCE;
    loop {
        let seen = envoy.stats()?.get(gauge);
        if seen == wanted as u64 {
            break;
        }
        ensure!(Instant::now() < deadline, "{gauge} is {seen}, not {wanted}");
        sleep(Duration::from_millis(50)).await;
    }
    sleep(Duration::from_millis(300)).await;
    machine::memory(envoy.pid())
}
