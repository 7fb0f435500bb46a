//! What the kernel knows of processes: where they may run, what they have used.

use anyhow::{Context, Result, ensure};
use rustix::thread::{CpuSet, Pid, sched_getaffinity, sched_setaffinity};
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

/// The CPUs that this process may use.
pub fn cpus() -> Result<Vec<usize>> {
    let allowed = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).collect())
}

/// How many CPUs the machine has.
pub fn all_cpus() -> usize {
    fs::read_to_string("/proc/stat")
        .map_or(1, |text| text.lines().skip(1).take_while(|line| line.starts_with("cpu")).count().max(1))
}

/// Keeps all threads of a process on these CPUs, and those that they start later.
pub fn pin(pid: u32, cpus: &[usize]) -> Result<()> {
    let mut set = CpuSet::new();
    cpus.iter().for_each(|cpu| set.set(*cpu));
    for task in tasks(pid)? {
        let thread = task.file_name().and_then(|name| name.to_str()?.parse().ok()).and_then(Pid::from_raw);
        // One that has ended meanwhile needs no place.
        let _ = sched_setaffinity(Some(thread.context("a thread's number")?), &set);
    }
    Ok(())
}

/// The CPU time that a process has used so far, to the nanosecond.
pub fn cpu_time(pid: u32) -> Result<Duration> {
    let mut nanos = 0;
    for task in tasks(pid)? {
        let path = task.join("schedstat");
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        nanos += text.split(' ').next().and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
    }
    Ok(Duration::from_nanos(nanos))
}

/// The time that all CPUs together have been at work, whoever they worked for, those of other machines on the same
/// hardware included.
pub fn machine_time() -> Result<Duration> {
    let text = fs::read_to_string("/proc/stat")?;
    let fields: Vec<u64> =
        text.lines().next().unwrap_or("").split_whitespace().filter_map(|field| field.parse().ok()).collect();
    ensure!(fields.len() >= 8, "/proc/stat: {text}");
    // user nice system idle iowait irq softirq steal, in hundredths of a second.
    let busy = fields[..3].iter().sum::<u64>() + fields[5..8].iter().sum::<u64>();
    Ok(Duration::from_millis(10 * busy))
}

/// Bytes of memory.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// Resident, of the whole process.
    pub resident: u64,
    /// Of the memories of its wasm modules: their size, touched or not.
    pub modules: u64,
}

/// What a process holds.
pub fn memory(pid: u32) -> Result<Memory> {
    let path = format!("/proc/{pid}/smaps");
    Ok(measure(&fs::read_to_string(&path).with_context(|| path.clone())?))
}

/// V8 reserves 8 GiB behind each memory, so that no access needs a check: what lies before such a hole is one.
fn measure(smaps: &str) -> Memory {
    const HOLE: u64 = 4 << 30;
    let (mut resident, mut modules, mut before) = (0, 0, 0);
    for line in smaps.lines() {
        let mut fields = line.split_whitespace();
        let (first, second) = (fields.next().unwrap_or(""), fields.next().unwrap_or(""));
        if first == "Rss:" {
            resident += second.parse::<u64>().unwrap_or(0) * 1024;
        } else if let Some((from, to)) = first.split_once('-') {
            let Some(size) = u64::from_str_radix(to, 16).ok().zip(u64::from_str_radix(from, 16).ok()) else {
                continue;
            };
            let size = size.0.saturating_sub(size.1);
            if second.starts_with("---") && size >= HOLE {
                modules += before;
            }
            before = if second.starts_with("rw-") { size } else { 0 };
        }
    }
    Memory { resident, modules }
}

fn tasks(pid: u32) -> Result<Vec<PathBuf>> {
    let path = format!("/proc/{pid}/task");
    let entries = fs::read_dir(&path).with_context(|| path.clone())?;
    Ok(entries.filter_map(|entry| Some(entry.ok()?.path())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_memory_lies_before_its_hole() {
        let smaps = "7fa469c70000-7fa469d90000 rw-p 00000000 00:00 0\nRss: 88 kB\n\
                     7fa469d90000-7fa669c9c000 ---p 00000000 00:00 0\nRss: 0 kB\n\
                     7fa679c80000-7fa699c7d000 rw-p 00000000 00:00 0\nRss: 4 kB\n";
        let memory = measure(smaps);
        assert_eq!((memory.resident, memory.modules), (92 * 1024, 0x12_0000));
    }

    #[test]
    fn this_process_has_used_some() {
        assert!(cpu_time(std::process::id()).unwrap() > Duration::ZERO);
        assert!(!cpus().unwrap().is_empty());
    }
}
