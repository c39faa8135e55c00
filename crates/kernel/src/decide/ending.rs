//! The end of a step-run, and its consequences by the role of the step-run.

use super::routing;
use super::scope::{End, Trouble};
use super::{Draft, cancel, context, loops, manual};
use crate::event::{BranchEnd, Cause, Event, Times};
use crate::ids::{Fence, RunId};
use crate::input::Rejected;
use crate::net::{Completion, FailureMode};
use crate::phase::{Outcome, Phase};
use crate::step_run::{Patch, Role};
use serde_json::Value;
use std::sync::Arc;
use windlass_failure::{ErrorClass, Failure, codes};

/// Details of an attempt in addition to its result.
#[derive(Debug, Clone, Default)]
pub(super) struct Told {
    pub(super) fence: Option<Fence>,
    pub(super) patch: Patch,
    pub(super) times: Option<Times>,
    pub(super) metadata: Option<Arc<Value>>,
    /// True if a worker reported the end itself.
    pub(super) reported: bool,
    /// Result of the work, if a later part of the step failed.
    pub(super) output: Option<Arc<Value>>,
    /// Checkpoint that was stored with the lease.
    pub(super) cursor: Option<Arc<Value>>,
}

impl Told {
    pub(super) fn under(fence: Fence) -> Told {
        Told { fence: Some(fence), ..Told::default() }
    }
}

/// Handles work that succeeded. With manual completion the step-run has not ended yet.
pub(super) fn succeed(d: &mut Draft<'_>, id: RunId, output: Arc<Value>, told: Told) -> Result<(), Rejected> {
    let run = d.run(id)?;
    let hook = matches!(run.role, Role::Hook { .. });
    if let Role::Iteration { of, .. } = run.role
        && let Some(key) = loops::conflicting_write(d, of, &told.patch)
    {
        let message = format!("another iteration set `{key}` to something else");
        let failure = Failure::new(ErrorClass::Conflict, codes::CONTEXT_CONFLICT, message);
        return fail(d, id, failure, Told { output: Some(output), patch: Patch::new(), ..told });
    }
    match &d.net.step(run.step).completion {
        Completion::Manual { deadline_ms } if !hook => manual::ask(d, id, output, told, *deadline_ms),
        Completion::Manual { .. } | Completion::Auto => complete(d, id, output, told),
    }
}

/// Ends a step-run as completed, unless a guard of its arcs cannot be evaluated.
pub(super) fn complete(d: &mut Draft<'_>, id: RunId, output: Arc<Value>, told: Told) -> Result<(), Rejected> {
    let run = d.run(id)?;
    match run.role.clone() {
        Role::Routed if d.is_open() => match routing::choose(d, run, End::Done(&output), &told.patch) {
            Ok(route) => complete_routed(d, id, output, told, route),
            Err(Trouble::Rejected(rejected)) => Err(rejected),
            Err(Trouble::Failed(failure)) => fail(d, id, *failure, Told { output: Some(output), ..told }),
        },
        Role::Iteration { of, index } => {
            loops::keep_result(d, of, index, &output);
            done(d, id, output, told)?;
            loops::iteration_ended(d, of, index, false)
        }
        Role::Routed | Role::Final | Role::Hook { .. } | Role::Tool { .. } => done(d, id, output, told),
    }
}

fn complete_routed(
    d: &mut Draft<'_>,
    id: RunId,
    output: Arc<Value>,
    told: Told,
    route: routing::Route,
) -> Result<(), Rejected> {
    let run = d.run(id)?;
    let (step, path) = (run.step, run.path.clone());
    done(d, id, output, told)?;
    let dead_end = route.end == BranchEnd::DeadEnd;
    d.emit(Event::Routed { run: id, step, path: path.clone(), emitted: route.emitted, end: route.end })?;
    if dead_end && d.net.policy().failure == FailureMode::FailFast {
        let message = format!("no arc of step `{}` matched", d.net.step(step).name);
        let failure = Failure::new(ErrorClass::Validation, codes::NO_NEXT, message);
        return cancel::drain(d, Outcome::Failed, Cause::Failure, Some(failure));
    }
    loops::member_settled(d, step, &path)
}

/// Records the end and examines the gates that read what the step-run wrote.
fn done(d: &mut Draft<'_>, id: RunId, output: Arc<Value>, told: Told) -> Result<(), Rejected> {
    let Told { fence, patch, times, metadata, .. } = told;
    d.emit(Event::Done { run: id, fence, output, patch: patch.clone(), times, metadata })?;
    context::reexamine(d, &patch)
}

/// Ends a step-run as failed, without another attempt.
pub(super) fn fail(d: &mut Draft<'_>, id: RunId, failure: Failure, told: Told) -> Result<(), Rejected> {
    let run = d.run(id)?;
    match run.role.clone() {
        Role::Routed if d.is_open() => fail_routed(d, id, failure, told),
        Role::Iteration { of, index } => {
            failed(d, id, failure, told, false)?;
            loops::iteration_ended(d, of, index, true)
        }
        Role::Routed | Role::Final | Role::Hook { .. } | Role::Tool { .. } => {
            failed(d, id, failure, told, false)
        }
    }
}

fn fail_routed(d: &mut Draft<'_>, id: RunId, failure: Failure, told: Told) -> Result<(), Rejected> {
    let run = d.run(id)?;
    let (step, path) = (run.step, run.path.clone());
    let route = routing::after_failure(d, run, &failure, &told.patch)?;
    failed(d, id, failure.clone(), told, route.handled)?;
    if !route.handled && d.net.policy().failure == FailureMode::FailFast {
        return cancel::drain(d, Outcome::Failed, Cause::Failure, Some(failure));
    }
    d.emit(Event::Routed { run: id, step, path: path.clone(), emitted: route.emitted, end: route.end })?;
    loops::member_settled(d, step, &path)
}

fn failed(d: &mut Draft<'_>, id: RunId, failure: Failure, told: Told, handled: bool) -> Result<(), Rejected> {
    let Told { fence, patch, times, metadata, reported, output, .. } = told;
    d.emit(Event::Failed {
        run: id,
        fence,
        failure,
        handled,
        reported,
        output,
        patch: patch.clone(),
        times,
        metadata,
    })?;
    context::reexamine(d, &patch)
}

/// Returns whether control continues after an end of this role; otherwise the end is only recorded.
pub(super) fn leads_on(d: &Draft<'_>, role: &Role) -> bool {
    match d.phase() {
        Phase::Running | Phase::Paused => true,
        Phase::Compensating => matches!(role, Role::Hook { .. }),
        Phase::Finalizing => !matches!(role, Role::Hook { .. }),
        Phase::Blank | Phase::Queued | Phase::Starting | Phase::Draining | Phase::Ended(_) => false,
    }
}
