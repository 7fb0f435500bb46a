//! Mutated requests through the real Envoy, each backend's in turn: every answer is the one that the twin has worked
//! out, every body arrives byte for byte as it should, and the filter's VM lives through all of it.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use axum::body::Bytes;
use axum::extract::DefaultBodyLimit;
use clap::Parser;
use comfy_table::Table;
use fastrand::Rng;
use fuzz::body::{HEADER, POLICIES, paths, policy_json};
use fuzz::mutate::mutate;
use fuzz::seeds;
use fuzz::twin::{self, Wrong};
use indicatif::{ProgressBar, ProgressStyle};
use reqwest::{Client, Response};
use rig::envoy::{Config, Envoy, root};
use sha2::{Digest, Sha256};
use sluice::core::body::{BACKENDS, Dialect};
use sluice::core::config;
use sluice::core::policy::Policy;
use sluice::core::refusal::{Reason, Refusal};
use tokio::task::{JoinSet, block_in_place};

/// Requests at the same time: fewer than there are slots, so that none waits.
const CLIENTS: u64 = 8;
/// The longest turn of a backend under one policy.
const TURN: Duration = Duration::from_secs(10);
/// The model server tells in this header what it got.
const GOT: &str = "x-got-sha256";

/// Send mutations of the corpus through Envoy.
#[derive(Parser)]
struct Arguments {
    /// How long, in seconds.
    #[arg(default_value_t = 60)]
    seconds: u64,
    /// Decides every mutation.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[tokio::main]
async fn main() -> Result<()> {
    let Arguments { seconds, seed } = Arguments::parse();
    let time = Duration::from_secs(seconds);
    let turn = TURN.min(time / BACKENDS.len() as u32);
    let model = model().await?;
    let bar = ProgressBar::new(seconds).with_style(ProgressStyle::with_template("{bar:30} {eta} {msg}")?);
    let (start, mut random) = (Instant::now(), Rng::with_seed(seed));
    let mut counts = vec![Count::default(); BACKENDS.len()];
    let mut round = 0;
    while round == 0 || start.elapsed() < time {
        for (place, (backend, _)) in BACKENDS.iter().enumerate() {
            let policy = (round + place) % POLICIES.len();
            let count = take_turn(place, policy, model, turn, &mut random).await?;
            counts[place].add(count);
            bar.set_position(start.elapsed().as_secs());
            bar.set_message(format!("{backend}: {} requests", counts[place].sent));
        }
        round += 1;
    }
    bar.finish_and_clear();
    let mut table = Table::new();
    table.set_header(["backend", "requests", "passed unchanged", "passed edited", "refused"]);
    for ((backend, _), count) in BACKENDS.iter().zip(&counts) {
        let row = [count.sent, count.unchanged, count.edited, count.sent - count.unchanged - count.edited];
        table.add_row([(*backend).to_owned()].into_iter().chain(row.map(|number| number.to_string())));
    }
    println!("{table}\nno VM has failed; every answer was the twin's (seed {seed})");
    Ok(())
}

/// What came of the requests.
#[derive(Clone, Copy, Default)]
struct Count {
    sent: u64,
    unchanged: u64,
    edited: u64,
}

impl Count {
    fn add(&mut self, more: Count) {
        self.sent += more.sent;
        self.unchanged += more.unchanged;
        self.edited += more.edited;
    }
}

/// A model server that tells the digest of what it got.
async fn model() -> Result<std::net::SocketAddr> {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await?;
    let address = listener.local_addr()?;
    let answer = |body: Bytes| async move { [(GOT, hex(&body))] };
    let app = axum::Router::new().fallback(answer).layer(DefaultBodyLimit::disable());
    tokio::spawn(axum::serve(listener, app).into_future());
    Ok(address)
}

fn hex(body: &[u8]) -> String {
    Sha256::digest(body).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// One backend under one policy, on an Envoy of its own.
async fn take_turn(
    place: usize,
    policy: usize,
    model: std::net::SocketAddr,
    turn: Duration,
    random: &mut Rng,
) -> Result<Count> {
    let (name, backend) = BACKENDS[place];
    let json = policy_json(name, policy);
    let mut config = Config::shipped("envoy.yaml")?;
    config.policy = Some(json.clone());
    config.clusters = ["llm_short", "llm_long"].map(|cluster| (cluster.to_owned(), model)).to_vec();
    let envoy = block_in_place(|| Envoy::start(&config))?;
    let url = format!("http://{}", envoy.addr());
    let bodies: Vec<Vec<u8>> = seeds::cases().map(|case| case.body).collect();
    let mut clients = JoinSet::new();
    let end = Instant::now() + turn;
    for _ in 0..CLIENTS {
        let (url, bodies, mut random) = (url.clone(), bodies.clone(), random.fork());
        let policy_of_twin =
            config::parse(json.as_bytes()).map_err(|mistakes| anyhow::anyhow!("{mistakes}"))?;
        clients.spawn(async move {
            let client = Client::builder().timeout(Duration::from_secs(20)).build()?;
            let mut count = Count::default();
            while Instant::now() < end {
                let [seed, other] = [(); 2].map(|()| &bodies[random.usize(0..bodies.len())]);
                let body = mutate(&mut random, seed, other);
                let served = paths(backend);
                let at = random.usize(0..served.len());
                let judged = send(&client, &url, served[at], &policy_of_twin, &body).await;
                let kind = judged.or_else(|error| kept([place, at, policy], &body, error))?;
                count.sent += 1;
                count.unchanged += u64::from(kind == Kind::Unchanged);
                count.edited += u64::from(kind == Kind::Edited);
            }
            anyhow::Ok(count)
        });
    }
    let mut sum = Count::default();
    while let Some(count) = clients.join_next().await {
        sum.add(count??);
    }
    block_in_place(|| {
        lives(&envoy)?;
        envoy.stop()
    })?;
    Ok(sum)
}

#[derive(PartialEq)]
enum Kind {
    Unchanged,
    Edited,
    Refused,
}

/// Sends one request and holds its answer against the twin's.
async fn send(
    client: &Client,
    url: &str,
    (path, dialect): (&str, &Dialect),
    policy: &Policy,
    body: &[u8],
) -> Result<Kind> {
    let request = client.post(format!("{url}{path}")).header("content-type", "application/json");
    let response = request.body(body.to_vec()).send().await.context("no answer")?;
    let status = response.status().as_u16();
    let header = |response: &Response, name: &str| {
        response.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
    };
    let (got, reason) = (header(&response, GOT), header(&response, "x-sluice-reason"));
    let wrong = match twin::judge(dialect.name, policy, body) {
        Ok(right) => {
            ensure!(status == 200, "answered {status} ({reason}) where {right:?} is right");
            ensure!(got == hex(&right.body), "other bytes came than {right:?}");
            let said =
                [header(&response, "x-sluice-max-tokens-action"), header(&response, "x-sluice-max-tokens")];
            ensure!(said == [right.action.name().to_owned(), right.max_tokens.to_string()], "said {said:?}");
            return Ok(if right.body == body { Kind::Unchanged } else { Kind::Edited });
        }
        Err(Wrong::Json | Wrong::Fields(_)) => Reason::InvalidBody,
        Err(Wrong::Over(reason)) => reason,
    };
    ensure!(got.is_empty(), "the model server got what is refused for {wrong:?}");
    ensure!(status == Refusal::new(wrong, "").status, "answered {status} where {wrong:?} is right");
    ensure!(reason == wrong.name(), "refused for {reason} where {wrong:?} is right");
    serde_json::from_slice::<serde_json::Value>(&response.bytes().await?)
        .context("a refusal that is no JSON")?;
    Ok(Kind::Refused)
}

/// Keeps the request that went wrong, in the form of the target `body`.
fn kept(header: [usize; HEADER], body: &[u8], error: anyhow::Error) -> Result<Kind> {
    let dir = root().join("target/fuzzing/found");
    fs::create_dir_all(&dir)?;
    let path: PathBuf = dir.join(format!("body-envoy-{}", &hex(body)[..16]));
    fs::write(&path, [&header.map(|byte| byte as u8)[..], body].concat())?;
    Err(error.context(format!("kept as {}; replay it with: ./build.sh fuzz body {0}", path.display())))
}

/// Nothing has gone wrong with the filter's VM, as Envoy tells it.
fn lives(envoy: &Envoy) -> Result<()> {
    let log = envoy.log()?;
    let bad = ["Function: proxy_on", "panicked", "VM is failed", "envoy bug failure"];
    if let Some(line) = log.lines().find(|line| bad.iter().any(|word| line.contains(word))) {
        bail!("the filter's VM failed: {line}");
    }
    let stats = envoy.stats()?;
    let reloads = stats.iter().find(|(name, value)| name.contains("vm_reload") && *value > 0);
    ensure!(reloads.is_none(), "{reloads:?}");
    Ok(())
}
