//! Claims of workflows on requests under `/hooks`.

use super::SqliteReader;
use super::columns::{limit, tenant, workflow, workflow_bytes};
use super::lists::all;
use crate::commit::WorkflowId;
use crate::hooks::{HookClaim, HookReader, StoredHook, UnreadHooks};
use crate::origin::Tenant;
use crate::store::StoreError;
use rusqlite::{Connection, OptionalExtension, params};
use windlass_kernel::Millis;

/// Returns another workflow of the tenant that has one of the paths. `own` is the key of the workflow that asks, if there
/// is one already.
pub(super) fn taken(
    conn: &Connection,
    of: &Tenant,
    own: Option<i64>,
    claims: &[HookClaim],
) -> Result<Option<WorkflowId>, StoreError> {
    let mut statement = conn.prepare_cached(
        "SELECT w.id FROM hooks h JOIN workflows w ON w.key = h.workflow \
         WHERE h.tenant = ?1 AND h.path = ?2 AND h.method = ?3 AND h.workflow IS NOT ?4",
    )?;
    for claim in claims {
        let values = params![of.0, claim.path, claim.method, own];
        let found = statement.query_row(values, |row| row.get(0)).optional()?;
        if let Some(id) = found {
            return Ok(Some(workflow(id)));
        }
    }
    Ok(None)
}

/// The workflow has these claims from now on, and no others. Call `taken` before.
pub(super) fn put(
    conn: &Connection,
    of: &Tenant,
    workflow: i64,
    claims: &[HookClaim],
    at: Millis,
) -> Result<(), StoreError> {
    release(conn, workflow)?;
    claims.iter().try_for_each(|claim| insert(conn, of, workflow, claim, at))
}

/// Claims what is free for a workflow of an earlier version, whose definition has been read now. Returns how many workflows
/// waited for it: one, or none.
pub(super) fn put_read(
    conn: &Connection,
    of: &Tenant,
    id: WorkflowId,
    claims: &[HookClaim],
    at: Millis,
) -> Result<usize, StoreError> {
    let sql = "SELECT key FROM workflows WHERE tenant = ?1 AND id = ?2";
    let mut statement = conn.prepare_cached(sql)?;
    let key = statement.query_row(params![of.0, workflow_bytes(id)], |row| row.get(0)).optional()?;
    let Some(key) = key else { return Ok(0) };
    let read = read(conn, key)?;
    if read == 1 {
        claims.iter().try_for_each(|claim| insert(conn, of, key, claim, at))?;
    }
    Ok(read)
}

/// A definition that is stored says itself what it claims.
pub(super) fn read(conn: &Connection, workflow: i64) -> Result<usize, StoreError> {
    Ok(conn.prepare_cached("DELETE FROM hooks_unread WHERE workflow = ?1")?.execute([workflow])?)
}

/// The paths of a workflow are free for others of its tenant.
pub(super) fn release(conn: &Connection, workflow: i64) -> Result<(), StoreError> {
    conn.prepare_cached("DELETE FROM hooks WHERE workflow = ?1")?.execute([workflow])?;
    Ok(())
}

/// Of a path that is taken nothing is written: two triggers of one definition may name the same, and of workflows that
/// were stored before claims were the oldest has it.
fn insert(
    conn: &Connection,
    of: &Tenant,
    workflow: i64,
    claim: &HookClaim,
    at: Millis,
) -> Result<(), StoreError> {
    let sql = "INSERT INTO hooks (tenant, path, method, workflow, require_auth, claimed_at) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO NOTHING";
    let values = params![of.0, claim.path, claim.method, workflow, claim.require_auth, at.0];
    conn.prepare_cached(sql)?.execute(values)?;
    Ok(())
}

impl HookReader for SqliteReader {
    fn hooks(&mut self, of: &Tenant, path: &str) -> Result<Vec<StoredHook>, StoreError> {
        let sql = "SELECT w.id, h.method, h.path, h.require_auth FROM hooks h \
                   JOIN workflows w ON w.key = h.workflow WHERE h.tenant = ?1 AND h.path = ?2";
        all(&self.conn, sql, params![of.0, path], |row| {
            let claim = HookClaim { method: row.get(1)?, path: row.get(2)?, require_auth: row.get(3)? };
            Ok(StoredHook { workflow: workflow(row.get(0)?), claim })
        })
    }

    fn unread_hooks(&mut self, count: usize) -> Result<Vec<UnreadHooks>, StoreError> {
        let sql = "SELECT w.id, w.tenant, d.dialect, d.source FROM hooks_unread u \
                   JOIN workflows w ON w.key = u.workflow JOIN definitions d ON d.workflow = w.key \
                   AND d.version = (SELECT max(version) FROM definitions WHERE workflow = w.key) \
                   ORDER BY u.workflow LIMIT ?1";
        all(&self.conn, sql, [limit(count)], |row| {
            Ok(UnreadHooks {
                workflow: workflow(row.get(0)?),
                tenant: tenant(&row.get::<_, String>(1)?),
                dialect: row.get(2)?,
                source: row.get(3)?,
            })
        })
    }
}
