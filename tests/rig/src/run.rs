//! `rig run`: the shipped configuration before a simulated model server, to be tried with curl.

use crate::envoy::{Config, root};
use crate::model::http::ModelServer;
use crate::process::Process;
use crate::sim::preset::Preset;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

/// The ports that stand in the shipped `envoy/envoy.yaml`.
pub const CLIENT_PORT: u16 = 10_000;
/// The same for Envoy's admin pages.
pub const ADMIN_PORT: u16 = 9_901;
const MODEL_PORT: u16 = 8_000;
/// The module's path there.
const MODULE: &str = "target/sluice.wasm";

const START: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(100);

/// Runs until Envoy ends; the caller ends it by dropping the future, and with it all that was started.
pub async fn run(port: u16, admin_port: u16) -> Result<()> {
    for (name, port, flag) in [("clients", port, "--port"), ("admin pages", admin_port, "--admin-port")] {
        free(port)
            .with_context(|| format!("port {port} for {name} is taken: choose another one with {flag}"))?;
    }
    let config = Config::shipped("envoy.yaml")?;
    let server = ModelServer::start(0, Preset::Gpu.spec()).await?;
    let dir = TempDir::new()?;
    let yaml = dir.path().join("envoy.yaml");
    fs::write(
        &yaml,
        configuration(&config.yaml, &config.module, [port, admin_port, server.address().port()])?,
    )?;
    let mut command = Command::new(&config.envoy);
    command
        .args(["--concurrency", "1", "--disable-hot-restart", "--use-dynamic-base-id"])
        .args([
            "--log-level",
            "error",
            "--component-log-level",
            "wasm:info",
            "--file-flush-interval-msec",
            "100",
        ])
        .arg("-c")
        .arg(&yaml)
        .current_dir(root());
    let mut envoy = Process::spawn(&mut command)?;
    serving(&mut envoy, port).await?;
    println!("{}", hints(port, admin_port));
    loop {
        envoy.lives().context("Envoy")?;
        sleep(POLL).await;
    }
}

/// The shipped configuration with nothing but module and ports (for clients, admin pages, model server) replaced.
fn configuration(yaml: &Path, module: &Path, ports: [u16; 3]) -> Result<String> {
    let text = fs::read_to_string(yaml).with_context(|| yaml.display().to_string())?;
    let module = module.to_str().context("the module's path is not UTF-8")?;
    let mut replacements = vec![(format!("filename: {MODULE} "), format!("filename: \"{module}\" "))];
    for (shipped, port) in [CLIENT_PORT, ADMIN_PORT, MODEL_PORT].into_iter().zip(ports) {
        replacements.push((format!("port_value: {shipped} "), format!("port_value: {port} ")));
    }
    for (shipped, _) in &replacements {
        ensure!(text.contains(shipped), "{} has no `{shipped}`", yaml.display());
    }
    // One replacement a line: a wanted port may well be another's shipped one.
    let replaced = |line: &str| match replacements.iter().find(|(shipped, _)| line.contains(shipped)) {
        Some((shipped, wanted)) => line.replace(shipped, wanted),
        None => line.to_owned(),
    };
    Ok(text.lines().map(replaced).collect::<Vec<_>>().join("\n"))
}

fn free(port: u16) -> std::io::Result<()> {
    std::net::TcpListener::bind(("127.0.0.1", port)).map(drop)
}

/// Waits until Envoy takes connections.
async fn serving(envoy: &mut Process, port: u16) -> Result<()> {
    let deadline = Instant::now() + START;
    while TcpStream::connect(SocketAddr::from(([127, 0, 0, 1], port))).is_err() {
        envoy.lives().context("Envoy")?;
        ensure!(Instant::now() < deadline, "Envoy takes no connections on port {port} after {START:?}");
        sleep(POLL).await;
    }
    Ok(())
}

fn hints(port: u16, admin_port: u16) -> String {
    let url = format!("http://127.0.0.1:{port}/v1/chat/completions");
    format!(
        r#"
Envoy with Sluice takes requests on 127.0.0.1:{port}, a simulated model server behind it. Ctrl-C ends both.

Passes, classed short (see x-sluice-class), without an output limit of its own (see x-sluice-max-tokens):
  curl -i {url} -d '{{"model":"m","messages":[{{"role":"user","content":"Hello"}}]}}'

Streams, clamped to the policy's ceiling and so classed long:
  curl -iN {url} -d '{{"model":"m","stream":true,"max_tokens":5000,"messages":[{{"role":"user","content":"Hello"}}]}}'

Refused, prompt too long:
  head -c 100001 /dev/zero | tr '\0' x | sed 's/.*/{{"messages":[{{"role":"user","content":"&"}}]}}/' | curl -i {url} -d @-

Counters: curl -s 'http://127.0.0.1:{admin_port}/stats?filter=sluice'
Below: Envoy's access log, a line a request.
"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ports_and_module_of_the_shipped_file_are_replaced() {
        let yaml = root().join("envoy/envoy.yaml");
        let ports = [MODEL_PORT, CLIENT_PORT, 1];
        let text = configuration(&yaml, Path::new("/elsewhere/filter.wasm"), ports).unwrap();
        let shipped = fs::read_to_string(yaml).unwrap();
        assert_eq!(shipped.lines().count(), text.lines().count());
        let changed = shipped.lines().zip(text.lines()).filter(|(before, after)| before != after);
        let changed: Vec<&str> =
            changed.map(|(_, after)| after.trim().rsplit(": ").next().unwrap_or(after)).collect();
        let model = "1 } } }";
        assert_eq!(changed, ["10000 }", "8000 }", "\"/elsewhere/filter.wasm\" }", model, model]);
    }
}
