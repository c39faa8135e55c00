//! Newest versions of workflows, in memory: a start needs no look at the disk. This process is the only one that writes
//! them, so it forgets what it changes.

use crate::bounded::BoundedMap;
use crate::problem::Problem;
use crate::readers::Readers;
use std::sync::{Arc, Mutex, PoisonError};
use windlass_store::{Catalog, StoreError, StoredDefinition, StoredWorkflow, Tenant, WorkflowId};

/// More than these are looked up again when they are needed.
const KEPT_MAX: usize = 10_000;
/// Bytes of their texts and inputs: ten thousand of usual size.
const KEPT_BYTES_MAX: usize = 64 << 20;

/// A workflow and its newest version.
#[derive(Debug, Clone, PartialEq)]
pub struct Current {
    pub workflow: StoredWorkflow,
    pub definition: StoredDefinition,
}

#[derive(Debug, Default)]
pub struct Definitions {
    kept: Mutex<Kept>,
}

#[derive(Debug)]
struct Kept {
    current: BoundedMap<(Tenant, WorkflowId), Arc<Current>>,
    /// Counts what was forgotten: what was read before that is not kept.
    changes: u64,
}

impl Default for Kept {
    fn default() -> Kept {
        Kept { current: BoundedMap::new(KEPT_MAX, KEPT_BYTES_MAX), changes: 0 }
    }
}

impl Current {
    /// About the memory that it takes. Defaults of inputs are in the text, too.
    fn bytes(&self) -> usize {
        1_024 + 4 * self.definition.source.len()
    }
}

impl Definitions {
    /// Of the tenant; what another tenant has is not there.
    pub async fn current(
        &self,
        readers: &Readers,
        tenant: &Tenant,
        workflow: WorkflowId,
    ) -> Result<Option<Arc<Current>>, Problem> {
        let place = (tenant.clone(), workflow);
        let changes = {
            let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(current) = kept.current.get(&place) {
                return Ok(Some(current.clone()));
            }
            kept.changes
        };
        let tenant = tenant.clone();
        let readers = readers.of(&tenant);
        let found = readers.look(move |reader| read(reader, &tenant, workflow)).await?.map(Arc::new);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(current) = &found
            && kept.changes == changes
        {
            kept.current.insert(place, current.clone(), current.bytes());
        }
        Ok(found)
    }

    /// After every change, when it is on disk.
    pub fn forget(&self, tenant: &Tenant, workflow: WorkflowId) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.changes += 1;
        kept.current.remove(&(tenant.clone(), workflow));
    }
}

fn read(reader: &mut impl Catalog, tenant: &Tenant, id: WorkflowId) -> Result<Option<Current>, StoreError> {
    let Some(workflow) = reader.workflow(tenant, id)? else { return Ok(None) };
    let version = reader.version(tenant, id, Some(workflow.version))?;
    Ok(version.map(|definition| Current { workflow, definition }))
}
