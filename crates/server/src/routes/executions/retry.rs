//! `POST /api/v1/executions/{executionId}/retry`: runs an ended execution again, as a new execution.

use super::control::log_action;
use super::refused::unexpected;
use super::retry_preview::{RetryPreview, parse_version};
use super::start::{Trigger, startable_again};
use super::started::bad_inputs;
use super::{TAG, missing, stored_of};
use crate::app::App;
use crate::auth::{Caller, Permission};
use crate::body::OptionalJsonBody;
use crate::ids;
use crate::problem::{Problem, Refused};
use crate::routes::shared::{BodyRefusals, Refusals};
use crate::routes::workflows::compiled;
use crate::traces;
use crate::versions::{Version, for_editors, not_bound};
use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use utoipa::ToSchema;
use windlass_dialects::{Overrides, programs_of};
use windlass_engine::{EngineAnswer, Request, retries};
use windlass_kernel::{ExecutionId, Net, with_defaults};
use windlass_store::{Reader as _, Retry, RetryFrom, StoredDefinition, Which, WorkflowId};
use windlass_views::{execution_id, workflow_id};

#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct RetryRequest {
    /// Run this node and all nodes that depend on it again; default: the nodes that did not complete.
    from_node: Option<String>,
    /// Number of the firing of the node, from 1; for playbooks.
    #[schema(minimum = 1)]
    firing: Option<u32>,
    /// Inputs that replace those of the execution with the same names.
    #[schema(value_type = Option<Object>)]
    inputs: Option<Map<String, Value>>,
    /// Run under this version of the workflow: a number, or `latest`. Completed nodes are matched by their ids.
    #[schema(value_type = Option<String>)]
    version: Option<Value>,
    /// The workflow that the version belongs to, if it is another one.
    workflow_id: Option<String>,
    /// Respond with the plan of the retry, and start nothing.
    #[serde(default)]
    dry_run: bool,
    /// Text of a definition that is not stored; only in a dry run.
    definition: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Retried {
    execution_id: String,
    parent_execution_id: String,
    /// Always `queued`.
    status: String,
    retry_from_node: Option<String>,
}

/// Merges inputs of a retry into those of the execution, and checks them against the trigger's schema.
async fn merge_inputs(
    app: &App,
    caller: &Caller,
    version: Option<&Arc<Version>>,
    before: &Value,
    given: Map<String, Value>,
) -> Result<Map<String, Value>, Problem> {
    if windlass_artifact::key(before).is_some() {
        let message =
            "the inputs are large and cannot be changed in part; start the workflow with the new inputs";
        return Err(Problem::conflict(message));
    }
    let mut whole = before.as_object().cloned().unwrap_or_default();
    // Inputs of a hook may be repeated unchanged.
    let mut other = given.clone();
    other.retain(|name, value| whole.get(name) != Some(value));
    whole.extend(given);
    let Some(version) = version else { return Ok(whole) };
    let mut problems = version.check_inputs(app, &caller.tenant, &whole).await?;
    problems.extend(version.check_reserved("inputs", &other));
    if problems.is_empty() { Ok(whole) } else { Err(bad_inputs(problems)) }
}

/// The definition that a retry runs under instead of that of the execution.
struct Replacement {
    workflow: WorkflowId,
    definition: StoredDefinition,
}

/// Looks up the version that the request names.
async fn find_replacement(
    app: &Arc<App>,
    caller: &Caller,
    own: Option<WorkflowId>,
    request: &RetryRequest,
) -> Result<Option<Replacement>, Problem> {
    let Some(version) = &request.version else { return Ok(None) };
    let number = parse_version(version).map_err(|message| Problem::invalid("version", message))?;
    let named = request.workflow_id.as_deref().map(ids::workflow).transpose()?;
    let Some(workflow) = named.or(own) else {
        return Err(Problem::conflict("the execution belongs to no stored workflow, so it has no versions"));
    };
    let tenant = caller.tenant.clone();
    let readers = app.readers.of(&caller.tenant);
    let found = readers
        .read(move |reader| {
            Ok::<_, Problem>(reader.find_definition(&tenant, &Which::Id(workflow), number)?)
        })
        .await?;
    let missing = || match number {
        Some(number) => Problem::invalid(
            "version",
            format!("workflow {} has no version {number}", workflow_id(workflow.0)),
        ),
        None => Problem::not_found("workflow", &workflow_id(workflow.0)),
    };
    Ok(Some(Replacement { workflow, definition: found.ok_or_else(missing)? }))
}

/// Returns the inputs of an execution with the defaults of another definition under them.
fn inputs_under(definition: &StoredDefinition, before: &Value, id: ExecutionId) -> Result<Value, Problem> {
    if windlass_artifact::key(before).is_some() {
        return Ok(before.clone());
    }
    let inputs = with_defaults(&definition.workload, before.clone(), &id.to_string());
    inputs.map_err(|message| Problem::invalid("inputs", message))
}

/// Retry an ended execution as a new execution
///
/// Completed nodes are taken over with their results, and only failed iterations of a loop run again. A dry run
/// responds with the plan of the retry and starts nothing. A completed execution needs `fromNode`.
#[utoipa::path(post, path = "/api/v1/executions/{executionId}/retry", tag = TAG, security(("bearer" = [])),
    params(("executionId" = String, Path)), request_body = Option<RetryRequest>,
    responses((status = 200, description = "The answer of a dry run", body = RetryPreview),
        (status = 202, body = Retried), (status = 409, body = Refused), Refusals, BodyRefusals))]
pub(crate) async fn retry(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    OptionalJsonBody(request): OptionalJsonBody<RetryRequest>,
) -> Result<Response, Problem> {
    caller.may(Permission::Execute)?;
    let (of, reading) = (ids::execution(&id)?, caller.clone());
    let readers = app.readers.of(&caller.tenant);
    let looked = readers.read(move |reader| {
        let stored = stored_of(reader, &reading, of)?;
        let net = reader.net(stored.state.head.net)?;
        let definition = stored.origin.definition.map(|id| reader.definition(id)).transpose()?.flatten();
        Ok::<_, Problem>((stored, net, definition))
    });
    let (stored, net, definition) = looked.await?;
    // Checked after the look-up: for an execution of another tenant, every request gets the same 404.
    check_request(&request)?;
    let replacement = find_replacement(&app, &caller, stored.origin.workflow, &request).await?;
    let is_editor = caller.role.may(Permission::Edit);
    if !is_editor && net.as_ref().is_some_and(|net| net.policy().editors_only) {
        return Err(for_editors(&caller));
    }
    let asks_people = net.as_ref().is_some_and(|net| net.steps().any(|(id, _)| net.asks_people(id)));
    let is_changed = request.inputs.is_some() || request.version.is_some();
    if !is_editor && is_changed && asks_people {
        // An approval was given for the inputs and the definition that the approver saw.
        let message = "a retry keeps approvals, so only callers who may edit definitions may change its inputs or its \
                       version; start the workflow anew instead";
        return Err(Problem::forbidden(message));
    }
    let approves = net.as_ref().is_some_and(|net| net.steps().any(|(_, step)| step.approves.is_some()));
    if approves && request.inputs.is_some() {
        let message = "a retry keeps approvals of actions, which were given for the inputs of the execution; start the \
                       workflow anew with the new inputs";
        return Err(Problem::conflict(message));
    }
    let programs = net.as_ref().map(programs_of).unwrap_or_default();
    app.storage.check(&caller.tenant)?;
    app.rights.check(&caller.tenant, &programs)?;
    let version = match (&replacement, stored.origin.workflow, &definition) {
        (Some(found), _, _) => Some(startable_again(&app, &caller, found.workflow, &found.definition).await?),
        (None, Some(workflow), Some(definition)) => {
            Some(startable_again(&app, &caller, workflow, definition).await?)
        }
        _ => None,
    };
    let other = match (&replacement, &version) {
        (Some(_), Some(version)) => version.net(&app, &caller.tenant, &Overrides::default()).await?,
        _ => None,
    };
    let id = ExecutionId(ids::fresh_number()?);
    let before = match &replacement {
        Some(found) => inputs_under(&found.definition, &stored.state.head.inputs, id)?,
        None => (*stored.state.head.inputs).clone(),
    };
    let inputs = match (request.inputs.clone(), &replacement) {
        (None, None) => None,
        (None, Some(_)) if windlass_artifact::key(&before).is_some() => None,
        (given, _) => {
            let given = given.unwrap_or_default();
            let whole = merge_inputs(&app, &caller, version.as_ref(), &before, given).await?;
            Some(Arc::new(Value::Object(whole)))
        }
    };
    let retry = Retry {
        from: request.from_node.clone().map(|step| RetryFrom { step, firing: request.firing }),
        inputs,
        trigger: Trigger::of(&caller).name().to_owned(),
        by: caller.id.clone(),
        restricted: !is_editor,
        definition: replacement.map(|found| found.definition.id),
        ..Retry::of(of)
    };
    if request.dry_run {
        return preview(&app, &caller, (retry, other), request.definition).await;
    }
    let details = json!({ "executionId": execution_id(id) });
    let audit = Some(Box::new(caller.audit_entry("execution.retry", &execution_id(of), details)));
    match app.ask(Request::Retry { id, retry, net: other, audit }).await? {
        EngineAnswer::Started(new) => {
            traces::trace_new(&app, new);
            log_action(&caller, "execution.retry", of);
            let retried = Retried {
                execution_id: execution_id(new),
                parent_execution_id: execution_id(of),
                status: "queued".to_owned(),
                retry_from_node: request.from_node,
            };
            Ok((StatusCode::ACCEPTED, Json(retried)).into_response())
        }
        other => Err(unexpected(other)),
    }
}

fn check_request(request: &RetryRequest) -> Result<(), Problem> {
    if request.firing.is_some() && request.from_node.is_none() {
        return Err(Problem::invalid(
            "firing",
            "requires fromNode: it is the number of a firing of that node",
        ));
    }
    if request.workflow_id.is_some() && request.version.is_none() {
        return Err(Problem::invalid("workflowId", "requires version: a number, or \"latest\""));
    }
    if request.definition.is_some() && (!request.dry_run || request.version.is_some()) {
        let message = "is for dry runs; register the definition and give its workflowId and version";
        return Err(Problem::invalid("definition", message));
    }
    Ok(())
}

/// Answers a dry run by the plan that the retry would follow.
async fn preview(
    app: &Arc<App>,
    caller: &Caller,
    (retry, other): (Retry, Option<Arc<Net>>),
    definition: Option<String>,
) -> Result<Response, Problem> {
    let net = match definition {
        Some(text) => {
            let mut compiled = compiled(app, &caller.tenant, text).await?;
            let net = compiled.net.take().ok_or_else(|| Problem::definition(compiled.errors()))?;
            let net = app.versions.process().bind(&net).map_err(|left| not_bound(&left))?;
            Some(Arc::new(net))
        }
        None => other,
    };
    let of = retry.of;
    let readers = app.readers.of(&caller.tenant);
    let read = readers.read(move |reader| Ok::<_, Problem>(retries::plan(reader, &retry, net)?));
    let past = read.await?.ok_or_else(|| missing(of))?;
    match &past.plan {
        Ok(plan) => Ok(Json(RetryPreview::new(&past, plan)).into_response()),
        Err(refusal) => Err(refusal.clone().into()),
    }
}
