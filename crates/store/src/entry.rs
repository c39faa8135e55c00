//! Rows beside executions: what a server keeps for its tenants. They are written in the engine's own batches, so that
//! the disk has one writer, and are no part of any decision.

use crate::access::{Audit, StoredTenant, StoredToken};
use crate::commit::{DefinitionId, StoredManifest, WorkflowId};
use crate::hooks::HookClaim;
use crate::memory::StoredMemory;
use crate::origin::Tenant;
use crate::outbox::{NewDeliveries, Try};
use crate::quarantine::Suspect;
use std::collections::BTreeMap;
use windlass_kernel::{ExecutionId, Millis, NetDigest};

#[derive(Debug, Clone, PartialEq)]
pub enum Entry {
    /// Another state of a workflow; `Duplicate` when the tenant has none of that id.
    WorkflowStatus {
        tenant: Tenant,
        workflow: WorkflowId,
        status: WorkflowStatus,
        at: Millis,
    },
    /// It is found no more; its executions stay. `Duplicate` when the tenant has none of that id.
    WorkflowDeleted {
        tenant: Tenant,
        workflow: WorkflowId,
        at: Millis,
    },
    /// A version was compiled again by a newer compiler; `Duplicate` when there is no such version. Its Net is there already.
    Recompiled {
        definition: DefinitionId,
        net: NetDigest,
        manifest: StoredManifest,
    },
    /// The hooks of a workflow that was stored before claims were; what another one has stays as it is. `Duplicate` when
    /// they were read before.
    HooksRead {
        tenant: Tenant,
        workflow: WorkflowId,
        hooks: Vec<HookClaim>,
        at: Millis,
    },
    /// An ended execution is not there any more; `Duplicate` when it is not there or has not ended.
    Forget {
        execution: ExecutionId,
    },
    /// At most so many rows of forgotten executions go; `Duplicate` when there are none left.
    Clear {
        rows: usize,
    },
    /// Bytes of artifacts that tenants have, counted anew after a sweep.
    ArtifactsCounted {
        left: BTreeMap<Tenant, u64>,
    },
    /// An execution is suspected or quarantined, or what is known of it has changed.
    Suspect(Box<Suspect>),
    /// An execution is worked on again, and nothing is held against it. `Duplicate` when nothing was.
    Released {
        execution: ExecutionId,
    },
    /// A quarantined execution whose rows cannot be read is over: it is listed as cancelled, and nothing of it is done
    /// any more. Its journal stays as it is. `Duplicate` when it is not there or has ended.
    Abandoned {
        execution: ExecutionId,
        at: Millis,
    },
    /// A workflow remembers a value; that of a key that is there is replaced.
    Remember(Box<StoredMemory>),
    /// `Duplicate` when somebody else has made some meanwhile.
    Deliveries(Box<NewDeliveries>),
    Tried(Box<Try>),
    /// Everything of the execution that is not acknowledged, and what comes after it until a redelivery.
    GivenUp {
        execution: ExecutionId,
        why: String,
        at: Millis,
    },
    /// Everything is told. `Duplicate` when something still waits.
    ToldAll {
        execution: ExecutionId,
    },
    /// Once more, and at once; what comes after it is not given up any more. `Duplicate` when the tenant has no such delivery.
    Redeliver {
        tenant: Tenant,
        execution: ExecutionId,
        number: u64,
        at: Millis,
    },
    /// A new tenant, or another name and other limits of one that is there.
    Tenant(Box<StoredTenant>),
    /// `Duplicate` when there is one of that id or digest.
    Token(Box<StoredToken>),
    /// It opens nothing any more. `Duplicate` when the tenant has none of that id, or it was revoked before.
    TokenRevoked {
        tenant: Tenant,
        id: String,
        at: Millis,
    },
    TokenUsed {
        id: String,
        at: Millis,
    },
    /// Something that changed nothing and is to be known: a refused request, a secret that was read.
    Audit(Box<Audit>),
    /// An entry that somebody asked for. Who it was is written with it, and only if it took effect.
    Audited {
        entry: Box<Entry>,
        audit: Box<Audit>,
    },
}

impl Entry {
    /// The same, with the one who asked for it.
    #[must_use]
    pub fn audited(self, audit: Audit) -> Entry {
        Entry::Audited { entry: Box::new(self), audit: Box::new(audit) }
    }
}

/// What the author of a workflow says about it.
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
