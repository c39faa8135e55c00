//! Data on disk: commits and the rows that follow from them.
//!
//! A [`Commit`] is everything one decision changes; a store writes all of it or nothing. Its rows are made by
//! [`project`], one pure function, so they can be made again from the journal and compared (K1). What every store must
//! refuse, and in which order, are the functions of [`rules`]: a store looks up facts for them, and writes.

mod access;
mod artifacts;
mod catalog;
pub mod check;
mod codec;
mod commit;
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
mod entry;
#[cfg(test)]
mod golden;
mod hooks;
mod journal;
mod memory;
mod objects;
mod origin;
mod outbox;
mod project;
mod quarantine;
mod registry;
mod retention;
mod rows;
pub mod rules;
mod schedules;
mod seal;
mod secrets;
mod server_reader;
pub mod sqlite;
mod store;
mod tasks;
mod usage;
mod workers;

pub use access::{Access, Audit, AuditQuery, Author, StoredAudit, StoredTenant, StoredToken, TenantLimits};
pub use artifacts::{ArtifactCopies, ArtifactFile, Artifacts, References, Swept, Upload, artifact_path};
pub use catalog::{Catalog, StoredVersion, StoredWorkflow, WorkflowQuery};
pub use codec::{assemble, decode};
pub use commit::{
    Applied, Commit, CommitId, Creation, Definition, DefinitionId, Lease, Letter, LogChunk, Mail, MailId,
    Position, Progress, Retry, RetryFrom, Session, Stop, StoredManifest, Target, WorkflowId, Write,
};
pub use entry::{Entry, WorkflowStatus};
pub use hooks::{HookClaim, HookReader, StoredHook, UnreadHooks};
pub use journal::{FORMAT, Sealed, open, seal};
pub use memory::{Memories, MemoryQuery, StoredMemory};
pub use objects::{
    AwaitedUploads, ObjectChange, ObjectLoad, ObjectState, ObjectWrite, Objects, PutArtifact, StoredObject,
    UploadPolicy,
};
pub use origin::{IdempotencyKey, Options, Origin, Priority, Runner, Tenant, Webhook};
pub use outbox::{
    DeliveryAttempt, DeliveryQuery, DeliverySource, DeliveryState, NewDeliveries, NewDelivery, Outbox,
    StoredDelivery,
};
pub use project::{project, stored_rows};
pub use quarantine::{DEATHS_MAX, ExecutionOutline, Quarantine, Quarantined, Suspect};
pub use registry::{
    ACTION_REVISIONS_MAX, ACTIONS_MAX, ActionDocument, ActionId, ActionRevision, AwaitedRoute, Registry,
    RegistryWrite, RoutingTarget, StoredAction, TARGETS_MAX, TargetKind, TargetPoll, WhichAction,
};
pub use retention::{Forgettable, Retention};
pub use rows::{Class, HeadRow, LiveRun, Part, PartRow, Rows, RunRow, WHOLE};
pub use schedules::{
    Attention, ChainQuery, DeadLetterId, DeadLetterNotice, DeadLetterQuery, LeaseKey, NewRun, NoticeAttempt,
    OccurrencePlan, Receipt, RunHolder, RunLease, RunOutcome, RunQuery, RunResult, ScheduleId, ScheduleLoad,
    ScheduleQuery, ScheduleRunId, ScheduleWrite, Schedules, StoredDeadLetter, StoredRun, StoredSchedule,
    WaitingPage, WaitingQuery,
};
pub use seal::{AuditSeal, SEAL_KEY_BYTES, hex};
pub use secrets::{Secrets, StoredSecret, TENANT, Wrapped};
pub use server_reader::ServerReader;
pub use store::{
    Damage, DueTimer, JournalPage, JournalRow, ListedExecution, Offer, PageBounds, Query, Reader, Status,
    Store, StoreError, StoreResult, Stored, StoredDefinition, StoredLog, StoredMail, Which,
};
pub use tasks::{GateQuery, HeldQuery, StoredGate, StoredTask, TaskQuery, Tasks};
pub use usage::{Usage, Usages};
pub use workers::{ReportReceipt, RunnerGroup, WorkerSession, Workers};
