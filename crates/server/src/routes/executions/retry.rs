//! `POST /api/v1/executions/{executionId}/retry`: runs an ended execution again, as a new execution.

use super::control::log_action;
use super::refused::unexpected;
use super::start::{Trigger, startable_again};
use super::started::bad_inputs;
use super::{TAG, stored_of};
use crate::app::App;
use crate::auth::{Caller, Permission};
use crate::body::OptionalJsonBody;
use crate::ids;
use crate::problem::{Problem, Refused};
use crate::routes::shared::{BodyRefusals, Refusals};
use crate::traces;
use crate::versions::{Version, for_editors};
use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use utoipa::ToSchema;
use windlass_dialects::programs_of;
use windlass_engine::{Answer, Request};
use windlass_kernel::ExecutionId;
use windlass_store::{Reader as _, Retry, RetryFrom};
use windlass_views::execution_id;

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

/// Retry an ended execution as a new execution
///
/// Results of completed nodes are kept.
#[utoipa::path(post, path = "/api/v1/executions/{executionId}/retry", tag = TAG, security(("bearer" = [])),
    params(("executionId" = String, Path)), request_body = Option<RetryRequest>,
    responses((status = 202, body = Retried), (status = 409, body = Refused), Refusals, BodyRefusals))]
pub(crate) async fn retry(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    OptionalJsonBody(request): OptionalJsonBody<RetryRequest>,
) -> Result<(StatusCode, Json<Retried>), Problem> {
    caller.may(Permission::Execute)?;
    if request.firing.is_some() && request.from_node.is_none() {
        return Err(Problem::invalid(
            "firing",
            "requires fromNode: it is the number of a firing of that node",
        ));
    }
    let (of, reading) = (ids::execution(&id)?, caller.clone());
    let readers = app.readers.of(&caller.tenant);
    let looked = readers.read(move |reader| {
        let stored = stored_of(reader, &reading, of)?;
        let net = reader.net(stored.state.head.net)?;
        let definition = stored.origin.definition.map(|id| reader.definition(id)).transpose()?.flatten();
        Ok::<_, Problem>((stored, net, definition))
    });
    let (stored, net, definition) = looked.await?;
    let is_editor = caller.role.may(Permission::Edit);
    if !is_editor && net.as_ref().is_some_and(|net| net.policy().editors_only) {
        return Err(for_editors(&caller));
    }
    let asks_people = net.as_ref().is_some_and(|net| net.steps().any(|(id, _)| net.asks_people(id)));
    if !is_editor && request.inputs.is_some() && asks_people {
        // An approval was given for the inputs that the approver saw.
        let message = "a retry keeps approvals, so only callers who may edit definitions may change its inputs; start the \
                       workflow with the new inputs instead";
        return Err(Problem::forbidden(message));
    }
    let programs = net.as_ref().map(programs_of).unwrap_or_default();
    app.storage.check(&caller.tenant)?;
    app.rights.check(&caller.tenant, &programs)?;
    let version = match (stored.origin.workflow, &definition) {
        (Some(workflow), Some(definition)) => {
            Some(startable_again(&app, &caller, workflow, definition).await?)
        }
        _ => None,
    };
    let inputs = match request.inputs {
        Some(given) => {
            let whole =
                merge_inputs(&app, &caller, version.as_ref(), &stored.state.head.inputs, given).await?;
            Some(Arc::new(Value::Object(whole)))
        }
        None => None,
    };
    let from = request.from_node.clone().map(|step| RetryFrom { step, firing: request.firing });
    let retry = Retry {
        of,
        from,
        inputs,
        trigger: Trigger::of(&caller).name().to_owned(),
        by: caller.id.clone(),
        restricted: !is_editor,
    };
    let id = ExecutionId(ids::fresh_number()?);
    let details = json!({ "executionId": execution_id(id) });
    let audit = Some(Box::new(caller.audit_entry("execution.retry", &execution_id(of), details)));
    match app.ask(Request::Retry { id, retry, audit }).await? {
        Answer::Started(new) => {
            traces::trace_new(&app, new);
            log_action(&caller, "execution.retry", of);
            let retried = Retried {
                execution_id: execution_id(new),
                parent_execution_id: execution_id(of),
                status: "queued".to_owned(),
                retry_from_node: request.from_node,
            };
            Ok((StatusCode::ACCEPTED, Json(retried)))
        }
        other => Err(unexpected(other)),
    }
}
