//! Copies of artifacts in an object store outside of the data folder. The file of an artifact is on disk before anything refers
//! to it; its copy follows later. What is still to be copied is a row, written with the batch that follows the file.

use crate::origin::Tenant;
use crate::store::{Reader, StoreResult};
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use windlass_kernel::{ExecutionId, Millis};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectState {
    /// The artifact waits for its upload.
    Waiting,
    /// All attempts to upload it failed. It is tried again from time to time.
    Failed,
    Stored,
    /// Nothing refers to the artifact: its copy is to be deleted.
    Unused,
}

impl ObjectState {
    pub const ALL: [ObjectState; 4] =
        [ObjectState::Waiting, ObjectState::Failed, ObjectState::Stored, ObjectState::Unused];

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ObjectState::Waiting => "waiting",
            ObjectState::Failed => "failed",
            ObjectState::Stored => "stored",
            ObjectState::Unused => "unused",
        }
    }

    #[must_use]
    pub fn of(name: &str) -> Option<ObjectState> {
        ObjectState::ALL.into_iter().find(|state| state.name() == name)
    }
}

/// The copy of an artifact, or a copy that is to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredObject {
    pub tenant: Tenant,
    pub key: String,
    pub bytes: u64,
    pub state: ObjectState,
    /// Number of attempts since the state was entered. During an attempt it is the number of that attempt.
    pub attempts: u32,
    /// Whether an attempt is in progress.
    pub claimed: bool,
    /// Time of the next attempt, or the time at which the current attempt counts as lost; None: there is nothing to
    /// do.
    pub due: Option<Millis>,
    /// Reason why the last attempt failed.
    pub error: Option<String>,
    /// Time at which the artifact was last put into the data folder.
    pub put_at: Millis,
}

/// An artifact in the data folder that is to be copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PutArtifact {
    pub tenant: Tenant,
    pub key: String,
    pub bytes: u64,
    pub at: Millis,
}

/// Number and times of the attempts to upload an artifact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UploadPolicy {
    /// Number of attempts after which the upload counts as failed.
    pub attempts_max: u32,
    /// Delay after the first attempt; it doubles with every further one.
    pub delay_ms: u64,
    pub delay_max_ms: u64,
    /// Delay between attempts of an upload that counts as failed.
    pub failed_delay_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ObjectWrite {
    /// An artifact that is to be copied, unless it has a copy.
    Put(PutArtifact),
    /// `Duplicate` when the change does not apply: another attempt is in progress, or there is no such object.
    Change { tenant: Tenant, key: String, change: ObjectChange, at: Millis },
    /// Names the object store. In a new one nothing is stored yet, so every artifact is to be copied again.
    /// `Duplicate` when it is the same as before.
    Place { place: String, at: Millis },
    /// Ends the attempts of an earlier process, so that their objects are due. `Duplicate` when there are none.
    EndClaims { at: Millis },
}

/// A change of one object. Results name the attempt that they belong to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ObjectChange {
    /// Begins an attempt for a due object. It counts as lost after this time.
    Claim {
        until: Millis,
    },
    Uploaded {
        attempt: u32,
    },
    /// The upload or the deletion failed.
    Failed {
        attempt: u32,
        error: String,
        policy: UploadPolicy,
    },
    /// Nothing refers to it, unless it was put again since.
    Discard {
        put_before: Millis,
    },
    Deleted {
        attempt: u32,
    },
}

/// Numbers of objects of all tenants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ObjectLoad {
    pub waiting: usize,
    pub failed: usize,
}

/// An execution that ends when its artifacts are uploaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AwaitedUploads {
    pub execution: ExecutionId,
    pub tenant: Tenant,
}

/// Reads copies of artifacts, and what waits for them.
pub trait Objects: Reader {
    /// Returns the name of the object store that the copies are in; None before the first.
    fn object_place(&mut self) -> StoreResult<Option<String>>;

    fn object(&mut self, tenant: &Tenant, key: &str) -> StoreResult<Option<StoredObject>>;

    /// Returns objects of all tenants in order, after a given one.
    fn objects(&mut self, after: Option<(&Tenant, &str)>, limit: usize) -> StoreResult<Vec<StoredObject>>;

    /// Returns objects with a due time: the earliest `each` of every tenant.
    fn due_objects(&mut self, each: usize) -> StoreResult<Vec<StoredObject>>;

    /// Counts objects with a due time, up to a bound.
    fn object_load(&mut self, bound: usize) -> StoreResult<ObjectLoad>;

    /// Returns executions of all tenants that have only their uploads left, in the order of the store, after a given one. Those
    /// in quarantine are left out.
    fn awaited_uploads(
        &mut self,
        after: Option<ExecutionId>,
        limit: usize,
    ) -> StoreResult<Vec<AwaitedUploads>>;

    /// Returns every string in the journal of an execution that has the form of a key. Output of a step may have it,
    /// too.
    fn named_artifacts(&mut self, execution: ExecutionId) -> StoreResult<BTreeSet<String>>;
}

/// Artifacts that were put into the data folder since the last batch. The next batch writes their rows in its
/// transaction. A crash before that loses the list; a comparison of the folder with the rows finds the files again.
#[derive(Debug, Default)]
pub struct PutArtifacts(Mutex<Vec<PutArtifact>>);

impl PutArtifacts {
    pub(crate) fn add(&self, put: PutArtifact) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(put);
    }

    pub(crate) fn take(&self) -> Vec<PutArtifact> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
