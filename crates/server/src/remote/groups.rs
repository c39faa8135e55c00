//! The groups of workers of all tenants, in memory. Only this process writes them, and a row is on disk before it is here.

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};
use tokio::sync::{Mutex, MutexGuard};
use windlass_store::{RunnerGroup, Tenant};

/// Maximum number of groups of one tenant. All are listed in one response.
pub(crate) const GROUPS_MAX: usize = 1_000;

#[derive(Debug)]
pub(crate) struct Groups {
    groups: RwLock<BTreeMap<(Tenant, String), RunnerGroup>>,
    changing: Mutex<()>,
}

impl Groups {
    pub(crate) fn new(groups: Vec<RunnerGroup>) -> Groups {
        let keyed = groups.into_iter().map(|group| ((group.tenant.clone(), group.name.clone()), group));
        Groups { groups: RwLock::new(keyed.collect()), changing: Mutex::default() }
    }

    /// Returns a lock that is held from the read of a group until its new row is on disk and in memory: a first claim
    /// must not replace what an administrator stores at the same time.
    pub(crate) async fn change(&self) -> MutexGuard<'_, ()> {
        self.changing.lock().await
    }

    pub(crate) fn get(&self, tenant: &Tenant, name: &str) -> Option<RunnerGroup> {
        let groups = self.groups.read().unwrap_or_else(PoisonError::into_inner);
        groups.get(&(tenant.clone(), name.to_owned())).cloned()
    }

    /// Returns the groups of a tenant, by name.
    pub(crate) fn of(&self, tenant: &Tenant) -> Vec<RunnerGroup> {
        let groups = self.groups.read().unwrap_or_else(PoisonError::into_inner);
        groups.values().filter(|group| group.tenant == *tenant).cloned().collect()
    }

    /// Inserts or replaces a group that is on disk.
    pub(crate) fn put(&self, group: RunnerGroup) {
        let mut groups = self.groups.write().unwrap_or_else(PoisonError::into_inner);
        groups.insert((group.tenant.clone(), group.name.clone()), group);
    }

    pub(crate) fn remove(&self, tenant: &Tenant, name: &str) -> Option<RunnerGroup> {
        let mut groups = self.groups.write().unwrap_or_else(PoisonError::into_inner);
        groups.remove(&(tenant.clone(), name.to_owned()))
    }
}
