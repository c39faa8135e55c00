//! What workflows remember, as workers reach it: written by the engine, read beside it.

use crate::host::now;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use windlass_engine::{Answer, Folder, Handle, Request};
use windlass_store::sqlite::{Sqlite, SqliteReader};
use windlass_store::{Entry, Memories, MemoryQuery, StoreError, StoredMemory, Tenant, WorkflowId};
use windlass_worker::{Found, Memory, MemoryError, Remembered, Wanted};

#[derive(Debug)]
pub struct SharedMemory {
    engine: Handle,
    reader: Mutex<SqliteReader>,
}

impl SharedMemory {
    pub fn of(folder: &Path, engine: Handle) -> Result<SharedMemory, StoreError> {
        let reader = Mutex::new(Sqlite::read_only(&Folder::store(folder))?);
        Ok(SharedMemory { engine, reader })
    }
}

impl Memory for SharedMemory {
    fn store(&self, memory: Remembered) -> Result<(), MemoryError> {
        let stored = StoredMemory {
            tenant: Tenant(memory.tenant.into()),
            workflow: workflow(&memory.workflow)?,
            key: memory.key,
            value: memory.value.to_string(),
            at: now(),
        };
        match self.engine.call(Request::Keep(vec![Entry::Remember(Box::new(stored))])) {
            Some(Answer::Kept(_)) => Ok(()),
            _ => Err(MemoryError("the engine is stopping".to_owned())),
        }
    }

    fn search(&self, wanted: &Wanted) -> Result<Vec<Found>, MemoryError> {
        let query = MemoryQuery {
            tenant: Tenant(wanted.tenant.as_str().into()),
            workflow: workflow(&wanted.workflow)?,
            key: wanted.key.clone(),
            prefix: wanted.prefix.clone(),
            words: wanted.words.clone(),
            limit: wanted.limit,
        };
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        let found = reader.memories(&query).map_err(|error| MemoryError(error.to_string()))?;
        found.into_iter().map(told).collect()
    }
}

fn told(memory: StoredMemory) -> Result<Found, MemoryError> {
    let value = serde_json::from_str(&memory.value)
        .map_err(|error| MemoryError(format!("the memory `{}` cannot be read: {error}", memory.key)))?;
    Ok(Found { key: memory.key, value, at: memory.at.0 })
}

fn workflow(id: &str) -> Result<WorkflowId, MemoryError> {
    let parsed = u128::from_str_radix(id, 16).map(WorkflowId);
    parsed.map_err(|_| MemoryError(format!("`{id}` is no id of a workflow")))
}
