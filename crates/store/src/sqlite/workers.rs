//! Sessions of workers outside of the server, and their groups.

use super::SqliteReader;
use super::columns::{Columns, id_bytes, read_row};
use super::statements::{execute, query_all, query_first};
use crate::commit::Session;
use crate::origin::Tenant;
use crate::store::StoreResult;
use crate::workers::{ReportReceipt, RunnerGroup, WorkerSession, Workers};
use rusqlite::{Connection, Row, params};
use windlass_kernel::{ExecutionId, Fence, Millis, RunId};

pub(super) fn open_session(conn: &Connection, session: &WorkerSession) -> StoreResult<usize> {
    let sql = "INSERT OR IGNORE INTO worker_sessions (id, digest, tenant, runner_group, cluster, slots, worker, opened_at, \
               expires_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
    let WorkerSession { id, digest, tenant, group, cluster, slots, worker, opened_at, expires_at } = session;
    let id = id.0.cast_signed();
    let row = params![id, digest, tenant.0, group, cluster, slots, worker, opened_at.0, expires_at.0];
    execute(conn, sql, row)
}

pub(super) fn renew_session(conn: &Connection, id: Session, expires_at: Millis) -> StoreResult<usize> {
    let sql = "UPDATE worker_sessions SET expires_at = ?2 WHERE id = ?1";
    execute(conn, sql, [id.0.cast_signed(), expires_at.0])
}

pub(super) fn close_session(conn: &Connection, id: Session) -> StoreResult<usize> {
    drop_receipts(conn, id, Millis(i64::MAX))?;
    execute(conn, "DELETE FROM worker_sessions WHERE id = ?1", [id.0.cast_signed()])
}

pub(super) fn put_receipt(conn: &Connection, receipt: &ReportReceipt) -> StoreResult<usize> {
    let sql = "INSERT OR REPLACE INTO receipts (execution, run, fence, session, digest, at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let ReportReceipt { execution, run, fence, session, digest, at } = receipt;
    let (run, fence, session) = (run.0.cast_signed(), fence.0.cast_signed(), session.0.cast_signed());
    execute(conn, sql, params![id_bytes(*execution), run, fence, session, digest, at.0])
}

pub(super) fn drop_receipts(conn: &Connection, id: Session, before: Millis) -> StoreResult<usize> {
    execute(conn, "DELETE FROM receipts WHERE session = ?1 AND at < ?2", [id.0.cast_signed(), before.0])
}

pub(super) fn put_group(conn: &Connection, group: &RunnerGroup) -> StoreResult<usize> {
    let sql = "INSERT INTO runner_groups (tenant, name, cluster, created_at, updated_at) VALUES (?1, ?2, ?3, ?4, ?5) \
               ON CONFLICT (tenant, name) DO UPDATE SET cluster = excluded.cluster, updated_at = excluded.updated_at";
    let RunnerGroup { tenant, name, cluster, created_at, updated_at } = group;
    execute(conn, sql, params![tenant.0, name, cluster, created_at.0, updated_at.0])
}

pub(super) fn delete_group(conn: &Connection, tenant: &Tenant, name: &str) -> StoreResult<usize> {
    execute(conn, "DELETE FROM runner_groups WHERE tenant = ?1 AND name = ?2", params![tenant.0, name])
}

impl Workers for SqliteReader {
    fn worker_sessions(&mut self) -> StoreResult<Vec<WorkerSession>> {
        let sql = "SELECT id, digest, tenant, runner_group, cluster, slots, worker, opened_at, expires_at \
                   FROM worker_sessions ORDER BY id";
        let read = |row: &Row<'_>| {
            Ok(
                read_row![row, WorkerSession: id digest tenant group cluster slots worker opened_at expires_at],
            )
        };
        query_all(&self.conn, sql, [], read)
    }

    fn receipt(
        &mut self,
        execution: ExecutionId,
        (run, fence): (RunId, Fence),
        session: Session,
    ) -> StoreResult<Option<[u8; 32]>> {
        let sql =
            "SELECT digest FROM receipts WHERE execution = ?1 AND run = ?2 AND fence = ?3 AND session = ?4";
        let (run, fence, session) = (run.0.cast_signed(), fence.0.cast_signed(), session.0.cast_signed());
        let key = params![id_bytes(execution), run, fence, session];
        query_first(&self.conn, sql, key, |row| Ok(row.get(0)?))
    }

    fn owns_artifact(&mut self, execution: ExecutionId, key: &str) -> StoreResult<bool> {
        self.at_once(|conn| super::artifact_owners::owns(conn, execution, key))
    }

    fn runner_groups(&mut self) -> StoreResult<Vec<RunnerGroup>> {
        let sql =
            "SELECT tenant, name, cluster, created_at, updated_at FROM runner_groups ORDER BY tenant, name";
        let read = |row: &Row<'_>| Ok(read_row![row, RunnerGroup: tenant name cluster created_at updated_at]);
        query_all(&self.conn, sql, [], read)
    }
}
