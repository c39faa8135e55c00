//! Which request under `/hooks` starts which workflow. Known from the definitions, each of which is read once.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use windlass_dialects::workflow::{Hook, hooks};
use windlass_store::{Catalog, DefinitionId, StoreError, Tenant, WorkflowId};

/// Definitions read at a time.
const PAGE: usize = 100;
const DIALECT: &str = "workflow";

#[derive(Debug, Default)]
pub struct Hooks {
    known: Mutex<Known>,
}

#[derive(Debug)]
struct Known {
    /// By the newest version of each workflow; the oldest workflow comes first.
    hooks: BTreeMap<WorkflowId, (Tenant, Vec<Hook>)>,
    /// Definitions up to this one were read.
    last: DefinitionId,
}

impl Default for Known {
    fn default() -> Known {
        Known { hooks: BTreeMap::new(), last: DefinitionId(0) }
    }
}

/// A workflow that wants to be started by requests to a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    pub tenant: Tenant,
    pub workflow: WorkflowId,
    pub hook: Hook,
}

impl Hooks {
    /// Everyone who claims the path, the oldest workflow first.
    pub fn claims(&self, reader: &mut impl Catalog, path: &str) -> Result<Vec<Claim>, StoreError> {
        let mut known = self.lock();
        known.catch_up(reader)?;
        let found = known.hooks.iter().flat_map(|(workflow, (tenant, hooks))| {
            let fitting = hooks.iter().filter(|hook| hook.path == path);
            fitting.map(|hook| Claim { tenant: tenant.clone(), workflow: *workflow, hook: hook.clone() })
        });
        Ok(found.collect())
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn catch_up(&mut self, reader: &mut impl Catalog) -> Result<(), StoreError> {
        loop {
            let found = reader.definitions_after(self.last, PAGE)?;
            let last = found.len() < PAGE;
            for definition in found {
                self.last = definition.id;
                let hooks =
                    if definition.dialect == DIALECT { hooks(&definition.source) } else { Vec::new() };
                if hooks.is_empty() {
                    self.hooks.remove(&definition.workflow);
                } else {
                    self.hooks.insert(definition.workflow, (definition.tenant, hooks));
                }
            }
            if last {
                return Ok(());
            }
        }
    }
}
