//! `GET /api/v1/me`: the caller of the request.

use super::shared::Refusals;
use crate::app::App;
use crate::auth::{Caller, Permission, Role};
use crate::problem::Problem;
use axum::Json;
use axum::extract::State;
use serde::Serialize;
use std::sync::Arc;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use windlass_views::time;

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Me {
    /// The value of `actorUserId` in signals, and the actor in the audit log
    id: String,
    role: Role,
    /// Roles besides the built-in one
    roles: Vec<String>,
    tenant_id: String,
    /// Whether the caller may act for other tenants
    operator: bool,
    permissions: Vec<PermissionName>,
    /// Time at which the credential expires; absent if it does not
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    expires_at: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PermissionName {
    View,
    Execute,
    Edit,
    Delete,
    Administer,
    Work,
}

const PERMISSIONS: [(Permission, PermissionName); 6] = [
    (Permission::View, PermissionName::View),
    (Permission::Execute, PermissionName::Execute),
    (Permission::Edit, PermissionName::Edit),
    (Permission::Delete, PermissionName::Delete),
    (Permission::Administer, PermissionName::Administer),
    (Permission::Work, PermissionName::Work),
];

impl Me {
    pub(crate) fn of(app: &App, caller: &Caller) -> Me {
        let permissions = PERMISSIONS.iter().filter(|(permission, _)| caller.role.may(*permission));
        Me {
            id: caller.id.clone(),
            role: caller.role,
            roles: caller.roles.to_vec(),
            tenant_id: caller.tenant.to_string(),
            operator: caller.is_operator,
            permissions: permissions.map(|(_, name)| *name).collect(),
            expires_at: caller.ends_at(app).map(time),
        }
    }
}

pub(crate) fn router() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(me))
}

/// Get the caller
#[utoipa::path(get, path = "/api/v1/me", tag = "tokens", security(("bearer" = [])),
    responses((status = 200, body = Me), Refusals))]
async fn me(State(app): State<Arc<App>>, caller: Caller) -> Result<Json<Me>, Problem> {
    caller.may(Permission::View)?;
    Ok(Json(Me::of(&app, &caller)))
}
