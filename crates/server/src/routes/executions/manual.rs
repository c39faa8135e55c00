//! `POST /api/v1/executions/{executionId}/actions/{actionId}/complete`: a person ends an approval or a manual step.

use super::control::send_input;
use super::{TAG, stored_of, view_execution};
use crate::app::App;
use crate::auth::{Caller, Permission};
use crate::body::JsonBody;
use crate::ids;
use crate::loaded::LoadedExecution;
use crate::problem::{Problem, Refused};
use crate::routes::shared::{BodyRefusals, Refusals};
use axum::Json;
use axum::extract::{Path, State};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;
use utoipa::ToSchema;
use windlass_kernel::net::Work;
use windlass_kernel::{Fence, Input, ManualNote, ManualOutcome, RunId, RunState};
use windlass_views::{execution_id, label, status};

const NOTES_MAX: usize = 10_000;
const EVIDENCE_MAX: usize = 100;

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct CompleteRequest {
    outcome: Outcome,
    #[serde(default)]
    #[schema(max_length = 10000)]
    notes: Option<String>,
    /// Ids of documents that prove the outcome.
    #[serde(default, alias = "evidenceRefs")]
    evidence: Option<Vec<String>>,
    /// Must be the id of the caller, if present.
    #[serde(default)]
    actor_user_id: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
pub(crate) enum Outcome {
    #[serde(alias = "succeeded", alias = "approved")]
    Succeeded,
    #[serde(alias = "failed", alias = "rejected")]
    Failed,
    #[serde(alias = "cancelled")]
    Cancelled,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Completed {
    execution_id: String,
    action_id: String,
    outcome: String,
    /// Status of the execution.
    status: String,
}

/// End an approval or a manual step
///
/// A repeated request with the same outcome changes nothing; another outcome is a conflict.
#[utoipa::path(post, path = "/api/v1/executions/{executionId}/actions/{actionId}/complete", tag = TAG,
    security(("bearer" = [])),
    params(("executionId" = String, Path), ("actionId" = String, Path, description = "The id of the node")),
    request_body = CompleteRequest,
    responses((status = 200, body = Completed), (status = 409, body = Refused), Refusals, BodyRefusals))]
pub(crate) async fn complete(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path((id, action)): Path<(String, String)>,
    JsonBody(request): JsonBody<CompleteRequest>,
) -> Result<Json<Completed>, Problem> {
    caller.may(Permission::Execute)?;
    let note = note(&caller, &request)?;
    let (execution, step) = (ids::execution(&id)?, action.clone());
    let asking = caller.clone();
    let (run, fence) = view_execution(&app, &caller, &id, move |loaded| {
        let found = find_waiting(loaded, &step)?;
        check_approver(loaded, &asking, found.0)?;
        Ok::<_, Problem>(found)
    })
    .await??;
    let outcome = word(&note.outcome).to_owned();
    let input = Input::Complete { run, fence, note: Box::new(note) };
    let does = ("execution.complete", json!({ "action": action, "outcome": outcome }));
    send_input(&app, &caller, execution, input, does).await?;
    let reading = caller.clone();
    let stored =
        app.readers.of(&caller.tenant).read(move |reader| stored_of(reader, &reading, execution)).await?;
    Ok(Json(Completed {
        execution_id: execution_id(execution),
        action_id: action,
        outcome,
        status: status(stored.state.phase()).to_owned(),
    }))
}

fn note(caller: &Caller, request: &CompleteRequest) -> Result<ManualNote, Problem> {
    if request.actor_user_id.as_ref().is_some_and(|actor| *actor != caller.id) {
        return Err(Problem::forbidden("actorUserId is not the id of the caller; omit it"));
    }
    if request.notes.as_ref().is_some_and(|notes| notes.chars().count() > NOTES_MAX) {
        return Err(Problem::invalid("notes", format!("must have at most {NOTES_MAX} characters")));
    }
    let evidence = request.evidence.clone().unwrap_or_default();
    if evidence.len() > EVIDENCE_MAX || evidence.iter().any(|id| id.is_empty() || id.len() > 1_000) {
        let message = format!("must have at most {EVIDENCE_MAX} ids of 1 to 1000 bytes");
        return Err(Problem::invalid("evidence", message));
    }
    let outcome = match request.outcome {
        Outcome::Succeeded => ManualOutcome::Succeeded,
        Outcome::Failed => ManualOutcome::Failed,
        Outcome::Cancelled => ManualOutcome::Cancelled,
    };
    Ok(ManualNote { outcome, actor: caller.id.clone(), notes: request.notes.clone(), evidence })
}

/// Checks that the caller is one of the approvers, if the step names any, or may administer the tenant.
fn check_approver(loaded: &LoadedExecution<'_>, caller: &Caller, run: RunId) -> Result<(), Problem> {
    let Some(RunState::Manual { output, .. }) = loaded.stored.state.run(run).map(|run| &run.state) else {
        return Ok(());
    };
    let step = loaded.stored.state.run(run).map(|run| loaded.net.step(run.step));
    let is_approval = step.is_some_and(|step| matches!(step.work, Work::Approval { .. }));
    if !is_approval {
        return Ok(());
    }
    // A large question is stored as an artifact.
    let question = match windlass_artifact::key(output) {
        Some(key) => (loaded.sources.open)(key)
            .ok_or_else(|| Problem::internal("the question of the approval is missing"))?,
        None => output.clone(),
    };
    let Some(approvers) = question["approvers"].as_array() else { return Ok(()) };
    let is_meant = approvers.iter().any(|who| *who == *caller.id || *who == caller.role.name());
    if approvers.is_empty() || is_meant || caller.may(Permission::Administer).is_ok() {
        return Ok(());
    }
    let names: Vec<&str> = approvers.iter().filter_map(|who| who.as_str()).collect();
    Err(Problem::forbidden(format!("only {} may complete this step", names.join(", "))))
}

fn word(outcome: &ManualOutcome) -> &'static str {
    match outcome {
        ManualOutcome::Succeeded => "Succeeded",
        ManualOutcome::Failed => "Failed",
        ManualOutcome::Cancelled => "Cancelled",
    }
}

/// Returns the step-run that waits for a person: `NODE`, or `NODE[0]` in an iteration of a loop. If none waits, returns the
/// one that a person ended last, so that a repeated request finds it.
fn find_waiting(loaded: &LoadedExecution<'_>, name: &str) -> Result<(RunId, Fence), Problem> {
    let bare = name.split_once('[').map_or(name, |(bare, _)| bare);
    let Some(step) = loaded.net.find(name).or_else(|| loaded.net.find(bare)) else {
        return Err(Problem::not_found("action", name));
    };
    // The approval before an action is answered by the name of the action.
    let runs = loaded.stored.state.runs.iter().filter(|(_, run)| loaded.net.shown_as(run.step) == step);
    let open: Vec<(String, RunId, Fence)> = runs
        .filter_map(|(id, run)| match run.state {
            RunState::Manual { fence, .. } => {
                Some((label(&loaded.net.step(step).name, &run.path.0), *id, fence))
            }
            _ => None,
        })
        .collect();
    let named: Vec<_> =
        open.iter().filter(|(label, ..)| label == name || loaded.net.find(name).is_some()).collect();
    match named[..] {
        [(_, run, fence)] => return Ok((*run, *fence)),
        [_, _, ..] => {
            let all: Vec<&str> = open.iter().map(|(label, ..)| label.as_str()).collect();
            return Err(Problem::conflict(format!(
                "several step-runs wait for a person; name one of {}",
                all.join(", ")
            )));
        }
        [] => {}
    }
    let approval = loaded.net.steps().find(|(_, other)| other.approves == Some(step)).map(|(id, _)| id);
    let ended =
        loaded.history.last_manual_end(step).or(loaded.history.last_manual_end(approval.unwrap_or(step)));
    ended.ok_or_else(|| Problem::conflict(format!("`{name}` does not wait for a person")))
}
