//! Step-runs, gates and held executions that wait for people, as a server lists them.

use crate::origin::Tenant;
use crate::store::{ListedExecution, Reader, StoreResult};
use windlass_kernel::{ExecutionId, Millis, NetDigest, RunId, StepId, StepRun, TokenId};

/// Reads tasks that wait for people.
pub trait Tasks: Reader {
    /// Returns open approvals and manual steps of a tenant, those of the oldest executions first.
    fn tasks(&mut self, query: &TaskQuery) -> StoreResult<Vec<StoredTask>>;

    /// Returns tokens of a tenant that wait at gates, those of the oldest executions first.
    fn gates(&mut self, query: &GateQuery) -> StoreResult<Vec<StoredGate>>;

    /// Returns open executions of a tenant that are held, the oldest first.
    fn held(&mut self, query: &HeldQuery) -> StoreResult<Vec<ListedExecution>>;
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

#[derive(Debug, Clone)]
pub struct GateQuery {
    pub tenant: Tenant,
    /// Only gates of this execution.
    pub execution: Option<ExecutionId>,
    /// Only tokens after this one, whose execution must exist.
    pub after: Option<(ExecutionId, StepId, TokenId)>,
    pub limit: usize,
}

#[derive(Debug, Clone)]
pub struct HeldQuery {
    pub tenant: Tenant,
    /// Only this execution.
    pub execution: Option<ExecutionId>,
    /// Only executions after this one, which must exist.
    pub after: Option<ExecutionId>,
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

/// A token that waits at the gate of a step.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredGate {
    pub execution: ListedExecution,
    pub net: NetDigest,
    pub step: StepId,
    pub token: TokenId,
    pub deadline: Option<Millis>,
    pub asked_at: Option<Millis>,
}
