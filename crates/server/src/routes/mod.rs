//! All routes, one file per noun. Each router carries its part of the OpenAPI document.

pub(crate) mod actions;
mod audit;
pub(crate) mod clusters;
mod dead_letters;
mod document;
pub(crate) mod executions;
mod health;
mod hooks;
mod long_poll;
mod me;
mod nodes;
pub(crate) mod paging;
mod plan_executions;
pub(crate) mod plans;
mod quarantine;
mod route_groups;
mod runner_groups;
mod runners;
mod sandboxes;
mod schedule_runs;
mod schedules;
mod schemas;
mod secrets;
mod session;
pub(crate) mod shared;
mod sse;
mod tasks;
mod tenants;
mod tokens;
mod webhook_deliveries;
mod webhook_secret;
mod websocket;
mod worker_artifacts;
mod workers;
pub(crate) mod workflows;

pub(crate) use executions::Estimates;
pub(crate) use executions::stored_of;
pub use executions::{ExecutionFilter, ListedExecution};
pub(crate) use session::{delete_ended_sessions, sign_in_path};

use crate::app::App;
use crate::page;
use crate::problem::{Problem, ProblemCode};
use axum::Json;
use axum::Router;
use axum::http::{HeaderMap, Method, Uri};
use axum::response::Response;
use std::sync::Arc;
use utoipa::openapi::OpenApi;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::{Modify, OpenApi as _};
use utoipa_axum::router::OpenApiRouter;

/// Name of the security scheme in the OpenAPI document.
const BEARER: &str = "bearer";

#[derive(utoipa::OpenApi)]
#[openapi(
    info(title = "Windlass", description = "Workflows that survive crashes."),
    modifiers(&Bearer)
)]
struct Document;

struct Bearer;

impl Modify for Bearer {
    fn modify(&self, document: &mut OpenApi) {
        let scheme =
            HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some("A token or a JWT")).build();
        let components = document.components.get_or_insert_default();
        components.add_security_scheme(BEARER, SecurityScheme::Http(scheme));
    }
}

fn routers() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::with_openapi(Document::openapi())
        .merge(health::router())
        .merge(quarantine::router())
        .merge(tenants::router())
        .merge(session::router())
        .merge(tokens::router())
        .merge(me::router())
        .merge(secrets::router())
        .merge(webhook_secret::router())
        .merge(audit::router())
        .merge(workflows::router())
        .merge(nodes::router())
        .merge(schemas::router())
        .merge(executions::router())
        .merge(tasks::router())
        .merge(workers::router())
        .merge(runners::router())
        .merge(worker_artifacts::router())
        .merge(runner_groups::router())
        .merge(actions::router())
        .merge(plans::router())
        .merge(plan_executions::router())
        .merge(clusters::router())
        .merge(sandboxes::router())
        .merge(route_groups::router())
        .merge(sse::router())
        .merge(hooks::router())
        .merge(webhook_deliveries::router())
        .merge(schedules::router())
        .merge(schedule_runs::router())
        .merge(dead_letters::router())
        .merge(websocket::router())
}

/// Returns the OpenAPI document of all routes.
#[must_use]
pub fn openapi() -> OpenApi {
    let mut document = routers().into_openapi();
    document::complete(&mut document);
    document
}

pub(crate) fn router(app: Arc<App>) -> Router {
    let (router, mut document) = routers().split_for_parts();
    document::complete(&mut document);
    let document = Arc::new(document);
    router
        .route("/api/openapi.json", axum::routing::get(move || async move { Json(document) }))
        .fallback(unknown_route)
        .method_not_allowed_fallback(unknown_method)
        .layer(axum::middleware::from_fn_with_state(app.clone(), crate::audit::write_refused))
        .layer(axum::middleware::from_fn_with_state(app.clone(), crate::edge::limit_anonymous))
        .layer(axum::middleware::from_fn(crate::metrics::record_request))
        .layer(axum::middleware::from_fn(crate::edge::set_headers))
        .with_state(app)
}

/// Returns the web page for browsers, and its files; everything else is an error.
async fn unknown_route(method: Method, uri: Uri, headers: HeaderMap) -> Result<Response, Problem> {
    match page::asset(uri.path(), &headers) {
        Some(file) if method.is_safe() => Ok(file),
        _ if page::is_page_request(&method, &uri, &headers) => Ok(page::index(&headers)),
        _ => Err(Problem::not_found("route", uri.path())),
    }
}

async fn unknown_method() -> Problem {
    let message = "the route does not support this method";
    Problem::new(ProblemCode::MethodNotAllowed, message)
}
