//! `POST /api/v1/workflows/{workflowId}/execute`

use super::key::{begun_before, key, of_json};
use super::links::Links;
use super::options::ExecuteRequest;
use super::refused::unexpected;
use super::started::{Accepted, Checked, Finished, StartResponse, bad_inputs};
use super::{TAG, stored_of, view_execution};
use crate::app::App;
use crate::auth::{Caller, Credential, Permission};
use crate::body::{collect, is_json, parse_blocking};
use crate::definitions::Current;
use crate::ids;
use crate::loaded::LoadedExecution;
use crate::problem::{Detail, Problem, ProblemCode, Refused};
use crate::routes::shared::{BodyRefusals, Refusals};
use crate::routes::workflows::missing_children;
use crate::traces;
use crate::versions::{Version, all_stored, missing_secrets};
use axum::Json;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::sync::Arc;
use windlass_dialects::{Overrides, SECRETS};
use windlass_engine::{EngineAnswer, Refusal, Start};
use windlass_kernel::ExecutionId;
use windlass_store::{
    IdempotencyKey, Options, Origin, Reader as _, StoredDefinition, Tenant, Which, WorkflowId, WorkflowStatus,
};
use windlass_views::{execution_id, workflow_id};

/// Data of a workflow that the start of an execution needs.
#[derive(Debug, Clone)]
struct Startable {
    version: Arc<Version>,
    estimate: Option<u64>,
}

/// Start an execution
#[utoipa::path(post, path = "/api/v1/workflows/{workflowId}/execute", tag = TAG, security(("bearer" = [])),
    params(
        ("workflowId" = String, Path, description = "`wf_…`, or the bare UUID"),
        ("X-Idempotency-Key" = Option<String>, Header, description = "A repeated request with the same key starts no second execution"),
    ),
    request_body = ExecuteRequest,
    responses(
        (status = 202, body = Accepted, description = "The execution is queued"),
        (status = 200, body = StartResponse, description = "With `async: false`, the result; with `dryRun`, the problems"),
        (status = 409, body = Refused, description = "The key was used with another request, or the workflow is not active"),
        Refusals,
        BodyRefusals,
    ))]
pub(crate) async fn execute(
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
        parse_blocking(&app, bytes.clone()).await?
    };
    let options = sent.options.clone().unwrap_or_default();
    if options.is_debug() {
        caller.may(Permission::Edit)?;
    }
    let key = key(&parts.headers, || of_json(&bytes))?;
    let origin = Trigger::of(&caller).origin(&caller, workflow, key);
    let (start, overrides) = options.start(origin, &app.settings.egress)?;
    let start = Start { inputs: Value::Object(sent.inputs), ..start };
    if options.dry_run == Some(true) {
        let version = startable(&app, &caller, (workflow, None), &start).await?.version;
        version.check_caller(&caller, &overrides)?;
        let found = problems(&app, &version, &start).await?;
        let checked = checked(&app, &caller, &version, &overrides, found).await?;
        return Ok(Json(StartResponse::Checked(checked)).into_response());
    }
    if options.is_async == Some(false) {
        app.answers.admit(&caller.tenant).await?;
    }
    let begun = begin(&app, &caller, workflow, start, &overrides).await?;
    if options.is_async == Some(false)
        && let Some(answer) = finished(&app, &caller, begun.id).await?
    {
        return Ok(answer.into_response());
    }
    Ok(begun.accepted(&app, &parts.headers).into_response())
}

/// Returns data that is usually in memory: the workflow, its newest version, its estimate. A parent is read from the
/// store.
async fn startable(
    app: &Arc<App>,
    caller: &Caller,
    (workflow, version): (WorkflowId, Option<u32>),
    start: &Start,
) -> Result<Startable, Problem> {
    let current = active(app, caller, workflow).await?;
    if let Some(parent) = start.origin.parent {
        is_own(app, caller, parent).await?;
    }
    let version = match version {
        Some(number) if number != current.definition.version => {
            allowed(app, caller, &find_version(app, caller, workflow, number).await?).await?
        }
        _ => allowed(app, caller, &current.definition).await?,
    };
    let estimate = app.estimates.of(app, &caller.tenant, workflow).await?;
    Ok(Startable { version, estimate })
}

/// Returns one version of a workflow.
async fn find_version(
    app: &App,
    caller: &Caller,
    workflow: WorkflowId,
    version: u32,
) -> Result<StoredDefinition, Problem> {
    let (tenant, which) = (caller.tenant.clone(), Which::Id(workflow));
    let readers = app.readers.of(&caller.tenant);
    let found = readers.look(move |reader| reader.find_definition(&tenant, &which, Some(version)));
    let missing = || Problem::not_found("version", &format!("{version} of {}", workflow_id(workflow.0)));
    found.await?.ok_or_else(missing)
}

/// Returns a workflow that may be started, with its newest version.
async fn active(app: &App, caller: &Caller, workflow: WorkflowId) -> Result<Arc<Current>, Problem> {
    let missing = || Problem::not_found("workflow", &workflow_id(workflow.0));
    let current =
        app.definitions.current(&app.readers, &caller.tenant, workflow).await?.ok_or_else(missing)?;
    match current.workflow.status {
        WorkflowStatus::Active => Ok(current),
        status => {
            let message = format!("the workflow is {}; make it active first", status.name());
            Err(Problem::new(ProblemCode::WorkflowNotActive, message))
        }
    }
}

/// Returns a version that the tenant may run now.
async fn allowed(
    app: &Arc<App>,
    caller: &Caller,
    definition: &StoredDefinition,
) -> Result<Arc<Version>, Problem> {
    let version = app.versions.version(app, definition).await?;
    app.storage.check(&caller.tenant)?;
    app.rights.check(&caller.tenant, &version.manifest.programs)?;
    Ok(version)
}

/// Returns the version of a retry. The rules are those of a start: its workflow is active, and the caller may start
/// this version.
pub(crate) async fn startable_again(
    app: &Arc<App>,
    caller: &Caller,
    workflow: WorkflowId,
    definition: &StoredDefinition,
) -> Result<Arc<Version>, Problem> {
    active(app, caller, workflow).await?;
    let version = allowed(app, caller, definition).await?;
    version.check_caller(caller, &Overrides::default())?;
    Ok(version)
}

/// Returns the problems of the inputs of a start.
async fn problems(app: &App, version: &Arc<Version>, start: &Start) -> Result<Vec<Detail>, Problem> {
    let (no_inputs, origin) = (Map::new(), &start.origin);
    let inputs = start.inputs.as_object().unwrap_or(&no_inputs);
    let mut found = version.check_inputs(app, &origin.tenant, inputs).await?;
    if origin.trigger != Trigger::Webhook.name() {
        found.extend(version.check_reserved("inputs", inputs));
    }
    if version.binds_secrets() {
        found.extend(unknown_bindings(app, &origin.tenant, inputs).await?);
    }
    Ok(found)
}

/// Returns problems with names of secrets in the inputs of a plan that the tenant does not have.
async fn unknown_bindings(
    app: &App,
    tenant: &Tenant,
    inputs: &Map<String, Value>,
) -> Result<Vec<Detail>, Problem> {
    let bound = inputs.get(SECRETS).and_then(Value::as_object).cloned().unwrap_or_default();
    if bound.is_empty() {
        return Ok(Vec::new());
    }
    let (vault, tenant) = (app.secrets.clone(), tenant.clone());
    let stored = app.run_blocking(move || vault.with(|vault| vault.list(&tenant))).await??;
    let is_missing = |name: &str| !stored.iter().any(|secret| secret.name == name);
    let missing = bound.iter().filter_map(|(param, name)| Some((param, name.as_str()?)));
    let missing = missing.filter(|(_, name)| is_missing(name)).map(|(param, name)| {
        let message = format!("there is no secret `{name}`: store it with `windlass secrets set {name}`");
        Detail::new(format!("inputs.{SECRETS}.{param}"), message)
    });
    Ok(missing.collect())
}

async fn is_own(app: &App, caller: &Caller, parent: ExecutionId) -> Result<(), Problem> {
    let own = caller.clone();
    let found =
        app.readers.of(&caller.tenant).read(move |reader| stored_of(reader, &own, parent).map(drop)).await;
    found.map_err(|problem| match problem.status() {
        StatusCode::NOT_FOUND => Problem::invalid("options.parentExecutionId", problem.message),
        _ => problem,
    })
}

/// Origin of a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trigger {
    /// A command of the folder's owner.
    Manual,
    Api,
    Webhook,
    Schedule,
}

impl Trigger {
    pub(crate) fn of(caller: &Caller) -> Trigger {
        if caller.credential == Credential::Folder { Trigger::Manual } else { Trigger::Api }
    }

    /// Returns the origin of a start that the caller requests.
    pub(crate) fn origin(self, caller: &Caller, workflow: WorkflowId, key: Option<IdempotencyKey>) -> Origin {
        let restricted = !caller.role.may(Permission::Edit);
        Origin {
            tenant: caller.tenant.clone(),
            workflow: Some(workflow),
            trigger: Cow::Borrowed(self.name()),
            options: Options { by: caller.id.clone(), restricted, ..Options::default() },
            key,
            ..Origin::default()
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Trigger::Manual => "manual",
            Trigger::Api => "api",
            Trigger::Webhook => "webhook",
            Trigger::Schedule => "schedule",
        }
    }
}

/// An execution that was started by this request, or by an earlier one with the same key.
#[derive(Debug)]
pub(crate) struct Begun {
    pub id: ExecutionId,
    workflow: WorkflowId,
    estimate: Option<u64>,
}

impl Begun {
    pub(crate) fn accepted(&self, app: &App, headers: &HeaderMap) -> (StatusCode, Json<Accepted>) {
        let links = Links::of(app, headers, self.id);
        (StatusCode::ACCEPTED, Json(Accepted::new(self.id, self.workflow, self.estimate, links)))
    }
}

/// Starts an execution of the newest version; see [`begin_version`].
pub(crate) async fn begin(
    app: &Arc<App>,
    caller: &Caller,
    workflow: WorkflowId,
    start: Start,
    overrides: &Overrides,
) -> Result<Begun, Problem> {
    begin_version(app, caller, (workflow, None), start, overrides).await
}

/// Starts an execution, or returns the one that was started with the same key. A caller that lost the first response
/// gets it again, even if the start would be refused by now.
pub(crate) async fn begin_version(
    app: &Arc<App>,
    caller: &Caller,
    (workflow, version): (WorkflowId, Option<u32>),
    start: Start,
    overrides: &Overrides,
) -> Result<Begun, Problem> {
    if let Some(id) = begun_before(app, caller, workflow, start.origin.key.as_ref()).await? {
        let estimate = app.estimates.of(app, &caller.tenant, workflow).await?;
        return Ok(Begun { id, workflow, estimate });
    }
    let Startable { version, estimate } = startable(app, caller, (workflow, version), &start).await?;
    version.check_caller(caller, overrides)?;
    let found = problems(app, &version, &start).await?;
    if !found.is_empty() {
        return Err(bad_inputs(found));
    }
    all_stored(missing_secrets(app, &caller.tenant, &version.manifest.secrets).await?)?;
    let net = version.net(app, &caller.tenant, overrides).await?;
    let mut start = Start { defaults: version.workload.clone(), net, ..start };
    Arc::make_mut(&mut start.origin).definition = Some(version.definition);
    let id = ask_engine(app, caller, workflow, start).await?;
    Ok(Begun { id, workflow, estimate })
}

async fn ask_engine(
    app: &Arc<App>,
    caller: &Caller,
    workflow: WorkflowId,
    start: Start,
) -> Result<ExecutionId, Problem> {
    let key = start.origin.key.clone();
    let twin = || begun_before(app, caller, workflow, key.as_ref());
    match app.ask(windlass_engine::Request::Start(Box::new(start))).await? {
        EngineAnswer::Started(id) => {
            tracing::debug!(execution = execution_id(id), tenant = %caller.tenant, by = caller.id, "started");
            traces::trace_new(app, id);
            Ok(id)
        }
        // The same start may have taken the last free place a moment before.
        EngineAnswer::Refused(full @ Refusal::NoRoom { .. }) => twin().await?.ok_or_else(|| full.into()),
        EngineAnswer::Refused(Refusal::KeyTaken) => {
            twin().await?.ok_or_else(|| Problem::unavailable("the idempotency key is being deleted; retry"))
        }
        other => Err(unexpected(other)),
    }
}

/// Waits for the end of an execution. If the client disconnects, the execution continues. Returns None if clients of
/// the tenant have too many unread responses; the caller has to request the result later.
async fn finished(
    app: &App,
    caller: &Caller,
    id: ExecutionId,
) -> Result<Option<crate::answers::JsonParts>, Problem> {
    match app.ask(windlass_engine::Request::AwaitPause(id)).await? {
        EngineAnswer::Rested(_) => {}
        other => return Err(unexpected(other)),
    }
    if app.answers.admit(&caller.tenant).await.is_err() {
        return Ok(None);
    }
    let (answers, tenant) = (app.answers.clone(), caller.tenant.clone());
    let write_answer = move |loaded: &LoadedExecution<'_>| {
        answers.json(&tenant, &StartResponse::Finished(Box::new(Finished::of(loaded))))
    };
    match view_execution(app, caller, &execution_id(id), write_answer).await? {
        Err(problem) if problem.status() == StatusCode::TOO_MANY_REQUESTS => Ok(None),
        answer => answer.map(Some),
    }
}

/// Checks a start without starting it. Everything that would fail now is an error: inputs, secrets and definitions that
/// it starts.
async fn checked(
    app: &App,
    caller: &Caller,
    version: &Arc<Version>,
    overrides: &Overrides,
    mut errors: Vec<Detail>,
) -> Result<Checked, Problem> {
    if let Err(problem) = version.net(app, &caller.tenant, overrides).await {
        errors.extend(problem.details);
    }
    errors.extend(missing_secrets(app, &caller.tenant, &version.manifest.secrets).await?);
    errors.extend(missing_children(app, caller, &version.manifest.children).await?);
    Ok(Checked {
        valid: errors.is_empty(),
        errors,
        warnings: version.manifest.warnings.iter().map(Detail::from).collect(),
    })
}
