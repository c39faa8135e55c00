//! Sub-executions. Their start, end and cancellation are mail. The id of a child is derived from its origin, so that
//! mail that is delivered twice names the same child (R15).

use super::ending::{self, EndDetails};
use super::reports;
use super::scope::{Evaluated, NoValue, View};
use super::{Accepted, Draft, context, retry};
use crate::event::{Delegated, Event};
use crate::execution::Execution;
use crate::ids::{ExecutionId, Fence, RunId};
use crate::input::{Answer, ChildResult, Rejected, WorkResult};
use crate::net::{Completion, Work};
use crate::phase::Outcome;
use crate::step_run::Kind;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::sync::Arc;
use windlass_expr::Template;
use windlass_failure::{Failure, codes};

pub(super) fn start_child(
    d: &mut Draft<'_>,
    id: RunId,
    definition: &Template,
    inputs: &Template,
) -> Evaluated<()> {
    if let Some(failure) = depth_failure(d) {
        return Err(NoValue::failed(failure));
    }
    let run = d.run(id)?;
    if run.continues.is_some() {
        return Ok(continue_child(d, id)?);
    }
    let view = View::of_run(d, run);
    let (definition, inputs) = (Arc::new(view.render(definition)?), Arc::new(view.render(inputs)?));
    Ok(spawn_child(d, id, definition, inputs, None)?)
}

/// Starts a child that takes over from an ended one, with its definition and inputs.
pub(super) fn continue_child(d: &mut Draft<'_>, id: RunId) -> Accepted {
    spawn_child(d, id, Arc::default(), Arc::default(), None)
}

/// Releases the slot of a pipeline until the other execution has ended.
pub(super) fn delegate(
    d: &mut Draft<'_>,
    id: RunId,
    (definition, inputs): (Arc<Value>, Arc<Value>),
    delegated: Delegated,
) -> Accepted {
    if let Some(failure) = depth_failure(d) {
        let Delegated { fence, patch, .. } = delegated;
        return ending::fail(d, id, failure, EndDetails { patch, ..EndDetails::under(fence) });
    }
    let patch = delegated.patch.clone();
    spawn_child(d, id, definition, inputs, Some(Box::new(delegated)))?;
    context::examine_gates(d, &patch)
}

fn depth_failure(d: &Draft<'_>) -> Option<Failure> {
    let depth_max = d.net.policy().limits.depth;
    let message = format!("executions may be nested {depth_max} deep");
    (d.head().depth >= depth_max).then(|| Failure::new(codes::LIMIT_EXCEEDED, message))
}

fn spawn_child(
    d: &mut Draft<'_>,
    id: RunId,
    definition: Arc<Value>,
    inputs: Arc<Value>,
    delegated: Option<Box<Delegated>>,
) -> Accepted {
    let run = d.run(id)?;
    let attempt = run.attempts + 1;
    let until = Execution::timeout_of(d.net, run).map(|ms| d.at.plus(ms));
    let fence = d.next_fence();
    let continues = run.continues;
    let child = derive_child_id(d.head().id, id, fence);
    d.emit(Event::ChildStarted {
        run: id,
        fence,
        attempt,
        child,
        definition,
        inputs,
        until,
        delegated,
        continues,
    })
}

/// Derives the id of a child. Every attempt, and every call of a pipeline, has a fence of its own.
fn derive_child_id(parent: ExecutionId, run: RunId, fence: Fence) -> ExecutionId {
    let mut hash = Sha256::new();
    hash.update(parent.0.to_be_bytes());
    hash.update(run.0.to_be_bytes());
    hash.update(fence.0.to_be_bytes());
    let digest: [u8; 32] = hash.finalize().into();
    let mut bytes = [0u8; 16];
    bytes.copy_from_slice(&digest[..16]);
    // The result is a UUID of version 8, which is made from a hash.
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    ExecutionId(u128::from_be_bytes(bytes))
}

pub(super) fn end_child(
    d: &mut Draft<'_>,
    id: RunId,
    fence: Fence,
    child: ExecutionId,
    result: &ChildResult,
) -> Accepted {
    let waiting = d.state.run(id).filter(|run| run.state.child() == Some((fence, child)));
    let Some(role) = waiting.map(|run| run.role.clone()) else {
        return reports::answer_repeated(d, id, fence, |answer| *answer == Answer::Child);
    };
    let details = EndDetails { reported: true, ..EndDetails::under(fence) };
    let control_continues = ending::control_continues(d, &role);
    if matches!(Execution::work_of(d.net, d.run(id)?), Work::Task { .. }) {
        return match control_continues {
            true => resume_pipeline(d, id, fence, child, result),
            false => reports::drop_run(d, id, fence, None),
        };
    }
    match result.outcome {
        // A child that is partial under its own policy has fulfilled its task.
        Outcome::Completed | Outcome::Partial if control_continues => {
            ending::succeed(d, id, result.output.clone(), details)
        }
        // After routing has stopped, no person is asked to confirm the result.
        Outcome::Completed | Outcome::Partial if is_manual(d, id)? => {
            reports::drop_run(d, id, fence, Some(WorkResult::Done { output: result.output.clone() }))
        }
        Outcome::Completed | Outcome::Partial => ending::complete(d, id, result.output.clone(), details),
        Outcome::Failed => {
            let mut failure = result
                .failure
                .clone()
                .unwrap_or_else(|| Failure::new(codes::CHILD_FAILED, "the sub-execution failed"));
            // Attempts of the step that failed there are not attempts of this one.
            failure.facts.attempt = None;
            if control_continues {
                retry::fail_attempt(d, id, failure, details)
            } else {
                ending::fail(d, id, failure, details)
            }
        }
        Outcome::Cancelled if control_continues => {
            let failure = Failure::new(codes::CANCELLED, "the sub-execution was cancelled");
            ending::fail(d, id, failure, details)
        }
        Outcome::Cancelled => reports::drop_run(d, id, fence, Some(WorkResult::Stopped)),
    }
}

/// Records whether only people can continue a child. News of an earlier child changes nothing.
pub(super) fn note_pause(d: &mut Draft<'_>, id: RunId, of: (Fence, ExecutionId), paused: bool) -> Accepted {
    let state = d.state.run(id).map(|run| &run.state).filter(|state| state.child() == Some(of));
    if state.is_none_or(|state| (state.kind() == Kind::PausedChild) == paused) {
        return Ok(());
    }
    d.emit(Event::ChildPaused { run: id, paused })
}

/// Stores the result next to the pipeline's cursor, in the format of the worker protocol.
fn resume_pipeline(
    d: &mut Draft<'_>,
    id: RunId,
    fence: Fence,
    child: ExecutionId,
    result: &ChildResult,
) -> Accepted {
    let mut end =
        json!({ "execution": child.to_string(), "status": result.outcome, "output": result.output });
    if let (Outcome::Failed, Some(failure)) = (result.outcome, &result.failure) {
        end["failure"] = json!(failure);
    }
    let then = d.run(id)?.cursor.clone();
    d.emit(Event::Returned { run: id, fence, cursor: Arc::new(json!({ "child": end, "then": then })) })
}

fn is_manual(d: &Draft<'_>, id: RunId) -> Result<bool, Rejected> {
    Ok(d.net.step(d.run(id)?.step).completion != Completion::Auto)
}
