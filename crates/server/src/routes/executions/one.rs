//! One execution: all of it, how it stands, its picture.

use super::links::Links;
use super::shapes::{ExecutionResponse, Progress};
use super::{TAG, told};
use crate::app::App;
use crate::auth::Caller;
use crate::body::Params;
use crate::problem::Problem;
use crate::routes::shared::Refusals;
use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;
use utoipa::ToSchema;
use windlass_dialects::graph::Format;
use windlass_dialects::view::{execution_id, progress, status as status_of};

/// An execution with its nodes, inputs, outputs and errors.
#[utoipa::path(get, path = "/api/v1/executions/{executionId}", tag = TAG, security(("bearer" = [])),
    params(("executionId" = String, Path, description = "`exec_…`, or the bare UUID")),
    responses((status = 200, body = ExecutionResponse), Refusals))]
pub async fn get(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Json<Value>, Problem> {
    let (execution, mut whole) =
        told(&app, &caller, &id, |told| (told.facts.execution, told.response())).await?;
    whole["links"] = json!(Links::of(&app, &headers, execution));
    if let Some(at) = estimated_completion(&app, &caller, &whole).await? {
        whole["estimatedCompletion"] = json!(at);
    }
    Ok(Json(whole))
}

/// When it may have ended, by what its workflow took before; nothing where it has ended, or nothing is known.
async fn estimated_completion(
    app: &Arc<App>,
    caller: &Caller,
    whole: &Value,
) -> Result<Option<String>, Problem> {
    let started = whole["startedAt"].as_str().filter(|_| whole["completedAt"].is_null());
    let (Some(started), Some(workflow)) = (started, whole["workflowId"].as_str()) else { return Ok(None) };
    let (started, workflow) = (crate::routes::shared::instant("", started)?, crate::ids::workflow(workflow)?);
    let estimate = app.estimates.of(app, &caller.tenant, workflow).await?;
    Ok(estimate.map(|ms| windlass_dialects::view::time(started.plus(ms))))
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Standing {
    execution_id: String,
    status: String,
    #[schema(value_type = Progress)]
    progress: Value,
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
        status: status_of(told.story.state.phase()).to_owned(),
        progress: progress(told.net, told.story, &told.facts.leases),
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
    Ok(([(header::CONTENT_TYPE, kind)], picture).into_response())
}
