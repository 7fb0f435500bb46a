//! Targets that take turns: each as often first as the others, so that a machine that drifts does not favour one.

use super::Options;
use super::chat::{Answer, request};
use super::client::{Pids, Turn, hammer, once, open_loop};
use super::steps::STEPS;
use super::target::{self, CLUSTERS, Target};
use super::upstream::Upstream;
use crate::bench::median::median;
use crate::envoy::Envoy;
use anyhow::{Context, Result, ensure};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use std::rc::Rc;
use std::time::Duration;

/// A load, and what each turn of each target came to under it.
#[derive(Debug, Serialize)]
pub struct Load<T> {
    pub body_bytes: usize,
    pub turns: Vec<(Target, Vec<T>)>,
}

impl<T> Load<T> {
    /// The turns of one target.
    pub fn of(&self, target: &Target) -> &[T] {
        self.turns.iter().find(|(of, _)| of == target).map_or(&[], |(_, turns)| turns)
    }
}

/// The targets before one upstream.
pub struct Bench {
    upstream: Upstream,
    envoys: Vec<(Target, Envoy)>,
}

impl Bench {
    /// Starts an Envoy for each on this CPU.
    pub fn start(targets: impl Iterator<Item = Target>, cpu: usize) -> Result<Bench> {
        let upstream = Upstream::start()?;
        let start = |target| {
            let envoy = target::start(&target, upstream.address(), cpu, None)?;
            Ok((target, envoy))
        };
        let envoys = targets.map(start).collect::<Result<_>>()?;
        Ok(Bench { upstream, envoys })
    }

    /// An error where the bare module, which looks only at a body's size, sends one of `sizes` another way than Sluice.
    pub async fn compare_routes(&self, sizes: &[usize]) -> Result<()> {
        let whole = |target: &Target| match target {
            Target::Bare { step, .. } => step + 1 == STEPS.len(),
            other => *other == Target::Sluice,
        };
        for size in sizes {
            let mut ways = Vec::new();
            for (_, envoy) in self.envoys.iter().filter(|(target, _)| whole(target)) {
                let before = envoy.stats()?;
                for seed in 0..2 {
                    once(envoy.addr(), &request(*size, Answer::Whole, seed)).await?;
                }
                let after = envoy.stats()?;
                let names = CLUSTERS.map(|cluster| format!("cluster.{cluster}.upstream_rq_total"));
                ways.push(names.map(|name| after.get(&name) - before.get(&name)));
            }
            ensure!(
                ways.windows(2).all(|two| two[0] == two[1]),
                "bodies of {size} bytes are of another class for Sluice than for the bare module, whose short ones end \
                 at 4096 bytes: choose other --sizes"
            );
        }
        Ok(())
    }

    /// Under as many requests as each can take.
    pub async fn rates(
        &self,
        options: &Options,
        sizes: &[usize],
        answer: Answer,
        millis: u64,
    ) -> Result<Vec<Load<Turn>>> {
        self.loads(options, sizes, answer, options.connections, async |envoy, requests| {
            let pids = Pids { envoy: envoy.pid(), upstream: self.upstream.pid() };
            hammer(envoy.addr(), pids, requests, answer, Duration::from_millis(millis)).await
        })
        .await
    }

    /// Milliseconds at a low rate.
    pub async fn latency(&self, options: &Options) -> Result<Vec<Load<Vec<f64>>>> {
        let time = Duration::from_millis(options.millis);
        self.loads(options, &options.sizes, Answer::Whole, 16, async |envoy, requests| {
            open_loop(envoy.addr(), requests, options.rate, time).await
        })
        .await
    }

    /// Lets the targets take turns under each load.
    async fn loads<T>(
        &self,
        options: &Options,
        sizes: &[usize],
        answer: Answer,
        requests: u64,
        turn: impl AsyncFn(&Envoy, &[Rc<[u8]>]) -> Result<T>,
    ) -> Result<Vec<Load<T>>> {
        let bar = ProgressBar::new((options.rounds * self.envoys.len() * sizes.len()) as u64)
            .with_style(ProgressStyle::with_template("{bar:40} {pos}/{len} turns, {elapsed}")?);
        let mut loads = Vec::new();
        for size in sizes {
            let requests: Vec<Rc<[u8]>> =
                (0..requests).map(|seed| request(*size, answer, seed).into()).collect();
            let mut turns: Vec<(Target, Vec<T>)> =
                self.envoys.iter().map(|(target, _)| (target.clone(), Vec::new())).collect();
            for round in 0..options.rounds {
                for place in 0..self.envoys.len() {
                    let at = (round + place) % self.envoys.len();
                    let (target, envoy) = &self.envoys[at];
                    turns[at].1.push(turn(envoy, &requests).await.with_context(|| target.name().to_owned())?);
                    bar.inc(1);
                }
            }
            loads.push(Load { body_bytes: *size, turns });
        }
        bar.finish_and_clear();
        Ok(loads)
    }
}

/// Adds the turns of the same targets under the same loads.
pub fn append<T>(loads: &mut Vec<Load<T>>, more: Vec<Load<T>>) {
    if loads.is_empty() {
        *loads = more;
        return;
    }
    for (load, more) in loads.iter_mut().zip(more) {
        for ((_, turns), (_, more)) in load.turns.iter_mut().zip(more.turns) {
            turns.extend(more);
        }
    }
}

/// The median over the turns of one target of what `figure` says of each beside the buffer filter's in the same round.
pub fn ratio(load: &Load<Turn>, target: &Target, figure: fn(&Turn) -> f64) -> f64 {
    let turns = load.of(target).iter().zip(load.of(&Target::Buffer));
    median(turns.map(|(this, other)| figure(this) / figure(other)))
}

/// What `figure` says of each turn of one target more than of another's in the same round.
pub fn added(load: &Load<Turn>, target: &Target, before: &Target, figure: fn(&Turn) -> f64) -> Vec<f64> {
    let turns = load.of(target).iter().zip(load.of(before));
    turns.map(|(this, other)| figure(this) - figure(other)).collect()
}
