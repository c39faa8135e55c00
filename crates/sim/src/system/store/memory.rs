//! The store in memory.

use super::{Crash, Fate};
use crate::system::disk::{Disk, DiskReader, Laxity};
use std::sync::{Arc, Mutex, PoisonError};
use windlass_artifact::Artifact;
use windlass_store::{Applied, Store, StoreError, Tenant, Write};

/// Readers see what is synced. A batch is staged on a copy; the sync puts the copy in place, and a crash before that
/// leaves the disk as it was. Copies are handles of the same disk.
#[derive(Debug, Clone, Default)]
pub struct MemoryStore {
    synced: Arc<Mutex<Disk>>,
    /// The disk before the newest acknowledged batch, for a sabotaged disk.
    earlier: Disk,
    fate: Fate,
}

impl MemoryStore {
    pub(in crate::system) fn lax(lax: Laxity) -> MemoryStore {
        let mut disk = Disk::default();
        disk.lax = lax;
        MemoryStore { synced: Arc::new(Mutex::new(disk)), ..MemoryStore::default() }
    }

    pub fn next_fate(&mut self, fate: Fate) {
        self.fate = fate;
    }

    /// `survives`: the batch that was on its way and reached the disk before the end.
    pub(in crate::system) fn crash(
        &mut self,
        survives: Option<&[Write]>,
        how: Crash,
    ) -> Result<(), StoreError> {
        if how == Crash::Forgets {
            self.put(self.earlier.clone());
        }
        if let Some(batch) = survives {
            let torn;
            let batch = if how == Crash::Tears {
                torn = tear(batch);
                &torn
            } else {
                batch
            };
            let (next, _) = self.disk().after(batch)?;
            self.put(next);
        }
        Ok(())
    }

    pub(in crate::system) fn foretell(&self, batch: &[Write]) -> Result<Vec<Applied>, StoreError> {
        Ok(self.disk().after(batch)?.1)
    }

    pub(in crate::system) fn keep(&mut self, tenant: &Tenant, artifact: &Artifact) {
        let mut disk = self.disk();
        disk.keep(tenant, artifact);
        self.earlier.keep(tenant, artifact);
        self.put(disk);
    }

    pub(in crate::system) fn artifact(&self, tenant: &Tenant, key: &str) -> Option<Vec<u8>> {
        self.disk().artifact(tenant, key).map(|bytes| (*bytes).clone())
    }

    fn disk(&self) -> Disk {
        self.synced.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn put(&self, disk: Disk) {
        *self.synced.lock().unwrap_or_else(PoisonError::into_inner) = disk;
    }
}

impl Store for MemoryStore {
    type Reader = DiskReader;

    fn write(&mut self, batch: &[Write]) -> Result<Vec<Applied>, StoreError> {
        let (staged, applied) = self.disk().after(batch)?;
        match std::mem::take(&mut self.fate) {
            Fate::Synced => {
                self.earlier = self.disk();
                self.put(staged);
                Ok(applied)
            }
            Fate::FailedLost => Err(StoreError::Io("the sync failed".into())),
            Fate::FailedKept => {
                self.put(staged);
                Err(StoreError::Io("the answer of the disk was lost".into()))
            }
        }
    }

    fn reader(&self) -> Result<DiskReader, StoreError> {
        Ok(DiskReader(self.synced.clone()))
    }
}

/// The first half of a batch; of the commit in its middle only what is the execution's own.
fn tear(batch: &[Write]) -> Vec<Write> {
    let mut kept = batch[..batch.len().div_ceil(2)].to_vec();
    if let Some(Write::Commit(commit)) = kept.last_mut() {
        commit.mail.clear();
        commit.leases.clear();
    }
    kept
}
