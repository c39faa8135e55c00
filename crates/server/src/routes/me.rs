//! `GET /api/v1/me`: the caller of the request.

use super::shared::Refusals;
use crate::app::App;
use crate::auth::{Caller, Role};
use axum::Json;
use serde::Serialize;
use std::sync::Arc;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Me {
    /// The value of `actorUserId` in signals, and the actor in the audit log
    id: String,
    role: Role,
    /// Roles besides the built-in one
    roles: Vec<String>,
    tenant_id: String,
}

pub(crate) fn router() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(me))
}

/// Get the caller
#[utoipa::path(get, path = "/api/v1/me", tag = "tokens", security(("bearer" = [])),
    responses((status = 200, body = Me), Refusals))]
async fn me(caller: Caller) -> Json<Me> {
    let Caller { id, role, roles, tenant, .. } = caller;
    Json(Me { id, role, roles: roles.to_vec(), tenant_id: tenant.to_string() })
}
