//! Other gateways to measure beside the filter. `./build.sh bench compare --peers` installs each into
//! `target/peers/<name>`; what is not there is left out of a comparison, and said to be.

pub mod llama;

use crate::envoy::root;
use crate::process::{ServerProcess, free_address};
use anyhow::{Context, Result};
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

/// The slowest of them to start needs some ten seconds on an idle machine.
const START: Duration = Duration::from_secs(90);

/// One of the gateways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// `tests/rig/peers/gateway.py`: an asyncio priority queue, FastAPI and httpx.
    Gateway,
    /// LiteLLM's proxy.
    Litellm,
    /// SGLang's router, with its queue.
    SglangRouter,
    /// The vLLM project's router.
    VllmRouter,
}

/// What a gateway is told about the server behind it and about what is short.
#[derive(Clone, Copy, Debug)]
pub struct Behind {
    /// The model server.
    pub upstream: SocketAddr,
    /// Requests that it runs at once.
    pub slots: usize,
    /// A request is short up to this many characters of prompt
    pub short_chars: u32,
    /// and this many tokens of output.
    pub short_tokens: u32,
    /// Requests that may wait, for gateways that bound them.
    pub queue: usize,
}

impl Peer {
    /// All of them, in the order of reports.
    pub const ALL: [Peer; 4] = [Peer::Gateway, Peer::Litellm, Peer::SglangRouter, Peer::VllmRouter];

    /// Its name, which is that of its directory under `target/peers`, too.
    pub fn name(self) -> &'static str {
        match self {
            Peer::Gateway => "gateway",
            Peer::Litellm => "litellm",
            Peer::SglangRouter => "sglang-router",
            Peer::VllmRouter => "vllm-router",
        }
    }

    /// What it is, in a few words for a report.
    pub fn about(self) -> &'static str {
        match self {
            Peer::Gateway => {
                "FastAPI and httpx, a priority queue with a worker for each slot, short ones first"
            }
            Peer::Litellm => "LiteLLM's proxy, max_parallel_requests as many as slots",
            Peer::SglangRouter => "SGLang's router, at most as many requests as slots, a queue before them",
            Peer::VllmRouter => "the vLLM project's router, round robin",
        }
    }

    /// Whether it is installed.
    pub fn installed(self) -> bool {
        self.program().is_file()
    }

    /// The version of its package; none where pip does not know it.
    pub fn version(self) -> Option<String> {
        let package = match self {
            Peer::Gateway => "fastapi",
            other => other.name(),
        };
        let output = Command::new(self.bin("python"))
            .args(["-c", "import importlib.metadata as m, sys; print(m.version(sys.argv[1]))", package])
            .output()
            .ok()?;
        let version = String::from_utf8(output.stdout).ok()?;
        (!version.trim().is_empty()).then(|| format!("{package} {}", version.trim()))
    }

    /// Starts it and returns once it serves.
    pub async fn start(self, behind: Behind) -> Result<ServerProcess> {
        let ready = match self {
            Peer::Gateway | Peer::SglangRouter | Peer::VllmRouter => "/health",
            Peer::Litellm => "/health/liveliness",
        };
        ServerProcess::start(self.name(), ready, START, |address, dir| self.command(address, dir, behind))
            .await
    }

    fn command(self, address: SocketAddr, dir: &TempDir, behind: Behind) -> Result<Command> {
        let Behind { upstream, slots, short_chars, short_tokens, queue } = behind;
        let upstream = format!("http://{upstream}");
        let (slots, port) = (slots.to_string(), address.port().to_string());
        // Two of them serve metrics on a port of their own, taken or not.
        let metrics_port = free_address()?.port().to_string();
        let mut command = Command::new(self.program());
        command.current_dir(dir.path()).env("PYTHONDONTWRITEBYTECODE", "1");
        match self {
            Peer::Gateway => command
                .args(["gateway:app", "--no-access-log", "--app-dir"])
                .arg(root().join("tests/rig/peers"))
                .args(["--host", "127.0.0.1", "--port", &port])
                .env("UPSTREAM", upstream)
                .env("SLOTS", slots)
                .env("SHORT_CHARS", short_chars.to_string())
                .env("SHORT_TOKENS", short_tokens.to_string()),
            Peer::Litellm => {
                let config = dir.path().join("litellm.yaml");
                fs::write(&config, litellm(&upstream, &slots)).context("litellm.yaml")?;
                command
                    .arg("--config")
                    .arg(config)
                    .args(["--host", "127.0.0.1", "--port", &port, "--telemetry", "False"])
                    .env("LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY", "true")
                    .env("LITELLM_LOCAL_MODEL_COST_MAP", "True")
            }
            Peer::SglangRouter => command
                .args(["-m", "sglang_router.launch_router", "--worker-urls", &upstream])
                .args(["--policy", "round_robin", "--max-concurrent-requests", &slots])
                .args(["--queue-size", &queue.to_string(), "--queue-timeout-secs", "60"])
                .args(["--host", "127.0.0.1", "--port", &port])
                .args(["--prometheus-host", "127.0.0.1", "--prometheus-port", &metrics_port]),
            Peer::VllmRouter => command
                .args(["--worker-urls", &upstream, "--policy", "round_robin"])
                .args(["--host", "127.0.0.1", "--port", &port])
                .args(["--prometheus-host", "127.0.0.1", "--prometheus-port", &metrics_port]),
        };
        Ok(command)
    }

    fn program(self) -> PathBuf {
        self.bin(match self {
            Peer::Gateway => "uvicorn",
            Peer::Litellm => "litellm",
            Peer::SglangRouter => "python",
            Peer::VllmRouter => "vllm-router",
        })
    }

    fn bin(self, program: &str) -> PathBuf {
        root().join("target/peers").join(self.name()).join("bin").join(program)
    }
}

/// LiteLLM's configuration: every model name goes to the one server, no retries, as the others have none.
fn litellm(upstream: &str, slots: &str) -> String {
    format!(
        r#"model_list:
  - model_name: "*"
    litellm_params:
      model: "openai/*"
      api_base: {upstream}/v1
      api_key: none
      max_parallel_requests: {slots}
litellm_settings:
  num_retries: 0
  request_timeout: 300
  drop_params: false
router_settings:
  num_retries: 0
"#
    )
}
