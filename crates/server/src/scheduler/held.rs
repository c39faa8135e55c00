//! Runs that this process holds under a lease, with bounds on their number.

use crate::cache::lock;
use crate::tenant_counts::{TenantCounts, TenantShare};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use windlass_store::{ScheduleRunId, Tenant};

/// Maximum number of claimed and running runs of this process; others wait.
const HELD_MAX: usize = 8_000;
/// Maximum number for one tenant, so that its programs do not delay the runs of others.
const TENANT_MAX: usize = 2_000;

/// The runs whose leases are renewed.
#[derive(Debug, Default)]
pub(super) struct HeldRuns {
    runs: Mutex<BTreeSet<ScheduleRunId>>,
    by_tenant: TenantCounts,
}

/// One held run, until it is dropped. A run that is given up is dropped, too: its lease expires, and it is recovered.
#[derive(Debug)]
pub(super) struct HeldRun {
    all: Arc<HeldRuns>,
    run: ScheduleRunId,
    _share: TenantShare,
}

impl HeldRuns {
    /// Takes a slot for a run; None if there is none.
    pub(super) fn take(self: &Arc<Self>, run: ScheduleRunId, tenant: &Tenant) -> Option<HeldRun> {
        let mut runs = lock(&self.runs);
        if runs.len() >= HELD_MAX || runs.contains(&run) {
            return None;
        }
        let share = self.by_tenant.take(tenant, 1, TENANT_MAX)?;
        runs.insert(run);
        Some(HeldRun { all: self.clone(), run, _share: share })
    }

    pub(super) fn runs(&self) -> Vec<ScheduleRunId> {
        lock(&self.runs).iter().copied().collect()
    }
}

impl Drop for HeldRun {
    fn drop(&mut self) {
        lock(&self.all.runs).remove(&self.run);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenant_leaves_room_for_others_and_a_place_is_free_again() {
        let (all, busy, other) =
            (Arc::<HeldRuns>::default(), Tenant::new("tnt_busy"), Tenant::new("tnt_other"));
        let take = |number: usize, tenant: &Tenant| all.take(ScheduleRunId(number as u128), tenant);
        let mut held: Vec<HeldRun> = (0..TENANT_MAX).filter_map(|number| take(number, &busy)).collect();
        assert_eq!(held.len(), TENANT_MAX);
        assert!(take(TENANT_MAX, &busy).is_none());
        assert!(take(0, &other).is_none(), "the run is held");
        let one = take(TENANT_MAX, &other).unwrap();
        assert_eq!(all.runs().len(), TENANT_MAX + 1);
        held.pop();
        assert!(take(TENANT_MAX + 1, &busy).is_some());
        drop((one, held));
        assert!(all.runs().is_empty() && all.by_tenant.is_empty());
    }
}
