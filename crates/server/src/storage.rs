//! Storage limits of tenants, and the reserve of the disk. The store counts the usage with every write; this module compares.

use crate::problem::{Problem, ProblemCode};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};
use windlass_protocol::NoRoom;
use windlass_store::{StoredTenant, Tenant, Usage, Usages};

/// Time for which the free space is cached. A tenant cannot fill a reserve of hundreds of megabytes in it.
const FRESH: Duration = Duration::from_secs(1);
/// Seconds after which a client of a full disk may retry.
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
    /// Limits of tenants that have one of their own; 0: no limit.
    own: RwLock<BTreeMap<Tenant, Option<u64>>>,
    folder: PathBuf,
    /// The cached free bytes, and the time of the measurement.
    free: Mutex<Option<(Instant, u64)>>,
}

/// Bytes of one upload, counted for its tenant while they arrive: uploads at the same time share one limit.
#[derive(Debug)]
pub struct ArrivingBytes {
    usages: Arc<Usages>,
    tenant: Tenant,
    bytes: u64,
}

impl ArrivingBytes {
    pub fn add(&mut self, bytes: u64) {
        self.usages.add_arriving(&self.tenant, bytes);
        self.bytes += bytes;
    }
}

impl Drop for ArrivingBytes {
    fn drop(&mut self) {
        self.usages.remove_arriving(&self.tenant, self.bytes);
    }
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

    /// Inserts or replaces the limit of a tenant that is on disk.
    pub fn update_tenant(&self, tenant: &StoredTenant) {
        let mut own = self.own.write().unwrap_or_else(PoisonError::into_inner);
        own.insert(tenant.id.clone(), tenant.limits.storage);
    }

    #[must_use]
    pub fn used(&self, tenant: &Tenant) -> Usage {
        self.usages.of(tenant)
    }

    /// Returns the maximum bytes of the tenant; None: no limit. The setting does not apply to the tenant `default` of the
    /// operators, whose limit is set by a change of the tenant.
    #[must_use]
    pub fn limit(&self, tenant: &Tenant) -> Option<u64> {
        let own = self.own.read().unwrap_or_else(PoisonError::into_inner);
        let own = own.get(tenant).copied().flatten();
        let each = self.limits.tenant.filter(|_| *tenant != Tenant::default());
        own.or(each).filter(|limit| *limit > 0)
    }

    /// Returns the reason for which the tenant can store no more data; None if it can.
    #[must_use]
    pub fn no_room(&self, tenant: &Tenant) -> Option<NoRoom> {
        if let Some(limit) = self.limit(tenant) {
            let used = self.used(tenant).total().saturating_add(self.usages.arriving(tenant));
            if used >= limit {
                return Some(NoRoom::Quota(format!(
                    "the tenant uses {} MiB of storage, its limit is {} MiB; prune executions (`windlass admin prune`, \
                     `--keep`), or let an operator raise the limit with PATCH /api/v1/tenants/{tenant} \
                     {{\"storage\": BYTES}}",
                    used / MIB,
                    limit / MIB
                )));
            }
        }
        self.is_disk_full().then(|| {
            NoRoom::Disk(format!(
                "the disk of the server has less free space than its reserve of {} MiB; free some, or prune executions",
                self.limits.disk_reserve / MIB
            ))
        })
    }

    /// Refuses with 507 if the tenant is over its limit, and with 503 if the disk is full.
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

    /// Begins to count bytes that arrive for a tenant, until the returned value is dropped.
    #[must_use]
    pub fn count_arriving(&self, tenant: &Tenant) -> ArrivingBytes {
        ArrivingBytes { usages: Arc::clone(&self.usages), tenant: tenant.clone(), bytes: 0 }
    }

    #[must_use]
    pub fn is_disk_full(&self) -> bool {
        self.limits.disk_reserve > 0 && self.free().is_some_and(|free| free < self.limits.disk_reserve)
    }

    /// Returns the free bytes on the disk of the data folder; None if they are unknown.
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
