//! What tenants use at a time, such as streams or bytes of requests: one number per tenant, and shares that are free again
//! when they are dropped.

use crate::cache::lock;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use windlass_store::Tenant;

/// Counts by tenant. Tenants with a count of 0 have no entry.
#[derive(Debug, Clone, Default)]
pub(crate) struct TenantCounts(Arc<Mutex<BTreeMap<Tenant, usize>>>);

/// A part of the count of a tenant, until it is dropped.
#[derive(Debug)]
pub(crate) struct TenantShare {
    counts: TenantCounts,
    tenant: Tenant,
    amount: usize,
}

impl TenantCounts {
    /// Adds an amount to the count of a tenant; None if the count would exceed `max`.
    pub(crate) fn take(&self, tenant: &Tenant, amount: usize, max: usize) -> Option<TenantShare> {
        let mut counts = lock(&self.0);
        let count = counts.get(tenant).copied().unwrap_or_default().saturating_add(amount);
        if count > max {
            return None;
        }
        counts.insert(tenant.clone(), count);
        Some(TenantShare { counts: self.clone(), tenant: tenant.clone(), amount })
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        lock(&self.0).is_empty()
    }
}

impl Drop for TenantShare {
    fn drop(&mut self) {
        let mut counts = lock(&self.counts.0);
        match counts.get_mut(&self.tenant) {
            Some(count) if *count > self.amount => *count -= self.amount,
            _ => drop(counts.remove(&self.tenant)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_free_again_when_it_is_dropped_and_leaves_nothing() {
        let (counts, a, b) = (TenantCounts::default(), Tenant::new("a"), Tenant::new("b"));
        let first = counts.take(&a, 3, 5).unwrap();
        let second = counts.take(&a, 2, 5).unwrap();
        assert!(counts.take(&a, 1, 5).is_none());
        assert!(counts.take(&b, 6, 5).is_none(), "more than the maximum");
        let other = counts.take(&b, 5, 5).unwrap();
        drop(first);
        assert!(counts.take(&a, 3, 5).is_some());
        drop((second, other));
        assert!(counts.is_empty());
    }
}
