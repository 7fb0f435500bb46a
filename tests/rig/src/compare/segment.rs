//! One segment of traffic, sent to one target: the open loop of a plan, and beside it, where asked for, long requests in
//! closed loop.

use super::figures::Round;
use super::stage::Door;
use super::timeline::{Places, Watch, idle};
use crate::load::client::{self, Options};
use crate::load::drive::open_loop;
use crate::load::outcome::Outcome;
use crate::load::traffic::Planned;
use anyhow::{Result, ensure};
use indicatif::ProgressBar;
use reqwest::Client;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

/// How long the long ones in closed loop run before the plan begins, so that they are spread over their lengths by then.
const WARM_UP: Duration = Duration::from_secs(3);
/// How long a server may take to have nothing to do after its last client has left.
const SETTLE: Duration = Duration::from_secs(60);

/// What is sent in one segment.
#[derive(Clone, Debug, Default)]
pub struct Segment {
    /// How requests are sent that have moments of their own.
    pub pace: Pace,
    /// Requests in order of their moments.
    pub plan: Vec<Planned>,
    /// Requests for the closed loop, taken in turn.
    pub supply: Vec<Planned>,
    /// Clients that each send one of them after the other; 0 = no closed loop.
    pub clients: usize,
}

/// When the requests of a plan are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pace {
    /// Each at its moment, whatever the answers do.
    #[default]
    Open,
    /// Each when the one before is answered, and its moment after that: one patient client.
    OneByOne,
}

/// Sends `segment` to `door` and waits for every end; then until the `servers` have nothing left to do.
pub async fn send(
    segment: &Segment,
    door: &mut Door,
    servers: &[SocketAddr],
    look_every: Duration,
    bar: &ProgressBar,
) -> Result<Round> {
    // A connection for each request: some servers close one that is kept just when its next request is sent.
    let options = Options { keep_alive: false, ..Options::default() };
    let http = options.client()?;
    let url: Arc<str> = format!("http://{}/v1/chat/completions", door.address).into();
    let warm_up = if segment.clients > 0 { WARM_UP } else { Duration::ZERO };
    let watch = Watch::begin(Places { servers: servers.to_vec(), admin: door.admin, every: look_every })?;
    let start = Instant::now() + warm_up;
    let closed = closed_loop(segment, &http, &url, start);
    let mut outcomes = match segment.pace {
        Pace::Open => open_loop(&segment.plan, &http, &url, &options, start, bar).await,
        Pace::OneByOne => one_by_one(&segment.plan, &http, &url, start, bar).await,
    };
    outcomes.extend(closed.end().await);
    let timeline = watch.end();
    door.lives()?;
    let deadline = Instant::now() + SETTLE;
    for &server in servers {
        while !idle(server).await? {
            ensure!(
                Instant::now() < deadline,
                "the server still works {SETTLE:?} after its last client has left"
            );
            sleep(Duration::from_millis(50)).await;
        }
    }
    Ok(Round { outcomes, timeline })
}

async fn one_by_one(
    plan: &[Planned],
    http: &Client,
    url: &str,
    start: Instant,
    bar: &ProgressBar,
) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    sleep_until(start).await;
    for planned in plan {
        sleep(planned.at).await;
        let due = Instant::now();
        let outcome = client::send(http, url, planned, due).await;
        outcomes.push(Outcome { at: due.saturating_duration_since(start), ..outcome });
        bar.inc(1);
    }
    outcomes
}

/// Clients that go on until they are [ended](Closed::end) or dropped.
struct Closed {
    clients: JoinSet<()>,
    outcomes: Arc<Mutex<Vec<Outcome>>>,
}

/// Starts the clients, evenly spread over the time until `start`, from which on their requests count.
fn closed_loop(segment: &Segment, http: &Client, url: &Arc<str>, start: Instant) -> Closed {
    let (next, outcomes) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
    let supply: Arc<[Planned]> = segment.supply.clone().into();
    let mut clients = JoinSet::new();
    let begin = Instant::now();
    for client in 0..segment.clients {
        let (next, outcomes, supply) = (Arc::clone(&next), Arc::clone(&outcomes), Arc::clone(&supply));
        let (http, url) = (http.clone(), Arc::clone(url));
        let first = begin + start.saturating_duration_since(begin) * client as u32 / segment.clients as u32;
        clients.spawn(async move {
            sleep_until(first).await;
            while let Some(planned) = supply.get(next.fetch_add(1, Relaxed) % supply.len().max(1)) {
                let due = Instant::now();
                let outcome = client::send(&http, &url, planned, due).await;
                if outcome.result.is_err() {
                    // Whatever it is, it is not for this loop to hammer on.
                    sleep(Duration::from_millis(100)).await;
                }
                // What began in the warm-up and ended after it counts, as what the end cuts off does not.
                if Instant::now() >= start {
                    let at = due.saturating_duration_since(start);
                    outcomes.lock().await.push(Outcome { at, ..outcome });
                }
            }
        });
    }
    Closed { clients, outcomes }
}

impl Closed {
    /// Ends the clients; the requests that they were at do not count.
    async fn end(mut self) -> Vec<Outcome> {
        self.clients.shutdown().await;
        std::mem::take(&mut *self.outcomes.lock().await)
    }
}
