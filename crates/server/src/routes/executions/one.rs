//! One execution: all of it, how it stands, its picture.

use super::links::Links;
use super::{TAG, told};
use crate::app::App;
use crate::auth::Caller;
use crate::body::Params;
use crate::problem::Problem;
use crate::routes::shared::Refusals;
use crate::told::Told;
use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::ToSchema;
use windlass_dialects::graph::Format;
use windlass_dialects::view::{
    ExecutionStatus, ExecutionView, Progress, Waiting, execution_id, execution_status, progress, waiting_for,
};
use windlass_kernel::Millis;
use windlass_store::WorkflowId;

/// Nodes that are written as JSON on the thread of the request; more would keep other requests waiting.
const NODES_MAX: usize = 1_000;

/// The document's WorkflowExecutionResponse.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExecutionResponse {
    #[serde(flatten)]
    whole: ExecutionView,
    /// While it goes on, by what its workflow took before.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime, nullable = false)]
    estimated_completion: Option<String>,
    links: Links,
}

/// An execution with its nodes, inputs, outputs and errors.
#[utoipa::path(get, path = "/api/v1/executions/{executionId}", tag = TAG, security(("bearer" = [])),
    params(("executionId" = String, Path, description = "`exec_…`, or the bare UUID")),
    responses((status = 200, body = ExecutionResponse), Refusals))]
pub async fn get(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let tell = |told: &Told<'_>| {
        (told.facts.execution, told.stored.workflow, told.story.started_at, told.response())
    };
    let (execution, workflow, started_at, whole) = told(&app, &caller, &id, tell).await?;
    let began = started_at.filter(|_| whole.completed_at.is_none());
    let estimated_completion = match (began, workflow) {
        (Some(began), Some(workflow)) => estimated_completion(&app, &caller, began, workflow).await?,
        _ => None,
    };
    let links = Links::of(&app, &headers, execution);
    let is_long = whole.node_executions.len() > NODES_MAX;
    let response = ExecutionResponse { whole, estimated_completion, links };
    match is_long {
        true => app.aside(move || Json(response).into_response()).await,
        false => Ok(Json(response).into_response()),
    }
}

/// When it may have ended, by what its workflow took before; nothing where nothing is known.
async fn estimated_completion(
    app: &Arc<App>,
    caller: &Caller,
    began: Millis,
    workflow: WorkflowId,
) -> Result<Option<String>, Problem> {
    let estimate = app.estimates.of(app, &caller.tenant, workflow).await?;
    Ok(estimate.map(|ms| windlass_dialects::view::time(began.plus(ms))))
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Standing {
    execution_id: String,
    status: ExecutionStatus,
    progress: Progress,
    /// What only people can move on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    waiting_for: Vec<Waiting>,
}

/// How it stands.
#[utoipa::path(get, path = "/api/v1/executions/{executionId}/status", tag = TAG, security(("bearer" = [])),
    params(("executionId" = String, Path)),
    responses((status = 200, body = Standing), Refusals))]
pub async fn status(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Standing>, Problem> {
    let standing = told(&app, &caller, &id, |told| Standing {
        execution_id: execution_id(told.facts.execution),
        status: execution_status(told.story.state.phase()),
        progress: progress(told.net, told.story, &told.facts.leases),
        waiting_for: waiting_for(told.net, told.story),
    });
    Ok(Json(standing.await?))
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Picture {
    #[param(inline)]
    format: Option<Drawn>,
}

#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Drawn {
    Mermaid,
    Dot,
    Svg,
}

/// Its definition as a picture, coloured by what became of each step.
#[utoipa::path(get, path = "/api/v1/executions/{executionId}/graph", tag = TAG, security(("bearer" = [])),
    params(("executionId" = String, Path), Picture),
    responses((status = 200, description = "A text: Mermaid (the default), Graphviz or SVG",
            content((String = "text/plain"), (String = "text/vnd.graphviz"), (String = "image/svg+xml"))), Refusals))]
pub async fn graph(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    Params(asked): Params<Picture>,
) -> Result<Response, Problem> {
    let (format, kind) = match asked.format {
        Some(Drawn::Mermaid) | None => (Format::Mermaid, "text/plain; charset=utf-8"),
        Some(Drawn::Dot) => (Format::Dot, "text/vnd.graphviz"),
        Some(Drawn::Svg) => (Format::Svg, "image/svg+xml"),
    };
    let picture = told(&app, &caller, &id, move |told| told.picture(format)).await?;
    let picture = picture.map_err(|large| Problem::invalid("format", large.to_string()))?;
    Ok(([(header::CONTENT_TYPE, kind)], picture).into_response())
}
