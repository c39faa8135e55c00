//! Many seeds at once, on all cores.

use crate::world::{RunReport, Violation, Worlds};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Violations that are kept; after that many the rest is not worth the time.
const VIOLATIONS_MAX: usize = 20;
/// Seeds a thread takes at a time.
const CHUNK: u64 = 64;
/// Next seed when no thread is to take another one.
const ENOUGH: u64 = u64::MAX / 2;

#[derive(Debug, Default)]
pub struct Summary {
    pub executions: usize,
    pub events: u64,
    /// Executions by dialect and final status.
    pub ends: BTreeMap<String, u64>,
    /// Executions that the oracle could not follow to their end: too many readings explain them.
    pub unjudged: usize,
    pub violations: Vec<Box<Violation>>,
}

/// Number of seeds to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    Seeds(u64),
    /// At least this many executions; a simulated system has several in one seed.
    Executions(u64),
    /// No seed begins after that moment.
    Until(Instant),
}

impl Extent {
    /// Maximum number of seeds that may begin now, of which `seeds` with `executions` are over.
    pub(crate) fn left(self, seeds: u64, executions: u64, executions_per_seed: u64) -> u64 {
        match self {
            Extent::Seeds(all) => all.saturating_sub(seeds),
            Extent::Executions(all) => all.saturating_sub(executions).div_ceil(executions_per_seed),
            Extent::Until(_) if self.is_late() => 0,
            Extent::Until(_) => u64::MAX,
        }
    }

    pub(crate) fn is_late(self) -> bool {
        matches!(self, Extent::Until(end) if end <= Instant::now())
    }
}

/// Runs the seeds from `first` on. Each runs twice and must have the same hash.
pub fn run(worlds: Worlds, first: u64, extent: Extent, progress: &(dyn Fn(u64) + Sync)) -> Summary {
    let next = AtomicU64::new(0);
    let summary = Mutex::new(Summary::default());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| work((worlds, first), extent, &next, &summary, progress));
        }
    });
    let mut summary = summary.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    summary.violations.sort_by_key(|violation| violation.seed);
    summary
}

fn work(
    (worlds, first): (Worlds, u64),
    extent: Extent,
    next: &AtomicU64,
    summary: &Mutex<Summary>,
    progress: &(dyn Fn(u64) + Sync),
) {
    loop {
        let start = next.fetch_add(CHUNK, Ordering::Relaxed);
        let left = extent.left(start, start, 1);
        if left == 0 || start >= ENOUGH {
            return;
        }
        let reports: Vec<_> =
            (start..start + left.min(CHUNK)).map(|offset| run_twice(worlds, first + offset)).collect();
        let mut summary = summary.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        reports.into_iter().for_each(|report| summary.add(report));
        progress(summary.executions as u64);
        if summary.violations.len() >= VIOLATIONS_MAX {
            return next.store(ENOUGH, Ordering::Relaxed);
        }
    }
}

fn run_twice(worlds: Worlds, seed: u64) -> Result<RunReport, Box<Violation>> {
    let report = worlds.run(seed, None)?;
    let again = worlds.run(seed, None)?;
    if report.trace_hash == again.trace_hash {
        return Ok(report);
    }
    let mut violation = worlds.describe(seed);
    violation.rule = "K6".into();
    violation.what = "the second run of the seed was different".into();
    Err(Box::new(violation))
}

impl Summary {
    fn add(&mut self, report: Result<RunReport, Box<Violation>>) {
        self.executions += 1;
        match report {
            Ok(report) => {
                self.events += report.events as u64;
                self.unjudged += usize::from(!report.judged);
                *self
                    .ends
                    .entry(format!("{:?} {}", report.dialect, report.status).to_lowercase())
                    .or_default() += 1;
            }
            Err(violation) => self.violations.push(violation),
        }
    }
}
