//! People: approvals, and work whose end a person confirms. The kernel knows a completion token only by its fence;
//! the server verifies the token itself.

use super::ending::{self, EndDetails};
use super::reports;
use super::{Accepted, Draft};
use crate::event::{Event, ManualNote, ManualOutcome};
use crate::ids::{Fence, RunId};
use crate::input::{Answer, Rejected};
use crate::net::Work;
use crate::step_run::RunState;
use serde_json::{Value, json};
use std::sync::Arc;
use windlass_failure::{Failure, codes};

pub(super) fn ask_person(
    d: &mut Draft<'_>,
    id: RunId,
    output: Arc<Value>,
    details: EndDetails,
    deadline_ms: Option<u64>,
) -> Accepted {
    let deadline = deadline_ms.map(|ms| d.at.plus(ms));
    let EndDetails { fence: answered, patch, times, .. } = details;
    let fence = d.next_fence();
    d.emit(Event::AwaitingManual {
        run: id,
        fence,
        answered,
        output,
        patch: patch.clone(),
        deadline,
        times,
    })?;
    super::context::examine_gates(d, &patch)
}

/// Records the answer of a person, and ends the step-run if the note says so. The checks are made in this order:
/// existence, replay, state, token, version of the policy check.
pub(super) fn complete(
    d: &mut Draft<'_>,
    id: RunId,
    fence: Fence,
    note: &ManualNote,
    seen: Option<u64>,
) -> Accepted {
    let output = if let Some(RunState::Manual { fence: open, output, .. }) =
        d.state.run(id).map(|run| &run.state)
        && *open == fence
    {
        output.clone()
    } else {
        return reports::answer_repeated(d, id, fence, |answer| *answer == Answer::Manual(note.clone()));
    };
    if seen.is_some_and(|seen| seen != d.head().version) {
        return Err(d.conflict("it has changed since the policy was checked; send the signal again"));
    }
    d.emit(Event::CompletedManually { run: id, fence, by: Box::new(note.clone()) })?;
    if !note.effect.is_end() {
        return Ok(());
    }
    let details = EndDetails::under(fence);
    match note.outcome {
        ManualOutcome::Succeeded => {
            let output =
                if is_approval(d, id)? { Arc::new(json!({ "approved_by": note.actor })) } else { output };
            ending::complete(d, id, output, details)
        }
        // A negative decision of a person is final: both codes are of a class that is not retried.
        ManualOutcome::Failed => {
            let message = format!("{} ended it as failed", note.actor);
            ending::fail(d, id, Failure::new(codes::REJECTED, message), details)
        }
        ManualOutcome::Cancelled => {
            let message = format!("{} cancelled it", note.actor);
            ending::fail(d, id, Failure::new(codes::CANCELLED, message), details)
        }
    }
}

fn is_approval(d: &Draft<'_>, id: RunId) -> Result<bool, Rejected> {
    Ok(matches!(d.net.step(d.run(id)?.step).work, Work::Approval { .. }))
}
