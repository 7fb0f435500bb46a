//! What is measured: one Envoy worker without anything, with Envoy's own buffer filter, and with Sluice.

use super::machine;
use crate::envoy::{Config, Envoy};
use anyhow::{Context, Result};
use serde::Serialize;
use serde_json::json;
use std::net::SocketAddr;

/// What Envoy does beside forwarding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Nothing.
    Plain,
    /// It holds each request until its body is whole, as every filter must that reads one.
    Buffer,
    /// Sluice with all that it can do.
    Sluice,
}

pub const KINDS: [Kind; 3] = [Kind::Plain, Kind::Buffer, Kind::Sluice];

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Plain => "Envoy alone",
            Kind::Buffer => "buffer filter",
            Kind::Sluice => "Sluice",
        }
    }
}

/// Two classes in one pool, one with reserved slots, turns by tenant, response headers. Nobody has to wait: what is
/// measured is the way of a request, not the lack of slots.
const POLICY: &str = r#"{
    "limits": {"prompt_chars": 1000000},
    "pools": [{"name": "gpu", "concurrency": 256}],
    "classes": [
        {"name": "short", "pool": "gpu", "at_most": {"prompt_chars": 2000, "max_tokens": 256},
         "reserved": 16, "queue": {"capacity": 256, "timeout": "5s"}},
        {"name": "long", "pool": "gpu", "concurrency": 128, "queue": {"capacity": 256, "timeout": "30s"}}
    ],
    "fairness": {"key": "header:x-tenant-id"}
}"#;

/// One slot: the first request takes it, all others wait.
pub const ONE_SLOT: &str = r#"{
    "classes": [{"name": "short", "concurrency": 1, "queue": {"capacity": 100000, "timeout": "300s"}}],
    "fairness": {"key": "header:x-tenant-id"}
}"#;

/// Starts an Envoy with one worker before `upstream`, and keeps it on one CPU.
pub fn start(kind: Kind, upstream: SocketAddr, cpu: usize, policy: Option<&str>) -> Result<Envoy> {
    let mut config = Config::shipped(if kind == Kind::Sluice { "envoy.yaml" } else { "baseline.yaml" })?;
    config.clusters = ["llm_short", "llm_long"].map(|cluster| (cluster.to_owned(), upstream)).into();
    match kind {
        Kind::Plain => {}
        Kind::Buffer => config.filters.push(json!({
            "name": "envoy.filters.http.buffer",
            "typed_config": {
                "@type": "type.googleapis.com/envoy.extensions.filters.http.buffer.v3.Buffer",
                "max_request_bytes": 8_388_608,
            },
        })),
        Kind::Sluice => config.policy = Some(policy.unwrap_or(POLICY).to_owned()),
    }
    let envoy = Envoy::start(&config).with_context(|| kind.name())?;
    machine::pin(envoy.pid(), &[cpu])?;
    Ok(envoy)
}
