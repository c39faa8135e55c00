//! Stores that forget what was not synced: one in memory, and the production store over a file whose tail is cut.

mod file;
mod memory;
mod reader;

pub use memory::MemoryStore;
pub(super) use reader::{Forgets, SystemReader};

use super::disk::Laxity;
use file::FileStore;
use windlass_artifact::Artifact;
use windlass_store::{Applied, Store, StoreError, Tenant, Write};

use crate::rng::Rng;

/// Fate of one write, apart from the answer of the store itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fate {
    #[default]
    Synced,
    /// The sync failed, and nothing of the batch is there.
    FailedLost,
    /// An error was answered, and the batch is there all the same.
    FailedKept,
}

/// Behaviour of a sabotaged disk in a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Crash {
    Sound,
    /// The newest acknowledged batch is gone.
    Forgets,
    /// Half of the batch on its way is there.
    Tears,
}

/// The disk of the simulated system: it outlives the engine's process.
#[derive(Debug)]
pub(super) enum Depot {
    Memory(Box<MemoryStore>),
    File(Box<FileStore>),
}

impl Depot {
    pub fn memory(lax: Laxity) -> Depot {
        Depot::Memory(Box::new(MemoryStore::lax(lax)))
    }

    pub fn file() -> Result<Depot, StoreError> {
        Ok(Depot::File(Box::new(FileStore::new()?)))
    }

    pub fn write(&mut self, batch: &[Write], fate: Fate) -> Result<Vec<Applied>, StoreError> {
        match self {
            Depot::Memory(store) => {
                store.next_fate(fate);
                store.write(batch)
            }
            Depot::File(store) => store.write(batch, fate),
        }
    }

    /// Returns the answer to a batch without writing it.
    pub fn foretell(&self, batch: &[Write]) -> Result<Vec<Applied>, StoreError> {
        match self {
            Depot::Memory(store) => store.foretell(batch),
            Depot::File(_) => {
                Err(StoreError::Io("the answer of a file is not known before the write".into()))
            }
        }
    }

    /// Data that a worker keeps is on disk before the worker continues.
    pub fn keep(&mut self, tenant: &Tenant, artifact: &Artifact) -> Result<(), StoreError> {
        match self {
            Depot::Memory(store) => {
                store.keep(tenant, artifact);
                Ok(())
            }
            Depot::File(store) => store.artifacts().keep(tenant, artifact).map(drop),
        }
    }

    pub fn artifact(&self, tenant: &Tenant, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        match self {
            Depot::Memory(store) => Ok(store.artifact(tenant, key)),
            Depot::File(store) => store.artifacts().read(tenant, key),
        }
    }

    pub fn reader(&self, forgets: Forgets) -> Result<SystemReader, StoreError> {
        match self {
            Depot::Memory(store) => SystemReader::new(store.reader()?.into(), forgets),
            Depot::File(store) => SystemReader::new(store.reader()?.into(), forgets),
        }
    }

    /// The process, or the machine, ends while this batch may be on its way.
    pub fn crash(
        &mut self,
        outstanding: Option<&[Write]>,
        how: Crash,
        rng: &mut Rng,
    ) -> Result<(), StoreError> {
        match self {
            Depot::Memory(store) => store.crash(outstanding.filter(|_| rng.percent(50)), how),
            Depot::File(store) => store.crash(outstanding, rng),
        }
    }
}
