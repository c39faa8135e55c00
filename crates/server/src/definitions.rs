//! Newest versions of workflows, in memory: a start need not read the disk. Only this process writes them, so it
//! removes an entry whenever it changes the workflow.

use crate::cache::{Cache, CacheBounds, lock};
use crate::problem::Problem;
use crate::readers::Readers;
use std::sync::{Arc, Mutex};
use windlass_store::{Catalog, StoreError, StoredDefinition, StoredWorkflow, Tenant, WorkflowId};

/// Bounds of the cache: ten thousand workflows of usual size. Others are read again when they are needed.
const CURRENT: CacheBounds = CacheBounds { entries_max: 10_000, weight_max: 64 << 20 };

/// A workflow and its newest version.
#[derive(Debug, Clone, PartialEq)]
pub struct Current {
    pub workflow: StoredWorkflow,
    pub definition: StoredDefinition,
}

#[derive(Debug)]
pub struct Definitions {
    current: Cache<(Tenant, WorkflowId), Arc<Current>>,
    /// Counts changes: a version that was read before a change is not cached.
    changes: Mutex<u64>,
}

impl Default for Definitions {
    fn default() -> Definitions {
        Definitions { current: Cache::new(CURRENT), changes: Mutex::default() }
    }
}

impl Current {
    /// Estimates the memory that it takes. Defaults of inputs are in the text, too.
    fn bytes(&self) -> u64 {
        1_024 + 4 * self.definition.source.len() as u64
    }
}

impl Definitions {
    /// Returns a workflow of the tenant; workflows of other tenants are not found.
    pub async fn current(
        &self,
        readers: &Readers,
        tenant: &Tenant,
        workflow: WorkflowId,
    ) -> Result<Option<Arc<Current>>, Problem> {
        let place = (tenant.clone(), workflow);
        if let Some(current) = self.current.get(&place) {
            return Ok(Some(current));
        }
        let changes = *lock(&self.changes);
        let tenant = tenant.clone();
        let readers = readers.of(&tenant);
        let found = readers.look(move |reader| read(reader, &tenant, workflow)).await?.map(Arc::new);
        let unchanged = lock(&self.changes);
        if let Some(current) = &found
            && *unchanged == changes
        {
            self.current.insert(place, current.clone(), current.bytes());
        }
        Ok(found)
    }

    /// Removes a workflow. Must be called after every change, when it is on disk.
    pub fn forget(&self, tenant: &Tenant, workflow: WorkflowId) {
        let mut changes = lock(&self.changes);
        *changes += 1;
        self.current.remove(&(tenant.clone(), workflow));
    }
}

fn read(reader: &mut impl Catalog, tenant: &Tenant, id: WorkflowId) -> Result<Option<Current>, StoreError> {
    let Some(workflow) = reader.workflow(tenant, id)? else { return Ok(None) };
    let version = reader.version(tenant, id, Some(workflow.version))?;
    Ok(version.map(|definition| Current { workflow, definition }))
}
