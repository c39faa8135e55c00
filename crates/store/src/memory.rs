//! What workflows remember beyond their executions.

use crate::commit::WorkflowId;
use crate::origin::Tenant;
use crate::store::StoreError;
use windlass_kernel::Millis;

/// Reads memories; they are written as an `Entry`.
pub trait Memories {
    /// The newest first.
    fn memories(&mut self, query: &MemoryQuery) -> Result<Vec<StoredMemory>, StoreError>;
}

/// All that is given must fit.
#[derive(Debug, Clone, PartialEq)]
pub struct MemoryQuery {
    pub tenant: Tenant,
    pub workflow: WorkflowId,
    pub key: Option<String>,
    pub prefix: Option<String>,
    /// Each of them stands in the key or in the value, whatever the case of its letters.
    pub words: Vec<String>,
    pub limit: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub struct StoredMemory {
    pub tenant: Tenant,
    pub workflow: WorkflowId,
    pub key: String,
    /// JSON.
    pub value: String,
    pub at: Millis,
}
