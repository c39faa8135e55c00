//! `/api/v1/secrets`: values that steps use by name. They can be set and never be read.

use super::shared::{BodyRefusals, Refusals};
use crate::app::App;
use crate::auth::{Caller, Permission};
use crate::body::JsonBody;
use crate::problem::{Problem, Refused};
use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use windlass_secrets::{Weakness, check_name, check_value};
use windlass_store::StoredSecret;
use windlass_views::time;

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SecretView {
    name: String,
    /// Incremented with every value that is set, from 1
    #[schema(minimum = 1)]
    version: u32,
    created_at: String,
    updated_at: String,
    /// Reasons why the value is not redacted in outputs; in the response to a change only
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    warnings: Vec<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SecretList {
    secrets: Vec<SecretView>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewSecret {
    // The bounds are in bytes, of which a character has up to four.
    #[schema(min_length = 1, max_length = 65536, write_only)]
    value: String,
}

impl From<StoredSecret> for SecretView {
    fn from(secret: StoredSecret) -> SecretView {
        SecretView {
            name: secret.name,
            version: secret.version,
            created_at: time(secret.created_at),
            updated_at: time(secret.updated_at),
            warnings: Vec::new(),
        }
    }
}

pub(crate) fn router() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(list_secrets)).routes(routes!(put_secret, delete_secret))
}

/// List the names of secrets
#[utoipa::path(get, path = "/api/v1/secrets", tag = "secrets", security(("bearer" = [])),
    responses((status = 200, body = SecretList), Refusals))]
async fn list_secrets(State(app): State<Arc<App>>, caller: Caller) -> Result<Json<SecretList>, Problem> {
    caller.may(Permission::Edit)?;
    let (vault, tenant) = (app.secrets.clone(), caller.tenant.clone());
    let secrets = app.run_blocking(move || vault.with(|vault| vault.list(&tenant))).await??;
    Ok(Json(SecretList { secrets: secrets.into_iter().map(SecretView::from).collect() }))
}

/// Set a secret
///
/// The value is encrypted and can never be read. A value that can be guessed, such as a PIN, is stored with a warning: it is
/// not redacted in outputs of steps.
#[utoipa::path(put, path = "/api/v1/secrets/{name}", tag = "secrets", security(("bearer" = [])),
    params(("name" = String, Path, description = "Letters, digits and `_`, `-`, `.`, `/`")), request_body = NewSecret,
    responses((status = 200, body = SecretView),
        (status = 409, body = Refused, description = "The tenant has reached its maximum number of secrets"), Refusals,
        BodyRefusals))]
async fn put_secret(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
    JsonBody(request): JsonBody<NewSecret>,
) -> Result<Json<SecretView>, Problem> {
    caller.may(Permission::Administer)?;
    check_name(&name).map_err(|refused| Problem::invalid("name", refused.to_string()))?;
    check_value(&request.value).map_err(|refused| Problem::invalid("value", refused.to_string()))?;
    let (vault, tenant) = (app.secrets.clone(), caller.tenant.clone());
    let audit = caller.audit_entry("secret.set", &name, json!({}));
    let warnings = Weakness::of(&request.value).into_iter().map(|weakness| weakness.to_string()).collect();
    let set = move || vault.with(|vault| vault.set(&tenant, &name, &request.value, Some(audit)));
    let stored = app.run_blocking(set).await??;
    Ok(Json(SecretView { warnings, ..stored.into() }))
}

/// Delete a secret
#[utoipa::path(delete, path = "/api/v1/secrets/{name}", tag = "secrets", security(("bearer" = [])),
    params(("name" = String, Path, description = "Name of the secret")),
    responses((status = 204), Refusals))]
async fn delete_secret(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<StatusCode, Problem> {
    caller.may(Permission::Administer)?;
    let (vault, tenant, gone) = (app.secrets.clone(), caller.tenant.clone(), name.clone());
    let audit = caller.audit_entry("secret.delete", &name, json!({}));
    let delete = move || vault.with(|vault| vault.delete(&tenant, &gone, Some(&audit)));
    let was_there = app.run_blocking(delete).await??;
    if !was_there {
        return Err(Problem::not_found("secret", &name));
    }
    Ok(StatusCode::NO_CONTENT)
}
