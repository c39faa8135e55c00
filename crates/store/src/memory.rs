//! Memories of workflows, which outlive their executions.

use crate::commit::WorkflowId;
use crate::origin::Tenant;
use crate::store::StoreResult;
use windlass_kernel::Millis;

/// Reads memories; they are written as an `Entry`.
pub trait Memories {
    /// Returns memories, the newest first.
    fn memories(&mut self, query: &MemoryQuery) -> StoreResult<Vec<StoredMemory>>;
}

/// A search for memories; all given conditions must hold.
#[derive(Debug, Clone, PartialEq)]
pub struct MemoryQuery {
    pub tenant: Tenant,
    pub workflow: WorkflowId,
    pub key: Option<String>,
    pub prefix: Option<String>,
    /// Each word occurs in the key or in the value, in upper or lower case.
    pub words: Vec<String>,
    pub limit: usize,
}

impl MemoryQuery {
    /// Returns whether all words occur in a memory.
    #[must_use]
    pub fn matches_words(&self, memory: &StoredMemory) -> bool {
        if self.words.is_empty() {
            return true;
        }
        let text = format!("{} {}", memory.key, memory.value).to_lowercase();
        self.words.iter().all(|word| text.contains(&word.to_lowercase()))
    }
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
