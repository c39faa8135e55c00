//! Claims of workflows on requests under `/hooks`.

use super::SqliteReader;
use super::columns::{Columns, limit, read_row, workflow_bytes};
use super::statements::{execute, query_all, query_first};
use crate::commit::{Applied, WorkflowId};
use crate::hooks::{HookClaim, HookReader, StoredHook, UnreadHooks};
use crate::origin::Tenant;
use crate::rules::{judge_hooks_read, may_claim_hook};
use crate::store::StoreResult;
use rusqlite::{Connection, params};
use windlass_kernel::Millis;

/// Returns the workflow of the tenant that has the claim on a method and path.
pub(super) fn find_owner(
    conn: &Connection,
    of: &Tenant,
    claim: &HookClaim,
) -> StoreResult<Option<WorkflowId>> {
    let sql = "SELECT w.id FROM hooks h JOIN workflows w ON w.key = h.workflow \
               WHERE h.tenant = ?1 AND h.path = ?2 AND h.method = ?3";
    query_first(conn, sql, params![of.0, claim.path, claim.method], |row| row.read(0))
}

/// Replaces the claims of a workflow whose definition was stored. The caller has checked that the claims are free.
pub(super) fn replace(
    conn: &Connection,
    of: &Tenant,
    workflow: i64,
    claims: &[HookClaim],
    at: Millis,
) -> StoreResult<()> {
    mark_read(conn, workflow)?;
    release(conn, workflow)?;
    claims.iter().try_for_each(|claim| insert(conn, of, workflow, claim, at))
}

/// Claims the paths that are free for a workflow that was stored before there were claims.
pub(super) fn put_read(
    conn: &Connection,
    of: &Tenant,
    id: WorkflowId,
    claims: &[HookClaim],
    at: Millis,
) -> StoreResult<Applied> {
    let sql = "SELECT w.key, EXISTS (SELECT 1 FROM hooks_unread u WHERE u.workflow = w.key) FROM workflows w \
               WHERE w.tenant = ?1 AND w.id = ?2";
    let values = params![of.0, workflow_bytes(id)];
    let found: Option<(i64, bool)> = query_first(conn, sql, values, |row| Ok((row.get(0)?, row.get(1)?)))?;
    let verdict = judge_hooks_read(found.map(|(_, is_unread)| is_unread));
    if let (Applied::Done, Some((key, _))) = (verdict, found) {
        mark_read(conn, key)?;
        claims.iter().try_for_each(|claim| insert(conn, of, key, claim, at))?;
    }
    Ok(verdict)
}

/// Notes that the claims of a workflow are known.
pub(super) fn mark_read(conn: &Connection, workflow: i64) -> StoreResult<()> {
    execute(conn, "DELETE FROM hooks_unread WHERE workflow = ?1", [workflow]).map(drop)
}

/// Frees the paths of a workflow for others of its tenant.
pub(super) fn release(conn: &Connection, workflow: i64) -> StoreResult<()> {
    execute(conn, "DELETE FROM hooks WHERE workflow = ?1", [workflow]).map(drop)
}

/// Inserts a claim if it may be written.
fn insert(conn: &Connection, of: &Tenant, workflow: i64, claim: &HookClaim, at: Millis) -> StoreResult<()> {
    if !may_claim_hook(find_owner(conn, of, claim)?) {
        return Ok(());
    }
    let sql = "INSERT INTO hooks (tenant, path, method, workflow, require_auth, claimed_at) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let values = params![of.0, claim.path, claim.method, workflow, claim.require_auth, at.0];
    execute(conn, sql, values).map(drop)
}

impl HookReader for SqliteReader {
    fn hooks(&mut self, of: &Tenant, path: &str) -> StoreResult<Vec<StoredHook>> {
        let sql = "SELECT h.method, h.path, h.require_auth, w.id FROM hooks h \
                   JOIN workflows w ON w.key = h.workflow WHERE h.tenant = ?1 AND h.path = ?2";
        query_all(&self.conn, sql, params![of.0, path], |row| {
            let claim = read_row![row, HookClaim: method path require_auth];
            Ok(StoredHook { workflow: row.read(3)?, claim })
        })
    }

    fn unread_hooks(&mut self, count: usize) -> StoreResult<Vec<UnreadHooks>> {
        let sql = "SELECT w.id, w.tenant, d.manifest FROM hooks_unread u \
                   JOIN workflows w ON w.key = u.workflow JOIN definitions d ON d.workflow = w.key \
                   AND d.version = (SELECT max(version) FROM definitions WHERE workflow = w.key) \
                   ORDER BY u.workflow LIMIT ?1";
        query_all(&self.conn, sql, [limit(count)], |row| {
            Ok(UnreadHooks { workflow: row.read(0)?, tenant: row.read(1)?, manifest: row.get(2)? })
        })
    }
}
