//! People: approvals, and work whose end a person confirms. The kernel knows a completion token only by its fence;
//! the server verifies the token itself.

use super::Draft;
use super::ending::{self, Told};
use super::reports;
use crate::event::{Event, ManualNote, ManualOutcome};
use crate::ids::{Fence, RunId};
use crate::input::{Answer, Rejected};
use crate::net::Work;
use crate::step_run::RunState;
use serde_json::{Value, json};
use std::sync::Arc;
use windlass_failure::{ErrorClass, Failure, codes};

pub(super) fn ask(
    d: &mut Draft<'_>,
    id: RunId,
    output: Arc<Value>,
    told: Told,
    deadline_ms: Option<u64>,
) -> Result<(), Rejected> {
    let deadline = deadline_ms.map(|ms| d.at.plus(ms));
    let Told { fence: answered, patch, times, .. } = told;
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
    super::context::reexamine(d, &patch)
}

/// Completes a manual step. The checks are made in this order: existence, replay, state, token.
pub(super) fn complete(
    d: &mut Draft<'_>,
    id: RunId,
    fence: Fence,
    note: &ManualNote,
) -> Result<(), Rejected> {
    let output = match d.state.run(id).map(|run| &run.state) {
        Some(RunState::Manual { fence: open, output, .. }) if *open == fence => output.clone(),
        _ => return reports::repeated(d, id, fence, |answer| *answer == Answer::Manual(note.clone())),
    };
    d.emit(Event::CompletedManually { run: id, fence, by: Box::new(note.clone()) })?;
    let told = Told::under(fence);
    match note.outcome {
        ManualOutcome::Succeeded => {
            let output =
                if is_approval(d, id)? { Arc::new(json!({ "approved_by": note.actor })) } else { output };
            ending::complete(d, id, output, told)
        }
        ManualOutcome::Failed => {
            ending::fail(d, id, refusal(codes::REJECTED, format!("{} ended it as failed", note.actor)), told)
        }
        ManualOutcome::Cancelled => {
            ending::fail(d, id, refusal(codes::CANCELLED, format!("{} cancelled it", note.actor)), told)
        }
    }
}

fn is_approval(d: &Draft<'_>, id: RunId) -> Result<bool, Rejected> {
    Ok(matches!(d.net.step(d.run(id)?.step).work, Work::Approval { .. }))
}

/// Returns the failure for a negative decision of a person, which is final and not retried.
fn refusal(code: &str, message: String) -> Failure {
    Failure::new(ErrorClass::Policy, code, message)
}
