//! A burst of clients in a known order: how many run at once, how much of the slots' time is lost, who overtakes whom.

use super::client::{exchange, request};
use super::log;
use super::server::Server;
use super::stay::Stay;
use crate::envoy::Envoy;
use anyhow::{Result, ensure};
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::task::{JoinSet, block_in_place};

/// Between two clients. Much less, and the order in which Envoy reads them is anybody's guess.
const APART: Duration = Duration::from_micros(200);

/// What came of a burst.
#[derive(Debug, PartialEq)]
pub struct Burst {
    /// The most that were at the model server at once.
    pub peak: usize,
    /// From the first arrival until all slots were taken.
    pub filled: Duration,
    /// The share of the slots' time that was not used while somebody waited.
    pub idle: f64,
    /// By how many places the one was off its turn that was most so.
    pub shift: usize,
}

/// A burst as the model server sees it, and as Envoy does by its own clock.
pub struct Views {
    pub server: Burst,
    pub envoy: Burst,
}

/// Sends `count` requests one shortly after the other and waits for all answers.
pub async fn send(envoy: &Envoy, server: &Server, count: usize, slots: usize) -> Result<Views> {
    let address = envoy.addr();
    server.take_stays();
    let logged = block_in_place(|| envoy.access_log())?.len();
    let mut streams = Vec::new();
    for _ in 0..count {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        streams.push(stream);
    }
    let mut clients = JoinSet::new();
    let start = Instant::now();
    block_in_place(|| {
        for (place, mut stream) in streams.into_iter().enumerate() {
            let due = start + APART * u32::try_from(place).unwrap_or(u32::MAX);
            // Timers are too coarse for this.
            while Instant::now() < due {
                std::hint::spin_loop();
            }
            clients.spawn(async move { exchange(&mut stream, &request(place)).await });
        }
    });
    while let Some(client) = clients.join_next().await {
        client??;
    }
    let stays = server.take_stays();
    ensure!(stays.len() == count, "{} of {count} got to the model server", stays.len());
    let server = judge(&stays, slots);
    let seen = block_in_place(|| log::stays(envoy, logged, count))?;
    Ok(Views { server, envoy: judge(&seen, slots) })
}

/// As many clients as there are slots send so many requests together, each the next one after the answer to the one
/// before: nobody waits, and what is idle is idle for the way from the server to its client and back.
pub async fn closed_loop(envoy: &Envoy, server: &Server, count: usize, slots: usize) -> Result<Views> {
    server.take_stays();
    let logged = block_in_place(|| envoy.access_log())?.len();
    let mut clients = JoinSet::new();
    for client in 0..slots {
        let mut stream = TcpStream::connect(envoy.addr()).await?;
        stream.set_nodelay(true)?;
        clients.spawn(async move {
            for round in 0..count / slots {
                exchange(&mut stream, &request(round * slots + client)).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(client) = clients.join_next().await {
        client??;
    }
    let server = judge(&server.take_stays(), slots);
    let seen = block_in_place(|| log::stays(envoy, logged, count))?;
    Ok(Views { server, envoy: judge(&seen, slots) })
}

/// `stays` in the order in which they began; there must be more of them than slots.
fn judge(stays: &[Stay], slots: usize) -> Burst {
    let mut changes: Vec<(Duration, bool)> =
        stays.iter().flat_map(|stay| [(stay.from, true), (stay.to, false)]).collect();
    // At the same moment one ends before the other begins.
    changes.sort();
    let (filled, last) = (stays[slots - 1].from, stays[stays.len() - 1].from);
    let (mut open, mut peak, mut lost, mut since) = (0_usize, 0, Duration::ZERO, filled);
    for (at, begins) in changes {
        if at > filled && at <= last {
            lost += (at - since) * u32::try_from(slots.saturating_sub(open)).unwrap_or(u32::MAX);
            since = at;
        }
        open = if begins { open + 1 } else { open.saturating_sub(1) };
        peak = peak.max(open);
    }
    let all = (last - filled).as_secs_f64() * f64::from(u32::try_from(slots).unwrap_or(u32::MAX));
    let shift = stays.iter().enumerate().map(|(place, stay)| place.abs_diff(stay.turn)).max();
    Burst { peak, filled: filled - stays[0].from, idle: lost.as_secs_f64() / all, shift: shift.unwrap_or(0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_judged_by_its_stays() {
        let at = Duration::from_millis;
        let stay = |turn, from, to| Stay { turn, from: at(from), to: at(to) };
        // Two slots: the second is taken 1 ms after the first, one is idle from 10 to 13.
        let stays = [stay(0, 0, 10), stay(2, 1, 11), stay(1, 11, 21), stay(3, 13, 23), stay(4, 21, 31)];
        let burst = judge(&stays, 2);
        assert_eq!((burst.peak, burst.filled, burst.shift), (2, Duration::from_millis(1), 1));
        // From 10 to 11 one is idle, from 11 to 13 one.
        assert!((burst.idle - 3.0 / 40.0).abs() < 1e-6, "{}", burst.idle);
    }
}
