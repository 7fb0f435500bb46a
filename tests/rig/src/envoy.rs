//! A real Envoy as a child process: the shipped configuration on free ports, with a model server of the caller's.
//!
//! The API blocks, so that tests and the demo can both use it. Every wait is bounded, and what fails shows the end
//! of Envoy's log.

mod admin;
mod bootstrap;

use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use tempfile::TempDir;

pub use admin::Stats;
use bootstrap::Bootstrap;

const START: Duration = Duration::from_secs(30);
const UPDATE: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(10);

/// What to start. [`Config::shipped`] is the usual beginning.
#[derive(Clone, Debug)]
pub struct Config {
    /// The YAML to start from.
    pub yaml: PathBuf,
    pub envoy: PathBuf,
    /// The module in place of the shipped path; not read where the YAML has no filter.
    pub module: PathBuf,
    /// The policy in place of the shipped one.
    pub policy: Option<String>,
    /// Worker threads.
    pub concurrency: u32,
    /// Where the model servers listen, by cluster; several of one cluster share its requests. A cluster not named
    /// keeps its shipped address.
    pub clusters: Vec<(String, SocketAddr)>,
    /// Circuit breakers for every cluster in place of Envoy's default ones.
    pub breakers: Option<Breakers>,
    /// Whether connections to model servers are kept for later requests; not so before a server that closes them after
    /// its answers, as llama.cpp's does: a request that meets the close would be lost.
    pub upstream_keep_alive: bool,
    /// Idle timeouts in place of the shipped ones, by route.
    pub idle_timeouts: Vec<(String, Duration)>,
    /// Whether the routes retry as the shipped ones do; false only to see what that costs.
    pub retries: bool,
    /// How long requests under a replaced policy may go on.
    pub drain: Duration,
    /// `allow_on_headers_stop_iteration`; false only to see what the filter says then.
    pub header_hold: bool,
    /// HTTP filters to put before all others.
    pub filters: Vec<Value>,
    /// Fields to add to the access log: their names and formats.
    pub log_fields: Vec<(&'static str, &'static str)>,
}

impl Config {
    /// The shipped `envoy/<name>`, the pinned Envoy and the built module.
    ///
    /// `SLUICE_ENVOY` and `SLUICE_WASM` name other ones. A missing file is an error that says what makes it.
    pub fn shipped(name: &str) -> Result<Self> {
        let root = root();
        Ok(Self {
            yaml: root.join("envoy").join(name),
            envoy: present("SLUICE_ENVOY", root.join("target/envoy/1.40.0/envoy"))?,
            module: present("SLUICE_WASM", root.join("target/sluice.wasm"))?,
            policy: None,
            concurrency: 1,
            clusters: Vec::new(),
            breakers: None,
            upstream_keep_alive: true,
            idle_timeouts: Vec::new(),
            retries: true,
            drain: Duration::from_secs(60),
            header_hold: true,
            filters: Vec::new(),
            log_fields: Vec::new(),
        })
    }

    /// The module's twin whose VM a request can make fail or hang. `SLUICE_WASM_TRAP` names another one.
    pub fn trap_module() -> Result<PathBuf> {
        present("SLUICE_WASM_TRAP", root().join("target/sluice-trap.wasm"))
    }

    /// The module that makes the filter's calls of the host and nothing else. `SLUICE_WASM_BARE` names another one.
    pub fn bare_module() -> Result<PathBuf> {
        present("SLUICE_WASM_BARE", root().join("target/bare.wasm"))
    }

    /// Whether Envoy accepts this configuration: `envoy --mode validate`, which loads the module and the policy too.
    pub fn validate(&self) -> Result<()> {
        let dir = TempDir::new()?;
        let bootstrap = Bootstrap::load(self)?;
        let path = bootstrap.write_static(dir.path())?;
        let output = Command::new(&self.envoy)
            .args(["--mode", "validate", "--disable-hot-restart", "--log-level", "warn", "-c"])
            .arg(path)
            .output()
            .with_context(|| format!("cannot run {}", self.envoy.display()))?;
        ensure!(output.status.success(), "Envoy refuses {}:\n{}", self.yaml.display(), lossy(&output.stderr));
        Ok(())
    }
}

/// What Envoy can do against overload by itself, for each cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Breakers {
    /// Requests under way at once.
    pub max_requests: u32,
    /// Requests that wait for one of them to end; Envoy answers 503 to any more.
    pub max_pending_requests: u32,
}

/// The workspace's root.
pub fn root() -> PathBuf {
    let rig = Path::new(env!("CARGO_MANIFEST_DIR"));
    rig.ancestors().nth(2).unwrap_or(rig).to_path_buf()
}

/// A running Envoy. Dropping it ends the process.
pub struct Envoy {
    child: Child,
    dir: TempDir,
    bootstrap: Bootstrap,
    admin: SocketAddr,
    clients: SocketAddr,
    probe: SocketAddr,
}

impl Envoy {
    /// Starts Envoy and returns once it serves.
    pub fn start(config: &Config) -> Result<Self> {
        let dir = TempDir::new()?;
        let bootstrap = Bootstrap::load(config)?;
        let path = bootstrap.write_dynamic(dir.path())?;
        let admin_path = dir.path().join("admin");
        let child = Command::new(&config.envoy)
            .args(["--concurrency", &config.concurrency.to_string()])
            .args(["--drain-time-s", &config.drain.as_secs().to_string()])
            .args(["--log-level", "info", "--file-flush-interval-msec", "20"])
            .args(["--use-dynamic-base-id", "--disable-hot-restart"])
            .arg("--admin-address-path")
            .arg(&admin_path)
            .arg("-c")
            .arg(path)
            .stdin(Stdio::null())
            .stdout(File::create(access_log_path(dir.path()))?)
            .stderr(File::create(log_path(dir.path()))?)
            .spawn()
            .with_context(|| format!("cannot run {}", config.envoy.display()))?;
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut envoy = Self { child, dir, bootstrap, admin: nowhere, clients: nowhere, probe: nowhere };
        envoy.await_serving(&admin_path)?;
        Ok(envoy)
    }

    /// Where clients connect.
    pub fn addr(&self) -> SocketAddr {
        self.clients
    }

    /// Where its admin pages are.
    pub fn admin(&self) -> SocketAddr {
        self.admin
    }

    /// The process, for reading its CPU time and memory.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The body of the admin page `path`; an error where its status is not 200.
    pub fn admin_get(&self, path: &str) -> Result<String> {
        admin::request(self.admin, "GET", path)
    }

    /// An error, with the end of its log, when it has ended.
    pub fn lives(&mut self) -> Result<()> {
        match self.child.try_wait()? {
            Some(status) => bail!("Envoy ended with {status}:\n{}", tail(&self.log()?)),
            None => Ok(()),
        }
    }

    /// Counters and gauges as they are now.
    pub fn stats(&self) -> Result<Stats> {
        Ok(Stats::parse(&self.admin_get("/stats")?))
    }

    /// The access log so far, one JSON object a request. Lines still being written are left out.
    pub fn access_log(&self) -> Result<Vec<Value>> {
        let text = fs::read_to_string(access_log_path(self.dir.path()))?;
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole
            .lines()
            .map(|line| serde_json::from_str(line).with_context(|| format!("access log: {line}")))
            .collect()
    }

    /// Envoy's own log so far.
    pub fn log(&self) -> Result<String> {
        Ok(lossy(&fs::read(log_path(self.dir.path()))?))
    }

    /// Returns once the worker has handled all that it had received before. Means nothing with several workers.
    pub fn settle(&self) -> Result<()> {
        admin::request(self.probe, "GET", "/").map(drop)
    }

    /// Puts another policy in force: Envoy is given the listener anew, as a control plane would do it.
    ///
    /// An error says why Envoy refused it; the policy before then stays in force.
    pub fn reconfigure(&mut self, policy: &str) -> Result<()> {
        let before = self.stats()?;
        let log_before = self.log()?.len();
        if !self.bootstrap.set_policy(policy)? {
            return Ok(());
        }
        self.bootstrap.write_listener(self.dir.path())?;
        let deadline = Instant::now() + UPDATE;
        loop {
            let now = self.stats()?;
            let grown = |name: &str| now.get(name) > before.get(name);
            if grown("listener_manager.lds.update_rejected") {
                let log = self.log()?;
                bail!("Envoy refuses the policy:\n{}", tail(log.get(log_before..).unwrap_or(&log)));
            }
            if grown("listener_manager.lds.update_success")
                && grown("listener_manager.listener_in_place_updated")
            {
                return self.settle();
            }
            self.wait(deadline, "the new policy")?;
        }
    }

    /// Ends Envoy as an operator would: it closes what is open and runs the filter's end callbacks.
    pub fn stop(mut self) -> Result<()> {
        admin::request(self.admin, "POST", "/quitquitquit")?;
        let deadline = Instant::now() + UPDATE;
        loop {
            if let Some(status) = self.child.try_wait()? {
                ensure!(status.success(), "Envoy ended with {status}:\n{}", tail(&self.log()?));
                return Ok(());
            }
            ensure!(Instant::now() < deadline, "Envoy does not end:\n{}", tail(&self.log()?));
            thread::sleep(POLL);
        }
    }

    fn await_serving(&mut self, admin_path: &Path) -> Result<()> {
        let deadline = Instant::now() + START;
        self.admin = loop {
            let written = fs::read_to_string(admin_path).ok().and_then(|text| text.trim().parse().ok());
            if let Some(address) = written {
                break address;
            }
            self.wait(deadline, "the admin address")?;
        };
        while self.admin_get("/ready").is_err() {
            self.wait(deadline, "/ready")?;
        }
        loop {
            let listeners = admin::listeners(&self.admin_get("/listeners?format=json")?)?;
            let named = |name: &str| listeners.iter().find(|(n, _)| n == name).map(|(_, address)| *address);
            if let (Some(clients), Some(probe)) = (named(bootstrap::CLIENTS), named(bootstrap::PROBE)) {
                (self.clients, self.probe) = (clients, probe);
                return Ok(());
            }
            self.wait(deadline, "the listeners")?;
        }
    }

    /// One step of a bounded wait for `what`.
    fn wait(&mut self, deadline: Instant, what: &str) -> Result<()> {
        if let Some(status) = self.child.try_wait()? {
            bail!("Envoy ended with {status} while {what} was awaited:\n{}", tail(&self.log()?));
        }
        ensure!(Instant::now() < deadline, "{what} did not come in time:\n{}", tail(&self.log()?));
        thread::sleep(POLL);
        Ok(())
    }
}

impl Drop for Envoy {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing left to kill, only to reap.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn present(variable: &str, default: PathBuf) -> Result<PathBuf> {
    let path = std::path::absolute(std::env::var_os(variable).map_or(default, PathBuf::from))?;
    ensure!(path.is_file(), "{} is missing: run `./build.sh test`, or set {variable}", path.display());
    Ok(path)
}

fn access_log_path(dir: &Path) -> PathBuf {
    dir.join("access.log")
}

fn log_path(dir: &Path) -> PathBuf {
    dir.join("envoy.log")
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn tail(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(40)..].join("\n")
}
