//! Retry: a new execution that takes over what an ended one completed and runs the rest (R12). [`plan_retry`] reads the
//! journal of the ended execution and decides per firing; [`carry_over`] makes the new execution by that plan. Its
//! journal begins with the records that were taken over, and `Forked` is the first record of its own. Everything is pure:
//! the kernel replays the records that a plan rewrites, and decides what follows them.

#![warn(clippy::wildcard_enum_match_arm)]

mod judge;
mod past;
mod rewrite;

use judge::{Judge, Verdict};
use past::{Firing, FiringEnd, Past, expand_imports};
use rewrite::{Rewritten, rewrite};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use windlass_kernel::{
    Args, Decision, ExecutionId, Facet, Given, LifeChange, Net, NewExecution, Outcome, Path, Phase, Record,
    Rejected, Role, RunChange, RunId, StepId, TakenOver, any_of,
};

/// Point at which a retry begins, if a caller names one. Numbers are those of the ended execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryPoint {
    /// A step and everything after it; not in `each` nets.
    Step(StepId),
    /// One firing and everything after it; only in `each` nets.
    Firing(RunId),
}

/// Reason for which a firing is run again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RepeatReason {
    Failed,
    /// The execution ended before the firing did.
    NotFinished,
    /// The caller named it.
    Requested,
    /// Compensation undid it.
    Undone,
    /// It follows this step of the ended execution, which is run again.
    Follows(StepId),
    /// The definition changed in a way that needs it.
    Changed,
}

/// Reason for which a step cannot be taken over under a changed definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusedStep {
    /// The definition does not have a step of this name.
    Removed,
    /// The step is in another loop, or no longer in one.
    Moved,
    /// The arcs that led to the step changed.
    Rerouted,
}

/// A firing of the ended execution, as a plan names it.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedFiring {
    /// The step in the ended execution's net.
    pub step: StepId,
    /// Number of the firing, from 1.
    pub firing: u32,
    pub path: Path,
}

/// Treatment of the work of an ended execution in a retry.
#[derive(Debug, Clone, PartialEq)]
pub struct RetryPlan {
    /// Completed firings that are taken over. A completed loop is one of them; its iterations are not listed.
    pub imports: Vec<PlannedFiring>,
    /// Firings that are run again, and the failed child that the retry continues.
    pub runs: Vec<(PlannedFiring, RepeatReason, Option<ExecutionId>)>,
    /// Steps that prevent the retry; with any of them nothing may start.
    pub refused: Vec<(StepId, RefusedStep)>,
    taken_over: TakenOver,
}

impl RetryPlan {
    /// Returns the records that the new execution takes over.
    #[must_use]
    pub fn records(&self) -> &[Record] {
        &self.taken_over.records
    }

    #[must_use]
    pub fn into_records(self) -> Vec<Record> {
        self.taken_over.records
    }
}

/// Rejects an execution that has not ended, and one that completed unless the retry names where it begins.
pub fn can_be_retried(journal: &[Record], from: Option<RetryPoint>) -> Result<(), Rejected> {
    let last = journal.last().map(|record| record.event.facet());
    let Some(Facet::Life(LifeChange::Ended(outcome))) = last else {
        return Err(Rejected::Conflict { phase: Phase::Running, why: "it has not ended" });
    };
    if outcome == Outcome::Completed && from.is_none() {
        let why = "only a failed, partial or cancelled execution can be retried as a whole; name a step to \
                   run a completed one again from there";
        return Err(Rejected::Conflict { phase: Phase::Ended(outcome), why });
    }
    Ok(())
}

/// Decides for every firing of an ended execution whether a retry under `new` takes it over. Completed firings are
/// taken over, with handled failures and skips, unless something before them runs again. A loop that failed continues
/// with the iterations that did not succeed.
pub fn plan_retry(
    old: &Net,
    journal: &[Record],
    new: &Net,
    from: Option<RetryPoint>,
) -> Result<RetryPlan, Rejected> {
    can_be_retried(journal, from)?;
    if old.policy().join != new.policy().join {
        return Err(Rejected::Malformed("the new definition is of another dialect"));
    }
    let expanded = expand_imports(journal);
    let journal = expanded.as_deref().unwrap_or(journal);
    let past = Past::read(old, journal)?;
    let (at, step) = match from {
        Some(RetryPoint::Firing(run)) => (Some(find_fork_point(&past, run)?), None),
        Some(RetryPoint::Step(step)) if old.knows(step) && old.step(step).on_demand => {
            return Err(Rejected::Malformed("only agents run that step; retry from the agent"));
        }
        Some(RetryPoint::Step(step)) if old.knows(step) && new.find(&old.step(step).name).is_some() => {
            (None, Some(step))
        }
        Some(RetryPoint::Step(step)) => return Err(Rejected::UnknownStep(step)),
        None => (None, None),
    };
    let judge = Judge::new(&past, (old, new), at, step);
    let refused: Vec<_> = judge.refused.iter().map(|(step, why)| (*step, *why)).collect();
    let taken_over = match refused.is_empty() {
        true => take_over(&judge, rewrite(&judge, journal)?, journal),
        false => TakenOver::default(),
    };
    let (imports, runs) = (list_imports(&judge), list_runs(&judge));
    Ok(RetryPlan { imports, runs, refused, taken_over })
}

/// Returns the firing that a token fired; an iteration belongs to the firing of its loop.
fn find_fork_point(past: &Past, run: RunId) -> Result<RunId, Rejected> {
    let firing = past.firings.get(&run).ok_or(Rejected::UnknownRun(run))?;
    match firing.role {
        Role::Routed => Ok(run),
        Role::Iteration { of, .. } => find_fork_point(past, of),
        Role::Final | Role::Hook { .. } | Role::Tool { .. } => {
            Err(Rejected::Malformed("no token fired that step-run, so a retry cannot begin there"))
        }
    }
}

fn take_over(judge: &Judge<'_>, rewritten: Rewritten, journal: &[Record]) -> TakenOver {
    let Rewritten { records, state, unrouted, unended } = rewritten;
    let mut found: BTreeMap<RunId, (Args, Option<Arc<Value>>)> =
        unrouted.into_iter().map(|run| (run, (None, None))).collect();
    let journal = if found.is_empty() { &[] } else { journal };
    for (run, change) in journal.iter().filter_map(|record| record.event.run_change()) {
        let Some((found_args, found_output)) = found.get_mut(&run) else { continue };
        match change {
            RunChange::Fired { args, .. } => found_args.clone_from(args),
            RunChange::Done(output) => *found_output = Some(output.clone()),
            any_of![RunChange: Skipped LoopStarted IterationEnded Delayed Offered AwaitingManual ChildStarted Returned
                Lost Retried Failed Dropped Routed AgentDecided Internal] => {}
        }
    }
    let unrouted = found.into_iter().filter_map(|(run, (args, output))| {
        let firing = judge.past.firings.get(&run)?;
        let step = judge.steps[firing.step.index()]?;
        Some((step, firing.path.clone(), args, output?, run))
    });
    let unrouted = unrouted.collect();
    TakenOver { records, state, unrouted, unended, generation: judge.past.generation + 1 }
}

fn planned(firing: &Firing) -> PlannedFiring {
    PlannedFiring { step: firing.step, firing: firing.number, path: firing.path.clone() }
}

fn list_imports(judge: &Judge<'_>) -> Vec<PlannedFiring> {
    let listed = judge.past.firings.iter().filter(|(run, firing)| {
        let is_inside_kept = judge
            .past
            .iteration_of(judge.old, firing)
            .is_some_and(|(of, _)| judge.verdict(of) == Verdict::Kept);
        judge.verdict(**run) == Verdict::Kept && firing.end != FiringEnd::Skipped && !is_inside_kept
    });
    listed.map(|(_, firing)| planned(firing)).collect()
}

fn list_runs(judge: &Judge<'_>) -> Vec<(PlannedFiring, RepeatReason, Option<ExecutionId>)> {
    let mut listed = Vec::new();
    for (run, firing) in &judge.past.firings {
        let is_inside_repeated = judge
            .past
            .iteration_of(judge.old, firing)
            .is_some_and(|(of, _)| matches!(judge.verdict(of), Verdict::Again(_)));
        let is_gone = judge.steps[firing.step.index()].is_none();
        if firing.end == FiringEnd::Skipped || is_inside_repeated || is_gone {
            continue;
        }
        match judge.verdict(*run) {
            Verdict::Again(reason) => listed.push((planned(firing), reason, None)),
            Verdict::Continued(child, _) => {
                listed.push((planned(firing), RepeatReason::Failed, Some(child)));
            }
            Verdict::Kept | Verdict::Resumed | Verdict::Dropped => {}
        }
    }
    listed
}

/// Decides the first records of the execution that a plan describes; they follow the records of the plan. A plan with
/// refused steps creates nothing.
pub fn carry_over(
    plan: &RetryPlan,
    net: &Net,
    new: &NewExecution,
    given: &Given<'_>,
) -> Result<Decision, Rejected> {
    if !plan.refused.is_empty() {
        return Err(Rejected::Malformed("a completed step cannot be taken over"));
    }
    windlass_kernel::carry_over(&plan.taken_over, net, new, given)
}
