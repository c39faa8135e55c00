//! The first row of an execution, and what finds it beside its id.

use super::columns::{ENDED, id_bytes, json};
use super::outbox;
use crate::commit::Creation;
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
    labels(conn, key, creation)?;
    Ok(key)
}

/// What finds it beside its id.
fn labels(conn: &Connection, key: i64, creation: &Creation) -> Result<(), StoreError> {
    for tag in &creation.options.tags {
        conn.prepare_cached("INSERT OR IGNORE INTO tags (tag, execution) VALUES (?1, ?2)")?
            .execute(params![tag, key])?;
    }
    if creation.options.webhook.is_some() {
        outbox::begin(conn, key)?;
    }
    if let Some(idempotency) = &creation.key {
        conn.prepare_cached(
            "INSERT OR REPLACE INTO idempotency (workflow, key, request, execution) \
             SELECT workflow, ?2, ?3, key FROM executions WHERE key = ?1 AND workflow IS NOT NULL",
        )?
        .execute(params![key, idempotency.key, idempotency.request])?;
    }
    Ok(())
}

/// Another execution has the key, and it has not ended so long ago that the key is free again.
pub(super) fn is_taken(conn: &Connection, creation: &Creation) -> Result<bool, StoreError> {
    let (Some(idempotency), Some(definition)) = (&creation.key, creation.definition) else {
        return Ok(false);
    };
    let mut statement = conn.prepare_cached(
        "SELECT 1 FROM idempotency i JOIN heads h ON h.key = i.execution \
         WHERE i.workflow = (SELECT workflow FROM definitions WHERE id = ?1) AND i.key = ?2 \
         AND (h.phase < ?3 OR h.at >= ?4)",
    )?;
    Ok(statement.exists(params![definition.0, idempotency.key, ENDED, idempotency.forgotten.0])?)
}
