//! Child processes that never outlive the rig's interest in them.

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process_group};
use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

const POLL: Duration = Duration::from_millis(50);
/// How much of a log is shown when its process failed.
const LOG_LINES: usize = 20;

/// A child process that is gone, and its ports free, once this is dropped.
pub struct Process(Child);

impl Process {
    /// Starts `command` in a process group of its own: Ctrl-C reaches the rig alone, which then ends the child.
    pub fn spawn(command: &mut Command) -> Result<Process> {
        let program = command.get_program().to_string_lossy().into_owned();
        let child = command.stdin(Stdio::null()).process_group(0).spawn();
        Ok(Process(child.with_context(|| format!("cannot run {program}"))?))
    }

    /// An error when it has ended.
    pub fn lives(&mut self) -> Result<()> {
        match self.0.try_wait()? {
            Some(status) => bail!("ended by itself: {status}"),
            None => Ok(()),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // With all that it has started itself. It may have ended already; then there is nothing left but to reap it.
        if let Some(group) = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.0.wait();
    }
}

/// A server program on 127.0.0.1 with its output in a file.
pub struct ServerProcess {
    name: String,
    process: Process,
    address: SocketAddr,
    log: PathBuf,
    /// Its working directory, which goes with it.
    _dir: TempDir,
}

impl ServerProcess {
    /// Starts what `command` makes of the address to listen on and a directory for files, and returns once `ready`
    /// answers 200 there. An error shows the end of the program's log.
    pub async fn start(
        name: &str,
        ready: &str,
        patience: Duration,
        command: impl FnOnce(SocketAddr, &TempDir) -> Result<Command>,
    ) -> Result<ServerProcess> {
        let dir = TempDir::new()?;
        let address = free_address()?;
        let log = dir.path().join("log");
        let output = File::create(&log)?;
        let mut command = command(address, &dir)?;
        command.stdout(output.try_clone()?).stderr(output);
        let process = Process::spawn(&mut command)?;
        let mut server = ServerProcess { name: name.to_owned(), process, address, log, _dir: dir };
        let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(2)).build()?;
        let url = format!("http://{address}{ready}");
        let deadline = Instant::now() + patience;
        while !client.get(&url).send().await.is_ok_and(|answer| answer.status() == 200) {
            server.lives()?;
            ensure!(
                Instant::now() < deadline,
                "{name} is not ready after {patience:?}:\n{}",
                server.log_tail()
            );
            sleep(POLL).await;
        }
        Ok(server)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// An error, with the end of its log, when it has ended.
    pub fn lives(&mut self) -> Result<()> {
        let lives = self.process.lives();
        lives.with_context(|| format!("{} failed:\n{}", self.name, self.log_tail()))
    }

    fn log_tail(&self) -> String {
        let log = fs::read(&self.log).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(LOG_LINES)..].join("\n")
    }
}

/// An address on 127.0.0.1 that nobody listens on at this moment.
pub fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_child_has_started_ends_with_it() {
        let dir = TempDir::new().unwrap();
        let written = dir.path().join("pid");
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 60 & echo $! >pid.new; mv pid.new pid; wait"]).current_dir(dir.path());
        let child = Process::spawn(&mut command).unwrap();
        while !written.exists() {
            std::thread::sleep(POLL);
        }
        let grandchild = fs::read_to_string(&written).unwrap();
        drop(child);
        // Whoever inherits it may take a moment to bury it.
        let stat = format!("/proc/{}/stat", grandchild.trim());
        while fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ")) {
            std::thread::sleep(POLL);
        }
    }

    #[tokio::test]
    async fn a_program_that_fails_is_reported_with_its_last_words() {
        let started = ServerProcess::start("shell", "/", Duration::from_secs(10), |_, _| {
            let mut command = Command::new("sh");
            command.args(["-c", "echo no such luck; exit 3"]);
            Ok(command)
        });
        let error = format!("{:#}", started.await.err().expect("it has ended"));
        assert!(error.contains("no such luck") && error.contains("exit status: 3"), "{error}");
    }
}
