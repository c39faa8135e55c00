//! Workflows and their versions, as a server reads them.

use crate::commit::{DefinitionId, WorkflowId};
use crate::entry::WorkflowStatus;
use crate::origin::{IdempotencyKey, Tenant};
use crate::store::{Reader, StoreResult, StoredDefinition};
use windlass_kernel::{ExecutionId, Millis};

/// Reads workflows. Every method reads one tenant only, except for outdated versions: other tenants' rows are not
/// found.
pub trait Catalog: Reader {
    fn workflow(&mut self, tenant: &Tenant, id: WorkflowId) -> StoreResult<Option<StoredWorkflow>>;

    /// Returns workflows, the newest first.
    fn workflows(&mut self, query: &WorkflowQuery) -> StoreResult<Vec<StoredWorkflow>>;

    /// Returns a version of a workflow; the newest if no number is given.
    fn version(
        &mut self,
        tenant: &Tenant,
        workflow: WorkflowId,
        version: Option<u32>,
    ) -> StoreResult<Option<StoredDefinition>>;

    /// Returns versions before a given one, the newest first, without their sources.
    fn versions(
        &mut self,
        tenant: &Tenant,
        workflow: WorkflowId,
        before: Option<u32>,
        limit: usize,
    ) -> StoreResult<Vec<StoredVersion>>;

    /// Returns versions of all tenants whose manifest an older compiler wrote, by id.
    fn outdated_versions(&mut self, compiler: u32, limit: usize) -> StoreResult<Vec<StoredDefinition>>;

    /// Returns the execution that was started under this key, with the digest of its request; None once the key has
    /// expired.
    fn keyed(
        &mut self,
        tenant: &Tenant,
        workflow: WorkflowId,
        key: &IdempotencyKey,
    ) -> StoreResult<Option<(ExecutionId, [u8; 32])>>;

    /// Counts executions of a workflow, up to a bound.
    fn count_executions(&mut self, tenant: &Tenant, workflow: WorkflowId, bound: usize)
    -> StoreResult<usize>;

    /// Returns the durations of the newest completed executions of a workflow, in milliseconds.
    fn durations(&mut self, tenant: &Tenant, workflow: WorkflowId, limit: usize) -> StoreResult<Vec<u64>>;
}

#[derive(Debug, Clone)]
pub struct WorkflowQuery {
    pub tenant: Tenant,
    pub status: Option<WorkflowStatus>,
    /// Part of the name, in upper or lower case.
    pub search: Option<String>,
    /// Dialect of the newest version.
    pub dialect: Option<String>,
    pub limit: usize,
    pub offset: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub struct StoredWorkflow {
    pub id: WorkflowId,
    pub name: String,
    pub status: WorkflowStatus,
    pub created_at: Millis,
    pub updated_at: Millis,
    /// The newest version.
    pub version: u32,
    pub definition: DefinitionId,
    pub dialect: String,
    /// None: it was not recorded.
    pub created_by: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct StoredVersion {
    pub version: u32,
    pub definition: DefinitionId,
    pub name: String,
    pub dialect: String,
    pub net: windlass_kernel::NetDigest,
    pub at: Millis,
}
