//! A plan run through a cluster in virtual time.

use super::cluster::{Cluster, Event};
use super::job::{Job, Stats};
use super::spec::Spec;
use anyhow::{Context as _, Result, ensure};
use std::time::Duration;

/// A generation and when it is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Since the start of the plan.
    pub at: Duration,
    /// What is asked for.
    pub job: Job,
}

/// When things happened to one of them, since the start of the plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timing {
    /// It left the server's line.
    pub entered: Duration,
    /// Its first token was there.
    pub first_token: Duration,
    /// Its last token was there.
    pub end: Duration,
}

/// What came of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replay {
    /// Of every generation, in the order of the plan.
    pub timings: Vec<Timing>,
    /// When the last one ended.
    pub end: Duration,
    /// What the replicas did.
    pub stats: Stats,
}

/// Offers the whole plan, which must be in order of time, and waits for the end of all. An error: what is wrong with
/// `spec` or with which generation.
pub fn replay(spec: Spec, plan: &[Offer]) -> Result<Replay> {
    ensure!(plan.is_sorted_by_key(|offer| offer.at), "the plan is not in order of time");
    let mut cluster = Cluster::new(spec)?;
    let mut timings = vec![Timing::default(); plan.len()];
    let mut end = Duration::ZERO;
    let mut offers = plan.iter().enumerate().peekable();
    loop {
        let arrival = offers.peek().map(|(_, offer)| offer.at);
        let Some(now) = arrival.into_iter().chain(cluster.due()).min() else { break };
        while let Some((index, offer)) = offers.next_if(|(_, offer)| offer.at == now) {
            cluster.push(index, offer.job).with_context(|| format!("generation {}", index + 1))?;
        }
        cluster.advance(now, |&index, at, event| {
            let timing = &mut timings[index];
            match event {
                Event::Entered => timing.entered = at,
                Event::Token(token) => {
                    if token.index == 0 {
                        timing.first_token = at;
                    }
                    if token.last {
                        timing.end = at;
                    }
                }
            }
            end = end.max(at);
        });
    }
    Ok(Replay { timings, end, stats: cluster.stats() })
}
