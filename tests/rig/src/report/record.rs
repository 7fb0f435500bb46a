//! The record of a run: what was measured, with what and where, so that somebody else can do it again.

use crate::envoy::{Config, root};
use anyhow::{Context, Result};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

/// What stands for a fact that could not be found out.
pub const UNKNOWN: &str = "unknown";

/// One run, as it is kept in `benches/record/`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Record {
    /// What was measured, in words.
    pub what: String,
    /// The end of the run, in UTC to the second.
    pub date: String,
    /// The commit, with `-dirty` where files differ from it.
    pub commit: String,
    /// The command line, ready to be pasted into a shell.
    pub command: String,
    /// What decided all that was drawn.
    pub seeds: Vec<u64>,
    /// Programs and their versions.
    pub versions: BTreeMap<String, String>,
    /// Where it ran.
    pub machine: Machine,
    /// What came out; its shape is that of the command.
    pub figures: Value,
}

/// A machine, as far as it decides speed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Machine {
    /// Processors that this process may use.
    pub cores: usize,
    /// Their model.
    pub cpu: String,
    /// Main memory in KiB; none where the system does not say.
    pub memory_kib: Option<u64>,
    /// Name and release of the kernel.
    pub kernel: String,
}

impl Record {
    /// A record with the facts of now and here.
    pub fn new(what: &str, seeds: &[u64], figures: Value) -> Record {
        let root = root();
        let describe =
            ["-C", &root.to_string_lossy(), "describe", "--always", "--abbrev=7", "--exclude=*", "--dirty"];
        let mut versions = BTreeMap::from([("rustc".to_owned(), said("rustc", &["--version"]))]);
        if let Ok(config) = Config::shipped("envoy.yaml") {
            let said = said(&config.envoy.to_string_lossy(), &["--version"]);
            // It begins with where the program lies, which is nobody's business.
            let version = said.split_once("version: ").map_or(said.as_str(), |(_, version)| version);
            versions.insert("envoy".to_owned(), version.to_owned());
        }
        Record {
            what: what.to_owned(),
            date: Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            commit: said("git", &describe),
            command: command(),
            seeds: seeds.to_vec(),
            versions,
            machine: Machine::here(),
            figures,
        }
    }

    /// The same with another program's version.
    pub fn version(mut self, program: &str, version: &str) -> Record {
        self.versions.insert(program.to_owned(), version.to_owned());
        self
    }

    /// Writes the record as JSON, and the directories to it.
    ///
    /// # Errors
    ///
    /// With the path, when it cannot be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        let write = || -> Result<()> {
            path.parent().map_or(Ok(()), fs::create_dir_all)?;
            Ok(fs::write(path, serde_json::to_string_pretty(self)? + "\n")?)
        };
        write().with_context(|| format!("cannot write the record {}", path.display()))
    }

    /// Everything but the figures, as rows for a page's table.
    pub fn facts(&self) -> Vec<[String; 2]> {
        let Machine { cores, cpu, memory_kib, kernel } = &self.machine;
        let memory =
            memory_kib.map_or(UNKNOWN.to_owned(), |kib| format!("{:.1} GiB", kib as f64 / 1_048_576.0));
        let seeds: Vec<String> = self.seeds.iter().map(u64::to_string).collect();
        let mut facts = vec![
            ["date".to_owned(), self.date.clone()],
            ["commit".to_owned(), self.commit.clone()],
            ["seeds".to_owned(), seeds.join(", ")],
            ["machine".to_owned(), format!("{cores} cores of {cpu}, {memory} of memory, {kernel}")],
        ];
        facts.extend(self.versions.iter().map(|(program, version)| [program.clone(), version.clone()]));
        facts
    }
}

impl Machine {
    /// This one.
    pub fn here() -> Machine {
        let field = |file: &str, name: &str| {
            let text = fs::read_to_string(file).ok()?;
            let line = text.lines().find(|line| line.starts_with(name))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        };
        let memory = field("/proc/meminfo", "MemTotal");
        Machine {
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            // On arm64 there is no such line.
            cpu: field("/proc/cpuinfo", "model name").unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
            memory_kib: memory.and_then(|text| text.trim_end_matches("kB").trim().parse().ok()),
            kernel: said("uname", &["-sr"]),
        }
    }
}

/// The command line of this program, ready to be pasted into a shell.
pub fn command() -> String {
    command_line(std::env::args())
}

/// The arguments as a shell would take them.
fn command_line(arguments: impl Iterator<Item = String>) -> String {
    let plain = |text: &str| {
        !text.is_empty() && text.chars().all(|char| char.is_alphanumeric() || "-_./:=,@%+".contains(char))
    };
    let quoted =
        |text: String| if plain(&text) { text } else { format!("'{}'", text.replace('\'', r"'\''")) };
    arguments.map(quoted).collect::<Vec<_>>().join(" ")
}

/// The first line with something in it that a program says.
fn said(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or(UNKNOWN).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_record_says_what_where_and_with_what() {
        let record = Record::new("a test", &[1, 2], json!({"p99": 0.5})).version("llama.cpp", "b1");
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("new/record.json");
        record.write(&path).unwrap();
        let read: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        assert_eq!((&read["figures"]["p99"], &read["seeds"]), (&json!(0.5), &json!([1, 2])));
        assert_eq!(read["versions"]["llama.cpp"], "b1");
        assert!(read["machine"]["cores"].as_u64().unwrap() > 0);
        assert!(read["date"].as_str().unwrap().parse::<Timestamp>().is_ok(), "{read}");
        for fact in ["commit", "command"] {
            assert!(!read[fact].as_str().unwrap().is_empty(), "{fact}");
        }
        assert!(record.facts().iter().any(|[name, _]| name == "machine"));
        let error = record.write(&path.join("below-a-file")).unwrap_err();
        assert!(format!("{error:#}").contains("below-a-file"), "{error:#}");
    }

    #[test]
    fn a_command_can_be_pasted() {
        let arguments = ["rig", "load", "--class", "it's=1:2..3:4", "", "a b"].map(str::to_owned);
        assert_eq!(command_line(arguments.into_iter()), r"rig load --class 'it'\''s=1:2..3:4' '' 'a b'");
    }

    #[test]
    fn a_program_that_is_not_there_has_no_version() {
        assert_eq!(said("no-such-program-here", &[]), UNKNOWN);
    }
}
