//! Memories of workflows.

use super::SqliteReader;
use super::columns::{self, Columns as _, workflow_bytes};
use super::statements::{execute, query_first};
use crate::memory::{Memories, MemoryQuery, StoredMemory};
use crate::store::StoreResult;
use rusqlite::{Connection, params};

/// Maximum number of rows that a search for words reads. A workflow with more rows should name a key or a prefix.
const LOOKED_AT_MAX: usize = 10_000;

pub(super) fn remember(conn: &Connection, memory: &StoredMemory) -> StoreResult<usize> {
    let sql = "INSERT INTO memories (tenant, workflow, key, value, at) VALUES (?1, ?2, ?3, ?4, ?5) \
               ON CONFLICT (tenant, workflow, key) DO UPDATE SET value = excluded.value, at = excluded.at";
    let StoredMemory { tenant, workflow, key, value, at } = memory;
    let values = params![tenant.0, workflow_bytes(*workflow), key, value, at.0];
    execute(conn, sql, values)
}

/// Returns the bytes of the value that is stored under the key.
pub(super) fn size(conn: &Connection, memory: &StoredMemory) -> StoreResult<u64> {
    let sql = "SELECT octet_length(value) FROM memories WHERE tenant = ?1 AND workflow = ?2 AND key = ?3";
    let place = params![memory.tenant.0, workflow_bytes(memory.workflow), memory.key];
    Ok(query_first(conn, sql, place, |row| row.read(0))?.unwrap_or_default())
}

impl Memories for SqliteReader {
    fn memories(&mut self, query: &MemoryQuery) -> StoreResult<Vec<StoredMemory>> {
        let MemoryQuery { tenant, workflow, key, prefix, words, limit } = query;
        let sql = "SELECT key, value, at FROM memories WHERE tenant = ?1 AND workflow = ?2 \
                   AND (?3 IS NULL OR key = ?3) AND (?4 IS NULL OR substr(key, 1, length(?4)) = ?4) \
                   ORDER BY at DESC, key LIMIT ?5";
        let rows_max = columns::limit(if words.is_empty() { *limit } else { LOOKED_AT_MAX });
        let mut statement = self.conn.prepare_cached(sql)?;
        let mut rows =
            statement.query(params![tenant.0, workflow_bytes(*workflow), key, prefix, rows_max])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()?.filter(|_| found.len() < *limit) {
            let (tenant, workflow) = (tenant.clone(), *workflow);
            let memory =
                StoredMemory { tenant, workflow, key: row.get(0)?, value: row.get(1)?, at: row.read(2)? };
            if query.matches_words(&memory) {
                found.push(memory);
            }
        }
        Ok(found)
    }
}
