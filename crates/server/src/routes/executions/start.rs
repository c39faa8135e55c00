//! `POST /api/v1/workflows/{workflowId}/execute`

use super::links::Links;
use super::options::{Asked, ExecuteRequest};
use super::prepared::Version;
use super::refused::unexpected;
use super::started::{Accepted, Checked, Finished, Outcome, bad_inputs};
use super::{TAG, stored_of, told};
use crate::app::App;
use crate::auth::{Caller, Permission};
use crate::body::{collect, is_json, parse};
use crate::host::now;
use crate::ids;
use crate::problem::{Detail, Problem, Refused};
use crate::routes::shared::{BodyRefusals, Refusals};
use crate::traces;
use crate::webhooks::canonical::canonical;
use axum::Json;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::sync::Arc;
use windlass_dialects::view::{execution_id, workflow_id};
use windlass_engine::{Answer, Refusal, Start};
use windlass_kernel::{ExecutionId, Millis};
use windlass_store::{Catalog, IdempotencyKey, WorkflowId, WorkflowStatus};

const KEY_HEADER: &str = "x-idempotency-key";
const KEY_MAX: usize = 255;
/// A key is kept for so long after the end of its execution.
const KEY_KEPT_MS: i64 = 24 * 60 * 60 * 1_000;

/// What is known of a workflow when one of its executions starts.
#[derive(Debug, Clone)]
pub struct Startable {
    pub workflow: WorkflowId,
    pub version: Arc<Version>,
    pub estimate: Option<u64>,
}

/// Start an execution.
#[utoipa::path(post, path = "/api/v1/workflows/{workflowId}/execute", tag = TAG, security(("bearer" = [])),
    params(
        ("workflowId" = String, Path, description = "`wf_…`, or the bare UUID"),
        ("X-Idempotency-Key" = Option<String>, Header, description = "The same key starts no second execution"),
    ),
    request_body = ExecuteRequest,
    responses(
        (status = 202, body = Accepted, description = "It is queued"),
        (status = 200, body = Outcome, description = "With `async: false`, what came of it; with `dryRun`, what was found"),
        (status = 409, body = Refused, description = "The key was used for something else, or the workflow is not active"),
        Refusals,
        BodyRefusals,
    ))]
pub async fn execute(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    caller.may(Permission::Execute)?;
    let workflow = ids::workflow(&id)?;
    let (parts, body) = request.into_parts();
    let bytes = collect(body, &app).await?;
    let sent: ExecuteRequest = if bytes.is_empty() {
        ExecuteRequest::default()
    } else {
        is_json(&parts.headers)?;
        parse(&bytes)?
    };
    let options = sent.options.clone().unwrap_or_default();
    if options.is_debug() {
        caller.may(Permission::Edit)?;
    }
    let asked = options.read(&caller.id, &app.settings.egress)?;
    let key = key(&parts.headers, &bytes)?;
    let startable = startable(&app, &caller, workflow, asked.parent).await?;
    let found = startable.version.check_inputs(&sent.inputs);
    if options.dry_run == Some(true) {
        return Ok(Json(Outcome::Checked(checked(&startable.version, &asked, found))).into_response());
    }
    if !found.is_empty() {
        return Err(bad_inputs(found));
    }
    let begun = begin(
        &app,
        &caller,
        &startable,
        asked,
        Begin { inputs: Value::Object(sent.inputs), trigger: "api", key },
    );
    let id = begun.await?;
    traces::begun(&app, id);
    if options.is_async == Some(false) {
        let finished = Box::new(finished(&app, &caller, id).await?);
        return Ok(Json(Outcome::Finished(finished)).into_response());
    }
    let links = Links::of(&app, &parts.headers, id);
    let accepted = Accepted::new(id, workflow, startable.estimate, links);
    Ok((StatusCode::ACCEPTED, Json(accepted)).into_response())
}

/// What is usually in memory: the workflow, its newest version, its history. A parent is looked up.
pub async fn startable(
    app: &Arc<App>,
    caller: &Caller,
    workflow: WorkflowId,
    parent: Option<ExecutionId>,
) -> Result<Startable, Problem> {
    let missing = || Problem::not_found("workflow", &workflow_id(workflow.0));
    let current =
        app.definitions.current(&app.readers, &caller.tenant, workflow).await?.ok_or_else(missing)?;
    let status = current.workflow.status;
    if matches!(status, WorkflowStatus::Paused | WorkflowStatus::Archived) {
        let message = format!("the workflow is {}; make it active first", status.name());
        return Err(Problem::new(StatusCode::CONFLICT, "WORKFLOW_NOT_ACTIVE", message));
    }
    if let Some(parent) = parent {
        is_own(app, caller, parent).await?;
    }
    let version = app.prepared.version(app, &current.definition).await?;
    app.rights.check(&caller.tenant, &version.programs)?;
    let estimate = app.estimates.of(app, &caller.tenant, workflow).await?;
    Ok(Startable { workflow, version, estimate })
}

async fn is_own(app: &App, caller: &Caller, parent: ExecutionId) -> Result<(), Problem> {
    let own = caller.clone();
    let found = app.readers.read(move |reader| stored_of(reader, &own, parent).map(drop)).await;
    found.map_err(|problem| match problem.status {
        StatusCode::NOT_FOUND => Problem::invalid("options.parentExecutionId", problem.message),
        _ => problem,
    })
}

/// What a start brings along beside its options.
#[derive(Debug)]
pub struct Begin {
    pub inputs: Value,
    pub trigger: &'static str,
    pub key: Option<IdempotencyKey>,
}

/// Starts it, or finds the one that was started with the same key.
pub async fn begin(
    app: &App,
    caller: &Caller,
    startable: &Startable,
    asked: Asked,
    begin: Begin,
) -> Result<ExecutionId, Problem> {
    let start = Start {
        definition: startable.version.definition,
        inputs: begin.inputs,
        defaults: startable.version.workload.clone(),
        timeout_ms: asked.timeout_ms,
        when: asked.when,
        trigger: begin.trigger.to_owned(),
        tenant: caller.tenant.clone(),
        net: startable.version.net(&asked.overrides)?,
        options: Arc::new(asked.options),
        parent: asked.parent,
        key: begin.key.clone(),
    };
    app.open.take(app, &caller.tenant).await?;
    match (app.ask(windlass_engine::Request::Start(Box::new(start))).await?, begin.key) {
        (Answer::Started(id), _) => {
            tracing::debug!(execution = execution_id(id), tenant = %caller.tenant, by = caller.id, "started");
            Ok(id)
        }
        (Answer::Refused(Refusal::KeyTaken), Some(key)) => taken(app, caller, startable.workflow, key).await,
        (other, _) => Err(unexpected(other)),
    }
}

/// The same request again is the first one; another request under its key is a conflict.
async fn taken(
    app: &App,
    caller: &Caller,
    workflow: WorkflowId,
    key: IdempotencyKey,
) -> Result<ExecutionId, Problem> {
    let (tenant, name) = (caller.tenant.clone(), key.key.clone());
    let found = app.readers.look(move |reader| reader.keyed(&tenant, workflow, &name)).await?;
    match found {
        Some((id, request)) if request == key.request => Ok(id),
        Some(_) => {
            let message = "this idempotency key was used with another request; use another key";
            Err(Problem::new(StatusCode::CONFLICT, "IDEMPOTENCY_KEY_REUSED", message))
        }
        // Forgotten at this very moment.
        None => Err(Problem::unavailable("the idempotency key is being forgotten; ask again")),
    }
}

/// A client that hangs up changes nothing: the execution goes on.
async fn finished(app: &App, caller: &Caller, id: ExecutionId) -> Result<Finished, Problem> {
    match app.ask(windlass_engine::Request::Await(id)).await? {
        Answer::Rested(_) => told(app, caller, &execution_id(id), Finished::of).await,
        other => Err(unexpected(other)),
    }
}

fn checked(version: &Version, asked: &Asked, mut errors: Vec<Detail>) -> Checked {
    if let Err(problem) = version.net(&asked.overrides) {
        errors.extend(problem.details);
    }
    Checked { valid: errors.is_empty(), errors, warnings: version.warnings.clone() }
}

/// Spaces and the order of members make no other request.
pub fn key(headers: &HeaderMap, body: &[u8]) -> Result<Option<IdempotencyKey>, Problem> {
    let Some(value) = headers.get(KEY_HEADER) else { return Ok(None) };
    let text = value.to_str().ok().filter(|text| (1..=KEY_MAX).contains(&text.len()));
    let Some(text) = text else {
        let message = format!("must have 1 to {KEY_MAX} visible ASCII characters");
        return Err(Problem::invalid("X-Idempotency-Key", message));
    };
    let body: Value = if body.is_empty() { Value::Null } else { parse(body)? };
    let request = Sha256::digest(canonical(&body)).into();
    let forgotten = Millis(now().0 - KEY_KEPT_MS);
    Ok(Some(IdempotencyKey { key: text.to_owned(), request, forgotten }))
}
