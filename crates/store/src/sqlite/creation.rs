//! The first row of an execution, and the rows that find it by keys other than its id.

use super::columns::{Columns as _, id_bytes, json, phase_number};
use super::outbox;
use super::statements::{execute, query_first};
use crate::commit::Creation;
use crate::origin::{IdempotencyKey, Options, Origin};
use crate::rules::KeyHolder;
use crate::store::StoreResult;
use rusqlite::{Connection, Row, params};
use windlass_kernel::{ExecutionId, Millis, Phase};

/// Columns of an origin, the first ones of a row: of `executions e` and its `workflows w`. The options come first.
pub(super) const ORIGIN: &str = "e.options, e.tenant, e.definition, w.id, e.trigger, e.parent, e.retry_of";
/// Number of the columns of an origin.
pub(super) const ORIGIN_COLUMNS: usize = 7;

pub(super) fn read_options(row: &Row<'_>) -> StoreResult<Options> {
    row.json(0, "its options")
}

pub(super) fn read_origin(row: &Row<'_>, options: Options) -> StoreResult<Origin> {
    Ok(Origin {
        options,
        tenant: row.read(1)?,
        definition: row.read(2)?,
        workflow: row.read(3)?,
        trigger: row.get::<_, String>(4)?.into(),
        parent: row.read(5)?,
        retry_of: row.read(6)?,
        key: None,
    })
}

pub(super) fn create(
    conn: &Connection,
    id: ExecutionId,
    creation: &Creation,
    phase: Phase,
) -> StoreResult<i64> {
    let origin = &*creation.origin;
    // SQLite would reuse the number of a deleted execution if that was the newest one.
    conn.prepare_cached(
        "INSERT INTO executions (key, id, definition, net, parent, trigger, inputs, created_at, tenant, workflow, \
         priority, correlation, options, retry_of) VALUES (\
         1 + max((SELECT key FROM highest_forgotten), coalesce((SELECT max(key) FROM executions), 0)), \
         ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, (SELECT workflow FROM definitions WHERE id = ?2), ?9, ?10, ?11, \
         ?12)",
    )?
    .execute(params![
        id_bytes(id),
        origin.definition.map(|id| id.0),
        creation.net.0,
        origin.parent.map(id_bytes),
        origin.trigger,
        json(&creation.inputs),
        creation.at.0,
        origin.tenant.0,
        origin.options.priority as i64,
        origin.options.correlation,
        json(&origin.options),
        origin.retry_of.map(id_bytes),
    ])?;
    let key = conn.last_insert_rowid();
    note_creation_time(conn, key, creation.at)?;
    write_labels(conn, key, origin, phase)?;
    Ok(key)
}

/// Number of executions whose creation times are noted together. With a smaller number there are more notes, and a
/// list reads fewer executions of other times.
const BLOCK: i64 = 4096;

/// Creation times are noted in spans of this length, so that one execution in a span writes the note, and the others only
/// look at it. A list of a time reads the executions of at most this much more time.
const SPAN_MS: i64 = 10_000;

fn note_creation_time(conn: &Connection, key: i64, at: Millis) -> StoreResult<()> {
    let earliest = at.0.div_euclid(SPAN_MS) * SPAN_MS;
    let latest = earliest + SPAN_MS - 1;
    let sql = "INSERT INTO creation_times (block, earliest, latest) VALUES (?1, ?2, ?3) ON CONFLICT (block) \
               DO UPDATE SET earliest = min(earliest, ?2), latest = max(latest, ?3) \
               WHERE ?2 < earliest OR ?3 > latest";
    execute(conn, sql, [key / BLOCK, earliest, latest])?;
    Ok(())
}

/// Returns a number below which no execution was created after a time.
pub(super) fn first_key_after(conn: &Connection, at: Millis) -> StoreResult<i64> {
    let sql = "SELECT min(block) FROM creation_times WHERE latest > ?1";
    let block = query_first(conn, sql, [at.0], |row| Ok(row.get::<_, Option<i64>>(0)?))?.flatten();
    Ok(block.map_or(i64::MAX, |block| block * BLOCK))
}

/// Returns a number above which no execution was created before a time.
pub(super) fn last_key_before(conn: &Connection, at: Millis) -> StoreResult<i64> {
    let sql = "SELECT max(block) FROM creation_times WHERE earliest < ?1";
    let block = query_first(conn, sql, [at.0], |row| Ok(row.get::<_, Option<i64>>(0)?))?.flatten();
    Ok(block.map_or(i64::MIN, |block| block * BLOCK + BLOCK - 1))
}

fn write_labels(conn: &Connection, key: i64, origin: &Origin, phase: Phase) -> StoreResult<()> {
    for tag in &origin.options.tags {
        let sql = "INSERT OR IGNORE INTO tags (tag, execution, tenant, phase) VALUES (?1, ?2, ?3, ?4)";
        execute(conn, sql, params![tag, key, origin.tenant.0, phase_number(phase)])?;
    }
    if origin.options.webhook.is_some() {
        outbox::begin(conn, key)?;
    }
    if let Some(idempotency) = &origin.key {
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
) -> StoreResult<Option<KeyHolder>> {
    let Some(definition) = creation.origin.definition else { return Ok(None) };
    let sql = "SELECT h.phase, h.at FROM idempotency i JOIN heads h ON h.key = i.execution \
               WHERE i.workflow = (SELECT workflow FROM definitions WHERE id = ?1) AND i.key = ?2";
    query_first(conn, sql, params![definition.0, key.key], |row| {
        Ok(KeyHolder { phase: row.read(0)?, at: row.read(1)? })
    })
}
