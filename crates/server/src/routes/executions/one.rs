//! One execution: its view, its status, its graph.

use super::links::Links;
use super::{TAG, view_execution};
use crate::answers::JsonParts;
use crate::app::App;
use crate::auth::Caller;
use crate::body::Params;
use crate::ids;
use crate::loaded::LoadedExecution;
use crate::people::show_tokens;
use crate::problem::Problem;
use crate::routes::long_poll::{LongPoll, PolledAnswer};
use crate::routes::shared::Refusals;
use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::ToSchema;
use windlass_dialects::graph::Format;
use windlass_store::WorkflowId;
use windlass_views::{
    ExecutionStatus, ExecutionView, Graph, Progress, Waiting, execution_id, execution_status, progress, time,
    waiting_for,
};

/// The document's WorkflowExecutionResponse.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ExecutionResponse {
    #[serde(flatten)]
    whole: ExecutionView,
    /// Estimated end of an execution that runs, by the durations of its workflow.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime, nullable = false)]
    estimated_completion: Option<String>,
    links: Links,
}

/// Get an execution with its nodes, inputs, outputs and errors
///
/// A response has about ten megabytes at most. The newest results are included; every other value is replaced by
/// `{"$omitted": true, "bytes": N, "url": …}`, and `shortened` counts the omitted ones.
#[utoipa::path(get, path = "/api/v1/executions/{executionId}", tag = TAG, security(("bearer" = [])),
    params(("executionId" = String, Path, description = "`exec_…`, or the bare UUID")),
    responses((status = 200, body = ExecutionResponse), Refusals))]
pub(crate) async fn get(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<JsonParts, Problem> {
    app.answers.admit(&caller.tenant).await?;
    let execution = ids::execution(&id)?;
    let links = Links::of(&app, &headers, execution);
    let mut estimate = None;
    loop {
        let write_answer = {
            let (app, caller, links) = (app.clone(), caller.clone(), links.clone());
            move |loaded: &LoadedExecution<'_>| write_response(&app, &caller, loaded, links, estimate)
        };
        match view_execution(&app, &caller, &id, write_answer).await?? {
            WriteResult::Body(answer) => return Ok(answer),
            WriteResult::NeedsEstimate(workflow) => {
                estimate = Some(app.estimates.of(&app, &caller.tenant, workflow).await?);
            }
        }
    }
}

enum WriteResult {
    Body(JsonParts),
    /// The execution has not ended, and the usual duration of its workflow must be read first.
    NeedsEstimate(WorkflowId),
}

/// Writes the response on the thread that read the execution: it may be large, and no other request waits for that
/// thread.
fn write_response(
    app: &App,
    caller: &Caller,
    loaded: &LoadedExecution<'_>,
    links: Links,
    estimate: Option<Option<u64>>,
) -> Result<WriteResult, Problem> {
    let began = loaded.history.started_at.filter(|_| loaded.history.ended_at.is_none());
    let estimated = match (began, loaded.stored.origin.workflow) {
        (Some(began), Some(workflow)) => match estimate.or_else(|| app.estimates.known(workflow)) {
            Some(estimate) => estimate.map(|ms| time(began.plus(ms))),
            None => return Ok(WriteResult::NeedsEstimate(workflow)),
        },
        _ => None,
    };
    let mut whole = loaded.response();
    show_tokens(app, caller, loaded, &mut whole.waiting_for)?;
    let response = ExecutionResponse { whole, estimated_completion: estimated, links };
    app.answers.json(&caller.tenant, &response).map(WriteResult::Body)
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Standing {
    execution_id: String,
    status: ExecutionStatus,
    progress: Progress,
    /// Tasks for people that it waits for, or its pause.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    waiting_for: Vec<Waiting>,
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(crate) struct StatusQuery {
    /// Milliseconds to wait until the execution has ended or is paused
    #[param(minimum = 0, maximum = 30000)]
    wait_ms: Option<u64>,
}

/// Get the status of an execution
#[utoipa::path(get, path = "/api/v1/executions/{executionId}/status", tag = TAG, security(("bearer" = [])),
    params(("executionId" = String, Path), StatusQuery),
    responses((status = 200, body = Standing), Refusals))]
pub(crate) async fn status(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    Params(asked): Params<StatusQuery>,
) -> Result<Json<Standing>, Problem> {
    let poll = LongPoll::begin(asked.wait_ms)?;
    let read = || async {
        let standing = standing(&app, &caller, &id).await?;
        let has_news = standing.status.is_ended() || standing.status == ExecutionStatus::Paused;
        Ok(PolledAnswer { answer: Json(standing), has_news })
    };
    poll.read_news(&app, ids::execution(&id)?, read).await
}

async fn standing(app: &Arc<App>, caller: &Caller, id: &str) -> Result<Standing, Problem> {
    let (shown, asking) = (app.clone(), caller.clone());
    let standing = view_execution(app, caller, id, move |loaded| {
        let mut waiting =
            waiting_for(loaded.net, loaded.history, &loaded.facts.children, &mut loaded.budget());
        show_tokens(&shown, &asking, loaded, &mut waiting)?;
        Ok::<_, Problem>(Standing {
            execution_id: execution_id(loaded.facts.execution),
            status: execution_status(loaded.history.state().phase()),
            progress: progress(loaded.net, loaded.history, &loaded.facts.leases),
            waiting_for: waiting,
        })
    });
    standing.await?
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Picture {
    #[param(inline)]
    format: Option<Drawn>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Drawn {
    #[default]
    Mermaid,
    Dot,
    Svg,
    Json,
}

impl Drawn {
    /// Returns the format with its media type.
    pub(crate) fn format(self) -> (Format, &'static str) {
        match self {
            Drawn::Mermaid => (Format::Mermaid, "text/plain; charset=utf-8"),
            Drawn::Dot => (Format::Dot, "text/vnd.graphviz"),
            Drawn::Svg => (Format::Svg, "image/svg+xml"),
            Drawn::Json => (Format::Json, "application/json"),
        }
    }
}

/// Draw the definition of an execution, coloured by the state of each step
#[utoipa::path(get, path = "/api/v1/executions/{executionId}/graph", tag = TAG, security(("bearer" = [])),
    params(("executionId" = String, Path), Picture),
    responses((status = 200, description = "Mermaid (the default), Graphviz, SVG, or nodes and edges as JSON",
            content((String = "text/plain"), (String = "text/vnd.graphviz"), (String = "image/svg+xml"), (Graph = "application/json"))), Refusals))]
pub(crate) async fn graph(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    Params(asked): Params<Picture>,
) -> Result<Response, Problem> {
    let (format, kind) = asked.format.unwrap_or_default().format();
    let picture = view_execution(&app, &caller, &id, move |loaded| loaded.picture(format)).await?;
    let picture = picture.map_err(|large| Problem::invalid("format", large.to_string()))?;
    Ok(([(header::CONTENT_TYPE, kind)], picture).into_response())
}
