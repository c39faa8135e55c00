//! `/healthz`, `/readyz` and `/metrics`, for supervisors, load balancers and Prometheus.

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
pub(crate) struct Health {
    /// Always `ok`.
    status: String,
}

impl Health {
    fn ok() -> Json<Health> {
        Json(Health { status: "ok".to_owned() })
    }
}

pub(crate) fn router() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(healthz)).routes(routes!(readyz)).routes(routes!(measured))
}

/// Report that the process runs
#[utoipa::path(get, path = "/healthz", tag = "operations", responses((status = 200, body = Health)))]
async fn healthz() -> Json<Health> {
    Health::ok()
}

/// Report whether the server accepts requests
///
/// Recovery is complete, and the engine and the worker pool respond. Both are asked each time, so that a stalled thread is
/// detected.
#[utoipa::path(get, path = "/readyz", tag = "operations", responses(
    (status = 200, body = Health),
    (status = 503, body = Refused, description = "The server is starting, stopping or stalled"),
))]
async fn readyz(State(app): State<Arc<App>>) -> Result<Json<Health>, Problem> {
    app.is_ready().await?;
    Ok(Health::ok())
}

/// Get metrics in the format of Prometheus
#[utoipa::path(get, path = "/metrics", tag = "operations", responses(
    (status = 200, body = String, content_type = "text/plain"),
    (status = 429, body = Refused, description = "The address sends too many requests without a token"),
    (status = 503, body = Refused, description = "The engine is overloaded or stopping"),
))]
async fn measured(State(app): State<Arc<App>>) -> Result<String, Problem> {
    metrics::render(&app).await
}
