//! `/api/v1/route-groups`: groups of sandboxes that steps of plans are routed to, and their readiness.

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
pub(super) const ROUTE_GROUPS: TargetNoun = TargetNoun {
    kind: TargetKind::RouteGroup,
    noun: "route group",
    audited: "route-group",
    list: Paged { name: "route-groups", usual: 50, most: 200 },
};

pub(crate) fn router() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(list_route_groups)).routes(routes!(
        put_route_group,
        get_route_group,
        delete_route_group
    ))
}

/// List route groups
#[utoipa::path(get, path = "/api/v1/route-groups", tag = TAG, security(("bearer" = [])), params(TargetParams),
    responses((status = 200, body = RoutingTargetList), Refusals))]
async fn list_route_groups(
    State(app): State<Arc<App>>,
    caller: Caller,
    params: Params<TargetParams>,
) -> Result<Json<RoutingTargetList>, Problem> {
    ROUTE_GROUPS.list(&app, &caller, params).await
}

/// Get a route group
#[utoipa::path(get, path = "/api/v1/route-groups/{name}", tag = TAG, security(("bearer" = [])),
    params(("name" = String, Path, description = "Name of the route group")),
    responses((status = 200, body = RoutingTargetView), Refusals))]
async fn get_route_group(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<Json<RoutingTargetView>, Problem> {
    ROUTE_GROUPS.get(&app, &caller, &name).await
}

/// Register a route group, or report whether it is ready
///
/// Steps whose routing context names it start when it is ready.
#[utoipa::path(put, path = "/api/v1/route-groups/{name}", tag = TAG, security(("bearer" = [])),
    params(("name" = String, Path, description = "Name of the route group")), request_body = RoutingTargetState,
    responses((status = 200, body = RoutingTargetView),
        (status = 409, body = Refused, description = "The tenant has reached its maximum number of route groups"),
        Refusals, BodyRefusals))]
async fn put_route_group(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
    JsonBody(state): JsonBody<RoutingTargetState>,
) -> Result<Json<RoutingTargetView>, Problem> {
    ROUTE_GROUPS.put_state(&app, &caller, &name, state).await
}

/// Delete a route group
///
/// Steps that wait for it continue to wait until it is registered again, or until their timeout.
#[utoipa::path(delete, path = "/api/v1/route-groups/{name}", tag = TAG, security(("bearer" = [])),
    params(("name" = String, Path, description = "Name of the route group")),
    responses((status = 204), Refusals))]
async fn delete_route_group(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<StatusCode, Problem> {
    ROUTE_GROUPS.delete(&app, &caller, &name).await
}
