//! Bytes that tenants use: what a write adds to their count, or removes from it.

use crate::commit::Definition;
use crate::memory::StoredMemory;
use crate::usage::{Usage, bytes};

/// Counts a value that a workflow remembers in place of one with this many bytes; 0 if there was none.
#[must_use]
pub fn count_memory(memory: &StoredMemory, replaced: u64) -> Usage {
    let replaced = i64::try_from(replaced).unwrap_or(i64::MAX);
    Usage { memories: bytes(memory.value.len()) - replaced, ..Usage::default() }
}

/// Counts a version of a workflow: what a user wrote, and what was made of it. Its net is shared by versions.
#[must_use]
pub fn count_definition(definition: &Definition) -> Usage {
    let Definition { source, manifest, workload, .. } = definition;
    // The length is that of the stored text.
    let length = source.len() + manifest.json.len() + workload.to_string().len();
    Usage { definitions: bytes(length), ..Usage::default() }
}

/// Counts a revision of an action.
#[must_use]
pub fn count_action(document: &str) -> Usage {
    Usage { definitions: bytes(document.len()), ..Usage::default() }
}

/// Counts the documents of an action that is deleted, which have this many bytes.
#[must_use]
pub fn free_action(documents: u64) -> Usage {
    Usage { definitions: -i64::try_from(documents).unwrap_or(i64::MAX), ..Usage::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commit::{StoredManifest, WorkflowId};
    use crate::conformance::world::{chain, definition};
    use crate::origin::Tenant;
    use serde_json::json;
    use windlass_kernel::Millis;

    #[test]
    fn a_memory_counts_in_place_of_the_one_before() {
        let (tenant, key, at) = (Tenant::default(), "k".to_owned(), Millis(1));
        let memory = StoredMemory { tenant, workflow: WorkflowId(1), key, value: "\"é\"".to_owned(), at };
        for (replaced, memories) in [(0, 4), (3, 1), (4, 0), (10, -6)] {
            assert_eq!(count_memory(&memory, replaced), Usage { memories, ..Usage::default() }, "{replaced}");
        }
    }

    #[test]
    fn versions_and_actions_count_their_texts() {
        let manifest = StoredManifest { compiler: 1, json: "{\"a\":1}".to_owned() };
        let workload = json!({ "n": 1 });
        let version = Definition { manifest, workload, ..definition("d", "text", &chain(1)) };
        let definitions = |definitions| Usage { definitions, ..Usage::default() };
        assert_eq!(count_definition(&version), definitions(4 + 7 + 7));
        assert_eq!((count_action("text"), free_action(9)), (definitions(4), definitions(-9)));
    }
}
