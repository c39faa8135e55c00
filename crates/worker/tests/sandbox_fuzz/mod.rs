//! Random paths and statements in real sandbox processes. docs/fuzzing.md says how to run it longer.

mod outside;
mod paths;
#[path = "../../../dialects/tests/fuzz/random.rs"]
mod random;
mod sql;
mod statements;

use super::{Bounds, Job, Limits, Places, Sandbox};
use crate::command::OwnCommand;
use crate::halt::halt;
use random::Random;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use windlass_protocol::Failure;

/// Default time of each fuzzer.
const SECONDS: u64 = 10;

/// A process may have this beyond its limit: the program and its allocator are mapped before the limit is set.
const PROGRAM_KIB: u64 = 96 * 1024;

/// The process notices its own limits; this is for a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Pause between two measurements of the memory of the processes.
const LOOK: Duration = Duration::from_millis(5);

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .ok()
        .map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} is no number")))
}

/// The harness of tests writes to stdout; the answer has a stream of its own.
const APART: &str = "exec 3>&1 >/dev/null; exec \"$0\" \"$@\"";

#[test]
#[ignore = "what a sandbox process runs"]
fn sandbox_process() {
    if let Ok(output) = File::options().write(true).open("/proc/self/fd/3") {
        super::run(io::stdin(), output).unwrap();
    }
}

/// Starts sandbox processes of the test program and watches their memory.
struct Yard {
    sandbox: Sandbox,
    places: Places,
    runtime: tokio::runtime::Runtime,
    peak_kib: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
}

impl Yard {
    fn new() -> Yard {
        let args = ["--ignored", "--exact", "--nocapture", "sandbox::fuzz::sandbox_process"];
        let program = std::env::current_exe().unwrap().into_os_string();
        let args = ["-c".into(), APART.into(), program].into_iter().chain(args.map(OsString::from)).collect();
        let command = OwnCommand { program: "/bin/sh".into(), args };
        let (peak_kib, is_over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (peak, over) = (peak_kib.clone(), is_over.clone());
        thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                peak.fetch_max(memory_of_children_kib(), Ordering::Relaxed);
                thread::sleep(LOOK);
            }
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Yard { sandbox: Sandbox::new(command), places: Places::default(), runtime, peak_kib, is_over }
    }

    /// Runs one job; fails when it exceeds its bounds.
    fn run(&self, job: Job, bounds: &Bounds) -> Result<Vec<u8>, Box<Failure>> {
        let begun = Instant::now();
        let (_puller, halt) = halt();
        let done = self.runtime.block_on(self.sandbox.run(&self.places, job, bounds, halt));
        assert!(begun.elapsed() < bounds.time + PATIENCE, "it took {:?}", begun.elapsed());
        let (peak, most) =
            (self.peak_kib.load(Ordering::Relaxed), (bounds.limits.memory_bytes >> 10) + PROGRAM_KIB);
        assert!(peak <= most, "a process had {peak} KiB");
        done
    }
}

impl Drop for Yard {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

/// The most memory that a process which this one started has had.
fn memory_of_children_kib() -> u64 {
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let children = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let of = |pid: &str| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        line.trim().strip_suffix(" kB")?.parse::<u64>().ok()
    };
    children.flat_map(|pids| pids.split_whitespace().filter_map(of).collect::<Vec<_>>()).max().unwrap_or(0)
}

/// Draws cases until the time is over; each returns the name of what became of it. At least this share, in percent, must be
/// `done`, or the cases say nothing about what comes after reading.
fn repeat(what: &str, share: u64, mut case: impl FnMut(&mut Random) -> String) {
    let (seed, seconds) = (number("WINDLASS_FUZZ_SEED", 1), number("WINDLASS_FUZZ_SECONDS", SECONDS));
    let mut random = Random::new(seed);
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut counts = std::collections::BTreeMap::<String, u64>::new();
    while Instant::now() < end {
        *counts.entry(case(&mut random)).or_default() += 1;
    }
    println!("seed {seed}, {seconds} s: {what}: {counts:?}");
    let (all, done) = (counts.values().sum::<u64>(), counts.get("done").copied().unwrap_or(0));
    assert!(done * 100 >= all * share, "hardly anything is valid: {counts:?}");
}
