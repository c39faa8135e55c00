//! Step-runs that wait for people, as a server lists them.

use crate::origin::Tenant;
use crate::store::{ListedExecution, Reader, StoreResult};
use windlass_kernel::{ExecutionId, Millis, NetDigest, RunId, StepRun};

/// Reads tasks that wait for people.
pub trait Tasks: Reader {
    /// Returns open approvals and manual steps of a tenant, those of the oldest executions first.
    fn tasks(&mut self, query: &TaskQuery) -> StoreResult<Vec<StoredTask>>;
}

#[derive(Debug, Clone)]
pub struct TaskQuery {
    pub tenant: Tenant,
    /// Only tasks of this execution.
    pub execution: Option<ExecutionId>,
    /// Only tasks after this one, whose execution must exist.
    pub after: Option<(ExecutionId, RunId)>,
    pub limit: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub struct StoredTask {
    pub execution: ListedExecution,
    pub net: NetDigest,
    pub run: RunId,
    /// The task waits for a person.
    pub state: StepRun,
    /// None: the time was not recorded.
    pub asked_at: Option<Millis>,
}
