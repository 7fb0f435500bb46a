//! `rig run`: the shipped configuration before a simulated model server, or one's own, to be tried with curl.

use crate::envoy::{Config, root};
use crate::model::http::ModelServer;
use crate::process::Process;
use crate::sim::preset::Preset;
use anyhow::{Context, Result, ensure};
use clap::Args;
use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

/// What to run.
#[derive(Args, Debug)]
pub struct Options {
    /// Where clients connect.
    #[arg(long, default_value_t = CLIENT_PORT)]
    port: u16,
    /// Where Envoy's admin pages are.
    #[arg(long, default_value_t = ADMIN_PORT)]
    admin_port: u16,
    /// The model server behind both classes, as IP:PORT; a simulated one where none is named.
    #[arg(long, value_name = "IP:PORT")]
    server: Option<SocketAddr>,
    /// A file with a policy (JSON) in place of the shipped one. A class that is neither `short` nor `long` has no route
    /// of its own.
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
}

/// The ports that stand in the shipped `envoy/envoy.yaml`.
const CLIENT_PORT: u16 = 10_000;
const ADMIN_PORT: u16 = 9_901;
const MODEL_PORT: u16 = 8_000;
/// The module's path there.
const MODULE: &str = "target/sluice.wasm";

const START: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(100);

/// Runs until Envoy ends; the caller ends it by dropping the future, and with it all that was started.
pub async fn run(options: Options) -> Result<()> {
    let Options { port, admin_port, server, policy } = options;
    for (name, port, flag) in [("clients", port, "--port"), ("admin pages", admin_port, "--admin-port")] {
        free(port)
            .with_context(|| format!("port {port} for {name} is taken: choose another one with {flag}"))?;
    }
    let config = Config::shipped("envoy.yaml")?;
    let simulated = ModelServer::start(0, Preset::Gpu.spec()).await?;
    let model = server.unwrap_or(simulated.address());
    let mut text = configuration(&config.yaml, &config.module, [port, admin_port], model)?;
    if let Some(path) = policy {
        let policy = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        text = with_policy(&text, &policy)?;
    }
    let dir = TempDir::new()?;
    let yaml = dir.path().join("envoy.yaml");
    fs::write(&yaml, text)?;
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
    println!("{}", hints(port, admin_port, server));
    loop {
        envoy.lives().context("Envoy")?;
        sleep(POLL).await;
    }
}

/// The shipped configuration with nothing but module, ports (for clients, admin pages) and model server replaced.
fn configuration(yaml: &Path, module: &Path, ports: [u16; 2], model: SocketAddr) -> Result<String> {
    let text = fs::read_to_string(yaml).with_context(|| yaml.display().to_string())?;
    let module = module.to_str().context("the module's path is not UTF-8")?;
    let socket = |address: &str, port: u16| format!("address: \"{address}\", port_value: {port} ");
    let mut replacements = vec![
        (format!("filename: {MODULE} "), format!("filename: \"{module}\" ")),
        (socket("127.0.0.1", MODEL_PORT).replace('"', ""), socket(&model.ip().to_string(), model.port())),
    ];
    for (shipped, port) in [CLIENT_PORT, ADMIN_PORT].into_iter().zip(ports) {
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

/// The configuration with another policy in the place of the shipped one.
fn with_policy(text: &str, policy: &str) -> Result<String> {
    let shipped = fs::read_to_string(root().join("envoy/policy.json"))?;
    let (_, value) = text.split_once("value: |\n").context("the configuration has no policy")?;
    let (before, _) = value.split_once('{').context("the policy is no object")?;
    let block = |policy: &str| -> String {
        policy.lines().map(|line| format!("{before}{line}").trim_end().to_owned() + "\n").collect()
    };
    ensure!(text.contains(&block(&shipped)), "the configuration has another policy than envoy/policy.json");
    Ok(text.replace(&block(&shipped), &block(policy)))
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

fn hints(port: u16, admin_port: u16, server: Option<SocketAddr>) -> String {
    let server = server.map_or("a simulated model server".to_owned(), |server| server.to_string());
    let url = format!("http://127.0.0.1:{port}/v1/chat/completions");
    format!(
        r#"
Envoy with Sluice takes requests on 127.0.0.1:{port}, {server} behind it. Ctrl-C ends it.

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

    fn shipped() -> PathBuf {
        root().join("envoy/envoy.yaml")
    }

    #[test]
    fn only_ports_module_and_model_server_of_the_shipped_file_are_replaced() {
        let model = SocketAddr::from(([10, 0, 0, 7], 1));
        let ports = [MODEL_PORT, CLIENT_PORT];
        let text = configuration(&shipped(), Path::new("/elsewhere/filter.wasm"), ports, model).unwrap();
        let shipped = fs::read_to_string(shipped()).unwrap();
        assert_eq!(shipped.lines().count(), text.lines().count());
        let changed = shipped.lines().zip(text.lines()).filter(|(before, after)| before != after);
        let changed: Vec<&str> = changed
            .map(|(_, after)| after.split_once("ss: ").map_or(after.trim(), |(_, after)| after))
            .collect();
        let model = "{ socket_address: { address: \"10.0.0.7\", port_value: 1 } } }";
        assert_eq!(
            changed,
            [
                "{ address: 127.0.0.1, port_value: 10000 }",
                "{ address: 127.0.0.1, port_value: 8000 }",
                "local: { filename: \"/elsewhere/filter.wasm\" }",
                model,
                model
            ]
        );
    }

    #[test]
    fn a_policy_takes_the_place_of_the_shipped_one() {
        let text = fs::read_to_string(shipped()).unwrap();
        let policy = "{\n  \"backend\": \"llamacpp\"\n}";
        let replaced = with_policy(&text, policy).unwrap();
        let yaml: serde_json::Value = serde_norway::from_str(&replaced).unwrap();
        let manager = "/static_resources/listeners/0/filter_chains/0/filters/0/typed_config";
        let value = "/http_filters/0/typed_config/config/configuration/value";
        assert_eq!(yaml.pointer(&format!("{manager}{value}")).unwrap(), &format!("{policy}\n"));
        assert!(with_policy(&replaced, policy).is_err());
    }
}
