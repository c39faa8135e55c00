//! The first row of an execution, and the rows that find it by other things than its id.

use super::columns::{Columns as _, id_bytes, json};
use super::outbox;
use super::statements::{execute, query_first};
use crate::commit::Creation;
use crate::origin::IdempotencyKey;
use crate::rules::KeyHolder;
use crate::store::StoreError;
use rusqlite::{Connection, params};
use windlass_kernel::ExecutionId;

pub(super) fn create(conn: &Connection, id: ExecutionId, creation: &Creation) -> Result<i64, StoreError> {
    // SQLite would give the number of a forgotten execution again, when that was the newest.
    conn.prepare_cached(
        "INSERT INTO executions (key, id, definition, net, parent, trigger, inputs, created_at, tenant, workflow, \
         priority, correlation, options) VALUES (\
         1 + max((SELECT key FROM highest_forgotten), coalesce((SELECT max(key) FROM executions), 0)), \
         ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, (SELECT workflow FROM definitions WHERE id = ?2), ?9, ?10, ?11)",
    )?
    .execute(params![
        id_bytes(id),
        creation.definition.map(|id| id.0),
        creation.net.0,
        creation.parent.map(id_bytes),
        creation.trigger,
        json(&creation.inputs),
        creation.at.0,
        creation.tenant.0,
        creation.options.priority as i64,
        creation.options.correlation,
        json(&*creation.options),
    ])?;
    let key = conn.last_insert_rowid();
    write_labels(conn, key, creation)?;
    Ok(key)
}

fn write_labels(conn: &Connection, key: i64, creation: &Creation) -> Result<(), StoreError> {
    for tag in &creation.options.tags {
        execute(conn, "INSERT OR IGNORE INTO tags (tag, execution) VALUES (?1, ?2)", params![tag, key])?;
    }
    if creation.options.webhook.is_some() {
        outbox::begin(conn, key)?;
    }
    if let Some(idempotency) = &creation.key {
        let sql = "INSERT OR REPLACE INTO idempotency (workflow, key, request, execution) \
                   SELECT workflow, ?2, ?3, key FROM executions WHERE key = ?1 AND workflow IS NOT NULL";
        execute(conn, sql, params![key, idempotency.key, idempotency.request])?;
    }
    Ok(())
}

pub(super) fn find_key_holder(
    conn: &Connection,
    creation: &Creation,
    key: &IdempotencyKey,
) -> Result<Option<KeyHolder>, StoreError> {
    let Some(definition) = creation.definition else { return Ok(None) };
    let sql = "SELECT h.phase, h.at FROM idempotency i JOIN heads h ON h.key = i.execution \
               WHERE i.workflow = (SELECT workflow FROM definitions WHERE id = ?1) AND i.key = ?2";
    query_first(conn, sql, params![definition.0, key.key], |row| {
        Ok(KeyHolder { phase: row.phase(0)?, at: row.time(1)? })
    })
}
