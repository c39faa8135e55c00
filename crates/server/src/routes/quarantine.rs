//! `/api/v1/quarantine`: quarantined executions of all tenants, for operators. Tenants see their own in lists.

use crate::app::App;
use crate::auth::Caller;
use crate::ids;
use crate::loaded::quarantined;
use crate::problem::{Problem, Refused};
use crate::routes::executions::{missing, unexpected};
use crate::routes::shared::Refusals;
use axum::Json;
use axum::extract::{Path, State};
use serde::Serialize;
use serde_json::json;
use std::sync::Arc;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use windlass_engine::{EngineAnswer, Request};
use windlass_store::{Quarantined as _, Reader as _};
use windlass_views::{Quarantined, execution_id};

const TAG: &str = "operations";

pub(crate) fn router() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(list_quarantined)).routes(routes!(release))
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct QuarantineList {
    executions: Vec<QuarantinedExecution>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct QuarantinedExecution {
    execution_id: String,
    quarantined: Quarantined,
}

/// List quarantined executions of all tenants
///
/// Requires the role owner or admin in the tenant `default`.
#[utoipa::path(get, path = "/api/v1/quarantine", tag = TAG, security(("bearer" = [])),
    responses((status = 200, body = QuarantineList), Refusals))]
async fn list_quarantined(
    State(app): State<Arc<App>>,
    caller: Caller,
) -> Result<Json<QuarantineList>, Problem> {
    caller.check_operator()?;
    let suspects = app.readers.of(&caller.tenant).look(|reader| reader.suspects()).await?;
    let view = |suspect: windlass_store::Suspect| {
        let quarantined = quarantined(suspect.quarantine()?);
        Some(QuarantinedExecution { execution_id: execution_id(suspect.execution), quarantined })
    };
    Ok(Json(QuarantineList { executions: suspects.into_iter().filter_map(view).collect() }))
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Released {
    execution_id: String,
    /// Always true.
    released: bool,
}

/// Release a quarantined execution
///
/// Requires the role owner or admin in the tenant `default`. An execution that stops the process again is quarantined
/// again.
#[utoipa::path(post, path = "/api/v1/quarantine/{executionId}/release", tag = TAG, security(("bearer" = [])),
    params(("executionId" = String, Path)),
    responses((status = 200, body = Released), (status = 409, body = Refused), Refusals))]
async fn release(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Released>, Problem> {
    let execution = ids::execution(&id)?;
    if !caller.is_operator {
        // The response must not reveal whether another tenant has the execution.
        return Err(missing(execution));
    }
    let found = app.readers.of(&caller.tenant).look(move |reader| reader.suspect(execution)).await?;
    found.and_then(|suspect| suspect.quarantine()).ok_or_else(|| missing(execution))?;
    let id = execution_id(execution);
    let audit = Box::new(caller.audit_entry("execution.release", &id, json!({})));
    match app.ask(Request::Release { execution, audit }).await? {
        EngineAnswer::Accepted => Ok(Json(Released { execution_id: id, released: true })),
        other => Err(unexpected(other)),
    }
}
