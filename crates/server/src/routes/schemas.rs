//! `/api/v1/schemas`: the JSON Schemas of the dialects, for editors.

use super::shared::Refusals;
use crate::app::App;
use crate::auth::{Caller, Permission};
use crate::problem::Problem;
use axum::Json;
use axum::extract::Path;
use serde_json::Value;
use std::sync::Arc;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use windlass_dialects::Dialect;

pub(crate) fn router() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(get_dialect_schema))
}

/// Get the JSON Schema of a dialect
///
/// Editors complete and check definitions with it. `windlass schema` prints the same document.
#[utoipa::path(get, path = "/api/v1/schemas/{dialect}", tag = "workflows", security(("bearer" = [])),
    params(("dialect" = String, Path, description = "Name of the dialect, such as `playbook`")),
    responses((status = 200, body = Value), Refusals))]
async fn get_dialect_schema(caller: Caller, Path(dialect): Path<String>) -> Result<Json<Value>, Problem> {
    caller.may(Permission::View)?;
    let schema = Dialect::of_name(&dialect).and_then(Dialect::schema);
    schema.map(Json).ok_or_else(|| Problem::not_found("schema", &dialect))
}
