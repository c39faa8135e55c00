//! The end of a step-run, and its consequences by the role of the step-run.

use super::routing;
use super::scope::{NoValue, RunEnd};
use super::{Accepted, Draft, cancel, context, loops, manual};
use crate::event::{BranchEnd, Cause, Event, Times};
use crate::ids::{Fence, RunId};
use crate::net::{Completion, FailureMode};
use crate::phase::{Outcome, Phase};
use crate::step_run::{Patch, Role};
use serde_json::Value;
use std::sync::Arc;
use windlass_failure::{Failure, codes};

/// Details of an attempt in addition to its result.
#[derive(Debug, Clone, Default)]
pub(super) struct EndDetails {
    pub(super) fence: Option<Fence>,
    pub(super) patch: Patch,
    pub(super) times: Option<Times>,
    pub(super) metadata: Option<Arc<Value>>,
    /// True if a worker reported the end itself.
    pub(super) reported: bool,
    /// Result of the work, if a later part of the step failed.
    pub(super) output: Option<Arc<Value>>,
    /// True if `output` is the part of the result that a failed loop has.
    pub(super) partial: bool,
    /// Checkpoint that was stored with the lease.
    pub(super) cursor: Option<Arc<Value>>,
}

impl EndDetails {
    pub(super) fn under(fence: Fence) -> EndDetails {
        EndDetails { fence: Some(fence), ..EndDetails::default() }
    }
}

/// Handles work that succeeded. With manual completion the step-run has not ended yet.
pub(super) fn succeed(d: &mut Draft<'_>, id: RunId, output: Arc<Value>, details: EndDetails) -> Accepted {
    let run = d.run(id)?;
    let hook = matches!(run.role, Role::Hook { .. });
    if let Role::Iteration { of, .. } = run.role
        && let Some(key) = loops::find_conflict(d, of, &details.patch)
    {
        let message = format!("another iteration set `{key}` to a different value");
        let failure = Failure::new(codes::CONTEXT_CONFLICT, message);
        return fail(d, id, failure, EndDetails { output: Some(output), patch: Patch::new(), ..details });
    }
    match &d.net.step(run.step).completion {
        Completion::Manual { deadline_ms } if !hook => {
            manual::ask_person(d, id, output, details, *deadline_ms)
        }
        Completion::Manual { .. } | Completion::Auto => complete(d, id, output, details),
    }
}

/// Ends a step-run as completed, unless a guard of its arcs cannot be evaluated.
pub(super) fn complete(d: &mut Draft<'_>, id: RunId, output: Arc<Value>, details: EndDetails) -> Accepted {
    let run = d.run(id)?;
    match run.role.clone() {
        Role::Routed if d.is_open() => {
            match routing::choose_route(d, run, RunEnd::Done(&output), &details.patch) {
                Ok(route) => complete_routed(d, id, output, details, route),
                Err(NoValue::Rejected(rejected)) => Err(rejected),
                Err(NoValue::Failed(failure)) => {
                    fail(d, id, *failure, EndDetails { output: Some(output), ..details })
                }
            }
        }
        Role::Iteration { of, index } => {
            emit_done(d, id, output, details)?;
            loops::end_iteration(d, of, index, false)
        }
        Role::Routed | Role::Final | Role::Hook { .. } | Role::Tool { .. } => {
            emit_done(d, id, output, details)
        }
    }
}

fn complete_routed(
    d: &mut Draft<'_>,
    id: RunId,
    output: Arc<Value>,
    details: EndDetails,
    route: routing::Route,
) -> Accepted {
    let run = d.run(id)?;
    let (step, path) = (run.step, run.path.clone());
    emit_done(d, id, output, details)?;
    let dead_end = route.end == BranchEnd::DeadEnd;
    d.emit(Event::Routed { run: id, step, path: path.clone(), emitted: route.emitted, end: route.end })?;
    if dead_end && d.net.policy().failure == FailureMode::FailFast {
        let message = format!("no arc of step `{}` matched", d.net.step(step).name);
        let failure = Failure::new(codes::NO_NEXT, message);
        let failure = failure.of_step(&d.net.step(step).name, 1);
        return cancel::drain(d, Outcome::Failed, Cause::Failure, Some(failure));
    }
    loops::settle_member(d, step, &path)
}

/// Records the end and examines the gates that read what the step-run wrote.
fn emit_done(d: &mut Draft<'_>, id: RunId, output: Arc<Value>, details: EndDetails) -> Accepted {
    let EndDetails { fence, patch, times, metadata, .. } = details;
    d.emit(Event::Done { run: id, fence, output, patch: patch.clone(), times, metadata })?;
    context::examine_gates(d, &patch)
}

/// Ends a step-run as failed, without another attempt.
pub(super) fn fail(d: &mut Draft<'_>, id: RunId, failure: Failure, details: EndDetails) -> Accepted {
    let run = d.run(id)?;
    match run.role.clone() {
        Role::Routed if d.is_open() => fail_routed(d, id, failure, details),
        Role::Iteration { of, index } => {
            emit_failed(d, id, failure, details, Handling { handled: false, deferred: true })?;
            loops::end_iteration(d, of, index, true)
        }
        Role::Routed | Role::Final | Role::Hook { .. } => {
            emit_failed(d, id, failure, details, Handling::default())
        }
        Role::Tool { .. } => {
            emit_failed(d, id, failure, details, Handling { handled: false, deferred: true })
        }
    }
}

fn fail_routed(d: &mut Draft<'_>, id: RunId, failure: Failure, details: EndDetails) -> Accepted {
    let run = d.run(id)?;
    let (step, path, attempt) = (run.step, run.path.clone(), run.attempts + 1);
    let partial = details.output.as_deref().filter(|_| details.partial);
    let end = RunEnd::Failed { failure: &failure, partial };
    let route = routing::route_failure(d, run, end, &details.patch)?;
    let deferred = !route.handled && d.net.handles_outside(step);
    emit_failed(d, id, failure.clone(), details, Handling { handled: route.handled, deferred })?;
    if !route.handled && !deferred && d.net.policy().failure == FailureMode::FailFast {
        let failure = failure.of_step(&d.net.step(step).name, attempt);
        return cancel::drain(d, Outcome::Failed, Cause::Failure, Some(failure));
    }
    d.emit(Event::Routed { run: id, step, path: path.clone(), emitted: route.emitted, end: route.end })?;
    loops::settle_member(d, step, &path)
}

/// Whether a failure is handled by an arc of the step, or left to the loop around it or to the agent that called it.
#[derive(Debug, Clone, Copy, Default)]
struct Handling {
    handled: bool,
    deferred: bool,
}

fn emit_failed(
    d: &mut Draft<'_>,
    id: RunId,
    failure: Failure,
    details: EndDetails,
    Handling { handled, deferred }: Handling,
) -> Accepted {
    let EndDetails { fence, patch, times, metadata, reported, output, partial, .. } = details;
    d.emit(Event::Failed {
        run: id,
        fence,
        failure: Box::new(failure),
        handled,
        reported,
        output,
        partial,
        deferred,
        patch: patch.clone(),
        times,
        metadata,
    })?;
    context::examine_gates(d, &patch)
}

/// Returns whether control continues after an end of this role; otherwise the end is only recorded.
pub(super) fn control_continues(d: &Draft<'_>, role: &Role) -> bool {
    match d.phase() {
        Phase::Running | Phase::Paused => true,
        Phase::Compensating => matches!(role, Role::Hook { .. }),
        Phase::Finalizing => !matches!(role, Role::Hook { .. }),
        Phase::Blank | Phase::Queued | Phase::Starting | Phase::Draining | Phase::Ended(_) => false,
    }
}
