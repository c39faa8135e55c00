//! The captured log of a step, as bytes.

use super::outputs::{find_step, send};
use super::ranged::{Content, respond};
use super::{TAG, load};
use crate::app::App;
use crate::auth::Caller;
use crate::body::Params;
use crate::ids;
use crate::problem::Problem;
use crate::routes::shared::Refusals;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::Response;
use serde::Deserialize;
use std::sync::Arc;
use utoipa::ToSchema;
use windlass_kernel::ExecutionId;
use windlass_protocol::{Line, Stream};
use windlass_store::sqlite::SqliteReader;
use windlass_store::{Position, Reader as _};

/// Chunks of the log that are read at a time.
const PAGE: usize = 64;
/// Maximum bytes of the log of a running step; the whole log is available when it has ended.
const RUNNING_BYTES_MAX: usize = 4 << 20;

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
    let execution = load(&app, &caller, &id).await?;
    let found = find_step(&execution.status, &step)?;
    let logs = found["logs"].as_array().map(Vec::as_slice).unwrap_or_default();
    if let Some(log) = logs.iter().find(|log| log["stream"] == stream.name()) {
        return send(&app, &caller, Some(log), ("log", stream.name()), &headers).await;
    }
    let id = ids::execution(&id)?;
    let read = move |reader: &mut SqliteReader| read_lines(reader, id, &step, stream);
    let text = app.readers.of(&caller.tenant).read(read).await?;
    respond(Content::Value(text), &HeaderValue::from_static("text/plain; charset=utf-8"), &headers).await
}

/// Reads the lines of the newest run of a step.
fn read_lines(
    reader: &mut SqliteReader,
    id: ExecutionId,
    step: &str,
    stream: StreamName,
) -> Result<Vec<u8>, Problem> {
    let (mut text, mut after, mut run) = (Vec::new(), Position(0), None);
    loop {
        let chunks = reader.logs(id, after, PAGE)?;
        let is_last = chunks.len() < PAGE;
        for chunk in chunks {
            after = chunk.position;
            if chunk.step != step {
                continue;
            }
            if run != Some(chunk.run) {
                run = Some(chunk.run);
                text.clear();
            }
            let lines: Vec<Line> = serde_json::from_slice(&chunk.lines).map_err(Problem::internal)?;
            for line in lines.iter().filter(|line| StreamName::of(line.stream) == Some(stream)) {
                text.extend_from_slice(line.text.as_bytes());
                text.push(b'\n');
            }
        }
        if is_last || text.len() > RUNNING_BYTES_MAX {
            text.truncate(RUNNING_BYTES_MAX);
            return Ok(text);
        }
    }
}
