//! Limits that a sandbox process sets on itself.

use rustix::process::{Resource, Rlimit, Signal, nice, set_parent_process_death_signal, setrlimit};
use serde::{Deserialize, Serialize};
use std::{fs, io};

/// Open files: a database, its journal, its log and its index, the folder, and the files of the system's library.
const OPEN_FILES_MAX: u64 = 32;

/// Increment of the nice value: a long computation leaves the cores to the engine and to other steps when they need
/// them.
const NICE: i32 = 10;

/// Limits of one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Limits {
    /// Address space in addition to the mappings of the program at its start.
    pub(crate) memory_bytes: u64,
    pub(crate) cpu_seconds: u64,
    /// Maximum size of any file that it writes; None: the limit of the server.
    pub(crate) file_bytes: Option<u64>,
}

impl Limits {
    /// Sets the limits of this process. They cannot be raised again.
    pub(super) fn apply(self) -> io::Result<()> {
        // The process is killed when the worker's thread that started it ends for any reason. A worker that has ended
        // already sends no job.
        set_parent_process_death_signal(Some(Signal::KILL))?;
        let memory = mapped_bytes()?.saturating_add(self.memory_bytes);
        set(Resource::As, memory)?;
        set(Resource::Cpu, self.cpu_seconds)?;
        if let Some(bytes) = self.file_bytes {
            set(Resource::Fsize, bytes)?;
        }
        set(Resource::Nofile, OPEN_FILES_MAX)?;
        // It starts no process, and a core file would contain a tenant's values.
        set(Resource::Nproc, 0)?;
        set(Resource::Core, 0)?;
        nice(NICE)?;
        Ok(())
    }
}

/// Returns a limit that does not exceed the one that the process was started with.
fn set(resource: Resource, value: u64) -> io::Result<()> {
    let before = rustix::process::getrlimit(resource);
    let value = before.maximum.map_or(value, |maximum| value.min(maximum));
    Ok(setrlimit(resource, Rlimit { current: Some(value), maximum: Some(value) })?)
}

/// Parses `size resident …` in pages.
fn mapped_bytes() -> io::Result<u64> {
    let statm = fs::read_to_string("/proc/self/statm")?;
    let pages = statm.split_ascii_whitespace().next().and_then(|pages| pages.parse::<u64>().ok());
    let pages = pages.ok_or_else(|| io::Error::other("/proc/self/statm does not say how much is mapped"))?;
    Ok(pages.saturating_mul(rustix::param::page_size() as u64))
}
