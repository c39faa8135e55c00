//! Execution ids to their small numbers and their tenants, for those in use.

use crate::origin::Tenant;
use std::collections::{BTreeSet, HashMap};
use windlass_kernel::ExecutionId;

/// Entries of one half; about 4 MB each. More executions than both halves hold cost one lookup a commit.
const HALF_MAX: usize = 65_536;

/// The small number of an execution, and whose it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Owned {
    pub(super) key: i64,
    pub(super) tenant: Tenant,
}

/// Two halves: a full young one becomes the old one, and what is asked for again is young again.
#[derive(Debug, Default)]
pub(super) struct Keys {
    young: HashMap<ExecutionId, Owned>,
    old: HashMap<ExecutionId, Owned>,
    /// One copy of each id for all entries.
    tenants: BTreeSet<Tenant>,
}

impl Keys {
    pub(super) fn get(&mut self, id: ExecutionId) -> Option<Owned> {
        if let Some(owned) = self.young.get(&id) {
            return Some(owned.clone());
        }
        let owned = self.old.get(&id)?.clone();
        self.insert(id, owned.clone());
        Some(owned)
    }

    pub(super) fn forget(&mut self, id: ExecutionId) {
        self.young.remove(&id);
        self.old.remove(&id);
    }

    pub(super) fn put(&mut self, id: ExecutionId, key: i64, tenant: &Tenant) -> Owned {
        let tenant = match self.tenants.get(tenant) {
            Some(known) => known.clone(),
            None => {
                self.tenants.insert(tenant.clone());
                tenant.clone()
            }
        };
        let owned = Owned { key, tenant };
        self.insert(id, owned.clone());
        owned
    }

    fn insert(&mut self, id: ExecutionId, owned: Owned) {
        if self.young.len() >= HALF_MAX {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(id, owned);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_stays_and_the_rest_is_forgotten() {
        let mut keys = Keys::default();
        let tenant = Tenant::default();
        keys.put(ExecutionId(0), 7, &tenant);
        for number in 1..3 * HALF_MAX as u128 {
            keys.put(ExecutionId(number), 0, &tenant);
            assert_eq!(keys.get(ExecutionId(0)), Some(Owned { key: 7, tenant: tenant.clone() }));
        }
        assert!(keys.young.len() + keys.old.len() <= 2 * HALF_MAX);
        assert_eq!(keys.get(ExecutionId(1)), None);
    }
}
