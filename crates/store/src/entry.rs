//! Rows that belong to no execution's state: what a server keeps for its tenants. They are written in the engine's own
//! batches, so that the disk has one writer, and no decision depends on them.

use crate::access::{Audit, StoredTenant, StoredToken};
use crate::commit::{DefinitionId, Session, StoredManifest, WorkflowId};
use crate::hooks::HookClaim;
use crate::memory::StoredMemory;
use crate::objects::ObjectWrite;
use crate::origin::Tenant;
use crate::outbox::{DeliveryAttempt, NewDeliveries};
use crate::quarantine::Suspect;
use crate::registry::RegistryWrite;
use crate::schedules::ScheduleWrite;
use crate::workers::{ReportReceipt, RunnerGroup, WorkerSession};
use std::collections::BTreeMap;
use windlass_kernel::{ExecutionId, Millis, NetDigest};

#[derive(Debug, Clone, PartialEq)]
pub enum Entry {
    /// Sets the status of a workflow; `Duplicate` when the tenant has none of that id.
    WorkflowStatus {
        tenant: Tenant,
        workflow: WorkflowId,
        status: WorkflowStatus,
        at: Millis,
    },
    /// Deletes a workflow; its executions stay. `Duplicate` when the tenant has none of that id.
    WorkflowDeleted {
        tenant: Tenant,
        workflow: WorkflowId,
        at: Millis,
    },
    /// A version was compiled again by a newer compiler; `Duplicate` when there is no such version. Its Net is stored
    /// already.
    Recompiled {
        definition: DefinitionId,
        net: NetDigest,
        manifest: StoredManifest,
    },
    /// The hooks of a workflow that was stored before claims were introduced; a path that another workflow has stays
    /// as it is. `Duplicate` when they were read before.
    HooksRead {
        tenant: Tenant,
        workflow: WorkflowId,
        hooks: Vec<HookClaim>,
        at: Millis,
    },
    /// Hides an execution that ended before a time until its rows are deleted; `Duplicate` when it does not exist or may not be
    /// deleted. That is judged with this write: mail or a redelivery may have arrived since the execution was listed.
    Forget {
        execution: ExecutionId,
        ended_before: Millis,
    },
    /// Deletes at most this many rows of forgotten executions; `Duplicate` when there are none left.
    Clear {
        rows: usize,
    },
    /// Replaces the bytes of artifacts counted for each tenant, after a sweep.
    ArtifactsCounted {
        left: BTreeMap<Tenant, u64>,
    },
    /// A change of the copy of an artifact in an object store.
    Object(Box<ObjectWrite>),
    /// Marks an execution as suspected or quarantined, or changes that mark.
    Suspect(Box<Suspect>),
    /// Removes the mark of an execution; `Duplicate` when it had none.
    Released {
        execution: ExecutionId,
    },
    /// Ends a quarantined execution whose rows cannot be read: it is listed as cancelled, and no work of it is found. Its
    /// journal stays as it is. `Duplicate` when it does not exist or has ended.
    Abandoned {
        execution: ExecutionId,
        at: Millis,
    },
    /// Stores a value that a workflow remembers, in place of an earlier one under the same key.
    Remember(Box<StoredMemory>),
    /// Adds deliveries; `Duplicate` when another process has added some meanwhile.
    Deliveries(Box<NewDeliveries>),
    DeliveryAttempted(Box<DeliveryAttempt>),
    /// Gives up all pending deliveries of an execution, and those that are added until a redelivery.
    GivenUp {
        execution: ExecutionId,
        why: String,
        at: Millis,
    },
    /// Closes the outbox of an execution; `Duplicate` when a delivery is pending.
    OutboxClosed {
        execution: ExecutionId,
    },
    /// Sends a delivery once more, at once; those added after it are sent again, too. `Duplicate` when the tenant has no such
    /// delivery.
    Redeliver {
        tenant: Tenant,
        execution: ExecutionId,
        number: u64,
        at: Millis,
    },
    /// A change of actions or routing targets; see [`RegistryWrite`] for its answers.
    Registry(Box<RegistryWrite>),
    /// A change of schedules, their runs or dead letters; see [`ScheduleWrite`] for its answers.
    Schedule(Box<ScheduleWrite>),
    /// Adds a tenant, or changes the name and the limits of one.
    Tenant(Box<StoredTenant>),
    /// Adds a token; `Duplicate` when there is one of that id or digest.
    Token(Box<StoredToken>),
    /// Revokes a token; `Duplicate` when the tenant has none of that id, or it was revoked before.
    TokenRevoked {
        tenant: Tenant,
        id: String,
        at: Millis,
    },
    /// Deletes a token; `Duplicate` when the tenant has none of that id.
    TokenDeleted {
        tenant: Tenant,
        id: String,
    },
    TokenUsed {
        id: String,
        at: Millis,
    },
    /// Opens the session of a worker; `Duplicate` when there is one of that id.
    WorkerSession(Box<WorkerSession>),
    /// Renews a session; `Duplicate` when it is closed.
    WorkerRenewed {
        session: Session,
        expires_at: Millis,
    },
    /// Closes a session and deletes its receipts; `Duplicate` when it is closed.
    WorkerClosed {
        session: Session,
    },
    /// Adds the receipt of a report, or replaces the one of its unit.
    Receipt(Box<ReportReceipt>),
    /// Deletes receipts of a session from before a time.
    ReceiptsDropped {
        session: Session,
        before: Millis,
    },
    /// Adds artifacts to those that workers may fetch for an execution; see [`crate::Workers::owns_artifact`]. `Duplicate` when
    /// that changes nothing.
    ArtifactsOwned {
        execution: ExecutionId,
        artifacts: Vec<String>,
    },
    /// Adds the artifacts of an execution to those of another one that takes over its records.
    ArtifactsTakenOver {
        from: ExecutionId,
        to: ExecutionId,
    },
    /// Adds a group of workers, or changes its cluster.
    RunnerGroup(Box<RunnerGroup>),
    /// Deletes a group; `Duplicate` when the tenant has none of that name.
    RunnerGroupDeleted {
        tenant: Tenant,
        name: String,
    },
    /// Records an action that changed nothing: a refused request, a secret that was read.
    Audit(Box<Audit>),
    /// An entry that a caller requested. It is audited in the same transaction, and only if it takes effect.
    Audited {
        entry: Box<Entry>,
        audit: Box<Audit>,
    },
}

impl Entry {
    /// Returns the same entry with its audit record.
    #[must_use]
    pub fn audited(self, audit: Audit) -> Entry {
        Entry::Audited { entry: Box::new(self), audit: Box::new(audit) }
    }
}

/// Status of a workflow, as its author sets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WorkflowStatus {
    Draft,
    #[default]
    Active,
    Paused,
    Archived,
}

impl WorkflowStatus {
    pub const ALL: [WorkflowStatus; 4] =
        [WorkflowStatus::Draft, WorkflowStatus::Active, WorkflowStatus::Paused, WorkflowStatus::Archived];

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            WorkflowStatus::Draft => "draft",
            WorkflowStatus::Active => "active",
            WorkflowStatus::Paused => "paused",
            WorkflowStatus::Archived => "archived",
        }
    }

    #[must_use]
    pub fn of(name: &str) -> Option<WorkflowStatus> {
        WorkflowStatus::ALL.into_iter().find(|status| status.name() == name)
    }
}
