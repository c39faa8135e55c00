//! Routes that cancel, pause and resume an execution, and that patch its context.

use super::refused::unexpected;
use super::{TAG, stored_of, view_execution};
use crate::app::App;
use crate::auth::{Caller, Permission};
use crate::body::{JsonBody, OptionalJsonBody};
use crate::ids;
use crate::problem::{Problem, Refused};
use crate::routes::shared::{BodyRefusals, Refusals};
use crate::versions::for_editors;
use axum::Json;
use axum::extract::{Path, State};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use utoipa::ToSchema;
use windlass_dialects::HOOK;
use windlass_engine::{EngineAnswer, Request};
use windlass_kernel::{Cancel, ExecutionId, Input, Net, StepId};
use windlass_store::Reader as _;
use windlass_views::{End, ExecutionStatus, History, NodeLabel, execution_id, status, time};

/// Maximum length of a reason, in characters.
const REASON_MAX: usize = 2_000;

#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CancelRequest {
    #[schema(max_length = 2000)]
    reason: Option<String>,
    /// Kill processes without a grace period, and skip compensation.
    force: Option<bool>,
    /// Run the compensations that the definition has.
    compensate: Option<bool>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Cancelled {
    execution_id: String,
    /// `cancelled`, or `running` while compensations run.
    #[schema(value_type = ExecutionStatus)]
    status: String,
    /// Null while compensations run.
    #[schema(format = DateTime)]
    cancelled_at: Option<String>,
    cancelled_by: String,
    reason: String,
    completed_nodes: Vec<String>,
    /// Nodes that had not ended or not begun.
    cancelled_nodes: Vec<String>,
}

/// Cancel an execution
#[utoipa::path(post, path = "/api/v1/executions/{executionId}/cancel", tag = TAG, security(("bearer" = [])),
    params(("executionId" = String, Path)), request_body = Option<CancelRequest>,
    responses((status = 200, body = Cancelled), (status = 409, body = Refused), Refusals, BodyRefusals))]
pub(crate) async fn cancel(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    OptionalJsonBody(request): OptionalJsonBody<CancelRequest>,
) -> Result<Json<Cancelled>, Problem> {
    let reason = reason(request.reason)?;
    let cancel = Cancel {
        by: caller.id.clone(),
        reason: reason.clone(),
        force: request.force == Some(true),
        compensate: request.compensate == Some(true),
    };
    let does = ("execution.cancel", json!({ "reason": reason }));
    let id = send_input(&app, &caller, ids::execution(&id)?, Input::Cancel(cancel), does).await?;
    let (by, id) = (caller.id.clone(), execution_id(id));
    let cancelled = view_execution(&app, &caller, &id, move |loaded| {
        let (completed_nodes, cancelled_nodes) = completed_and_cancelled(loaded.net, loaded.history);
        Cancelled {
            execution_id: execution_id(loaded.facts.execution),
            status: status(loaded.history.state().phase()).to_owned(),
            cancelled_at: loaded.history.ended_at.map(time),
            cancelled_by: by,
            reason,
            completed_nodes,
            cancelled_nodes,
        }
    });
    Ok(Json(cancelled.await?))
}

/// Returns the completed and the cancelled nodes, by the newest firing of each node.
fn completed_and_cancelled(net: &Net, history: &History) -> (Vec<String>, Vec<String>) {
    let newest: BTreeMap<StepId, Option<End>> =
        history.whole().map(|firing| (firing.step, firing.end)).collect();
    let (mut completed, mut cancelled) = (Vec::new(), Vec::new());
    for (id, step) in net.steps() {
        match newest.get(&id).copied().flatten() {
            Some(End::Completed) => completed.push(NodeLabel::of(step).id),
            Some(End::Failed { .. } | End::Skipped(Some(_))) => {}
            Some(End::Cancelled | End::Skipped(None)) | None => cancelled.push(NodeLabel::of(step).id),
        }
    }
    (completed, cancelled)
}

#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PauseRequest {
    #[schema(max_length = 2000)]
    reason: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Changed {
    execution_id: String,
    #[schema(value_type = ExecutionStatus)]
    status: String,
}

/// Pause an execution
///
/// Running steps end, and no new step begins.
#[utoipa::path(post, path = "/api/v1/executions/{executionId}/pause", tag = TAG, security(("bearer" = [])),
    params(("executionId" = String, Path)), request_body = Option<PauseRequest>,
    responses((status = 200, body = Changed), (status = 409, body = Refused), Refusals, BodyRefusals))]
pub(crate) async fn pause(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    OptionalJsonBody(request): OptionalJsonBody<PauseRequest>,
) -> Result<Json<Changed>, Problem> {
    let hold = Input::Hold { by: caller.id.clone(), reason: reason(request.reason)? };
    send_and_view(&app, &caller, &id, ("execution.pause", hold)).await
}

/// Resume a paused execution
///
/// It opens no gate, and does not retry a failed execution.
#[utoipa::path(post, path = "/api/v1/executions/{executionId}/resume", tag = TAG, security(("bearer" = [])),
    params(("executionId" = String, Path)),
    responses((status = 200, body = Changed), (status = 409, body = Refused), Refusals))]
pub(crate) async fn resume(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Changed>, Problem> {
    let release = Input::Resume { by: caller.id.clone() };
    send_and_view(&app, &caller, &id, ("execution.resume", release)).await
}

/// Set keys of the context of an execution
///
/// Gates that read these keys are evaluated again.
#[utoipa::path(patch, path = "/api/v1/executions/{executionId}/context", tag = TAG, security(("bearer" = [])),
    params(("executionId" = String, Path)), request_body = Object,
    responses((status = 200, body = Changed), (status = 409, body = Refused), Refusals, BodyRefusals))]
pub(crate) async fn patch(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    JsonBody(keys): JsonBody<Map<String, Value>>,
) -> Result<Json<Changed>, Problem> {
    let execution = ids::execution(&id)?;
    caller.may(Permission::Execute)?;
    app.storage.check(&caller.tenant)?;
    check_patch(&app, &caller, execution, &keys).await?;
    let patch = keys.into_iter().map(|(key, value)| (key, Arc::new(value))).collect();
    let patch = Input::Patch { patch, by: caller.id.clone() };
    send_and_view(&app, &caller, &id, ("execution.patch", patch)).await
}

/// Checks that the caller may set these keys in an execution of this definition.
async fn check_patch(
    app: &App,
    caller: &Caller,
    execution: ExecutionId,
    keys: &Map<String, Value>,
) -> Result<(), Problem> {
    let reading = caller.clone();
    let readers = app.readers.of(&caller.tenant);
    let read = readers.read(move |reader| {
        let stored = stored_of(reader, &reading, execution)?;
        let net = reader.net(stored.state.head.net)?;
        let definition = stored.origin.definition.map(|id| reader.definition(id)).transpose()?.flatten();
        Ok::<_, Problem>((net, definition))
    });
    let (net, definition) = read.await?;
    if !caller.role.may(Permission::Edit) && net.is_some_and(|net| net.policy().editors_only) {
        return Err(for_editors(caller));
    }
    if let Some(definition) = definition.filter(|_| keys.contains_key(HOOK)) {
        let version = app.versions.version(app, &definition).await?;
        if let Some(reserved) = version.check_reserved("context", keys) {
            return Err(Problem::invalid(&reserved.path, reserved.message));
        }
    }
    Ok(())
}

async fn send_and_view(
    app: &App,
    caller: &Caller,
    id: &str,
    (action, input): (&str, Input),
) -> Result<Json<Changed>, Problem> {
    let id = send_input(app, caller, ids::execution(id)?, input, (action, json!({}))).await?;
    let reading = caller.clone();
    let stored = app.readers.of(&caller.tenant).read(move |reader| stored_of(reader, &reading, id)).await?;
    let status = status(stored.state.phase()).to_owned();
    Ok(Json(Changed { execution_id: execution_id(id), status }))
}

/// Sends an input to an execution of the caller's tenant. When this returns, the input and its audit entry are on disk.
pub(crate) async fn send_input(
    app: &App,
    caller: &Caller,
    execution: ExecutionId,
    input: Input,
    (action, details): (&str, Value),
) -> Result<ExecutionId, Problem> {
    caller.may(Permission::Execute)?;
    let reading = caller.clone();
    app.readers
        .of(&caller.tenant)
        .read(move |reader| stored_of(reader, &reading, execution).map(drop))
        .await?;
    let audit = Some(Box::new(caller.audit_entry(action, &execution_id(execution), details)));
    match app.ask(Request::Give { execution, input, audit }).await? {
        EngineAnswer::Accepted => {
            log_action(caller, action, execution);
            Ok(execution)
        }
        other => Err(unexpected(other)),
    }
}

pub(crate) fn log_action(caller: &Caller, action: &str, id: ExecutionId) {
    tracing::info!(execution = execution_id(id), tenant = %caller.tenant, by = caller.id, action);
}

fn reason(given: Option<String>) -> Result<String, Problem> {
    let reason = given.unwrap_or_default();
    if reason.chars().count() > REASON_MAX {
        return Err(Problem::invalid("reason", format!("must have at most {REASON_MAX} characters")));
    }
    Ok(reason)
}
