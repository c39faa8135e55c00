//! Limits that a sandbox process sets for itself.

use rustix::process::{Resource, Rlimit, Signal, nice, set_parent_process_death_signal, setrlimit};
use serde::{Deserialize, Serialize};
use std::{fs, io};

/// A database, its journal, its log and its index, the folder, and room for what the system's library opens.
const OPEN_FILES_MAX: u64 = 32;

/// Added to the nice value: a computation that takes all the time it gets leaves the cores to the engine and to other
/// steps when they need them.
const NICE: i32 = 10;

/// Of one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Limits {
    /// Address space beyond what the program has mapped when it starts.
    pub(crate) memory_bytes: u64,
    pub(crate) cpu_seconds: u64,
    /// Size of any file that it writes; None: as the server's own.
    pub(crate) file_bytes: Option<u64>,
}

impl Limits {
    /// Sets them for this process. They cannot be raised again.
    pub(super) fn apply(self) -> io::Result<()> {
        // It dies with the worker's thread that started it, however that dies. A worker that is gone already sends no job.
        set_parent_process_death_signal(Some(Signal::KILL))?;
        let memory = mapped_bytes()?.saturating_add(self.memory_bytes);
        set(Resource::As, memory)?;
        set(Resource::Cpu, self.cpu_seconds)?;
        if let Some(bytes) = self.file_bytes {
            set(Resource::Fsize, bytes)?;
        }
        set(Resource::Nofile, OPEN_FILES_MAX)?;
        // It starts no process, and a core file would hold a tenant's values.
        set(Resource::Nproc, 0)?;
        set(Resource::Core, 0)?;
        nice(NICE)?;
        Ok(())
    }
}

/// Never above a limit that the process was started with.
fn set(resource: Resource, value: u64) -> io::Result<()> {
    let before = rustix::process::getrlimit(resource);
    let value = before.maximum.map_or(value, |maximum| value.min(maximum));
    Ok(setrlimit(resource, Rlimit { current: Some(value), maximum: Some(value) })?)
}

/// `size resident …` in pages.
fn mapped_bytes() -> io::Result<u64> {
    let statm = fs::read_to_string("/proc/self/statm")?;
    let pages = statm.split_ascii_whitespace().next().and_then(|pages| pages.parse::<u64>().ok());
    let pages = pages.ok_or_else(|| io::Error::other("/proc/self/statm does not say how much is mapped"))?;
    Ok(pages.saturating_mul(rustix::param::page_size() as u64))
}
