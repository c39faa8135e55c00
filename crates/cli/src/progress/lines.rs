//! One line per change, for pipes and files. The lines of a loop are bounded: its first lines, its first failures, and
//! its progress.

use super::say;
use crate::follow::{FollowedItem, LogLine};
use crate::format::{counted, duration, log_line, sentence};
use crate::text::Colours;
use std::collections::BTreeMap;
use windlass_kernel::{Millis, any_of};
use windlass_views::{FiringRole, ProgressChange, ProgressEntry, ProgressFiring, ProgressFiringChange};

/// Maximum number of printed changes of repeated firings of one step: those of ten short iterations.
const CHANGES_MAX: u32 = 20;
/// Maximum number of failures of repeated firings of one step that are printed in addition.
const FAILURES_MAX: u32 = 10;
/// Maximum number of output lines of repeated firings of one step.
const OUTPUT_MAX: u32 = 50;
/// Maximum number of progress reports of a loop whose changes are no longer printed.
const PROGRESS_REPORTS: u32 = 10;

#[derive(Debug)]
pub struct Lines {
    started_at: Option<Millis>,
    /// The flag that commands need for the same API.
    flag: String,
    steps: BTreeMap<String, StepLines>,
    output: BTreeMap<String, u32>,
}

/// The lines that were printed about a step.
#[derive(Debug, Default)]
struct StepLines {
    firings: u32,
    changes: u32,
    failures: u32,
    total: Option<u32>,
    ended: u32,
    failed: u32,
    reports: u32,
}

impl Lines {
    pub fn new(flag: &str) -> Lines {
        Lines { started_at: None, flag: flag.to_owned(), steps: BTreeMap::new(), output: BTreeMap::new() }
    }

    pub fn print_changes(&mut self, id: &str, seen: &[FollowedItem]) {
        // Entries that a fork took over belong to another execution, whose lines were printed already.
        let own = seen.iter().rposition(is_fork).unwrap_or(0);
        for seen in &seen[own..] {
            match seen {
                FollowedItem::Line(line) => self.line(id, line),
                FollowedItem::Entry(entry) => self.entry(entry),
            }
        }
    }

    fn line(&mut self, id: &str, line: &LogLine) {
        if !line.path.is_empty() {
            let printed = self.output.entry(line.step.clone()).or_default();
            *printed = printed.saturating_add(1);
            if *printed == OUTPUT_MAX + 1 {
                let (step, flag) = (&line.step, &self.flag);
                say(&format!("{step} | … more output: windlass executions logs {id} {step}{flag}"));
            }
            if *printed > OUTPUT_MAX {
                return;
            }
        }
        say(&log_line(line, Colours::Removed));
    }

    fn entry(&mut self, entry: &ProgressEntry) {
        if let ProgressChange::Started | ProgressChange::TakenOver { .. } = entry.change {
            self.started_at = Some(entry.timestamp);
        }
        if let ProgressChange::Firing { firing, change } = &entry.change
            && !self.firing(firing, change)
        {
            return;
        }
        let is_end = matches!(entry.change, ProgressChange::Ended { .. });
        let took = self.started_at.filter(|_| is_end).map(|from| duration(entry.timestamp.since(from)));
        if let Some(sentence) = sentence(entry) {
            let took = took.map(|took| format!(" after {took}")).unwrap_or_default();
            say(&format!("{sentence}{took}"));
        }
    }

    /// Counts a change of a firing. Returns false if it is not printed.
    fn firing(&mut self, firing: &ProgressFiring, change: &ProgressFiringChange) -> bool {
        let step = self.steps.entry(firing.step.clone()).or_default();
        let is_iteration = firing.role == FiringRole::Iteration;
        match change {
            ProgressFiringChange::Fired if !is_iteration => step.firings += 1,
            ProgressFiringChange::LoopStarted { total } => {
                *step = StepLines { firings: step.firings, total: *total, ..StepLines::default() };
            }
            ProgressFiringChange::Failed { .. } if is_iteration => step.failed += 1,
            ProgressFiringChange::IterationEnded => {
                step.ended += 1;
                step.report_progress(&firing.step);
            }
            any_of![ProgressFiringChange: Fired Skipped Queued Waiting Lost RetryScheduled Yielded
                AwaitingPerson Done Failed Cancelled ChildStarted ChildPaused ChildContinued] => {}
        }
        let is_repeated = is_iteration || !firing.path.is_empty() || step.firings > CHANGES_MAX;
        !is_repeated || step.takes(change)
    }
}

impl StepLines {
    /// Returns whether a change of a repeated firing is printed.
    fn takes(&mut self, change: &ProgressFiringChange) -> bool {
        let is_failure = matches!(
            change,
            ProgressFiringChange::Failed { .. } | ProgressFiringChange::RetryScheduled { .. }
        );
        let (printed, max) = match is_failure {
            true => (&mut self.failures, FAILURES_MAX),
            false => (&mut self.changes, CHANGES_MAX),
        };
        *printed = printed.saturating_add(1);
        *printed <= max
    }

    fn report_progress(&mut self, name: &str) {
        let Some(total) = self.total.filter(|_| self.changes > CHANGES_MAX) else { return };
        let due = self.ended.saturating_mul(PROGRESS_REPORTS) / total.max(1);
        if due > self.reports {
            self.reports = due;
            let failed = if self.failed > 0 { format!(", {} failed", self.failed) } else { String::new() };
            say(&format!("step {name}: {} of {} ended{failed}", self.ended, counted(total, "iteration")));
        }
    }
}

fn is_fork(seen: &FollowedItem) -> bool {
    matches!(seen, FollowedItem::Entry(entry) if matches!(entry.change, ProgressChange::TakenOver { .. }))
}
