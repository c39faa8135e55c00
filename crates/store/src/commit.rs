//! Writes. A batch of writes is one transaction, which is on disk when the store has returned.

use crate::access::{Audit, Author};
use crate::entry::{Entry, WorkflowStatus};
use crate::hooks::HookClaim;
use crate::origin::{Options, Origin, Tenant};
use crate::rows::Rows;
use crate::schedules::StoredSchedule;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use windlass_artifact::Artifact;
use windlass_kernel::{Create, ExecutionId, Fence, Input, Millis, Net, NetDigest, Parent, Record, RunId};

/// Id of a commit, chosen by the writer and kept with the journal row: a writer that lost the answer can find out whether
/// the commit was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommitId(pub u128);

/// Position of a journal row among the rows of all executions; rises with every commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(pub i64);

/// Number of a letter in the inbox, which rises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MailId(pub i64);

/// A worker's registration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Session(pub u64);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DefinitionId(pub i64);

/// Id of all versions of a definition together, which never changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkflowId(pub u128);

impl std::fmt::Display for WorkflowId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

#[derive(Debug, Clone)]
pub enum Write {
    Commit(Box<Commit>),
    /// A definition and its net.
    Define(Box<Definition>),
    /// Another net of a known definition: lowered with the settings of one start.
    Net(Arc<Net>),
    /// A worker takes an offer from the queue, or reports that it has begun the offer that it holds.
    Lease(Lease),
    /// The cursor of the pipeline of a leased offer (R14).
    Checkpoint {
        execution: ExecutionId,
        run: RunId,
        fence: Fence,
        cursor: Arc<Value>,
    },
    /// Progress that the worker of a leased offer reports.
    Progress {
        execution: ExecutionId,
        run: RunId,
        fence: Fence,
        progress: Progress,
    },
    /// An input for an execution, decided by the engine that owns it.
    Accept(Mail),
    /// Ends a letter that led to no commit: it was refused, or accepted without a record.
    Settle {
        mail: MailId,
        refused: Option<String>,
    },
    /// The answer of a letter was fetched; its row is deleted.
    Fetched {
        mail: MailId,
    },
    /// A stop obligation is fulfilled (R7).
    Stopped(Stop),
    Log(LogChunk),
    Entry(Box<Entry>),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    pub step: String,
    /// Percentage from 0 to 100.
    pub percentage: u8,
}

/// All changes of one decision, or of several of one execution.
#[derive(Debug, Clone)]
pub struct Commit {
    pub id: CommitId,
    pub execution: ExecutionId,
    /// The version that this was decided on; 0 creates the execution.
    pub expected: u64,
    pub creation: Option<Creation>,
    /// Offers that were answered: each must be the open one in the store, too (K3).
    pub answered: Vec<(RunId, Fence)>,
    pub records: Arc<Vec<Record>>,
    /// Artifacts that the records refer to. They are on disk before the records.
    pub artifacts: Vec<Artifact>,
    pub rows: Rows,
    /// Offers of this commit that are assigned to a free slot at once.
    pub leases: Vec<Lease>,
    /// Stop obligations that begin.
    pub stops: Vec<Stop>,
    pub mail: Vec<Mail>,
    /// Mail that was decided by this; each row must still be there.
    pub consumed: Vec<MailId>,
    /// Caller of the request that the commit answers.
    pub audits: Vec<Audit>,
}

/// Data that is written once, when an execution begins.
#[derive(Debug, Clone, PartialEq)]
pub struct Creation {
    pub origin: Arc<Origin>,
    pub net: NetDigest,
    pub inputs: Arc<Value>,
    pub at: Millis,
}

#[derive(Debug, Clone)]
pub struct Definition {
    pub tenant: Tenant,
    pub target: Target,
    pub name: String,
    pub dialect: String,
    /// Text of the user.
    pub source: String,
    /// Defaults of the inputs: an object.
    pub workload: Value,
    pub manifest: StoredManifest,
    pub net: Arc<Net>,
    /// Requests that start it; `HookTaken` when another workflow of the tenant has one of them.
    pub hooks: Vec<HookClaim>,
    /// Schedules of its triggers, which replace those of the version before. The store adds the workflow to them.
    pub schedules: Vec<StoredSchedule>,
    /// Status of its workflow from now on; None leaves it unchanged, and a new one is active.
    pub status: Option<WorkflowStatus>,
    pub at: Millis,
    /// Written with the version, if one is: `workflow.create` or `workflow.change`.
    pub author: Option<Author>,
}

/// Knowledge of a compiler about a definition in addition to its Net. The store does not read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredManifest {
    /// Number of the compiler; 0 for definitions without a manifest.
    pub compiler: u32,
    pub json: String,
}

impl Default for StoredManifest {
    fn default() -> Self {
        StoredManifest { compiler: 0, json: "{}".to_owned() }
    }
}

/// Workflow that a definition is a version of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// The tenant's newest workflow of the definition's name, created with this id if there is none. `Defined` with
    /// the existing version if the newest one is the same.
    Named(WorkflowId),
    New(WorkflowId),
    /// The tenant's workflow of this id, which follows from the content, created if there is none. `Defined` with the
    /// existing version if the newest one is the same.
    Identified(WorkflowId),
    /// The next version of this one; `Fenced` when the tenant has none of that id, or when another version is its newest.
    After(WorkflowId, Option<u32>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    pub execution: ExecutionId,
    pub run: RunId,
    pub fence: Fence,
    pub session: Session,
    pub claimed_at: Millis,
    /// None: claimed, and not known to have begun.
    pub started_at: Option<Millis>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stop {
    pub execution: ExecutionId,
    pub run: RunId,
    pub fence: Fence,
    pub session: Session,
}

/// Mail to an execution.
#[derive(Debug, Clone, PartialEq)]
pub struct Mail {
    pub to: ExecutionId,
    pub letter: Letter,
    /// Another process waits for the answer: the row stays, answered, until it has been fetched.
    pub answered: bool,
    pub at: Millis,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Letter {
    Input(Input),
    /// A step-run starts an execution of this definition (R15).
    Start {
        definition: Arc<Value>,
        create: Box<Create>,
        #[serde(default)]
        tenant: Tenant,
        #[serde(default)]
        options: Arc<Options>,
    },
    /// Mail to an execution that does not exist yet: it retries another one.
    Retry(Box<Retry>),
    /// Mail to the parent: the child has ended. Its result is in the child's journal.
    Ended {
        child: ExecutionId,
        run: RunId,
        fence: Fence,
    },
}

/// A request to repeat an ended execution as a new one (R12).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Retry {
    pub of: ExecutionId,
    /// None: from the steps that failed or were stopped.
    pub from: Option<RetryFrom>,
    /// None: the inputs of the ended execution.
    pub inputs: Option<Arc<Value>>,
    pub trigger: String,
    /// Caller of the request.
    #[serde(default = "owner")]
    pub by: String,
    /// Whether the caller may not edit definitions.
    #[serde(default)]
    pub restricted: bool,
    /// The definition of the new execution. None: that of the ended one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<DefinitionId>,
    /// The step-run that waits for the new execution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Parent>,
}

impl Retry {
    /// Returns a retry of the whole execution by the owner of the data folder.
    #[must_use]
    pub fn of(of: ExecutionId) -> Retry {
        let (from, inputs, definition, parent) = (None, None, None, None);
        Retry {
            of,
            from,
            inputs,
            trigger: "manual".into(),
            by: owner(),
            restricted: false,
            definition,
            parent,
        }
    }
}

fn owner() -> String {
    Options::default().by
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetryFrom {
    pub step: String,
    /// Counted from 1, like the firings of a step in views.
    pub firing: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogChunk {
    pub execution: ExecutionId,
    pub run: RunId,
    pub step: String,
    pub attempt: u32,
    /// Lines as readers get them: a JSON array.
    pub lines: Vec<u8>,
    pub at: Millis,
}

/// Result of one write of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applied {
    Committed(Position),
    /// Another write than a commit is stored.
    Done,
    /// A definition, new or known.
    Defined(DefinitionId, u32, WorkflowId),
    Accepted(MailId),
    /// Another writer was first, or an earlier commit of the execution in the batch was refused.
    Conflict,
    /// The fence is not the open one, another session has the lease, or there is no such execution.
    Fenced,
    /// It was written before: the execution exists, the mail was settled, the work had stopped.
    Duplicate,
    /// Another execution has the idempotency key.
    Taken,
    /// A queue has no room; nothing was written.
    QueueFull,
    /// This workflow of the tenant has the path of a hook that a definition claims; nothing was written.
    HookTaken(WorkflowId),
}
