//! Verification of a run: every journal is read and replayed, its rows are compared with it (K1), and its steps are
//! counted. A run that fails it has no figures.

use super::progress::Progress;
use anyhow::{Context, bail, ensure};
use std::collections::{HashMap, HashSet};
use std::path::Path;
use windlass_engine::{Folder, journal};
use windlass_kernel::{ExecutionId, Outcome, Phase, Record, RunChange, any_of};
use windlass_store::check::{Audit, Report, check};
use windlass_store::sqlite::Sqlite;
use windlass_store::{Query, Reader, Store};

/// Number of executions that are read at a time.
const PAGE: usize = 1_000;

/// Expected result of a group of executions.
#[derive(Debug)]
pub struct Expected {
    executions: Vec<ExecutionId>,
    end: End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// Each step was answered once.
    Completed { steps: u64 },
    /// The executions wait on a timer.
    Waiting,
}

impl Expected {
    pub fn completed(executions: Vec<ExecutionId>, steps: u64) -> Expected {
        Expected { executions, end: End::Completed { steps } }
    }

    pub fn waiting(executions: Vec<ExecutionId>) -> Expected {
        Expected { executions, end: End::Waiting }
    }
}

/// Counts of the verification.
#[derive(Debug, Default)]
pub struct Verified {
    pub executions: u64,
    pub steps: u64,
    pub records: u64,
}

/// Reads the whole store. The first unexpected fact is the error.
pub fn verify(folder: &Path, expected: &[Expected], progress: &Progress) -> anyhow::Result<Verified> {
    let store = Sqlite::open(&Folder::store(folder))?;
    let mut verifier =
        Verifier { reader: store.reader()?, open: open(expected), verified: Verified::default() };
    let mut before = None;
    loop {
        let page = verifier.reader.list(&Query { before, limit: PAGE, ..Query::default() })?;
        let Some(last) = page.last() else { break };
        before = Some(last.execution);
        for listed in &page {
            verifier.execution(listed.execution, listed.phase)?;
            progress.show(|| format!("{} executions", verifier.verified.executions));
        }
    }
    if let Some(id) = verifier.open.keys().next() {
        bail!("{} executions that were started are not in the store, {id} is one", verifier.open.len());
    }
    sound(&mut verifier.reader, progress)?;
    Ok(verifier.verified)
}

/// Journals replayed and compared with the rows (K1).
fn sound(reader: &mut impl Audit, progress: &Progress) -> anyhow::Result<()> {
    let mut report_progress =
        |so_far: &Report| progress.show(|| format!("{} executions replayed", so_far.executions));
    let report = check(reader, &mut report_progress)?;
    let Some(first) = report.problems.first() else { return Ok(()) };
    bail!("the store differs from its journals in {} places: {first}", report.problems.len());
}

fn open(expected: &[Expected]) -> HashMap<ExecutionId, End> {
    expected.iter().flat_map(|group| group.executions.iter().map(|id| (*id, group.end))).collect()
}

struct Verifier<D> {
    reader: D,
    /// Executions that were not found yet.
    open: HashMap<ExecutionId, End>,
    verified: Verified,
}

impl<D: Reader> Verifier<D> {
    fn execution(&mut self, id: ExecutionId, phase: Phase) -> anyhow::Result<()> {
        let end = self.open.remove(&id).with_context(|| {
            format!("execution {id} is in the store and was not started by the benchmark")
        })?;
        let records = journal(&mut self.reader, id)?;
        let steps = judge(&records, phase, end).with_context(|| format!("execution {id}"))?;
        self.verified.executions += 1;
        self.verified.steps += steps;
        self.verified.records += records.len() as u64;
        Ok(())
    }
}

/// Steps that completed, each once. Other events are an error.
fn judge(records: &[Record], phase: Phase, end: End) -> anyhow::Result<u64> {
    let mut done = HashSet::new();
    for record in records {
        let Some((run, change)) = record.event.run_change() else { continue };
        match change {
            // Without an answer, the step needed no worker.
            RunChange::Done(_) if record.answer().is_some() => {
                ensure!(done.insert(run), "step-run {run} was done twice");
            }
            any_of![RunChange: Lost Retried Failed] => {
                bail!("step-run {run} did not complete at its first attempt")
            }
            any_of![RunChange: Fired Skipped LoopStarted IterationEnded Delayed Offered AwaitingManual ChildStarted
                Returned Done Dropped Routed AgentDecided Internal] => {}
        }
    }
    let (expected, reached) = match end {
        End::Completed { steps } => (steps, phase == Phase::Ended(Outcome::Completed)),
        End::Waiting => (0, phase == Phase::Running),
    };
    ensure!(reached, "it is {phase:?}, and should be {end:?}");
    ensure!(done.len() as u64 == expected, "{} steps were done, not {expected}", done.len());
    Ok(expected)
}
