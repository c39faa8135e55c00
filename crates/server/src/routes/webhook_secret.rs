//! `/api/v1/webhook-secret`: the secret that signs the webhooks of a tenant.

use super::shared::Refusals;
use crate::app::App;
use crate::auth::{Caller, Permission};
use crate::problem::Problem;
use crate::webhook_secrets::Signing;
use axum::Json;
use axum::extract::State;
use serde::Serialize;
use serde_json::json;
use std::sync::Arc;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use windlass_store::Entry;
use windlass_views::time;

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WebhookSecretView {
    /// `whsec_` and the key as base64, the format of Standard Webhooks libraries
    secret: String,
    created_at: String,
    /// Time until which the previous secret signs, too
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    previous_until: Option<String>,
}

impl From<Signing> for WebhookSecretView {
    fn from(signing: Signing) -> WebhookSecretView {
        WebhookSecretView {
            secret: signing.current.to_text(),
            created_at: time(signing.since),
            previous_until: signing.previous.map(|(_, until)| time(until)),
        }
    }
}

pub(crate) fn router() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(get_webhook_secret)).routes(routes!(rotate_webhook_secret))
}

/// Get the secret that signs webhooks
#[utoipa::path(get, path = "/api/v1/webhook-secret", tag = "webhooks", security(("bearer" = [])),
    responses((status = 200, body = WebhookSecretView), Refusals))]
async fn get_webhook_secret(
    State(app): State<Arc<App>>,
    caller: Caller,
) -> Result<Json<WebhookSecretView>, Problem> {
    caller.may(Permission::Administer)?;
    let (shared, tenant) = (app.clone(), caller.tenant.clone());
    let signing = app.run_blocking(move || shared.webhook_secrets.of(&tenant)).await??;
    // The audit entry is on disk before the secret is returned.
    let audit = caller.audit_entry("webhook-secret.read", "webhook-secret", json!({}));
    app.store_entries(vec![Entry::Audit(Box::new(audit))]).await?;
    Ok(Json(signing.into()))
}

/// Replace the secret that signs webhooks
///
/// For one day, webhooks carry signatures of both the new and the previous secret.
#[utoipa::path(post, path = "/api/v1/webhook-secret/rotate", tag = "webhooks", security(("bearer" = [])),
    responses((status = 200, body = WebhookSecretView), Refusals))]
async fn rotate_webhook_secret(
    State(app): State<Arc<App>>,
    caller: Caller,
) -> Result<Json<WebhookSecretView>, Problem> {
    caller.may(Permission::Administer)?;
    let (shared, tenant) = (app.clone(), caller.tenant.clone());
    let audit = caller.audit_entry("webhook-secret.rotate", "webhook-secret", json!({}));
    let signing = app.run_blocking(move || shared.webhook_secrets.rotate(&tenant, audit)).await??;
    Ok(Json(signing.into()))
}
