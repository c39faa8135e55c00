//! `/healthz`, `/readyz` and `/metrics`, for whoever keeps the process running and sends it requests.

use crate::app::App;
use crate::metrics;
use crate::problem::{Problem, Refused};
use axum::Json;
use axum::extract::State;
use serde::Serialize;
use std::sync::Arc;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

#[derive(Debug, Serialize, ToSchema)]
pub struct Health {
    /// Always `ok`.
    status: String,
}

impl Health {
    fn ok() -> Json<Health> {
        Json(Health { status: "ok".to_owned() })
    }
}

pub fn router() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(healthz)).routes(routes!(readyz)).routes(routes!(measured))
}

/// The process runs.
#[utoipa::path(get, path = "/healthz", tag = "operations", responses((status = 200, body = Health)))]
async fn healthz() -> Json<Health> {
    Health::ok()
}

/// The engine has taken up what the last process left, answers, and the server takes requests. The lane and the pool are
/// asked each time, so that a thread that stands still is seen.
#[utoipa::path(get, path = "/readyz", tag = "operations", responses(
    (status = 200, body = Health),
    (status = 503, body = Refused, description = "Not yet, or not any more"),
))]
async fn readyz(State(app): State<Arc<App>>) -> Result<Json<Health>, Problem> {
    app.is_ready().await?;
    Ok(Health::ok())
}

/// What Prometheus reads.
#[utoipa::path(get, path = "/metrics", tag = "operations", responses(
    (status = 200, body = String, content_type = "text/plain"),
    (status = 429, body = Refused, description = "Too many requests without a token come from the address"),
    (status = 503, body = Refused, description = "The engine has too much to do, or is being stopped"),
))]
async fn measured(State(app): State<Arc<App>>) -> Result<String, Problem> {
    metrics::render(&app).await
}
