//! Bytes that tenants use. They are counted by the writes that add or remove them, in the same transaction, so that no
//! query has to sum over rows.

use crate::origin::Tenant;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes of one tenant, or a change of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Records of executions.
    pub journal: i64,
    pub logs: i64,
    pub artifacts: i64,
    /// Versions of workflows.
    pub definitions: i64,
    pub memories: i64,
}

impl Usage {
    #[must_use]
    pub fn total(&self) -> u64 {
        let Usage { journal, logs, artifacts, definitions, memories } = self;
        [journal, logs, artifacts, definitions, memories]
            .into_iter()
            .map(|bytes| bytes.max(&0).unsigned_abs())
            .sum()
    }

    fn add(&mut self, other: Usage) {
        self.journal += other.journal;
        self.logs += other.logs;
        self.artifacts += other.artifacts;
        self.definitions += other.definitions;
        self.memories += other.memories;
    }
}

/// Returns a length as a change.
pub(crate) fn bytes(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}

/// Changes of one batch, by tenant.
#[derive(Debug, Default)]
pub(crate) struct UsageChanges(pub(crate) BTreeMap<Tenant, Usage>);

impl UsageChanges {
    pub(crate) fn add(&mut self, tenant: &Tenant, change: Usage) {
        match self.0.get_mut(tenant) {
            Some(sum) => sum.add(change),
            None => drop(self.0.insert(tenant.clone(), change)),
        }
    }
}

/// Bytes of all tenants: those that the store has counted, and artifacts kept since.
#[derive(Debug, Default)]
pub struct Usages {
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    all: BTreeMap<Tenant, Usage>,
    /// Counted in `all`, and not yet in the store.
    unwritten: UsageChanges,
    /// Bytes of uploads that have not ended, which are counted nowhere else.
    arriving: BTreeMap<Tenant, i64>,
}

impl Usages {
    pub(crate) fn new(all: BTreeMap<Tenant, Usage>) -> Usages {
        Usages { known: Mutex::new(Known { all, ..Known::default() }) }
    }

    #[must_use]
    pub fn of(&self, tenant: &Tenant) -> Usage {
        self.lock().all.get(tenant).copied().unwrap_or_default()
    }

    /// Counts an artifact that was kept. Artifacts are files, kept before the rows that refer to them: the next batch counts
    /// them in the store. A crash before that loses the count until the next sweep of artifacts.
    pub fn add_artifacts(&self, tenant: &Tenant, bytes: u64) {
        let change = Usage { artifacts: i64::try_from(bytes).unwrap_or(i64::MAX), ..Usage::default() };
        let mut known = self.lock();
        known.all.entry(tenant.clone()).or_default().add(change);
        known.unwritten.add(tenant, change);
    }

    /// Counts bytes that are arriving and not stored yet. A crash loses the count together with their files.
    pub fn add_arriving(&self, tenant: &Tenant, bytes: u64) {
        self.change_arriving(tenant, i64::try_from(bytes).unwrap_or(i64::MAX));
    }

    /// Removes bytes that have arrived from the count: those that were kept are counted as stored.
    pub fn remove_arriving(&self, tenant: &Tenant, bytes: u64) {
        self.change_arriving(tenant, -i64::try_from(bytes).unwrap_or(i64::MAX));
    }

    fn change_arriving(&self, tenant: &Tenant, bytes: i64) {
        let mut known = self.lock();
        let arriving = known.arriving.entry(tenant.clone()).or_default();
        *arriving += bytes;
        if *arriving <= 0 {
            known.arriving.remove(tenant);
        }
    }

    /// Returns the bytes of a tenant that are arriving.
    #[must_use]
    pub fn arriving(&self, tenant: &Tenant) -> u64 {
        self.lock().arriving.get(tenant).copied().unwrap_or_default().unsigned_abs()
    }

    /// Takes the changes that the next batch counts in addition to its own.
    pub(crate) fn take_unwritten(&self) -> UsageChanges {
        std::mem::take(&mut self.lock().unwritten)
    }

    /// Counts the changes of a batch that was written.
    pub(crate) fn add(&self, changes: &UsageChanges) {
        let mut known = self.lock();
        for (tenant, change) in &changes.0 {
            known.all.entry(tenant.clone()).or_default().add(*change);
        }
    }

    /// Replaces the bytes of artifacts.
    pub(crate) fn set_artifacts(&self, left: &BTreeMap<Tenant, u64>) {
        for (tenant, usage) in &mut self.lock().all {
            usage.artifacts = left.get(tenant).map_or(0, |bytes| i64::try_from(*bytes).unwrap_or(i64::MAX));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
