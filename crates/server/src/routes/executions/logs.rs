//! `GET /api/v1/executions/{executionId}/logs`

use super::{TAG, stored_of};
use crate::answers::{JsonParts, PAGE_BYTES_MAX};
use crate::app::App;
use crate::auth::{Caller, Permission};
use crate::body::Params;
use crate::histories::Histories;
use crate::ids;
use crate::journal_pages::{JournalCursor, PageRead};
use crate::loaded::ReadError;
use crate::problem::Problem;
use crate::readers::Slice;
use crate::routes::paging::{Paged, Pagination};
use crate::routes::shared;
use crate::routes::shared::Refusals;
use axum::extract::{Path, State};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use utoipa::ToSchema;
use windlass_artifact::json_bytes;
use windlass_kernel::{ExecutionId, Millis, Net, StepId};
use windlass_protocol::Line;
use windlass_store::{Position, Reader};
use windlass_views::{LifecycleLine, LogLevel, LogProjection, LogStream, NodeLabel, time};

const LIST: Paged = Paged { name: "logs", usual: 100, most: 1_000 };
/// Chunks of the log, and lines of the journal, that are read at a time.
const PAGE: usize = 64;
/// Maximum number of these that one request reads. A filter that matches few lines leads to a short page with a cursor.
const PAGES_MAX: usize = 32;
/// Approximate size of the JSON of a line without its text and data.
const ENTRY_BYTES: usize = 250;

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(crate) struct LogQuery {
    node_id: Option<String>,
    /// Only lines of exactly this level.
    #[param(inline)]
    level: Option<LogLevel>,
    /// Only lines after this time.
    #[param(format = DateTime)]
    since: Option<String>,
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    cursor: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Logs {
    /// Oldest first.
    logs: Vec<Entry>,
    pagination: Pagination,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Entry {
    id: String,
    #[schema(format = DateTime)]
    timestamp: String,
    #[schema(value_type = LogLevel)]
    level: &'static str,
    /// Absent if the line is about the whole execution.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    node_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    node_name: Option<String>,
    message: String,
    #[schema(value_type = Object)]
    data: Value,
}

/// List the log lines of an execution: changes of its nodes, and their output
///
/// Lines of level `debug` exist for executions with `debugMode`.
#[utoipa::path(get, path = "/api/v1/executions/{executionId}/logs", tag = TAG, security(("bearer" = [])),
    params(("executionId" = String, Path), LogQuery),
    responses((status = 200, body = Logs), Refusals))]
pub(crate) async fn logs(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    Params(asked): Params<LogQuery>,
) -> Result<JsonParts, Problem> {
    caller.may(Permission::View)?;
    app.answers.admit(&caller.tenant).await?;
    let id = ids::execution(&id)?;
    let (wanted, histories) = (LogFilter::of(&asked)?, app.histories.clone());
    let (readers, answers) = (app.readers.of(&caller.tenant), app.answers.clone());
    let logs = readers.read_in_slices((Some(wanted), None), move |reader, (wanted, reading), slice| {
        if let Some(wanted) = wanted.take() {
            let stored = stored_of(reader, &caller, id)?;
            let net = histories.net(reader, stored.state.head.net)?.ok_or(ReadError::NoNet(id))?;
            let wanted = LogFilter { debug: wanted.debug || stored.origin.options.debug, ..wanted };
            *reading = Some(Reading::new(wanted, id, net));
        }
        let page = reading
            .as_mut()
            .map_or(Ok(None), |reading: &mut Reading| reading.read_slice(reader, &histories, slice));
        page?.map(|logs| answers.json(&caller.tenant, &logs)).transpose()
    });
    logs.await
}

/// Position where the next page begins: in the journal, and in the log after a chunk and some lines of the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct LogCursor {
    journal: JournalCursor,
    chunk: i64,
    lines: usize,
}

impl fmt::Display for LogCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.journal, self.chunk, self.lines)
    }
}

impl LogCursor {
    fn read(text: &str) -> Option<LogCursor> {
        let (journal, log) = text.split_once('/')?;
        let (chunk, lines) = log.split_once('/')?;
        Some(LogCursor {
            journal: journal.parse().ok()?,
            chunk: chunk.parse().ok()?,
            lines: lines.parse().ok()?,
        })
    }
}

struct LogFilter {
    node: Option<String>,
    level: Option<&'static str>,
    since: Option<Millis>,
    limit: usize,
    from: LogCursor,
    /// Whether lines of level `debug` are wanted.
    debug: bool,
}

impl LogFilter {
    fn of(asked: &LogQuery) -> Result<LogFilter, Problem> {
        let level = asked.level.map(LogLevel::name);
        Ok(LogFilter {
            node: asked.node_id.clone(),
            level,
            since: asked.since.as_deref().map(|text| shared::parse_time("since", text)).transpose()?,
            limit: LIST.limit(asked.limit)?,
            from: LIST.place(asked.cursor.as_deref(), LogCursor::read)?.unwrap_or_default(),
            debug: level == Some("debug"),
        })
    }

    fn wants(&self, (at, entry): &(Millis, Entry)) -> bool {
        (self.debug || entry.level != "debug")
            && self.node.as_ref().is_none_or(|node| Some(node) == entry.node_id.as_ref())
            && self.level.is_none_or(|wanted| wanted == entry.level)
            && self.since.is_none_or(|since| *at > since)
    }
}

/// Lines of the log, each with the position after it.
type Lines = VecDeque<(LogCursor, StoredLine)>;

struct StoredLine {
    step: String,
    attempt: u32,
    id: String,
    line: Line,
}

/// Merges journal and log by time; each keeps its own order.
struct Reading {
    wanted: LogFilter,
    id: ExecutionId,
    net: Arc<Net>,
    place: LogCursor,
    logs: Vec<Entry>,
    /// Approximate bytes of the lines found.
    bytes: usize,
    /// Number of pages that it has read of each list.
    pages: usize,
    /// A page of the journal that a slice left unfinished.
    page: Option<PageRead<LogProjection>>,
}

impl Reading {
    fn new(wanted: LogFilter, id: ExecutionId, net: Arc<Net>) -> Reading {
        Reading { place: wanted.from, wanted, id, net, logs: Vec::new(), bytes: 0, pages: 0, page: None }
    }

    /// Returns None if the slice ends before the page is complete.
    fn read_slice(
        &mut self,
        reader: &mut impl Reader,
        histories: &Histories,
        slice: Slice,
    ) -> Result<Option<Logs>, Problem> {
        while self.pages < PAGES_MAX {
            let mut page = self.page.take().unwrap_or_else(|| {
                let first = LogProjection::new(self.id, &self.net);
                histories.lines.begin(self.id, first, self.place.journal, PAGE)
            });
            let Some((events, next)) = histories.lines.read(reader, &self.net, &mut page, slice)? else {
                self.page = Some(page);
                return Ok(None);
            };
            self.pages += 1;
            let (lines, more_lines) = self.lines(reader)?;
            let more = (next.is_some(), more_lines);
            match self.merge(events.into(), lines, more) {
                Stop::Full => return Ok(Some(self.page_of_logs(true))),
                Stop::Over => return Ok(Some(self.page_of_logs(false))),
                Stop::ReadOn if slice.is_over() => return Ok(None),
                Stop::ReadOn => {}
            }
        }
        Ok(Some(self.page_of_logs(true)))
    }

    fn lines(&self, reader: &mut impl Reader) -> Result<(Lines, bool), Problem> {
        let chunks = reader.logs(self.id, Position(self.place.chunk), PAGE)?;
        let more = chunks.len() == PAGE;
        let mut found = Lines::new();
        for (number, chunk) in chunks.into_iter().enumerate() {
            let lines: Vec<Line> = serde_json::from_slice(&chunk.lines).map_err(Problem::internal)?;
            let (seen, count) = (if number == 0 { self.place.lines } else { 0 }, lines.len());
            let before = chunk.position.0 - 1;
            for (index, line) in lines.into_iter().enumerate().skip(seen) {
                let (chunk_after, lines_after) =
                    if index + 1 == count { (chunk.position.0, 0) } else { (before, index + 1) };
                let place = LogCursor { chunk: chunk_after, lines: lines_after, ..LogCursor::default() };
                let id = format!("log_{:024x}{index:08x}", chunk.position.0);
                found.push_back((
                    place,
                    StoredLine { step: chunk.step.clone(), attempt: chunk.attempt, id, line },
                ));
            }
        }
        Ok((found, more))
    }

    /// Merges until the page is full, or more of one of the lists has to be read.
    fn merge(
        &mut self,
        mut events: VecDeque<LifecycleLine>,
        mut lines: Lines,
        (more_events, more_lines): (bool, bool),
    ) -> Stop {
        loop {
            let is_line_next = match (events.front(), lines.front()) {
                (None, _) if more_events => return Stop::ReadOn,
                (_, None) if more_lines => return Stop::ReadOn,
                (None, None) => return Stop::Over,
                (event, line) => {
                    event.is_none_or(|event| line.is_some_and(|(_, line)| is_before(&line.line, event)))
                }
            };
            let (place, entry) = match is_line_next {
                true => {
                    let Some((after, line)) = lines.pop_front() else { return Stop::Over };
                    (LogCursor { journal: self.place.journal, ..after }, self.of_line(line))
                }
                false => {
                    let Some(event) = events.pop_front() else { return Stop::Over };
                    (
                        LogCursor { journal: JournalCursor::after(event.version), ..self.place },
                        self.of_journal(event),
                    )
                }
            };
            if self.wanted.wants(&entry) {
                if self.logs.len() == self.wanted.limit || self.bytes >= PAGE_BYTES_MAX {
                    return Stop::Full;
                }
                self.bytes += ENTRY_BYTES + entry.1.message.len() + json_bytes(&entry.1.data);
                self.logs.push(entry.1);
            }
            self.place = place;
        }
    }

    fn page_of_logs(&mut self, has_more: bool) -> Logs {
        let pagination = LIST.next(has_more.then_some(self.place));
        Logs { logs: std::mem::take(&mut self.logs), pagination }
    }

    fn label(&self, step: Option<StepId>) -> (Option<String>, Option<String>) {
        let label = step.map(|step| NodeLabel::of(self.net.step(step)));
        label.map(|label| (label.id, label.name)).unzip()
    }

    fn of_journal(&self, event: LifecycleLine) -> (Millis, Entry) {
        let (node_id, node_name) = self.label(event.step);
        let entry = Entry {
            id: format!("log_v{:024x}", event.version),
            timestamp: time(event.at),
            level: event.level.name(),
            node_id,
            node_name,
            message: event.text,
            data: event.data,
        };
        (event.at, entry)
    }

    fn of_line(&self, StoredLine { step, attempt, id, line }: StoredLine) -> (Millis, Entry) {
        let (_, name) = self.label(self.net.find(&step));
        let stream = LogStream::from(line.stream).name();
        let entry = Entry {
            id,
            timestamp: time(Millis(line.at)),
            level: line.level().name(),
            node_name: Some(name.unwrap_or_else(|| step.clone())),
            node_id: Some(step),
            data: data(&line, stream, attempt),
            message: line.text,
        };
        (Millis(line.at), entry)
    }
}

enum Stop {
    Full,
    ReadOn,
    Over,
}

/// Returns whether a line precedes a record. At the same time a record comes first, unless it ends the step of the
/// line.
fn is_before(line: &Line, event: &LifecycleLine) -> bool {
    Millis(line.at) < event.at || event.is_end && Millis(line.at) == event.at
}

/// Returns the data of the node and the origin of the line.
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
