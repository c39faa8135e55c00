//! Memories of workflows.

use super::SqliteReader;
use super::columns::workflow_bytes;
use crate::memory::{Memories, MemoryQuery, StoredMemory};
use crate::store::StoreError;
use rusqlite::{Connection, OptionalExtension as _, params};
use windlass_kernel::Millis;

/// Rows that a search for words looks at: a workflow that keeps more should name a key or a prefix.
const LOOKED_AT_MAX: usize = 10_000;

pub(super) fn remember(conn: &Connection, memory: &StoredMemory) -> Result<usize, StoreError> {
    let sql = "INSERT INTO memories (tenant, workflow, key, value, at) VALUES (?1, ?2, ?3, ?4, ?5) \
               ON CONFLICT (tenant, workflow, key) DO UPDATE SET value = excluded.value, at = excluded.at";
    let StoredMemory { tenant, workflow, key, value, at } = memory;
    let values = params![tenant.0, workflow_bytes(*workflow), key, value, at.0];
    Ok(conn.prepare_cached(sql)?.execute(values)?)
}

/// Bytes of the value that is there under the key.
pub(super) fn size(conn: &Connection, memory: &StoredMemory) -> Result<i64, StoreError> {
    let sql = "SELECT octet_length(value) FROM memories WHERE tenant = ?1 AND workflow = ?2 AND key = ?3";
    let place = params![memory.tenant.0, workflow_bytes(memory.workflow), memory.key];
    Ok(conn.prepare_cached(sql)?.query_row(place, |row| row.get(0)).optional()?.unwrap_or_default())
}

impl Memories for SqliteReader {
    fn memories(&mut self, query: &MemoryQuery) -> Result<Vec<StoredMemory>, StoreError> {
        let MemoryQuery { tenant, workflow, key, prefix, words, limit } = query;
        let sql = "SELECT key, value, at FROM memories WHERE tenant = ?1 AND workflow = ?2 \
                   AND (?3 IS NULL OR key = ?3) AND (?4 IS NULL OR substr(key, 1, length(?4)) = ?4) \
                   ORDER BY at DESC, key LIMIT ?5";
        let words: Vec<String> = words.iter().map(|word| word.to_lowercase()).collect();
        let most = if words.is_empty() { *limit } else { LOOKED_AT_MAX };
        let mut statement = self.conn.prepare_cached(sql)?;
        let values = params![tenant.0, workflow_bytes(*workflow), key, prefix, super::columns::limit(most)];
        let rows = statement.query_map(values, |row| {
            Ok(StoredMemory {
                tenant: tenant.clone(),
                workflow: *workflow,
                key: row.get(0)?,
                value: row.get(1)?,
                at: Millis(row.get(2)?),
            })
        })?;
        let fits = |memory: &StoredMemory| {
            let text = format!("{} {}", memory.key, memory.value).to_lowercase();
            words.iter().all(|word| text.contains(word))
        };
        let mut found = Vec::new();
        for memory in rows {
            let memory = memory?;
            if fits(&memory) {
                found.push(memory);
            }
            if found.len() >= *limit {
                break;
            }
        }
        Ok(found)
    }
}
