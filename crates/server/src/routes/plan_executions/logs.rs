//! The captured log of a step, as bytes.

use super::outputs::{find_step, send};
use super::ranged::{Content, respond};
use super::{PlanExecution, TAG};
use crate::app::App;
use crate::auth::Caller;
use crate::body::Params;
use crate::database::DatabaseReader;
use crate::ids;
use crate::loaded::LoadedExecution;
use crate::problem::Problem;
use crate::routes::executions::view_execution;
use crate::routes::shared::Refusals;
use crate::step_log::{LogBounds, read_step_log};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::Response;
use serde::Deserialize;
use std::sync::Arc;
use utoipa::ToSchema;
use windlass_kernel::RunId;
use windlass_protocol::Stream;
use windlass_views::Sources;

/// Bounds of the log of a step that no worker has reported: one that runs, or whose end was not seen.
const BOUNDS: LogBounds = LogBounds { read_max: 64 << 20, text_max: 4 << 20 };

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct LogParams {
    /// `stdout` by default
    #[param(inline)]
    stream: Option<StreamName>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum StreamName {
    #[default]
    Stdout,
    Stderr,
}

impl StreamName {
    pub(super) fn name(self) -> &'static str {
        match self {
            StreamName::Stdout => "stdout",
            StreamName::Stderr => "stderr",
        }
    }

    /// Returns the stream of a line; None for lines of the worker.
    pub(super) fn of(stream: Stream) -> Option<StreamName> {
        match stream {
            Stream::Out => Some(StreamName::Stdout),
            Stream::Err => Some(StreamName::Stderr),
            Stream::Worker => None,
        }
    }
}

/// Get the log of a step
///
/// For a step that has not ended, the output so far. `Range` selects a part.
#[utoipa::path(get, path = "/api/v1/plan-executions/{id}/steps/{step}/logs", tag = TAG, security(("bearer" = [])),
    params(("id" = String, Path, description = "Id of the execution"), ("step" = String, Path, description = "Id of the step"),
        LogParams, ("Range" = Option<String>, Header, description = "`bytes=0-99`")),
    responses((status = 200, body = String, content_type = "text/plain"), (status = 206, body = String, content_type = "text/plain"),
        (status = 416, description = "The range is outside of the log"), Refusals))]
pub(super) async fn get_step_log(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path((id, step)): Path<(String, String)>,
    Params(params): Params<LogParams>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let stream = params.stream.unwrap_or_default();
    let wanted = step.clone();
    let view = move |loaded: &LoadedExecution<'_>| {
        // A log that no worker reported is read here, because more of it is shown than in an execution.
        let execution = PlanExecution::with_sources(loaded, Sources { log: &|_| None, ..loaded.sources })?;
        Some((execution, newest_run(loaded, &wanted)))
    };
    let found = view_execution(&app, &caller, &id, view).await?;
    let (execution, run) = found.ok_or_else(|| Problem::not_found("plan execution", &id))?;
    let found = find_step(&execution.status, &step)?;
    let logs = found["logs"].as_array().map(Vec::as_slice).unwrap_or_default();
    if let Some(log) = logs.iter().find(|log| log["stream"] == stream.name()) {
        return send(&app, &caller, Some(log), ("log", stream.name()), &headers).await;
    }
    let id = ids::execution(&id)?;
    let text = match run {
        None => Vec::new(),
        Some(run) => {
            let read = move |reader: &mut DatabaseReader| read_step_log(reader, id, run, BOUNDS);
            let log = app.readers.of(&caller.tenant).read(read).await?;
            match stream {
                StreamName::Stdout => log.stdout,
                StreamName::Stderr => log.stderr,
            }
        }
    };
    respond(Content::Value(text), &HeaderValue::from_static("text/plain; charset=utf-8"), &headers).await
}

/// Returns the newest run of a step.
fn newest_run(loaded: &LoadedExecution<'_>, step: &str) -> Option<RunId> {
    loaded.history.whole().rfind(|firing| loaded.net.step(firing.step).name == step).map(|firing| firing.run)
}
