//! `GET /api/v1/executions/{executionId}/logs`

use super::{TAG, stored_of};
use crate::answers::{JsonParts, PAGE_BYTES_MAX};
use crate::app::App;
use crate::auth::{Caller, Permission};
use crate::body::Params;
use crate::histories::Histories;
use crate::ids;
use crate::journal_pages::{JournalCursor, PageRead, WindowRead};
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
    /// Only lines of this level and above; the order is `debug`, `info`, `warn`, `error`.
    #[param(inline)]
    min_level: Option<LogLevel>,
    /// Only lines after this time.
    #[param(format = DateTime)]
    since: Option<String>,
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// `asc`, the default: oldest lines first. `desc`: newest lines first.
    #[param(inline)]
    order: Option<Order>,
    cursor: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Order {
    #[default]
    Asc,
    Desc,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Logs {
    /// In the requested order.
    logs: Vec<Entry>,
    /// Send as `cursor` with `order=desc` to get the lines before these.
    older: String,
    /// Send as `cursor` with `order=asc` to get the lines after these, also those that are written later.
    newer: String,
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
            let version = stored.state.head.version;
            let from = match (wanted.from, wanted.order) {
                (Some(from), Order::Asc) => from,
                (Some(from), Order::Desc) => {
                    LogCursor { journal: from.journal.min(JournalCursor::before(version)), ..from }
                }
                (None, Order::Asc) => LogCursor::default(),
                (None, Order::Desc) => LogCursor::end(reader, id, version)?,
            };
            *reading = Some(Reading::new(wanted, from, id, net));
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
    /// Returns the position after everything up to a version of the journal, and after the log.
    fn end(reader: &mut impl Reader, id: ExecutionId, version: u64) -> Result<LogCursor, Problem> {
        let newest = reader.logs_before(id, Position(i64::MAX), 1)?;
        let chunk = newest.first().map_or(0, |chunk| chunk.position.0);
        Ok(LogCursor { journal: JournalCursor::before(version), chunk, lines: 0 })
    }

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
    /// The names of the wanted levels; None: of all.
    levels: Option<Vec<&'static str>>,
    since: Option<Millis>,
    limit: usize,
    order: Order,
    from: Option<LogCursor>,
    /// Whether lines of level `debug` are wanted.
    debug: bool,
}

impl LogFilter {
    fn of(asked: &LogQuery) -> Result<LogFilter, Problem> {
        let levels: Option<Vec<&str>> = match (asked.level, asked.min_level) {
            (None, None) => None,
            (None, Some(least)) => Some(least.and_above().map(LogLevel::name).collect()),
            (Some(level), None) => Some(vec![level.name()]),
            (Some(_), Some(_)) => {
                return Err(Problem::invalid("minLevel", "cannot be combined with level; send one of them"));
            }
        };
        let debug = levels.as_ref().is_some_and(|levels| levels.contains(&"debug"));
        Ok(LogFilter {
            node: asked.node_id.clone(),
            levels,
            since: asked.since.as_deref().map(|text| shared::parse_time("since", text)).transpose()?,
            limit: LIST.limit(asked.limit)?,
            order: asked.order.unwrap_or_default(),
            from: LIST.place(asked.cursor.as_deref(), LogCursor::read)?,
            debug,
        })
    }

    fn wants(&self, (at, entry): &(Millis, Entry)) -> bool {
        (self.debug || entry.level != "debug")
            && self.node.as_ref().is_none_or(|node| Some(node) == entry.node_id.as_ref())
            && self.levels.as_ref().is_none_or(|wanted| wanted.contains(&entry.level))
            && self.since.is_none_or(|since| *at > since)
    }
}

/// Lines of the log, each with its position: of those that are read forwards the one after it, and of those that are
/// read backwards the one before it. The journal of these positions is not set.
type Lines = VecDeque<(LogCursor, StoredLine)>;
/// Lines of the journal, each with the position before it.
type Events = VecDeque<(JournalCursor, LifecycleLine)>;

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
    from: LogCursor,
    place: LogCursor,
    logs: Vec<Entry>,
    /// Approximate bytes of the lines found.
    bytes: usize,
    /// Number of pages that it has read of each list.
    pages: usize,
    /// A page of the journal that a slice left unfinished.
    page: Option<PageRead<LogProjection>>,
    /// The same of a list that is read backwards.
    window: Option<WindowRead<LogProjection>>,
}

impl Reading {
    fn new(wanted: LogFilter, from: LogCursor, id: ExecutionId, net: Arc<Net>) -> Reading {
        let (logs, page, window) = (Vec::new(), None, None);
        Reading { wanted, id, net, from, place: from, logs, bytes: 0, pages: 0, page, window }
    }

    /// Returns None if the slice ends before the page is complete.
    fn read_slice(
        &mut self,
        reader: &mut impl Reader,
        histories: &Histories,
        slice: Slice,
    ) -> Result<Option<Logs>, Problem> {
        while self.pages < PAGES_MAX {
            let stop = match self.wanted.order {
                Order::Asc => self.read_on(reader, histories, slice)?,
                Order::Desc => self.read_back(reader, histories, slice)?,
            };
            let Some(stop) = stop else { return Ok(None) };
            self.pages += 1;
            match stop {
                Stop::Full => return Ok(Some(self.page_of_logs(true))),
                Stop::Over => return Ok(Some(self.page_of_logs(false))),
                Stop::ReadOn if slice.is_over() => return Ok(None),
                Stop::ReadOn => {}
            }
        }
        Ok(Some(self.page_of_logs(true)))
    }

    /// Reads and merges what follows the position. Returns None if the slice ends first.
    fn read_on(
        &mut self,
        reader: &mut impl Reader,
        histories: &Histories,
        slice: Slice,
    ) -> Result<Option<Stop>, Problem> {
        let mut page = self.page.take().unwrap_or_else(|| {
            let first = LogProjection::new(self.id, &self.net);
            histories.lines.begin(self.id, first, self.place.journal, PAGE)
        });
        let Some((events, next)) = histories.lines.read(reader, &self.net, &mut page, slice)? else {
            self.page = Some(page);
            return Ok(None);
        };
        let (lines, more_lines) = self.lines(reader)?;
        let stop = self.merge(events.into(), lines, (next.is_some(), more_lines));
        if matches!(stop, Stop::Over) {
            // Records without lines are not read again with the next page.
            self.place.journal = JournalCursor::before(page.version());
        }
        Ok(Some(stop))
    }

    /// Reads and merges what precedes the position. Returns None if the slice ends first.
    fn read_back(
        &mut self,
        reader: &mut impl Reader,
        histories: &Histories,
        slice: Slice,
    ) -> Result<Option<Stop>, Problem> {
        let mut window = self.window.take().unwrap_or_else(|| {
            let first = LogProjection::new(self.id, &self.net);
            histories.lines.begin_before(self.id, first, self.place.journal)
        });
        let Some((events, begin)) = histories.lines.read_before(reader, &self.net, &mut window, slice)?
        else {
            self.window = Some(window);
            return Ok(None);
        };
        let (lines, more_lines) = self.lines_before(reader)?;
        Ok(Some(self.merge_back(events, lines, begin, more_lines)))
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
                let id = line_id(chunk.position, index);
                found.push_back((
                    place,
                    StoredLine { step: chunk.step.clone(), attempt: chunk.attempt, id, line },
                ));
            }
        }
        Ok((found, more))
    }

    /// Returns lines before the position, the oldest first, and whether there are more before them.
    fn lines_before(&self, reader: &mut impl Reader) -> Result<(Lines, bool), Problem> {
        let mut chunks = reader.logs_before(self.id, Position(self.place.chunk.saturating_add(1)), PAGE)?;
        let more = chunks.len() == PAGE;
        chunks.reverse();
        // Some lines of the chunk after the position may be before it.
        if self.place.lines > 0 {
            chunks.extend(reader.logs(self.id, Position(self.place.chunk), 1)?);
        }
        let mut found = Lines::new();
        for chunk in chunks {
            let lines: Vec<Line> = serde_json::from_slice(&chunk.lines).map_err(Problem::internal)?;
            let is_after = chunk.position.0 > self.place.chunk;
            let count = if is_after { self.place.lines } else { lines.len() };
            for (index, line) in lines.into_iter().enumerate().take(count) {
                let place = LogCursor { chunk: chunk.position.0 - 1, lines: index, ..LogCursor::default() };
                let id = line_id(chunk.position, index);
                let (step, attempt) = (chunk.step.clone(), chunk.attempt);
                found.push_back((place, StoredLine { step, attempt, id, line }));
            }
        }
        Ok((found, more))
    }

    /// Merges from the end until the page is full, or more of one of the lists has to be read. `begin` is the position
    /// before the events.
    fn merge_back(
        &mut self,
        mut events: Events,
        mut lines: Lines,
        begin: JournalCursor,
        more_lines: bool,
    ) -> Stop {
        let more_events = begin > JournalCursor::default();
        loop {
            let is_event_next = match (events.back(), lines.back()) {
                (None, _) if more_events => {
                    self.place.journal = begin;
                    return Stop::ReadOn;
                }
                (_, None) if more_lines => return Stop::ReadOn,
                (None, None) => {
                    self.place = LogCursor::default();
                    return Stop::Over;
                }
                (event, line) => {
                    event.is_some_and(|(_, event)| line.is_none_or(|(_, line)| is_before(&line.line, event)))
                }
            };
            let (place, entry) = match is_event_next {
                true => {
                    let Some((journal, event)) = events.pop_back() else { return Stop::Over };
                    (LogCursor { journal, ..self.place }, self.of_journal(event))
                }
                false => {
                    let Some((before, line)) = lines.pop_back() else { return Stop::Over };
                    (LogCursor { journal: self.place.journal, ..before }, self.of_line(line))
                }
            };
            if self.wanted.wants(&entry) {
                if self.is_full() {
                    return Stop::Full;
                }
                self.add(entry.1);
            }
            self.place = place;
        }
    }

    fn is_full(&self) -> bool {
        self.logs.len() == self.wanted.limit || self.bytes >= PAGE_BYTES_MAX
    }

    fn add(&mut self, entry: Entry) {
        self.bytes += ENTRY_BYTES + entry.message.len() + json_bytes(&entry.data);
        self.logs.push(entry);
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
                if self.is_full() {
                    return Stop::Full;
                }
                self.add(entry.1);
            }
            self.place = place;
        }
    }

    fn page_of_logs(&mut self, has_more: bool) -> Logs {
        let pagination = LIST.next(has_more.then_some(self.place));
        let (older, newer) = match self.wanted.order {
            Order::Asc => (self.from, self.place),
            Order::Desc => (self.place, self.from),
        };
        let logs = std::mem::take(&mut self.logs);
        Logs { logs, older: LIST.cursor(older), newer: LIST.cursor(newer), pagination }
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

/// Returns the id of a line within a chunk of the log.
fn line_id(chunk: Position, index: usize) -> String {
    format!("log_{:024x}{index:08x}", chunk.0)
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
