//! The graph of a version.
#![expect(unused_qualifications, reason = "the macro for parameters writes them")]

use super::current;
use crate::app::App;
use crate::auth::{Caller, Permission};
use crate::body::Params;
use crate::problem::Problem;
use crate::routes::executions::Drawn;
use crate::routes::shared::Refusals;
use axum::extract::{Path, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use std::sync::Arc;
use utoipa::IntoParams;
use windlass_dialects::graph::draw;
use windlass_store::{Catalog, Reader};
use windlass_views::Graph;

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct GraphParams {
    #[param(inline)]
    format: Option<Drawn>,
    /// Default: the newest
    #[param(minimum = 1)]
    version: Option<u32>,
}

/// Draw a version of a workflow
#[utoipa::path(get, path = "/api/v1/workflows/{id}/graph", tag = "workflows", security(("bearer" = [])),
    params(("id" = String, Path, description = "The workflow's id"), GraphParams),
    responses((status = 200, description = "Mermaid (the default), Graphviz, SVG, or nodes and edges as JSON",
        content((String = "text/plain"), (String = "text/vnd.graphviz"), (String = "image/svg+xml"),
            (Graph = "application/json"))), Refusals))]
pub(crate) async fn workflow_graph(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    Params(params): Params<GraphParams>,
) -> Result<Response, Problem> {
    caller.may(Permission::View)?;
    app.answers.admit(&caller.tenant).await?;
    let (format, kind) = params.format.unwrap_or_default().format();
    let workflow = current(&app, &caller, &id).await?.workflow.id;
    let tenant = caller.tenant.clone();
    let readers = app.readers.of(&tenant);
    let read = readers.look(move |reader| {
        let Some(version) = reader.version(&tenant, workflow, params.version)? else { return Ok(None) };
        reader.net(version.net)
    });
    let missing = || {
        Problem::not_found("version", &params.version.map(|version| version.to_string()).unwrap_or_default())
    };
    let net = read.await?.ok_or_else(missing)?;
    let picture = app.run_blocking(move || draw(&net, None, format)).await?;
    let picture = picture.map_err(|large| Problem::invalid("format", large.to_string()))?;
    Ok(([(header::CONTENT_TYPE, kind)], picture).into_response())
}
