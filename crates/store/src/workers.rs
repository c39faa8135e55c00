//! Workers outside of the server: their sessions, and the groups that they belong to.

use crate::commit::Session;
use crate::origin::Tenant;
use crate::store::{Reader, StoreResult};
use windlass_kernel::{ExecutionId, Fence, Millis, RunId};

/// Session of a worker that claims work of its group. It outlives the server process; what it holds is in the leases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerSession {
    pub id: Session,
    /// SHA-256 of the session's text, which only its worker knows.
    pub digest: [u8; 32],
    pub tenant: Tenant,
    pub group: String,
    pub cluster: Option<String>,
    /// Units that it runs at a time. 0: it claims calls and takes no orders.
    pub slots: u32,
    /// Name of the worker, for people.
    pub worker: String,
    pub opened_at: Millis,
    /// Time at which its leases are lost unless the worker renews them.
    pub expires_at: Millis,
}

/// Proof of what a worker reported for a unit, kept while the worker may report it again because it got no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportReceipt {
    pub execution: ExecutionId,
    pub run: RunId,
    pub fence: Fence,
    pub session: Session,
    /// Keyed by the text of the session, so that it reveals nothing about the report without that text.
    pub digest: [u8; 32],
    pub at: Millis,
}

/// A named pool of workers of one tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunnerGroup {
    pub tenant: Tenant,
    pub name: String,
    /// Only workers of this cluster may claim; None: all may.
    pub cluster: Option<String>,
    pub created_at: Millis,
    pub updated_at: Millis,
}

/// Reads sessions of workers and their groups.
pub trait Workers: Reader {
    /// Returns every session that was not closed, in the order of ids.
    fn worker_sessions(&mut self) -> StoreResult<Vec<WorkerSession>>;

    /// Returns the digest of what a session reported for a unit, if it is still kept.
    fn receipt(
        &mut self,
        execution: ExecutionId,
        unit: (RunId, Fence),
        session: Session,
    ) -> StoreResult<Option<[u8; 32]>>;

    /// Returns whether an artifact belongs to an execution or to one that it is a part of: their workers stored it, or the
    /// engine made it of their values.
    fn owns_artifact(&mut self, execution: ExecutionId, key: &str) -> StoreResult<bool>;

    /// Returns the groups of all tenants, by tenant and name.
    fn runner_groups(&mut self) -> StoreResult<Vec<RunnerGroup>>;
}
