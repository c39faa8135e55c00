//! Changing and deleting workflows.

use super::create::{Copies, changed_meanwhile, register};
use super::source::{Text, storable};
use super::{Registered, StatusName, WorkflowView, current, tagged};
use crate::app::{App, unexpected_applied};
use crate::auth::{Caller, Permission};
use crate::body::JsonBody;
use crate::definitions::Current;
use crate::host::now;
use crate::ids;
use crate::problem::{Problem, Refused};
use crate::routes::shared::{BodyRefusals, Refusals, parse_if_match};
use crate::routing::targets::write_one;
use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use utoipa::ToSchema;
use windlass_dialects::Dialect;
use windlass_store::{Applied, Entry, Target};

/// Register the next version of a workflow
///
/// Earlier versions do not change, and executions keep theirs. With `If-Match` the version is registered only if the
/// named one is still the newest.
#[utoipa::path(put, path = "/api/v1/workflows/{id}", tag = "workflows", security(("bearer" = [])),
    params(("id" = String, Path, description = "The workflow's id"),
        ("If-Match" = Option<String>, Header, description = "The ETag of the version that the change was made from")),
    request_body(content((Value = "application/json"), (Value = "application/yaml"), (Value = "text/yaml"), (String = "text/plain"))),
    responses((status = 200, body = Registered, headers(("ETag" = String, description = "Its version"))),
        (status = 412, body = Refused, description = "Another version is the newest"), Refusals, BodyRefusals))]
pub(crate) async fn put_workflow(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
    Text(text): Text,
) -> Result<(HeaderMap, Json<Registered>), Problem> {
    caller.may(Permission::Edit)?;
    let current = current(&app, &caller, &id).await?;
    check_changeable(&current)?;
    let expected = parse_if_match(&headers, "version")?;
    if expected.is_some_and(|expected| expected != current.workflow.version) {
        return Err(changed_meanwhile());
    }
    let compiled = storable(&app, &caller.tenant, text).await?;
    let target = Target::After(current.workflow.id, expected);
    let registered = register(&app, &caller, compiled, target, (None, Copies::No)).await?;
    Ok((tagged(registered.version), Json(registered)))
}

/// Refuses changes of a definition whose dialect permits none.
fn check_changeable(current: &Current) -> Result<(), Problem> {
    match Dialect::of_name(&current.definition.dialect).filter(|dialect| dialect.is_immutable()) {
        Some(dialect) => {
            Err(Problem::conflict(format!("a {} never changes; create another one", dialect.name())))
        }
        None => Ok(()),
    }
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WorkflowChange {
    /// Status; only an active workflow can be started
    status: StatusName,
}

/// Change the status of a workflow
#[utoipa::path(patch, path = "/api/v1/workflows/{id}", tag = "workflows", security(("bearer" = [])),
    params(("id" = String, Path, description = "The workflow's id")), request_body = WorkflowChange,
    responses((status = 200, body = WorkflowView, headers(("ETag" = String, description = "Its version"))),
        Refusals, BodyRefusals))]
pub(crate) async fn patch_workflow(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    JsonBody(asked): JsonBody<WorkflowChange>,
) -> Result<(HeaderMap, Json<WorkflowView>), Problem> {
    caller.may(Permission::Edit)?;
    check_changeable(&*current(&app, &caller, &id).await?)?;
    let (tenant, workflow) = (caller.tenant.clone(), ids::workflow(&id)?);
    let entry = Entry::WorkflowStatus { tenant, workflow, status: asked.status.into(), at: now() };
    store_change(&app, &caller, &id, entry, ("workflow.status", json!({ "status": asked.status }))).await?;
    let current = current(&app, &caller, &id).await?;
    Ok((tagged(current.workflow.version), Json(WorkflowView::of(&current))))
}

/// Delete a workflow
///
/// It can no longer be found or started. Its executions stay.
#[utoipa::path(delete, path = "/api/v1/workflows/{id}", tag = "workflows", security(("bearer" = [])),
    params(("id" = String, Path, description = "The workflow's id")),
    responses((status = 204), Refusals))]
pub(crate) async fn delete_workflow(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    caller.may(Permission::Delete)?;
    let (tenant, workflow) = (caller.tenant.clone(), ids::workflow(&id)?);
    let entry = Entry::WorkflowDeleted { tenant, workflow, at: now() };
    store_change(&app, &caller, &id, entry, ("workflow.delete", json!({}))).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Writes the change if the workflow exists.
async fn store_change(
    app: &App,
    caller: &Caller,
    id: &str,
    entry: Entry,
    (action, details): (&str, Value),
) -> Result<(), Problem> {
    let workflow = current(app, caller, id).await?.workflow.id;
    let audit = caller.audit_entry(action, &windlass_views::workflow_id(workflow.0), details);
    let applied = write_one(app, entry.audited(audit)).await?;
    app.definitions.forget(&caller.tenant, workflow);
    match applied {
        Applied::Done => Ok(()),
        Applied::Duplicate => Err(Problem::not_found("workflow", id)),
        other => Err(unexpected_applied(other)),
    }
}
