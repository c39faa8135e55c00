//! The port to the disk: one writer and any number of readers.

use crate::commit::{
    Applied, CommitId, DefinitionId, Lease, Letter, MailId, Position, Progress, Stop, StoredManifest,
    WorkflowId, Write,
};
use crate::origin::{Origin, Priority, Tenant};
use crate::quarantine::{Quarantine, Suspect};
use crate::rows::Rows;
use serde_json::Value;
use std::sync::Arc;
use windlass_kernel::{
    Execution, ExecutionId, Fence, Millis, Need, Net, NetDigest, Phase, Record, RunId, Timer, Values,
};

/// The writer of a store.
pub trait Store: Send + 'static {
    type Reader: Reader;

    /// Writes a batch in order, as one transaction, and returns the result of each write. After `Ok` a crash loses
    /// none of the writes that were applied. After `Err` the outcome is unknown, and the writer must not continue.
    fn write(&mut self, batch: &[Write]) -> StoreResult<Vec<Applied>>;

    /// Returns a reader that sees every write that was applied before it reads.
    fn reader(&self) -> StoreResult<Self::Reader>;
}

/// Reads committed data. Every list has a bound and continues after an entry of an earlier page; every call sees a
/// consistent snapshot.
pub trait Reader: Send + 'static {
    /// Returns the live state of an execution, from its rows.
    fn load(&mut self, execution: ExecutionId) -> StoreResult<Option<Stored>>;

    /// Returns journal rows of an execution, from the row that holds version `from` on.
    fn journal(&mut self, execution: ExecutionId, from: u64, limit: usize) -> StoreResult<Vec<JournalRow>> {
        let bounds = PageBounds { rows_max: limit, bytes_max: usize::MAX };
        Ok(self.journal_page(execution, from, bounds)?.rows)
    }

    /// Returns the same rows within bounds of number and size; at least one, if there is one.
    fn journal_page(
        &mut self,
        execution: ExecutionId,
        from: u64,
        bounds: PageBounds,
    ) -> StoreResult<JournalPage>;

    /// Returns values that a decision needs, as far as the store has them; a missing artifact is an entry of None.
    fn values(&mut self, execution: ExecutionId, needs: &[Need]) -> StoreResult<Values>;

    fn net(&mut self, digest: NetDigest) -> StoreResult<Option<Net>>;

    /// Returns timers that are due until a time, the earliest first, after a given one. A hold stops all but the
    /// execution's own timer.
    fn due(&mut self, after: Option<&DueTimer>, until: Millis, limit: usize) -> StoreResult<Vec<DueTimer>>;

    /// Returns open offers in (execution, run) order of the store, leased or not.
    fn offers(&mut self, after: Option<(ExecutionId, RunId)>, limit: usize) -> StoreResult<Vec<Offer>>;

    /// Returns open offers of one execution, after a step-run; none when there is no such execution.
    fn offers_of(&mut self, execution: ExecutionId, after: RunId, limit: usize) -> StoreResult<Vec<Offer>>;

    /// Returns executions whose newest commit was cut short and continues without an input (`HeadRow::goes_on`).
    fn unfinished(&mut self, limit: usize) -> StoreResult<Vec<ExecutionId>>;

    /// Returns stop obligations that are not fulfilled (R7).
    fn stops(&mut self, after: Option<&Stop>, limit: usize) -> StoreResult<Vec<Stop>>;

    fn inbox(&mut self, after: Option<MailId>, limit: usize) -> StoreResult<Vec<StoredMail>>;

    /// Returns open mail to one execution, the oldest first.
    fn inbox_of(&mut self, to: ExecutionId, limit: usize) -> StoreResult<Vec<StoredMail>> {
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let page = self.inbox(after, INBOX_PAGE)?;
            after = page.last().map(|mail| mail.id);
            let is_last = page.len() < INBOX_PAGE;
            found.extend(page.into_iter().filter(|mail| mail.to == to));
            if is_last || found.len() >= limit {
                found.truncate(limit);
                return Ok(found);
            }
        }
    }

    /// Returns the answer to a letter: None while it is open, then `Ok` or the reason of its refusal. Fails for a
    /// letter without an answer, and for one whose answer was fetched.
    fn answer(&mut self, mail: MailId) -> StoreResult<Option<Result<(), String>>>;

    fn list(&mut self, query: &Query) -> StoreResult<Vec<ListedExecution>>;

    /// Returns the quarantine mark of an execution, if it has one.
    fn suspect(&mut self, _execution: ExecutionId) -> StoreResult<Option<Suspect>> {
        Ok(None)
    }

    /// Counts executions of a tenant that have not ended, up to a bound.
    fn open_executions(&mut self, tenant: &Tenant, bound: usize) -> StoreResult<usize> {
        let query = Query {
            tenant: Some(tenant.clone()),
            status: Some(Status::Open),
            limit: bound,
            ..Query::default()
        };
        self.list(&query).map(|listed| listed.len())
    }

    fn definition(&mut self, id: DefinitionId) -> StoreResult<Option<StoredDefinition>>;

    /// Returns a version of a workflow that the tenant has; the newest if none is given.
    fn find_definition(
        &mut self,
        tenant: &Tenant,
        which: &Which,
        version: Option<u32>,
    ) -> StoreResult<Option<StoredDefinition>>;

    /// Returns log chunks of an execution after a position.
    fn logs(&mut self, execution: ExecutionId, after: Position, limit: usize) -> StoreResult<Vec<StoredLog>>;

    /// Returns log chunks of an execution before a position, the newest first.
    fn logs_before(
        &mut self,
        execution: ExecutionId,
        before: Position,
        limit: usize,
    ) -> StoreResult<Vec<StoredLog>>;

    /// Returns log chunks of one step-run after a position.
    fn run_logs(
        &mut self,
        execution: ExecutionId,
        run: RunId,
        after: Position,
        limit: usize,
    ) -> StoreResult<Vec<StoredLog>>;

    /// Returns all rows of an execution, for checking (K1), in the form that `project` makes of a whole state.
    fn rows(&mut self, execution: ExecutionId) -> StoreResult<Option<Rows>>;
}

/// Letters read at a time in search of those to one execution.
const INBOX_PAGE: usize = 256;

/// Result of a call to a store.
pub type StoreResult<T> = Result<T, StoreError>;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    #[error("the disk is full: {0}. All acknowledged changes are safe; free some space and start again")]
    Full(String),
    #[error("the store cannot be read or written: {0}")]
    Io(String),
    #[error("the store is damaged: {0}")]
    Corrupt(String),
    #[error(transparent)]
    Damaged(#[from] Damage),
    /// The bytes of a row are not what was written. Readers of one execution name it: see `Unreadable`.
    #[error("the store is damaged: {0}")]
    Undecodable(String),
    /// Rows of this execution are not what was written; those of other executions are not affected.
    #[error("the store is damaged: execution {execution}: {what}")]
    Unreadable { execution: ExecutionId, what: String },
    #[error(
        "the data in {path} was written by a newer version (schema {found}, this program knows {known}): use that version, nothing was changed"
    )]
    Newer { path: String, found: u32, known: u32 },
}

impl StoreError {
    /// Returns the one execution whose rows cannot be read; None if the whole store may be damaged.
    #[must_use]
    pub fn unreadable(&self) -> Option<ExecutionId> {
        match self {
            StoreError::Damaged(damage) => Some(damage.execution),
            StoreError::Unreadable { execution, .. } => Some(*execution),
            StoreError::Full(_)
            | StoreError::Io(_)
            | StoreError::Corrupt(_)
            | StoreError::Undecodable(_)
            | StoreError::Newer { .. } => None,
        }
    }

    /// Returns the same error, of rows that belong to this execution.
    #[must_use]
    pub fn of_execution(self, execution: ExecutionId) -> StoreError {
        match self {
            StoreError::Undecodable(what) => StoreError::Unreadable { execution, what },
            error => error,
        }
    }
}

/// A journal row that is not what was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("journal of execution {execution}, row at version {version}: {what}")]
pub struct Damage {
    pub execution: ExecutionId,
    pub version: u64,
    pub what: String,
}

#[derive(Debug, Clone)]
pub struct Stored {
    pub state: Execution<'static>,
    pub origin: Arc<Origin>,
}

/// A reference to a workflow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    Id(WorkflowId),
    /// The newest workflow of this name.
    Name(String),
}

/// Prefix of the id of a workflow in texts.
const ID_PREFIX: &str = "wf_";

impl Which {
    /// Parses an id; any other text is a name.
    #[must_use]
    pub fn of(text: &str) -> Which {
        let digits = text.strip_prefix(ID_PREFIX).filter(|digits| digits.len() == 32);
        match digits.and_then(|digits| u128::from_str_radix(digits, 16).ok()) {
            Some(id) => Which::Id(WorkflowId(id)),
            None => Which::Name(text.to_owned()),
        }
    }
}

impl std::fmt::Display for Which {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Which::Id(id) => write!(f, "{ID_PREFIX}{id}"),
            Which::Name(name) => f.write_str(name),
        }
    }
}

/// Bounds of one page. Rows are as large as the values that tenants put into them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageBounds {
    pub rows_max: usize,
    /// The page ends with the row that reaches it.
    pub bytes_max: usize,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct JournalPage {
    pub rows: Vec<JournalRow>,
    /// Whether there may be more rows.
    pub more: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct JournalRow {
    pub position: Position,
    pub commit: CommitId,
    /// Number of records before the first one.
    pub version: u64,
    pub records: Vec<Record>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct DueTimer {
    pub at: Millis,
    pub execution: ExecutionId,
    pub timer: Timer,
}

/// An open offer and its lease, if it has one.
#[derive(Debug, Clone, PartialEq)]
pub struct Offer {
    pub execution: ExecutionId,
    pub run: RunId,
    pub fence: Fence,
    pub lease: Option<Lease>,
    pub cursor: Option<Arc<Value>>,
    pub progress: Option<Progress>,
    pub tenant: Tenant,
    pub priority: Priority,
}

#[derive(Debug, Clone, PartialEq)]
pub struct StoredMail {
    pub id: MailId,
    pub to: ExecutionId,
    pub letter: Letter,
    pub answered: bool,
}

/// A list of executions, the newest first, from before a given one.
#[derive(Debug, Clone, Default)]
pub struct Query {
    /// None lists executions of every tenant.
    pub tenant: Option<Tenant>,
    pub workflow: Option<WorkflowId>,
    pub status: Option<Status>,
    /// Created then or later.
    pub since: Option<Millis>,
    /// Created before.
    pub until: Option<Millis>,
    pub tag: Option<String>,
    pub correlation: Option<String>,
    pub parent: Option<ExecutionId>,
    pub before: Option<ExecutionId>,
    pub limit: usize,
}

/// The phases of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Has not ended.
    Open,
    Phase(Phase),
    In(&'static [Phase]),
}

#[derive(Debug, Clone, PartialEq)]
pub struct ListedExecution {
    pub execution: ExecutionId,
    pub origin: Origin,
    pub name: Option<String>,
    pub version: Option<u32>,
    pub dialect: Option<String>,
    pub phase: Phase,
    pub held: bool,
    /// Present while the execution is quarantined.
    pub quarantine: Option<Quarantine>,
    /// The newest retry of the execution.
    pub retried_by: Option<ExecutionId>,
    pub created_at: Millis,
    /// Time of the newest event.
    pub at: Millis,
}

#[derive(Debug, Clone, PartialEq)]
pub struct StoredDefinition {
    pub id: DefinitionId,
    pub workflow: WorkflowId,
    pub tenant: Tenant,
    pub name: String,
    pub version: u32,
    pub dialect: String,
    pub source: String,
    pub workload: Value,
    pub manifest: StoredManifest,
    pub net: NetDigest,
}

#[derive(Debug, Clone, PartialEq)]
pub struct StoredLog {
    pub position: Position,
    pub run: RunId,
    pub step: String,
    pub attempt: u32,
    /// A JSON array of lines.
    pub lines: Vec<u8>,
}
