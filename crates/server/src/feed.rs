//! The feed of one execution: its messages in the order of the rows and log chunks that they come from, page by page. A
//! subscriber that has seen a message continues at the checkpoint before the next one.

use crate::cache::{Cache, CacheBounds};
use crate::histories::value_at;
use std::cell::RefCell;
use std::sync::Arc;
use windlass_kernel::{ExecutionId, Illegal, Net, RunId};
use windlass_store::{JournalPage, JournalRow, PageBounds, Position, Reader, StoreError, StoredLog};
use windlass_views::{
    AnswerBudget, ArtifactCopy, CodePlace, LeaseInfo, Leases, Message, MessageBody, MessageBuilder,
    NodeProgress, Sources, ValuePlace, position_before, show_outputs,
};

/// Rows, and also chunks, read at a time: the memory of one subscriber, except for a larger row.
const PAGE: PageBounds = PageBounds { rows_max: 64, bytes_max: 256 * 1024 };
/// Number of offers read at a time.
const OFFERS: usize = 1_000;
/// Checkpoints of the feeds of all executions.
const CHECKPOINTS: CacheBounds = CacheBounds { entries_max: 1_000, weight_max: 32 << 20 };
/// Rows between two checkpoints: a subscriber that reconnects reads about this many rows that it has seen before.
const CHECKPOINT_ROWS: usize = 256;

/// Position of one subscriber in the feed of an execution.
#[derive(Debug)]
pub struct Feed {
    execution: ExecutionId,
    builder: MessageBuilder,
    logs: Position,
    /// The sequence of the last message that the subscriber has.
    seen: u64,
    /// Version of the journal from which the subscriber wants messages. Of older rows, only the end is sent.
    wanted_from: u64,
    audience: Audience,
    /// Rows since the last checkpoint.
    rows: usize,
}

/// The recipient of a feed's messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// A stream, which ends with the end of the execution, also if the subscriber has seen that before.
    Stream,
    /// A stream without log lines.
    StreamWithoutLogs,
    /// Webhooks, which number their events in the order of the records and have no log lines.
    Webhooks,
}

/// The position where a feed begins.
#[derive(Debug, Clone, Copy)]
pub enum FeedStart {
    /// After the message with this number; 0 is before the first.
    After(u64),
    /// After everything up to a version of the journal and a position of the log.
    At { version: u64, logs: Position },
}

/// States of feeds at some of their rows, by execution and by the newest message of the rows before.
#[derive(Debug)]
pub struct FeedCheckpoints {
    cached: Cache<(ExecutionId, u64), Arc<MessageBuilder>>,
}

#[derive(Debug, Default)]
pub struct FeedPage {
    pub messages: Vec<Message>,
    /// Approximate bytes of their JSON.
    pub bytes: usize,
    /// Whether there may be more at once.
    pub more: bool,
    /// Whether the execution has ended, and this is the last page.
    pub over: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum FeedError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the journal of execution {0} is broken: {1}")]
    Broken(ExecutionId, Illegal),
    #[error("a chunk of the log of execution {0} cannot be read: {1}")]
    Log(ExecutionId, serde_json::Error),
}

impl Default for FeedCheckpoints {
    fn default() -> FeedCheckpoints {
        FeedCheckpoints { cached: Cache::new(CHECKPOINTS) }
    }
}

impl FeedCheckpoints {
    /// Opens a feed. It reads from the last checkpoint before all messages that the subscriber needs, or from the
    /// beginning of the journal.
    #[must_use]
    pub fn open(
        &self,
        execution: ExecutionId,
        net: Arc<Net>,
        code: Vec<CodePlace>,
        start: FeedStart,
        audience: Audience,
    ) -> Feed {
        let (seen, wanted_from, logs) = match start {
            FeedStart::After(seen) => (seen, 0, Position(position_before(seen))),
            FeedStart::At { version, logs } => (0, version, logs),
        };
        let known = match start {
            FeedStart::After(seen) => self.cached.last((execution, 0)..(execution, seen)),
            // What a checkpoint contains was there when it was stored, so it is not newer than this start.
            FeedStart::At { .. } => self.cached.last((execution, 0)..(execution, u64::MAX)),
        };
        let builder = known.map_or_else(|| MessageBuilder::new(net, code.into()), Arc::unwrap_or_clone);
        Feed { execution, builder, logs, seen, wanted_from, audience, rows: 0 }
    }

    /// Drops everything, after executions were deleted.
    pub fn clear(&self) {
        self.cached.clear();
    }

    /// Stores the state of a feed as a checkpoint, unless another subscriber has been as far. The end of an execution
    /// is sent to every subscriber, so there is no checkpoint after it.
    pub fn store_checkpoint(&self, feed: &Feed) {
        let (builder, key) = (&feed.builder, (feed.execution, feed.builder.newest()));
        let version = builder.history().version();
        let is_known = |known: Arc<MessageBuilder>| known.history().version() >= version;
        if version > 0 && !builder.is_over() && !self.cached.get(&key).is_some_and(is_known) {
            let weight = builder.history().weight() as u64;
            self.cached.insert(key, Arc::new(builder.for_another()), weight);
        }
    }
}

impl Feed {
    fn wants_logs(&self) -> bool {
        self.audience == Audience::Stream
    }

    /// Reads the next page.
    pub fn read(
        &mut self,
        reader: &mut impl Reader,
        checkpoints: &FeedCheckpoints,
    ) -> Result<FeedPage, FeedError> {
        let (rows, chunks, more) = self.next(reader)?;
        self.rows += rows.len();
        let mut messages = Vec::new();
        let mut chunks = chunks.into_iter().peekable();
        for row in rows {
            while let Some(chunk) = chunks.next_if(|chunk| chunk.position < row.position) {
                self.add_chunk(&chunk, &mut messages)?;
            }
            let built = self.builder.row(row.position.0, &row.records);
            let mut built = built.map_err(|illegal| FeedError::Broken(self.execution, illegal))?;
            if row.version < self.wanted_from {
                built.retain(is_end);
            }
            messages.extend(built);
        }
        for chunk in chunks {
            self.add_chunk(&chunk, &mut messages)?;
        }
        let over = self.builder.is_over();
        if over && self.wants_logs() {
            self.add_last_lines(reader, &mut messages)?;
        }
        if over && self.audience != Audience::Webhooks {
            send_end_last(&mut messages);
        }
        if self.rows >= CHECKPOINT_ROWS {
            checkpoints.store_checkpoint(self);
            self.rows = 0;
        }
        if !more && !over {
            messages.extend(self.builder.leased(&leases(reader, self.execution)?));
        }
        messages.retain(|message| message.newer_than >= self.seen);
        if self.audience != Audience::Webhooks {
            messages.sort_by_key(Message::order);
        }
        self.fill_outputs(reader, &mut messages);
        let bytes = messages.iter().map(Message::bytes).sum();
        Ok(FeedPage { messages, bytes, more, over })
    }

    /// Lines that were written together with the end are stored after it. They are sent before it, so that the end is
    /// the last message.
    fn add_last_lines(
        &mut self,
        reader: &mut impl Reader,
        messages: &mut Vec<Message>,
    ) -> Result<(), FeedError> {
        loop {
            let (chunks, more) = log_page(reader, self.execution, self.logs, PAGE)?;
            for chunk in &chunks {
                self.add_chunk(chunk, messages)?;
            }
            if !more {
                return Ok(());
            }
        }
    }

    fn add_chunk(&mut self, chunk: &StoredLog, messages: &mut Vec<Message>) -> Result<(), FeedError> {
        self.logs = chunk.position;
        let lines =
            serde_json::from_slice(&chunk.lines).map_err(|error| FeedError::Log(self.execution, error))?;
        messages.extend(MessageBuilder::log(chunk.position.0, &chunk.step, lines));
        Ok(())
    }

    /// Reads rows and chunks up to a position before which everything is known: each list is read after the other one,
    /// so that it has everything before the other's last entry.
    fn next(&self, reader: &mut impl Reader) -> Result<(Vec<JournalRow>, Vec<StoredLog>, bool), FeedError> {
        let version = self.builder.history().version();
        let JournalPage { mut rows, more: mut more_rows } = self.rows(reader, version)?;
        // The wanted log lines are not older than these rows.
        let is_before_logs = more_rows && rows.last().is_some_and(|row| row.position <= self.logs);
        if !self.wants_logs() || is_before_logs {
            return Ok((rows, Vec::new(), more_rows));
        }
        let (mut chunks, more_chunks) = log_page(reader, self.execution, self.logs, PAGE)?;
        let mut bounds = Vec::new();
        if more_chunks {
            bounds.extend(chunks.last().map(|chunk| chunk.position));
        }
        let last_chunk = chunks.last().map(|chunk| chunk.position);
        if !more_rows && last_chunk > rows.last().map(|row| row.position) {
            let version = rows.last().map_or(version, |row| row.version + row.records.len() as u64);
            let page = self.rows(reader, version)?;
            rows.extend(page.rows);
            let read = rows.len();
            rows.retain(|row| Some(row.position) < last_chunk);
            more_rows = page.more && rows.len() == read;
        }
        if more_rows {
            bounds.extend(rows.last().map(|row| row.position));
        }
        if let Some(bound) = bounds.iter().min() {
            rows.retain(|row| row.position <= *bound);
            chunks.retain(|chunk| chunk.position <= *bound);
        }
        Ok((rows, chunks, !bounds.is_empty()))
    }

    fn rows(&self, reader: &mut impl Reader, version: u64) -> Result<JournalPage, StoreError> {
        reader.journal_page(self.execution, version, PAGE)
    }

    /// Reads the results that the end lists, because results are not kept in memory. Large values stay references.
    fn fill_outputs(&self, reader: &mut impl Reader, messages: &mut [Message]) {
        for message in messages {
            if let MessageBody::Ended { outputs, .. } = &mut message.body {
                let reader = RefCell::new(&mut *reader);
                let read = |place: &ValuePlace| value_at(&mut **reader.borrow_mut(), self.execution, place);
                let mut budget = AnswerBudget::new(
                    self.execution,
                    Sources { open: &|_| None, read: &read, copy: &|_| ArtifactCopy::Ready, log: &|_| None },
                );
                *outputs = show_outputs(self.builder.net(), self.builder.history().outputs(), &mut budget);
            }
        }
    }
}

/// Reads chunks of a log within bounds, at least one if there is one, and whether there may be more.
pub(crate) fn log_page(
    reader: &mut impl Reader,
    id: ExecutionId,
    after: Position,
    bounds: PageBounds,
) -> Result<(Vec<StoredLog>, bool), StoreError> {
    let mut chunks = reader.logs(id, after, bounds.rows_max)?;
    let (read, mut kept, mut bytes) = (chunks.len(), 0, 0);
    while kept < read && bytes < bounds.bytes_max {
        bytes += chunks[kept].lines.len();
        kept += 1;
    }
    chunks.truncate(kept);
    Ok((chunks, kept < read || read == bounds.rows_max))
}

fn is_end(message: &Message) -> bool {
    matches!(message.body, MessageBody::Ended { .. })
}

/// Moves the end behind all lines. Their numbers may be higher, so the end is sent to every subscriber that reconnects.
fn send_end_last(messages: &mut Vec<Message>) {
    if let Some(place) = messages.iter().position(is_end) {
        let end = messages.remove(place);
        messages.push(Message { newer_than: u64::MAX, ..end });
    }
}

/// Reads the firings that workers have begun, and the times of their begin.
pub(crate) fn leases(reader: &mut impl Reader, id: ExecutionId) -> Result<Leases, StoreError> {
    let mut leases = Leases::new();
    let mut after = RunId(0);
    loop {
        let offers = reader.offers_of(id, after, OFFERS)?;
        for offer in &offers {
            let since = offer.lease.as_ref().and_then(|lease| lease.started_at);
            let progress = offer.progress.as_ref().map(|progress| NodeProgress {
                step: progress.step.clone(),
                percentage: progress.percentage,
            });
            leases.extend(since.map(|since| (offer.run, LeaseInfo { since, progress })));
        }
        match offers.last() {
            Some(last) if offers.len() >= OFFERS => after = last.run,
            _ => return Ok(leases),
        }
    }
}
