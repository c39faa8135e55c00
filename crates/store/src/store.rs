//! The port to the disk: one writer, readers beside it.

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

/// The one that writes.
pub trait Store: Send + 'static {
    type Reader: Reader;

    /// Writes a batch in order, as one transaction, and answers for each. After `Ok` a crash loses none of what was
    /// answered as written. `Err`: the outcome is unknown, and the writer must not go on.
    fn write(&mut self, batch: &[Write]) -> Result<Vec<Applied>, StoreError>;

    /// A reader that sees everything that was answered before it reads.
    fn reader(&self) -> Result<Self::Reader, StoreError>;
}

/// Reads what is durable. Every list has a bound and goes on after an entry it gave; every call stands alone and sees
/// one moment.
pub trait Reader: Send + 'static {
    /// The live state of an execution, from its rows.
    fn load(&mut self, execution: ExecutionId) -> Result<Option<Stored>, StoreError>;

    /// Returns journal rows of an execution, from the row that holds version `from` on.
    fn journal(
        &mut self,
        execution: ExecutionId,
        from: u64,
        limit: usize,
    ) -> Result<Vec<JournalRow>, StoreError> {
        let bounds = PageBounds { rows_max: limit, bytes_max: usize::MAX };
        Ok(self.journal_page(execution, from, bounds)?.rows)
    }

    /// Returns the same rows within bounds of number and size; at least one, if there is one.
    fn journal_page(
        &mut self,
        execution: ExecutionId,
        from: u64,
        bounds: PageBounds,
    ) -> Result<JournalPage, StoreError>;

    /// Values a decision needs, as far as the store has them; an artifact that is not there is told as such.
    fn values(&mut self, execution: ExecutionId, needs: &[Need]) -> Result<Values, StoreError>;

    fn net(&mut self, digest: NetDigest) -> Result<Option<Net>, StoreError>;

    /// Timers that are due until then, the earliest first, after the given place. Those that run: a hold lets only the
    /// execution's own come due.
    fn due(
        &mut self,
        after: Option<&DueTimer>,
        until: Millis,
        limit: usize,
    ) -> Result<Vec<DueTimer>, StoreError>;

    /// Open offers in (execution, run) order of the store, leased or not.
    fn offers(&mut self, after: Option<(ExecutionId, RunId)>, limit: usize)
    -> Result<Vec<Offer>, StoreError>;

    /// Open offers of one execution, after a step-run; none when there is no such execution.
    fn offers_of(
        &mut self,
        execution: ExecutionId,
        after: RunId,
        limit: usize,
    ) -> Result<Vec<Offer>, StoreError>;

    /// Executions whose newest commit was cut short and goes on by itself (`HeadRow::goes_on`).
    fn unfinished(&mut self, limit: usize) -> Result<Vec<ExecutionId>, StoreError>;

    /// Stop obligations that nobody has fulfilled (R7).
    fn stops(&mut self, after: Option<&Stop>, limit: usize) -> Result<Vec<Stop>, StoreError>;

    fn inbox(&mut self, after: Option<MailId>, limit: usize) -> Result<Vec<StoredMail>, StoreError>;

    /// Open mail to one execution, oldest first.
    fn inbox_of(&mut self, to: ExecutionId, limit: usize) -> Result<Vec<StoredMail>, StoreError> {
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

    /// What became of mail that somebody waits for: None while it is open, then `Ok` or why it was refused. Mail that
    /// nobody waits for, or whose answer was fetched, is an error.
    fn answer(&mut self, mail: MailId) -> Result<Option<Result<(), String>>, StoreError>;

    fn list(&mut self, query: &Query) -> Result<Vec<Listed>, StoreError>;

    /// What is held against an execution, if anything. A store that quarantines nothing knows of none.
    fn suspect(&mut self, _execution: ExecutionId) -> Result<Option<Suspect>, StoreError> {
        Ok(None)
    }

    /// How many executions of a tenant have not ended, counted up to this number.
    fn open_executions(&mut self, tenant: &Tenant, bound: usize) -> Result<usize, StoreError> {
        let query = Query {
            tenant: Some(tenant.clone()),
            status: Some(Status::Open),
            limit: bound,
            ..Query::default()
        };
        self.list(&query).map(|listed| listed.len())
    }

    fn definition(&mut self, id: DefinitionId) -> Result<Option<StoredDefinition>, StoreError>;

    /// A definition that the tenant has: that version, or the newest.
    fn find_definition(
        &mut self,
        tenant: &Tenant,
        which: &Which,
        version: Option<u32>,
    ) -> Result<Option<StoredDefinition>, StoreError>;

    /// Log chunks of an execution after a place.
    fn logs(
        &mut self,
        execution: ExecutionId,
        after: Position,
        limit: usize,
    ) -> Result<Vec<StoredLog>, StoreError>;

    /// All rows of an execution as they lie there, for checking (K1): in the form `project` gives over a whole state.
    fn rows(&mut self, execution: ExecutionId) -> Result<Option<Rows>, StoreError>;
}

/// Mail read at a time when that of one execution is looked for.
const INBOX_PAGE: usize = 256;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    #[error("the disk is full: {0}. What was answered is safe; free some space and start again")]
    Full(String),
    #[error("the store cannot be read or written: {0}")]
    Io(String),
    #[error("the store is damaged: {0}")]
    Corrupt(String),
    #[error(transparent)]
    Damaged(#[from] Damage),
    /// Bytes of a row are not what was written. Readers of one execution name it: see `Unreadable`.
    #[error("the store is damaged: {0}")]
    Undecodable(String),
    /// Rows of this execution are not what was written; those of others are not concerned.
    #[error("the store is damaged: execution {execution}: {what}")]
    Unreadable { execution: ExecutionId, what: String },
    #[error(
        "the data in {path} was written by a newer version (schema {found}, this program knows {known}): use that version, nothing was changed"
    )]
    Newer { path: String, found: u32, known: u32 },
}

impl StoreError {
    /// The one execution whose rows cannot be read; None where the whole store is in doubt.
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

    /// The same error, of rows that belong to this execution.
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

/// How a definition is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    Id(WorkflowId),
    /// The newest workflow of this name.
    Name(String),
}

/// What stands before an id where people write it.
const ID_PREFIX: &str = "wf_";

impl Which {
    /// An id as people write it, or else a name.
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

/// How much is read at a time. Rows are as large as what tenants put into them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageBounds {
    pub rows_max: usize,
    /// The page ends with the row that reaches it.
    pub bytes_max: usize,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct JournalPage {
    pub rows: Vec<JournalRow>,
    /// There may be more rows.
    pub more: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct JournalRow {
    pub position: Position,
    pub commit: CommitId,
    /// Of the first record: how many there are before it.
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

/// Newest first, from before the given execution.
#[derive(Debug, Clone, Default)]
pub struct Query {
    /// None: of every tenant.
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

/// Phases as a list is filtered by them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Not ended.
    Open,
    Phase(Phase),
    In(&'static [Phase]),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Listed {
    pub execution: ExecutionId,
    pub origin: Origin,
    pub name: Option<String>,
    pub version: Option<u32>,
    pub dialect: Option<String>,
    pub phase: Phase,
    pub held: bool,
    /// It is not worked on.
    pub quarantine: Option<Quarantine>,
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
