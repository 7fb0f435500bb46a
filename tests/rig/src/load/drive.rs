//! Sends a plan: each request at its moment, or each when a client is free for it.

use super::client::{Options, send_as};
use super::outcome::Outcome;
use super::traffic::Planned;
use anyhow::{Context, Result, ensure};
use indicatif::ProgressBar;
use reqwest::Client;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

/// Open loop: sends all of `plan` to `url`, every request at its moment, however many are under way, and waits for every
/// end. `bar` counts the ends.
pub async fn drive(
    plan: &[Planned],
    url: &str,
    options: &Options,
    bar: &ProgressBar,
) -> Result<Vec<Outcome>> {
    Ok(open_loop(plan, &options.client()?, url, options, Instant::now(), bar).await)
}

/// The same with a client that is there already, and the moments counted from `start` on.
pub async fn open_loop(
    plan: &[Planned],
    client: &Client,
    url: &str,
    options: &Options,
    start: Instant,
    bar: &ProgressBar,
) -> Vec<Outcome> {
    let (url, options): (Arc<str>, _) = (url.into(), Arc::new(options.clone()));
    let mut under_way = JoinSet::new();
    for planned in plan {
        let (client, url, bar, planned) = (client.clone(), Arc::clone(&url), bar.clone(), planned.clone());
        let options = Arc::clone(&options);
        let due = start + planned.at;
        sleep_until(due).await;
        under_way.spawn(async move {
            let outcome = send_as(&options, &client, &url, &planned, due).await;
            bar.inc(1);
            outcome
        });
    }
    under_way.join_all().await
}

/// Closed loop: `clients` clients share `supply`, and each sends its next request when its last one has ended, until the
/// supply is used up or `span` is over. Moments in the plan do not count: a request is due when it is sent, so time that
/// it would have waited for a free client does not show.
pub async fn drive_closed(
    supply: &[Planned],
    clients: usize,
    span: Duration,
    url: &str,
    options: &Options,
    bar: &ProgressBar,
) -> Result<Vec<Outcome>> {
    ensure!(clients > 0, "a closed loop needs at least one client");
    let http = options.client()?;
    let start = Instant::now();
    let end = start.checked_add(span).context("the time of the closed loop is too long")?;
    let supply = Arc::new(Mutex::new(supply.iter().cloned().collect::<VecDeque<_>>()));
    let mut loops = JoinSet::new();
    for _ in 0..clients {
        let (http, url, options) = (http.clone(), url.to_owned(), options.clone());
        let (bar, supply) = (bar.clone(), Arc::clone(&supply));
        loops.spawn(async move {
            let mut outcomes = Vec::new();
            while Instant::now() < end {
                let next = supply.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
                let Some(planned) = next else { break };
                let due = Instant::now();
                let planned = Planned { at: due - start, ..planned };
                outcomes.push(send_as(&options, &http, &url, &planned, due).await);
                bar.inc(1);
            }
            outcomes
        });
    }
    Ok(loops.join_all().await.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::traffic::Mix;
    use crate::model::http::ModelServer;
    use crate::sim::preset::Preset;

    const MIX: Mix = Mix {
        seed: 1,
        span: Duration::from_millis(200),
        shorts: 8,
        single_longs: 0,
        bursts: 0,
        burst_longs: 0,
    };

    async fn server() -> (ModelServer, String) {
        let server = ModelServer::start(0, Preset::Gpu.spec()).await.unwrap();
        let url = format!("http://{}/v1/chat/completions", server.address());
        (server, url)
    }

    fn served(outcomes: &[Outcome], plan: &[Planned]) {
        assert_eq!(outcomes.len(), plan.len());
        for outcome in outcomes {
            let served = outcome.result.as_ref().unwrap();
            assert_eq!((outcome.attempts, served.gaps.len() + 1), (1, served.tokens as usize));
            assert!(served.first_token <= outcome.took);
            assert!(served.first_token + served.gaps.iter().sum::<Duration>() <= outcome.took);
        }
    }

    #[tokio::test]
    async fn an_open_loop_answers_for_every_request() {
        let (_server, url) = server().await;
        let plan = MIX.plan();
        let outcomes = drive(&plan, &url, &Options::default(), &ProgressBar::hidden()).await.unwrap();
        served(&outcomes, &plan);
        let mut moments: Vec<_> = outcomes.iter().map(|outcome| outcome.at).collect();
        moments.sort();
        assert!(moments.iter().eq(plan.iter().map(|planned| &planned.at)));
    }

    #[tokio::test]
    async fn a_closed_loop_never_has_more_under_way_than_clients() {
        let (server, url) = server().await;
        let (plan, span) = (MIX.plan(), Duration::from_secs(60));
        let (options, bar) = (Options::default(), ProgressBar::hidden());
        let outcomes = drive_closed(&plan, 2, span, &url, &options, &bar).await.unwrap();
        served(&outcomes, &plan);
        let mut spans: Vec<_> =
            outcomes.iter().map(|outcome| (outcome.at, outcome.at + outcome.took)).collect();
        spans.sort();
        for window in spans.windows(3) {
            assert!(window[2].0 >= window[0].1.min(window[1].1), "{window:?}");
        }
        let none = drive_closed(&plan, 2, Duration::ZERO, &url, &options, &bar).await.unwrap();
        assert!(none.is_empty());
        drop(server);
    }

    #[tokio::test]
    async fn a_server_that_dies_ends_the_run_all_the_same() {
        let (server, url) = server().await;
        drop(server);
        let outcomes = drive(&MIX.plan(), &url, &Options::default(), &ProgressBar::hidden()).await.unwrap();
        assert!(outcomes.iter().all(|outcome| outcome.result.is_err()));
    }
}
