//! What a reader needs to run a comparison again: the command, versions, the machine.

use crate::envoy::{Config, root};
use crate::peers::Peer;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Names and values.
pub fn facts() -> Vec<[String; 2]> {
    let mut facts = vec![
        ["command".to_owned(), std::env::args().collect::<Vec<_>>().join(" ")],
        [
            "commit".to_owned(),
            said("git", &["-C", &root().to_string_lossy(), "describe", "--always", "--dirty"]),
        ],
        ["time".to_owned(), said("date", &["--utc", "+%Y-%m-%d %H:%M UTC"])],
        ["machine".to_owned(), machine()],
        ["kernel".to_owned(), said("uname", &["-sr"])],
    ];
    if let Ok(config) = Config::shipped("envoy.yaml") {
        facts.push(["Envoy".to_owned(), said(&config.envoy.to_string_lossy(), &["--version"])]);
        facts.push(["filter".to_owned(), size(&config.module)]);
    }
    for peer in Peer::ALL.into_iter().filter(|peer| peer.installed()) {
        facts.push([peer.name().to_owned(), peer.version().unwrap_or_else(|| "unknown".to_owned())]);
    }
    facts
}

/// Processors and memory.
fn machine() -> String {
    let field = |file: &str, name: &str| {
        let text = fs::read_to_string(file).unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with(name)).and_then(|line| line.split_once(':'));
        line.map_or("unknown".to_owned(), |(_, value)| value.trim().to_owned())
    };
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let (model, memory) = (field("/proc/cpuinfo", "model name"), field("/proc/meminfo", "MemTotal"));
    format!("{cores} cores of {model}, {memory} of memory")
}

fn size(module: &Path) -> String {
    fs::metadata(module).map_or("unknown".to_owned(), |file| format!("{} bytes", file.len()))
}

/// The first line with something in it that a program says.
fn said(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let line = text.lines().map(str::trim).find(|line| !line.is_empty());
    line.unwrap_or("unknown").to_owned()
}
