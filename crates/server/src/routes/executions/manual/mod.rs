//! `POST /api/v1/executions/{executionId}/actions/{actionId}/complete`: a person ends an approval or a manual step.

mod judge;
mod signal;

use super::control::send_input;
use super::{TAG, stored_of, view_execution};
use crate::app::App;
use crate::auth::{Caller, Permission};
use crate::body::JsonBody;
use crate::ids;
use crate::loaded::LoadedExecution;
use crate::problem::{Problem, ProblemCode, Refused};
use crate::routes::shared::{BodyRefusals, Refusals};
use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use judge::{Acceptance, Judged, judge};
use serde::Serialize;
use serde_json::{Map, Value, json};
use signal::{CompletionSignal, Signal};
use std::sync::Arc;
use utoipa::ToSchema;
use windlass_kernel::{ExecutionId, Input, ManualOutcome, NoteEffect};
use windlass_views::{execution_id, status};

/// Times that a signal is judged. Each time, the execution has changed since it was read; in an execution that changes faster
/// than this, the caller may retry.
const ATTEMPTS_MAX: usize = 8;

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Completed {
    execution_id: String,
    action_id: String,
    /// The accepted outcome.
    outcome: String,
    /// Status of the execution.
    status: String,
    /// Present while the step needs more approvals.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    approvals: Option<Approvals>,
}

/// Approvals of a step that needs several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Approvals {
    given: u32,
    needed: u32,
}

/// End an approval or a manual step
///
/// The body is the completion signal; approvals also accept `outcome` with `notes` alone. A repeated signal with the same
/// outcome changes nothing; another outcome is a conflict. A refused signal changes nothing, and its token stays valid.
#[utoipa::path(post, path = "/api/v1/executions/{executionId}/actions/{actionId}/complete", tag = TAG,
    security(("bearer" = [])),
    params(("executionId" = String, Path), ("actionId" = String, Path, description = "The id of the node")),
    request_body = CompletionSignal,
    responses((status = 200, body = Completed),
        (status = 202, body = Completed, description = "The approval was counted; the step needs more of them"),
        (status = 409, body = Refused), Refusals, BodyRefusals))]
pub(crate) async fn complete(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path((id, action)): Path<(String, String)>,
    JsonBody(body): JsonBody<Map<String, Value>>,
) -> Result<(StatusCode, Json<Completed>), Problem> {
    caller.may(Permission::Execute)?;
    let execution = ids::execution(&id)?;
    let signal = Arc::new(Signal::parse(&body, execution, &action)?);
    let mut attempts = 0;
    let approvals = loop {
        attempts += 1;
        let judging = {
            let (app, caller, action, signal) = (app.clone(), caller.clone(), action.clone(), signal.clone());
            move |loaded: &LoadedExecution<'_>| judge(&app, &caller, loaded, &action, &signal)
        };
        match view_execution(&app, &caller, &id, judging).await?? {
            Judged::Repeated(approvals) => break approvals,
            Judged::Refused(problem) => return Err(problem),
            Judged::Accept(acceptance) => match send(&app, &caller, execution, &action, *acceptance).await {
                // Another answer, or another change, was committed first.
                Err(problem) if is_conflict(&problem) && attempts < ATTEMPTS_MAX => {}
                sent => break sent?,
            },
        }
    };
    let reading = caller.clone();
    let stored =
        app.readers.of(&caller.tenant).read(move |reader| stored_of(reader, &reading, execution)).await?;
    let code = if approvals.is_some() { StatusCode::ACCEPTED } else { StatusCode::OK };
    let completed = Completed {
        execution_id: execution_id(execution),
        action_id: action,
        outcome: word(&signal.outcome).to_owned(),
        status: status(stored.state.phase()).to_owned(),
        approvals,
    };
    Ok((code, Json(completed)))
}

/// Commits the answer with its audit entry. A violation of the policy is committed as evidence, and refused.
async fn send(
    app: &App,
    caller: &Caller,
    execution: ExecutionId,
    action: &str,
    acceptance: Acceptance,
) -> Result<Option<Approvals>, Problem> {
    let Acceptance { task, note, seen, approvals } = acceptance;
    let (outcome, effect) = (word(&note.outcome), note.effect.clone());
    let input = Input::Complete { run: task.run, fence: task.fence, note: Box::new(note), seen };
    let does = match &effect {
        NoteEffect::Ends => ("execution.complete", json!({ "action": action, "outcome": outcome })),
        NoteEffect::Counts => ("execution.approve", json!({ "action": action, "outcome": outcome })),
        NoteEffect::Refused { constraint, .. } => {
            ("execution.violation", json!({ "action": action, "outcome": outcome, "constraint": constraint }))
        }
    };
    send_input(app, caller, execution, input, does).await?;
    match effect {
        NoteEffect::Refused { constraint, message } => Err(Problem::policy_violation(&constraint, &message)),
        NoteEffect::Ends | NoteEffect::Counts => Ok(approvals),
    }
}

fn is_conflict(problem: &Problem) -> bool {
    matches!(problem.code, ProblemCode::Conflict | ProblemCode::ExecutionEnded)
}

fn word(outcome: &ManualOutcome) -> &'static str {
    match outcome {
        ManualOutcome::Succeeded => "Succeeded",
        ManualOutcome::Failed => "Failed",
        ManualOutcome::Cancelled => "Cancelled",
    }
}
