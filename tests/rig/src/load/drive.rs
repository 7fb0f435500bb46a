//! Sends a plan: open loop, every request at its moment, however many are under way.

use super::client;
use super::outcome::Outcome;
use super::traffic::Planned;
use anyhow::Result;
use indicatif::ProgressBar;
use reqwest::Client;
use std::sync::Arc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

/// Sends all of `plan` to `url` and waits for every end. `bar` counts the ends.
pub async fn drive(plan: &[Planned], url: &str, bar: &ProgressBar) -> Result<Vec<Outcome>> {
    let client = Client::builder().no_proxy().build()?;
    let url: Arc<str> = url.into();
    let start = Instant::now();
    let mut under_way = JoinSet::new();
    for planned in plan {
        let (client, url, bar, planned) = (client.clone(), Arc::clone(&url), bar.clone(), planned.clone());
        let due = start + planned.at;
        sleep_until(due).await;
        under_way.spawn(async move {
            let outcome = client::send(&client, &url, &planned, due).await;
            bar.inc(1);
            outcome
        });
    }
    Ok(under_way.join_all().await)
}
