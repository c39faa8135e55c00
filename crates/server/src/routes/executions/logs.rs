//! `GET /api/v1/executions/{executionId}/logs`

use super::{TAG, stored_of};
use crate::app::App;
use crate::auth::{Caller, Permission};
use crate::body::Params;
use crate::ids;
use crate::problem::Problem;
use crate::routes::paging::{Paged, Pagination};
use crate::routes::shared;
use crate::routes::shared::Refusals;
use axum::Json;
use axum::extract::{Path, State};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::fmt;
use std::sync::Arc;
use utoipa::ToSchema;
use windlass_dialects::view::{NodeLabel, time};
use windlass_kernel::{ExecutionId, Millis, Net};
use windlass_protocol::{Line, Stream};
use windlass_store::{Position, Reader, StoredLog};

const LIST: Paged = Paged { name: "logs", usual: 100, most: 1_000 };
/// Chunks read at a time.
const PAGE: usize = 64;
/// Chunks that one request looks through. A filter that finds little gives a short page, and a cursor to go on from.
const CHUNKS_MAX: usize = 2_000;

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub struct Asked {
    node_id: Option<String>,
    /// Exactly this one.
    #[param(inline)]
    level: Option<Level>,
    /// Later than this.
    #[param(format = DateTime)]
    since: Option<String>,
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    cursor: Option<String>,
}

#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    Debug,
    Info,
    Warn,
    Error,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct Logs {
    /// Oldest first.
    logs: Vec<Entry>,
    pagination: Pagination,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    id: String,
    #[schema(format = DateTime)]
    timestamp: String,
    level: String,
    node_id: String,
    node_name: String,
    message: String,
    #[schema(value_type = Object)]
    data: Value,
}

/// What the nodes of an execution said.
#[utoipa::path(get, path = "/api/v1/executions/{executionId}/logs", tag = TAG, security(("bearer" = [])),
    params(("executionId" = String, Path), Asked),
    responses((status = 200, body = Logs), Refusals))]
pub async fn logs(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    Params(asked): Params<Asked>,
) -> Result<Json<Logs>, Problem> {
    caller.may(Permission::View)?;
    let id = ids::execution(&id)?;
    let (wanted, stories) = (Wanted::of(&asked)?, app.stories.clone());
    let logs = app
        .readers
        .read(move |reader| {
            let stored = stored_of(reader, &caller, id)?;
            let net = stories.net(reader, stored.state.head.net)?;
            wanted.page(reader, id, net.as_deref())
        })
        .await?;
    Ok(Json(logs))
}

/// A line by its chunk and its number there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place(i64, usize);

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

struct Wanted {
    node: Option<String>,
    level: Option<&'static str>,
    since: Option<Millis>,
    limit: usize,
    after: Option<Place>,
}

impl Wanted {
    fn of(asked: &Asked) -> Result<Wanted, Problem> {
        let level = asked.level.map(|level| match level {
            Level::Debug => "debug",
            Level::Info => "info",
            Level::Warn => "warn",
            Level::Error => "error",
        });
        let read = |text: &str| {
            let (chunk, line) = text.split_once('.')?;
            Some(Place(chunk.parse().ok()?, line.parse().ok()?))
        };
        Ok(Wanted {
            node: asked.node_id.clone(),
            level,
            since: asked.since.as_deref().map(|text| shared::instant("since", text)).transpose()?,
            limit: LIST.limit(asked.limit)?,
            after: LIST.place(asked.cursor.as_deref(), read)?,
        })
    }

    fn page(&self, reader: &mut impl Reader, id: ExecutionId, net: Option<&Net>) -> Result<Logs, Problem> {
        let mut logs = Vec::new();
        // The chunk of the last line is read again for the lines after it.
        let mut chunk_after = Position(self.after.map_or(0, |place| place.0.saturating_sub(1)));
        for _ in 0..CHUNKS_MAX.div_ceil(PAGE) {
            let chunks = reader.logs(id, chunk_after, PAGE)?;
            for chunk in &chunks {
                for (place, line) in lines(chunk)? {
                    if !self.fits(chunk, place, &line) {
                        continue;
                    }
                    if logs.len() == self.limit {
                        return Ok(page(logs, true));
                    }
                    logs.push((place, entry(place, chunk, line, net)));
                }
                chunk_after = chunk.position;
            }
            if chunks.len() < PAGE {
                return Ok(page(logs, false));
            }
        }
        // Nothing more fits in this chunk.
        let pagination = LIST.next(Some(Place(chunk_after.0, usize::MAX)));
        Ok(Logs { pagination, ..page(logs, true) })
    }

    fn fits(&self, chunk: &StoredLog, place: Place, line: &Line) -> bool {
        self.after.is_none_or(|after| place > after)
            && self.node.as_ref().is_none_or(|node| *node == chunk.step)
            && self.level.is_none_or(|wanted| wanted == line.level().name())
            && self.since.is_none_or(|since| Millis(line.at) > since)
    }
}

fn lines(chunk: &StoredLog) -> Result<impl Iterator<Item = (Place, Line)>, Problem> {
    let lines: Vec<Line> = serde_json::from_slice(&chunk.lines).map_err(Problem::internal)?;
    let position = chunk.position.0;
    Ok(lines.into_iter().enumerate().map(move |(index, line)| (Place(position, index), line)))
}

fn page(logs: Vec<(Place, Entry)>, has_more: bool) -> Logs {
    let pagination = LIST.next(logs.last().filter(|_| has_more).map(|(place, _)| *place));
    Logs { logs: logs.into_iter().map(|(_, entry)| entry).collect(), pagination }
}

fn entry(Place(position, index): Place, chunk: &StoredLog, line: Line, net: Option<&Net>) -> Entry {
    let step = net.and_then(|net| net.find(&chunk.step).map(|step| NodeLabel::of(net.step(step)).name));
    let stream = match line.stream {
        Stream::Out => "stdout",
        Stream::Err => "stderr",
        Stream::Worker => "worker",
    };
    Entry {
        id: format!("log_{position:024x}{index:08x}"),
        timestamp: time(Millis(line.at)),
        level: line.level().name().to_owned(),
        node_id: chunk.step.clone(),
        node_name: step.unwrap_or_else(|| chunk.step.clone()),
        data: data(&line, stream, chunk.attempt),
        message: line.text,
    }
}

/// What the node gave along, and where the line comes from.
fn data(line: &Line, stream: &str, attempt: u32) -> Value {
    let mut data = json!({ "stream": stream, "attempt": attempt });
    match line.data.as_deref() {
        Some(Value::Object(given)) => {
            given.iter().for_each(|(key, value)| data[key] = value.clone());
        }
        Some(other) => data["given"] = other.clone(),
        None => {}
    }
    data
}
