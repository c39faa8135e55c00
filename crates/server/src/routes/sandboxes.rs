//! `/api/v1/sandboxes`: environments that steps of plans are routed to, and their readiness.

use super::paging::Paged;
use super::shared::{BodyRefusals, Refusals};
use crate::app::App;
use crate::auth::Caller;
use crate::body::{JsonBody, Params};
use crate::problem::{Problem, Refused};
use crate::routing::targets::{
    RoutingTargetList, RoutingTargetState, RoutingTargetView, TargetNoun, TargetParams,
};
use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use std::sync::Arc;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use windlass_store::TargetKind;

const TAG: &str = "routing";
pub(super) const SANDBOXES: TargetNoun = TargetNoun {
    kind: TargetKind::Sandbox,
    noun: "sandbox",
    audited: "sandbox",
    list: Paged { name: "sandboxes", usual: 50, most: 200 },
};

pub(crate) fn router() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(list_sandboxes)).routes(routes!(
        put_sandbox,
        get_sandbox,
        delete_sandbox
    ))
}

/// List sandboxes
#[utoipa::path(get, path = "/api/v1/sandboxes", tag = TAG, security(("bearer" = [])), params(TargetParams),
    responses((status = 200, body = RoutingTargetList), Refusals))]
async fn list_sandboxes(
    State(app): State<Arc<App>>,
    caller: Caller,
    params: Params<TargetParams>,
) -> Result<Json<RoutingTargetList>, Problem> {
    SANDBOXES.list(&app, &caller, params).await
}

/// Get a sandbox
#[utoipa::path(get, path = "/api/v1/sandboxes/{name}", tag = TAG, security(("bearer" = [])),
    params(("name" = String, Path, description = "Name of the sandbox")),
    responses((status = 200, body = RoutingTargetView), Refusals))]
async fn get_sandbox(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<Json<RoutingTargetView>, Problem> {
    SANDBOXES.get(&app, &caller, &name).await
}

/// Register a sandbox, or report whether it is ready
///
/// Steps whose routing context names it start when it is ready.
#[utoipa::path(put, path = "/api/v1/sandboxes/{name}", tag = TAG, security(("bearer" = [])),
    params(("name" = String, Path, description = "Name of the sandbox")), request_body = RoutingTargetState,
    responses((status = 200, body = RoutingTargetView),
        (status = 409, body = Refused, description = "The tenant has reached its maximum number of sandboxes"),
        Refusals, BodyRefusals))]
async fn put_sandbox(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
    JsonBody(state): JsonBody<RoutingTargetState>,
) -> Result<Json<RoutingTargetView>, Problem> {
    SANDBOXES.put_state(&app, &caller, &name, state).await
}

/// Delete a sandbox
///
/// Steps that wait for it continue to wait until it is registered again, or until their timeout.
#[utoipa::path(delete, path = "/api/v1/sandboxes/{name}", tag = TAG, security(("bearer" = [])),
    params(("name" = String, Path, description = "Name of the sandbox")),
    responses((status = 204), Refusals))]
async fn delete_sandbox(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<StatusCode, Problem> {
    SANDBOXES.delete(&app, &caller, &name).await
}
