//! The feed of one execution over a store: rows and log chunks in the order of their positions, page by page.

use super::message::{Message, Tells};
use super::telling::Telling;
use crate::stories::value_at;
use crate::trail::log_page;
use std::cell::RefCell;
use std::sync::Arc;
use windlass_kernel::{ExecutionId, Illegal, Net, Outputs, RunId};
use windlass_store::{JournalPage, JournalRow, PageBounds, Position, Reader, StoreError, StoredLog};
use windlass_views::{Leases, NodeProgress, ResultPlace, Room, Sources, Taken, ValuePlace, told_outputs};

/// Rows, and likewise chunks, read at a time: what one reader holds in memory at most, but for a row that is larger.
const PAGE: PageBounds = PageBounds { rows_max: 64, bytes_max: 256 * 1024 };
/// Offers read at a time.
const OFFERS: usize = 1_000;

/// A reader's place in the feed of an execution.
#[derive(Debug)]
pub struct Feed {
    execution: ExecutionId,
    telling: Telling,
    logs: Position,
    /// What was seen before is not told again.
    seen: u64,
    wants_logs: bool,
}

#[derive(Debug, Default)]
pub struct Page {
    pub messages: Vec<Message>,
    /// Their JSON, roughly.
    pub bytes: usize,
    /// There may be more at once.
    pub more: bool,
    /// The execution has ended, and everything is told.
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

impl Feed {
    /// From the beginning; `seen` is the sequence of the last message that need not be told again.
    #[must_use]
    pub fn new(execution: ExecutionId, net: Arc<Net>, seen: u64) -> Feed {
        Feed { execution, telling: Telling::new(net), logs: Position(0), seen, wants_logs: true }
    }

    #[must_use]
    pub fn without_logs(self) -> Feed {
        Feed { wants_logs: false, ..self }
    }

    #[must_use]
    pub fn telling(&self) -> &Telling {
        &self.telling
    }

    /// What came since the last time, as far as one page goes.
    pub fn read(&mut self, reader: &mut impl Reader) -> Result<Page, FeedError> {
        let (rows, chunks, more) = self.next(reader)?;
        let mut messages = Vec::new();
        let mut chunks = chunks.into_iter().peekable();
        for row in rows {
            while let Some(chunk) = chunks.next_if(|chunk| chunk.position < row.position) {
                self.take_chunk(&chunk, &mut messages)?;
            }
            messages.extend(
                self.telling.row(&row).map_err(|illegal| FeedError::Broken(self.execution, illegal))?,
            );
        }
        for chunk in chunks {
            self.take_chunk(&chunk, &mut messages)?;
        }
        let over = self.telling.is_over();
        if over && self.wants_logs {
            self.take_last_words(reader, &mut messages)?;
        }
        if !more && !over {
            messages.extend(self.telling.leased(&leases(reader, self.execution)?));
        }
        messages.retain(|message| message.newer_than >= self.seen);
        self.fill_outputs(reader, &mut messages)?;
        let bytes = messages.iter().map(Message::bytes).sum();
        Ok(Page { messages, bytes, more, over })
    }

    /// Lines that were written together with the end stand behind it. They are told before it, so that it is the last
    /// message; and because their numbers are higher, it is told to everybody who comes again.
    fn take_last_words(
        &mut self,
        reader: &mut impl Reader,
        messages: &mut Vec<Message>,
    ) -> Result<(), FeedError> {
        loop {
            let (chunks, more) = log_page(reader, self.execution, self.logs, PAGE)?;
            for chunk in &chunks {
                self.take_chunk(chunk, messages)?;
            }
            if !more {
                break;
            }
        }
        let is_end = |message: &Message| matches!(message.tells, Tells::Ended { .. });
        if let Some(place) = messages.iter().position(is_end) {
            let end = messages.remove(place);
            messages.push(Message { newer_than: u64::MAX, ..end });
        }
        Ok(())
    }

    fn take_chunk(&mut self, chunk: &StoredLog, messages: &mut Vec<Message>) -> Result<(), FeedError> {
        self.logs = chunk.position;
        messages.extend(self.telling.log(chunk).map_err(|error| FeedError::Log(self.execution, error))?);
        Ok(())
    }

    /// Rows and chunks up to a position behind which nothing is missing: each list is read after the other one, so that it
    /// has all that came before the other's last.
    fn next(&self, reader: &mut impl Reader) -> Result<(Vec<JournalRow>, Vec<StoredLog>, bool), FeedError> {
        let JournalPage { mut rows, more: mut more_rows } = self.rows(reader, self.telling.version())?;
        if !self.wants_logs {
            return Ok((rows, Vec::new(), more_rows));
        }
        let (mut chunks, more_chunks) = log_page(reader, self.execution, self.logs, PAGE)?;
        let mut bounds = Vec::new();
        if more_chunks {
            bounds.extend(chunks.last().map(|chunk| chunk.position));
        }
        let last_chunk = chunks.last().map(|chunk| chunk.position);
        if !more_rows && last_chunk > rows.last().map(|row| row.position) {
            let version = rows.last().map_or(self.telling.version(), after);
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

    /// What nodes gave is not kept while it goes on, so the end reads the journal once more. Large values stay references.
    fn fill_outputs(&self, reader: &mut impl Reader, messages: &mut [Message]) -> Result<(), FeedError> {
        for message in messages {
            if let Tells::Ended { outputs: given, .. } = &mut message.tells {
                let outputs = self.outputs(reader)?;
                let reader = RefCell::new(&mut *reader);
                let read = |place: &ValuePlace| value_at(&mut **reader.borrow_mut(), self.execution, place);
                let sources = Sources { open: &|_| None, read: &read };
                *given = told_outputs(self.telling.net(), &outputs, &mut Room::new(self.execution, sources));
            }
        }
        Ok(())
    }

    fn outputs(&self, reader: &mut impl Reader) -> Result<Outputs<ResultPlace>, StoreError> {
        let (mut outputs, mut version) = (Outputs::default(), 0);
        while version < self.telling.version() {
            let JournalPage { rows, .. } = self.rows(reader, version)?;
            if rows.is_empty() {
                break;
            }
            for row in &rows {
                for (record, at) in row.records.iter().zip(row.version..) {
                    outputs.note_with(record, &mut |index, value| ResultPlace::of(at, index, value));
                }
                version = after(row);
            }
        }
        Ok(outputs)
    }
}

fn after(row: &JournalRow) -> u64 {
    row.version + row.records.len() as u64
}

/// What workers have of an execution, and since when.
pub fn leases(reader: &mut impl Reader, id: ExecutionId) -> Result<Leases, StoreError> {
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
            leases.extend(since.map(|since| (offer.run, Taken { since, progress })));
        }
        match offers.last() {
            Some(last) if offers.len() >= OFFERS => after = last.run,
            _ => return Ok(leases),
        }
    }
}
