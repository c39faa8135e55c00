//! Many seeds at once, on all cores.

use super::report::{Violation, WorldReport};
use super::world::Counts;
use crate::campaign::Extent;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Violations that are kept; after that many the rest is not worth the time.
const VIOLATIONS_MAX: usize = 20;
/// Seeds between two looks at whether there have been enough.
const ROUND_MAX: u64 = 512;
/// Approximate number of executions in a world, from which the number of further seeds is computed.
const EXECUTIONS_PER_SEED: u64 = 4;

#[derive(Debug, Default)]
pub struct Summary {
    pub seeds: u64,
    /// Seeds that ran on the production store.
    pub on_file: u64,
    pub counts: Counts,
    /// Executions by their outcome.
    pub ends: BTreeMap<String, u64>,
    pub violations: Vec<Box<Violation>>,
}

/// Runs the seeds from `first` on. Each runs twice and must have the same hash.
pub fn run(first: u64, extent: Extent, progress: &(dyn Fn(&Summary) + Sync)) -> Summary {
    let mut summary = Summary::default();
    loop {
        let left = extent.left(summary.seeds, summary.counts.executions, EXECUTIONS_PER_SEED);
        if left == 0 || summary.violations.len() >= VIOLATIONS_MAX {
            summary.violations.sort_by_key(|violation| violation.seed);
            return summary;
        }
        let from = first + summary.seeds;
        summary = round(from, left.min(ROUND_MAX), extent, summary, progress);
    }
}

fn round(
    first: u64,
    count: u64,
    extent: Extent,
    so_far: Summary,
    progress: &(dyn Fn(&Summary) + Sync),
) -> Summary {
    let next = AtomicU64::new(first);
    let summary = Mutex::new(so_far);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + count || extent.is_late() {
                        return;
                    }
                    let report = run_twice(seed);
                    let mut summary = summary.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                    summary.add(report);
                    progress(&summary);
                }
            });
        }
    });
    summary.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn run_twice(seed: u64) -> Result<WorldReport, Box<Violation>> {
    let report = super::run(seed, None)?;
    let again = super::run(seed, None)?;
    if report.hash == again.hash {
        return Ok(report);
    }
    let mut violation = super::describe(seed);
    violation.rule = "K6".into();
    violation.what = "the second run of the seed was different".into();
    Err(Box::new(violation))
}

impl Summary {
    fn add(&mut self, report: Result<WorldReport, Box<Violation>>) {
        self.seeds += 1;
        match report {
            Ok(report) => {
                self.on_file += u64::from(report.on_file);
                self.counts.add(&report.counts);
                for (end, count) in report.ends {
                    *self.ends.entry(end).or_default() += count;
                }
            }
            Err(violation) => self.violations.push(violation),
        }
    }
}

impl Counts {
    fn add(&mut self, other: &Counts) {
        let Counts {
            executions,
            commits,
            engine_deaths,
            worker_deaths,
            messages,
            lost,
            doubled,
            failed_writes,
            mail,
            undone_sagas,
            happenings,
            simulated_ms,
            rest_ms,
        } = other;
        self.executions += executions;
        self.commits += commits;
        self.engine_deaths += engine_deaths;
        self.worker_deaths += worker_deaths;
        self.messages += messages;
        self.lost += lost;
        self.doubled += doubled;
        self.failed_writes += failed_writes;
        self.mail += mail;
        self.undone_sagas += undone_sagas;
        self.happenings += happenings;
        self.simulated_ms += simulated_ms;
        self.rest_ms = self.rest_ms.max(*rest_ms);
    }
}
