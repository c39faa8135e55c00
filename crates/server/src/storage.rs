//! How much of the disk tenants may use, and what of it is left for the engine. What a tenant has is counted by the store
//! with every write; here it is compared.

use crate::problem::{Problem, ProblemCode};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};
use windlass_protocol::NoRoom;
use windlass_store::{StoredTenant, Tenant, Usage, Usages};

/// How long an answer of the disk is believed. A tenant cannot fill a reserve of hundreds of megabytes in it.
const FRESH: Duration = Duration::from_secs(1);
/// When a disk without room is asked again.
const RETRY_SECONDS: u64 = 30;
const MIB: u64 = 1024 * 1024;

#[derive(Debug, Clone, Copy, Default)]
pub struct StorageLimits {
    /// Bytes of one tenant other than `default`; None: no limit.
    pub tenant: Option<u64>,
    /// Bytes of the disk that are kept free; 0: none.
    pub disk_reserve: u64,
}

#[derive(Debug)]
pub struct Storage {
    usages: Arc<Usages>,
    limits: StorageLimits,
    /// Limits of tenants that have one of their own; 0 is no limit.
    own: RwLock<BTreeMap<Tenant, Option<u64>>>,
    folder: PathBuf,
    /// Bytes that were free, and when.
    free: Mutex<Option<(Instant, u64)>>,
}

impl Storage {
    #[must_use]
    pub fn new(
        usages: Arc<Usages>,
        limits: StorageLimits,
        folder: PathBuf,
        tenants: &[StoredTenant],
    ) -> Storage {
        let storage = Storage { usages, limits, own: RwLock::default(), folder, free: Mutex::default() };
        tenants.iter().for_each(|tenant| storage.update_tenant(tenant));
        storage
    }

    /// A tenant as it is on disk.
    pub fn update_tenant(&self, tenant: &StoredTenant) {
        let mut own = self.own.write().unwrap_or_else(PoisonError::into_inner);
        own.insert(tenant.id.clone(), tenant.limits.storage);
    }

    #[must_use]
    pub fn used(&self, tenant: &Tenant) -> Usage {
        self.usages.of(tenant)
    }

    /// Bytes that the tenant may use; None: no limit. The setting is not for the tenant `default`, which is of whoever
    /// runs the server: its limit is set by a change of the tenant.
    #[must_use]
    pub fn limit(&self, tenant: &Tenant) -> Option<u64> {
        let own = self.own.read().unwrap_or_else(PoisonError::into_inner);
        let own = own.get(tenant).copied().flatten();
        let each = self.limits.tenant.filter(|_| *tenant != Tenant::default());
        own.or(each).filter(|limit| *limit > 0)
    }

    /// Why the tenant can keep nothing more; None while there is room.
    #[must_use]
    pub fn no_room(&self, tenant: &Tenant) -> Option<NoRoom> {
        if let Some(limit) = self.limit(tenant) {
            let used = self.used(tenant).total();
            if used >= limit {
                return Some(NoRoom::Quota(format!(
                    "the tenant uses {} MiB of storage and may use {} MiB; executions free theirs when they are \
                     pruned (`windlass admin prune`, `--keep`), and an operator of the server sets the limit with \
                     PATCH /api/v1/tenants/{tenant} {{\"storage\": BYTES}}",
                    used / MIB,
                    limit / MIB
                )));
            }
        }
        self.is_disk_full().then(|| {
            NoRoom::Disk(format!(
                "the disk of the server has less than its reserve of {} MiB free; free some, or prune executions",
                self.limits.disk_reserve / MIB
            ))
        })
    }

    /// A 507 for a tenant without room, a 503 for a disk without.
    pub fn check(&self, tenant: &Tenant) -> Result<(), Problem> {
        match self.no_room(tenant) {
            None => Ok(()),
            Some(NoRoom::Quota(message)) => Err(Problem::new(ProblemCode::QuotaExceeded, message)),
            Some(NoRoom::Disk(message)) => {
                let problem = Problem::new(ProblemCode::DiskFull, message);
                Err(problem.retry_after(RETRY_SECONDS))
            }
        }
    }

    #[must_use]
    pub fn is_disk_full(&self) -> bool {
        self.limits.disk_reserve > 0 && self.free().is_some_and(|free| free < self.limits.disk_reserve)
    }

    /// Bytes that are free on the disk of the data folder; None when the system does not say.
    #[must_use]
    pub fn free(&self) -> Option<u64> {
        let mut known = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, free)) = *known
            && at.elapsed() < FRESH
        {
            return Some(free);
        }
        let disk = rustix::fs::statvfs(&self.folder).ok()?;
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        *known = Some((Instant::now(), free));
        Some(free)
    }
}
