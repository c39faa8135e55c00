//! Resources of a process: time to the first answer, memory when idle, bytes on disk, size of the program.

use super::chain::{self, STEPS};
use super::figures::{Latencies, ms};
use super::result::BenchResult;
use super::rig::{Rig, Setup};
use super::verify::Expected;
use super::{Site, machine, nets};
use anyhow::{Context, ensure};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use windlass_engine::Folder;

/// Processes that are started one after the other; their median is the figure.
const STARTS: usize = 9;
/// Time after which a process is idle.
const REST: Duration = Duration::from_secs(1);

pub fn footprint(site: &Site<'_>) -> anyhow::Result<BenchResult> {
    site.progress.phase("starting");
    let mut result = BenchResult::new("footprint", site);
    let (empty, idle) = starts(|at| site.folder.join(format!("empty-{at}")))?;
    result = result
        .figure("ready_ms", empty.percentile_ms(0.5))
        .figure("ready_max_ms", empty.percentile_ms(1.0))
        .figure("idle_mb", idle as f64 / 1e6)
        .figure("binary_mb", std::fs::metadata(std::env::current_exe()?)?.len() as f64 / 1e6);
    let rig = site.rig(Setup::default())?;
    let definition = rig.define("chain", nets::chain(STEPS)?)?;
    let before = machine::bytes_written();
    let driven = chain::drive(site, &rig, definition)?;
    let steps = driven.executions.len() as u64 * u64::from(STEPS);
    let open = size(site.folder)?;
    result = result
        .figure("open_bytes_per_step", open as f64 / steps as f64)
        .count("executions", driven.executions.len())
        .count("steps", steps)
        .condition("seconds", site.bench.seconds);
    let result = site.finish(rig, result, &[Expected::completed(driven.executions, STEPS.into())])?;
    let closed = size(site.folder)?;
    let result = result.figure("bytes_per_step", closed as f64 / steps as f64);
    let result = match (before, machine::bytes_written()) {
        (Some(before), Some(after)) => {
            result.figure("device_bytes_per_step", after.saturating_sub(before) as f64 / steps as f64)
        }
        _ => result,
    };
    let (full, idle) = starts(|_| site.folder.to_owned())?;
    Ok(result.figure("ready_stored_ms", full.percentile_ms(0.5)).figure("idle_stored_mb", idle as f64 / 1e6))
}

/// Times from the start of a process to its first answer, and the memory of the last one at rest.
fn starts(folder: impl Fn(usize) -> std::path::PathBuf) -> anyhow::Result<(Latencies, u64)> {
    let mut ready = Latencies::default();
    let mut idle = 0;
    for at in 0..STARTS {
        let (child, took) = start(&folder(at))?;
        ready.push(took);
        if at + 1 == STARTS {
            std::thread::sleep(REST);
            idle = machine::resident(child.id())?;
        }
        end(child)?;
    }
    Ok((ready, idle))
}

fn start(folder: &Path) -> anyhow::Result<(Child, Duration)> {
    let began = Instant::now();
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["bench", "ready", "--data"]).arg(folder).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().context("the program cannot start itself")?;
    let mut line = String::new();
    BufReader::new(child.stdout.take().context("a pipe")?).read_line(&mut line)?;
    let took = began.elapsed();
    if line.trim() != "ready" {
        let status = child.wait()?;
        anyhow::bail!("the process ended with {status} before it was ready ({:.1} ms)", ms(took));
    }
    Ok((child, took))
}

fn end(mut child: Child) -> anyhow::Result<()> {
    drop(child.stdin.take());
    let status = child.wait()?;
    ensure!(status.success(), "the process ended with {status}");
    Ok(())
}

/// The measured process: an engine over a store, and one request that was answered after it was on disk.
pub fn ready(folder: &Path) -> anyhow::Result<()> {
    let rig = Rig::open(folder, Setup::default())?;
    rig.define("ready", nets::chain(1)?)?;
    let mut out = std::io::stdout();
    writeln!(out, "ready")?;
    out.flush()?;
    std::io::stdin().read_to_end(&mut Vec::new())?;
    rig.close()
}

/// Bytes of the store's files.
fn size(folder: &Path) -> anyhow::Result<u64> {
    let store = Folder::store(folder);
    let name = store.file_name().context("a file name")?.to_string_lossy().into_owned();
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(&name) {
            bytes += entry.metadata()?.len();
        }
    }
    Ok(bytes)
}
