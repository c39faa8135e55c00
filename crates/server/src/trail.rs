//! The stored journal and log of an execution, part by part, for clients that fold the journal themselves, such as the
//! command line.

use crate::feed::leases;
use serde::{Deserialize, Serialize};
use windlass_kernel::{ExecutionId, Millis, NetSpec, Record, RunId};
use windlass_protocol::Line;
use windlass_store::{JournalPage, PageBounds, Position, Reader, StoreError, StoredLog};
use windlass_views::{LeaseInfo, Leases, NodeProgress};

/// Rows of the journal, and chunks of the log, in one part: usually a few hundred kilobytes, and at most a megabyte of
/// each.
const PAGE: PageBounds = PageBounds { rows_max: 200, bytes_max: 1 << 20 };

/// Records and log chunks after a position.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Stretch {
    /// The net, at the beginning of the journal only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub net: Option<NetSpec>,
    /// Leases, read before the log: all lines of a step that has ended are in the log.
    pub records: Vec<Record>,
    pub logs: Vec<Chunk>,
    leases: Vec<Lease>,
    /// Whether there is more at this moment.
    pub more: bool,
}

/// Lines of one attempt.
#[derive(Debug, Serialize, Deserialize)]
pub struct Chunk {
    pub position: i64,
    pub run: RunId,
    pub step: String,
    pub attempt: u32,
    pub lines: Vec<Line>,
}

/// A firing that a worker holds at this moment.
#[derive(Debug, Serialize, Deserialize)]
struct Lease {
    run: RunId,
    since: Millis,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    progress: Option<NodeProgress>,
}

impl Stretch {
    pub fn read(
        reader: &mut impl Reader,
        id: ExecutionId,
        from: u64,
        after: Position,
    ) -> Result<Stretch, StoreError> {
        let net = if from == 0 { net(reader, id)? } else { None };
        let JournalPage { rows, more: more_rows } = reader.journal_page(id, from, PAGE)?;
        let (chunks, more_chunks) = log_page(reader, id, after, PAGE)?;
        let more = more_rows || more_chunks;
        // The first row may begin before the requested record.
        let seen = rows.first().map_or(0, |row| from.saturating_sub(row.version));
        let records = rows.into_iter().flat_map(|row| row.records);
        let leases = leases(reader, id)?.into_iter();
        Ok(Stretch {
            net,
            records: records.skip(usize::try_from(seen).unwrap_or(usize::MAX)).collect(),
            logs: chunks.into_iter().map(Chunk::of).collect::<Result<_, _>>()?,
            leases: leases
                .map(|(run, LeaseInfo { since, progress })| Lease { run, since, progress })
                .collect(),
            more,
        })
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records.is_empty() && self.logs.is_empty()
    }

    #[must_use]
    pub fn leases(&self) -> Leases {
        let taken = |lease: &Lease| LeaseInfo { since: lease.since, progress: lease.progress.clone() };
        self.leases.iter().map(|lease| (lease.run, taken(lease))).collect()
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

fn net(reader: &mut impl Reader, id: ExecutionId) -> Result<Option<NetSpec>, StoreError> {
    let Some(stored) = reader.load(id)? else { return Ok(None) };
    Ok(reader.net(stored.state.head.net)?.map(|net| net.spec().clone()))
}

impl Chunk {
    fn of(chunk: StoredLog) -> Result<Chunk, StoreError> {
        let broken = |error| StoreError::Corrupt(format!("a chunk of the log cannot be read: {error}"));
        let lines = serde_json::from_slice(&chunk.lines).map_err(broken)?;
        let (run, step, attempt) = (chunk.run, chunk.step, chunk.attempt);
        Ok(Chunk { position: chunk.position.0, run, step, attempt, lines })
    }
}
