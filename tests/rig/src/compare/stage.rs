//! All targets of a comparison, started beside each other before the same servers. Only one is sent anything at a time.

use super::policy::Short;
use super::target::Target;
use crate::envoy::{Breakers, Config, Envoy};
use crate::peers::Behind;
use crate::process::ServerProcess;
use anyhow::{Context, Result};
use std::net::SocketAddr;
use tokio::task::block_in_place;

/// What the targets stand before, and how those that can be told are told about it.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The model servers: one, or one for short and one for long requests.
    pub servers: Vec<SocketAddr>,
    /// Requests that each of them runs at once.
    pub slots: usize,
    /// The filter's policy.
    pub policy: String,
    /// What counts as short, in the policy and for gateways that are told.
    pub short: Short,
    /// Requests that may wait before a gateway other than the filter, which has this in its policy.
    pub queue: usize,
    /// Whether the servers keep connections after their answers.
    pub keep_alive: bool,
}

/// A target that takes requests.
pub struct Door {
    pub target: Target,
    /// Where to send requests.
    pub address: SocketAddr,
    /// Envoy's admin pages, where there are any.
    pub admin: Option<SocketAddr>,
    held: Held,
}

/// What lives as long as its door.
enum Held {
    Nothing,
    Envoy(Envoy),
    Peer(ServerProcess),
}

impl Door {
    /// Starts a target and returns once it serves.
    pub async fn open(target: Target, setting: &Setting) -> Result<Door> {
        let first = *setting.servers.first().context("a comparison needs a server")?;
        let slots = u32::try_from(setting.slots)?;
        let (address, admin, held) = match target {
            Target::Direct | Target::Alone | Target::Bound => (first, None, Held::Nothing),
            Target::Envoy => envoy("baseline.yaml", setting, |config| {
                let server = |&server| ("llm_long".to_owned(), server);
                config.clusters = setting.servers.iter().map(server).collect();
            })?,
            Target::Breakers => envoy("baseline.yaml", setting, |config| {
                let pending = u32::try_from(setting.queue).unwrap_or(u32::MAX);
                config.breakers = Some(Breakers { max_requests: slots, max_pending_requests: pending });
            })?,
            Target::Sluice => {
                envoy("envoy.yaml", setting, |config| config.policy = Some(setting.policy.clone()))?
            }
            Target::SluiceTwo => envoy("envoy.yaml", setting, |config| {
                config.policy = Some(setting.policy.clone());
                let second = setting.servers.get(1).copied().unwrap_or(first);
                config.clusters = vec![("llm_short".to_owned(), first), ("llm_long".to_owned(), second)];
            })?,
            Target::Peer(peer) => {
                let behind = Behind {
                    upstream: first,
                    slots: setting.slots,
                    short_chars: setting.short.prompt_chars,
                    short_tokens: setting.short.max_tokens,
                    queue: setting.queue,
                };
                let server = peer.start(behind).await?;
                (server.address(), None, Held::Peer(server))
            }
        };
        Ok(Door { target, address, admin, held })
    }

    /// An error when its process has ended.
    pub fn lives(&mut self) -> Result<()> {
        match &mut self.held {
            Held::Nothing => Ok(()),
            Held::Envoy(envoy) => envoy.lives(),
            Held::Peer(server) => server.lives(),
        }
    }
}

fn envoy(
    yaml: &str,
    setting: &Setting,
    change: impl FnOnce(&mut Config),
) -> Result<(SocketAddr, Option<SocketAddr>, Held)> {
    let mut config = Config::shipped(yaml)?;
    config.clusters = ["llm_short", "llm_long"].map(|name| (name.to_owned(), setting.servers[0])).into();
    config.upstream_keep_alive = setting.keep_alive;
    change(&mut config);
    let envoy = block_in_place(|| Envoy::start(&config))?;
    Ok((envoy.addr(), Some(envoy.admin()), Held::Envoy(envoy)))
}
