//! The end of step-runs: counters, owed compensation, newest firings. Functions in the past tense apply the event of
//! the same name.

use super::{Applied, branches, runs, tokens};
use crate::any_of;
use crate::event::Gone;
use crate::execution::{Execution, FAILURE_NOTES_MAX, FailureNote, Finale};
use crate::ids::{Fence, Path, RunId, StepId};
use crate::net::Net;
use crate::step_run::{Patch, Role, RunState, Signal, StepRun};
use std::cmp::Reverse;
use std::sync::Arc;
use windlass_failure::Failure;

/// Removes an ended step-run from the live ones.
fn retire_run(
    state: &mut Execution<'_>,
    net: &Net,
    id: RunId,
    fence: Option<Fence>,
    signal: Signal,
) -> Result<Box<StepRun>, String> {
    let run = state.runs.remove(&id).ok_or_else(|| format!("step-run {id} ends but is not live (K2)"))?;
    let kind = run.state.kind();
    if kind.after(signal) != Some(None) {
        return Err(format!("step-run {id} is {kind:?}: no {signal:?}"));
    }
    if signal == Signal::End {
        runs::check_fence(&run, fence)?;
    }
    match &run.state {
        RunState::Ready { .. } => {
            state.ready.remove(&runs::ready_key(net, id, &run));
        }
        RunState::Looping(repeat) => {
            if signal == Signal::End && repeat.open > 0 {
                return Err(format!("step-run {id} ends with open iterations"));
            }
            state.hungry.remove(&id);
            state.regions.remove(&(run.step, run.path.clone()));
        }
        any_of![RunState: Waiting Delayed Offered Backoff Manual Child] => {}
    }
    *state.head.census.count_mut(kind) -= 1;
    if run.role == Role::Routed {
        branches::leave(state, net, run.step)?;
    }
    Ok(run)
}

pub(super) fn done(
    state: &mut Execution<'_>,
    net: &Net,
    id: RunId,
    fence: Option<Fence>,
    patch: &Patch,
) -> Applied {
    let run = retire_run(state, net, id, fence, Signal::End)?;
    tokens::merge_patch(state, patch);
    let step = net.step(run.step);
    match &run.role {
        Role::Hook { .. } => {
            state.head.counts.compensated += 1;
            return Ok(());
        }
        Role::Iteration { of, .. } => {
            record_write(state, *of, patch);
            return Ok(());
        }
        Role::Routed | Role::Final | Role::Tool { .. } => {}
    }
    state.head.counts.completed += 1;
    state.head.counts.completed_without_triggers += u64::from(!step.trigger);
    if net.is_tracked(run.step) {
        state.latest.insert((run.step, run.path.clone()), id);
    }
    owe_compensation(state, net, run.step, id);
    if run.role == Role::Routed {
        resolve_member(state, net, run.step, &run.path, false)?;
    }
    Ok(())
}

/// Records that a completed step with a hook may have to be compensated.
pub(super) fn owe_compensation(state: &mut Execution<'_>, net: &Net, step: StepId, id: RunId) {
    let spec = net.step(step);
    if spec.compensation.is_some() {
        state.owed.insert(Reverse(state.head.counts.completed), (id, step));
    } else if spec.side_effecting && net.policy().compensate {
        state.head.counts.non_compensable += 1;
    }
}

/// Records the context values that a parallel iteration wrote, unless the loop has been drained.
pub(super) fn record_write(state: &mut Execution<'_>, of: RunId, patch: &Patch) {
    if !patch.is_empty()
        && let Ok(repeat) = runs::loop_state(state, of)
    {
        repeat.writes.extend(patch.iter().map(|(key, value)| (key.clone(), value.clone())));
    }
}

/// Content of `Event::Failed` in addition to the step-run and its patch.
#[derive(Clone, Copy)]
pub(super) struct FailedEnd<'e> {
    pub(super) failure: &'e Failure,
    pub(super) handled: bool,
    pub(super) partial: bool,
    pub(super) deferred: bool,
}

pub(super) fn failed(
    state: &mut Execution<'_>,
    net: &Net,
    id: RunId,
    fence: Option<Fence>,
    FailedEnd { failure, handled, partial, deferred }: FailedEnd<'_>,
    patch: &Patch,
) -> Applied {
    let run = retire_run(state, net, id, fence, Signal::End)?;
    tokens::merge_patch(state, patch);
    state.head.last_failed = Some(id);
    match run.role {
        Role::Hook { .. } => {
            state.head.counts.compensation_failed += 1;
            return Ok(());
        }
        Role::Iteration { .. } => {}
        Role::Final => state.head.finale = Finale::Failed,
        Role::Routed => {
            state.head.counts.unhandled += u64::from(!handled && !deferred);
            resolve_member(state, net, run.step, &run.path, !handled)?;
        }
        // The agent receives the failure and decides how to continue.
        Role::Tool { .. } => {}
    }
    if partial && net.is_tracked(run.step) {
        state.latest.insert((run.step, run.path.clone()), id);
    }
    state.head.counts.failed += u64::from(!matches!(run.role, Role::Iteration { .. }));
    // The first unhandled failure is the reason of the end, however many were handled before it.
    let is_reason = || !handled && state.head.failures.iter().all(|note| note.handled);
    if !deferred && (state.head.failures.len() < FAILURE_NOTES_MAX || is_reason()) {
        let note = FailureNote { step: run.step, handled, failure: failure.clone() };
        Arc::make_mut(&mut state.head.failures).push(note);
    }
    Ok(())
}

pub(super) fn dropped(
    state: &mut Execution<'_>,
    net: &Net,
    id: RunId,
    fence: Option<Fence>,
    how: Gone,
) -> Applied {
    let run = retire_run(state, net, id, fence, Signal::Drop)?;
    if let Role::Hook { .. } = run.role {
        state.head.counts.compensation_not_run += 1;
    }
    if how == Gone::Skipped {
        state.head.counts.skipped += 1;
    }
    Ok(())
}

/// Marks a step of a loop's body as settled for its iteration.
pub(super) fn resolve_member(
    state: &mut Execution<'_>,
    net: &Net,
    step: StepId,
    path: &Path,
    failed: bool,
) -> Applied {
    let Some(region) = net.step(step).region else { return Ok(()) };
    let index = path.index().ok_or("a step of a loop's body without an iteration")?;
    // A drain removes the loop, and its iterations are no longer counted.
    let Some(loop_run) = state.regions.get(&(region, path.parent())).copied() else { return Ok(()) };
    let scope = state.scopes.get_mut(&(loop_run, index)).ok_or("an iteration that is not open")?;
    if scope.open == 0 {
        return Err("a step of an iteration is settled twice".into());
    }
    scope.open -= 1;
    scope.failed |= failed;
    Ok(())
}
