//! `GET /api/v1/executions/{executionId}/progress`: changes and log lines after a cursor, for displays that follow an
//! execution.
#![expect(unused_qualifications, reason = "the macro for parameters writes them")]

use super::{TAG, stored_of};
use crate::answers::JsonParts;
use crate::app::App;
use crate::auth::{Caller, Permission};
use crate::body::Params;
use crate::feed::{leases, log_page};
use crate::histories::Histories;
use crate::ids;
use crate::journal_pages::{JournalCursor, PageRead};
use crate::loaded::ReadError;
use crate::problem::Problem;
use crate::readers::Slice;
use crate::routes::long_poll::{LongPoll, PolledAnswer};
use crate::routes::paging::Paged;
use crate::routes::shared::Refusals;
use axum::extract::{Path, State};
use serde::Deserialize;
use std::fmt;
use std::sync::Arc;
use utoipa::IntoParams;
use windlass_kernel::{ExecutionId, Net};
use windlass_store::{PageBounds, Position, Reader, StoreError, Stored, StoredLog};
use windlass_views::{
    ProgressEntry, ProgressLog, ProgressPage, ProgressProjection, ProgressState, ProgressStep,
};

const LIST: Paged = Paged { name: "progress", usual: 200, most: 200 };
/// Chunks of the log on one page: usually a few hundred kilobytes, and at most a megabyte.
const LOGS: PageBounds = PageBounds { rows_max: 200, bytes_max: 1 << 20 };

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(crate) struct ProgressQuery {
    cursor: Option<String>,
    /// Milliseconds to wait for new changes or log lines
    #[param(minimum = 0, maximum = 30000)]
    wait_ms: Option<u64>,
}

/// Follow an execution: its changes and its log lines after a cursor
///
/// Without a cursor, the page begins with the first change and lists the steps. Every page has a cursor; continue with it
/// until `state` has the status of an end. The response is sent when there is something new, or after `waitMs`.
#[utoipa::path(get, path = "/api/v1/executions/{executionId}/progress", tag = TAG, security(("bearer" = [])),
    params(("executionId" = String, Path), ProgressQuery),
    responses((status = 200, body = ProgressPage), Refusals))]
pub(crate) async fn progress(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    Params(asked): Params<ProgressQuery>,
) -> Result<JsonParts, Problem> {
    caller.may(Permission::View)?;
    app.answers.admit(&caller.tenant).await?;
    let id = ids::execution(&id)?;
    let poll = LongPoll::begin(asked.wait_ms)?;
    let from = LIST.place(asked.cursor.as_deref(), ProgressCursor::parse)?;
    let readers = app.readers.of(&caller.tenant);
    let read = || {
        let (caller, answers, histories) = (caller.clone(), app.answers.clone(), app.histories.clone());
        readers.read_in_slices(None, move |reader, reading: &mut Option<Reading>, slice| {
            if reading.is_none() {
                let stored = stored_of(reader, &caller, id)?;
                *reading = Some(Reading::begin(reader, &histories, stored, from)?);
            }
            let read = reading.as_mut().map_or(Ok(None), |reading| reading.read(reader, &histories, slice));
            let polled = |(page, has_news)| {
                Ok::<_, Problem>(PolledAnswer { answer: answers.json(&caller.tenant, &page)?, has_news })
            };
            read?.map(polled).transpose()
        })
    };
    poll.read_news(&app, id, read).await
}

/// Position of a page: in the journal, and after a chunk of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct ProgressCursor {
    journal: JournalCursor,
    log: i64,
}

impl fmt::Display for ProgressCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.journal, self.log)
    }
}

impl ProgressCursor {
    fn parse(text: &str) -> Option<ProgressCursor> {
        let (journal, log) = text.split_once('/')?;
        Some(ProgressCursor { journal: journal.parse().ok()?, log: log.parse().ok()? })
    }
}

/// A page that is being read.
struct Reading {
    id: ExecutionId,
    net: Arc<Net>,
    from: ProgressCursor,
    is_first: bool,
    /// The execution before its journal is read.
    stored: Stored,
    /// The part of the journal; None if it has no new records.
    journal: Option<PageRead<ProgressProjection>>,
}

impl Reading {
    fn begin(
        reader: &mut impl Reader,
        histories: &Histories,
        stored: Stored,
        from: Option<ProgressCursor>,
    ) -> Result<Reading, ReadError> {
        let (id, is_first, from) = (stored.state.head.id, from.is_none(), from.unwrap_or_default());
        let net = histories.net(reader, stored.state.head.net)?.ok_or(ReadError::NoNet(id))?;
        let has_more = JournalCursor::before(stored.state.head.version) != from.journal;
        let begin = || histories.progress.begin(id, ProgressProjection, from.journal, LIST.usual);
        let journal = has_more.then(begin);
        Ok(Reading { id, net, from, is_first, stored, journal })
    }

    /// Returns the page and whether it has something new; None if the slice ends first. The log is read after the
    /// journal, so that it has all lines of the attempts that have ended there.
    fn read(
        &mut self,
        reader: &mut impl Reader,
        histories: &Histories,
        slice: Slice,
    ) -> Result<Option<(ProgressPage, bool)>, Problem> {
        let (entries, next) = match &mut self.journal {
            Some(journal) => match histories.progress.read(reader, &self.net, journal, slice)? {
                Some(read) => read,
                None => return Ok(None),
            },
            None => (Vec::new(), None),
        };
        self.page(reader, histories, entries, next).map(Some).map_err(Problem::from)
    }

    fn page(
        &mut self,
        reader: &mut impl Reader,
        histories: &Histories,
        entries: Vec<ProgressEntry>,
        next: Option<JournalCursor>,
    ) -> Result<(ProgressPage, bool), StoreError> {
        let (chunks, more_chunks) = log_page(reader, self.id, Position(self.from.log), LOGS)?;
        let log = chunks.last().map_or(self.from.log, |chunk| chunk.position.0);
        let leases = leases(reader, self.id)?;
        let state = self.journal.as_ref().map_or(&self.stored.state, PageRead::state);
        let cursor =
            ProgressCursor { journal: next.unwrap_or(JournalCursor::before(state.head.version)), log };
        let is_last = next.is_none() && !more_chunks;
        let has_news = state.phase().is_ended() || cursor != self.from;
        let page = ProgressPage {
            steps: if self.is_first { ProgressStep::list(&self.net) } else { Vec::new() },
            entries,
            logs: chunks.into_iter().map(parse_log).collect::<Result<_, _>>()?,
            state: is_last.then(|| ProgressState::new(&self.net, state, &leases)),
            cursor: LIST.cursor(cursor),
        };
        if let Some(journal) = self.journal.take().filter(|_| next.is_none()) {
            histories.progress.store_end(journal);
        }
        Ok((page, has_news))
    }
}

fn parse_log(chunk: StoredLog) -> Result<ProgressLog, StoreError> {
    let broken = |error| StoreError::Corrupt(format!("a chunk of the log cannot be read: {error}"));
    let lines = serde_json::from_slice(&chunk.lines).map_err(broken)?;
    Ok(ProgressLog::new(chunk.run, chunk.step, chunk.attempt, lines))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_as_it_was_written() {
        let cursor = ProgressCursor { journal: JournalCursor::before(57), log: 1_234 };
        assert_eq!(ProgressCursor::parse(&cursor.to_string()), Some(cursor));
        for text in ["", "57", "57.0", "57.0/", "57.0/x", "57.0/1/2", "57/1"] {
            assert_eq!(ProgressCursor::parse(text), None, "{text}");
        }
    }
}
