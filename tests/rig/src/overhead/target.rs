//! What is measured: one Envoy worker with more or less to do beside forwarding.

use super::machine;
use super::steps::{self, STEPS};
use crate::envoy::{Config, Envoy};
use anyhow::{Context, Result};
use serde::{Serialize, Serializer};
use serde_json::json;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

/// What Envoy does beside forwarding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Nothing.
    Plain,
    /// It holds each request until its body is whole, as every filter must that reads one.
    Buffer,
    /// The calls of the host that Sluice makes, up to the step of this number, each so often, and nothing else.
    Bare { step: usize, times: u32 },
    /// Sluice with all that it can do.
    Sluice,
    /// The same from another build.
    Build(Build),
}

/// Another build of the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Build {
    name: String,
    module: PathBuf,
}

impl FromStr for Build {
    type Err = String;

    fn from_str(text: &str) -> Result<Build, String> {
        let (name, module) = text.split_once('=').ok_or("a name and a file are wanted, as NAME=PATH")?;
        let module = PathBuf::from(module);
        if !module.is_file() {
            return Err(format!("there is no file {}", module.display()));
        }
        Ok(Build { name: name.to_owned(), module })
    }
}

impl Target {
    pub fn name(&self) -> &str {
        match self {
            Target::Plain => "Envoy alone",
            Target::Buffer => "buffer filter",
            Target::Bare { step, .. } => STEPS[*step].name,
            Target::Sluice => "Sluice",
            Target::Build(build) => &build.name,
        }
    }
}

impl Serialize for Target {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
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

/// The clusters of the shipped configuration.
pub const CLUSTERS: [&str; 2] = ["llm_short", "llm_long"];

/// Starts an Envoy with one worker before `upstream`, and keeps it on one CPU.
pub fn start(target: &Target, upstream: SocketAddr, cpu: usize, policy: Option<&str>) -> Result<Envoy> {
    let filtered = !matches!(target, Target::Plain | Target::Buffer);
    let mut config = Config::shipped(if filtered { "envoy.yaml" } else { "baseline.yaml" })?;
    config.clusters = CLUSTERS.map(|cluster| (cluster.to_owned(), upstream)).into();
    if filtered {
        config.policy = Some(policy.unwrap_or(POLICY).to_owned());
    }
    match target {
        Target::Plain | Target::Sluice => {}
        Target::Buffer => config.filters.push(json!({
            "name": "envoy.filters.http.buffer",
            "typed_config": {
                "@type": "type.googleapis.com/envoy.extensions.filters.http.buffer.v3.Buffer",
                "max_request_bytes": 8_388_608,
            },
        })),
        Target::Bare { step, times } => {
            config.module = Config::bare_module()?;
            config.policy = Some(steps::words(*step, *times));
            config.retries = steps::has_retries(*step);
        }
        Target::Build(build) => config.module.clone_from(&build.module),
    }
    let envoy = Envoy::start(&config).with_context(|| target.name().to_owned())?;
    machine::pin(envoy.pid(), &[cpu])?;
    Ok(envoy)
}
