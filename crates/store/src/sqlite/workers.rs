//! Sessions of workers outside of the server, and their groups.

use super::SqliteReader;
use super::columns::{Columns, read_row};
use super::statements::{execute, query_all};
use crate::commit::Session;
use crate::origin::Tenant;
use crate::store::StoreResult;
use crate::workers::{RunnerGroup, WorkerSession, Workers};
use rusqlite::{Connection, Row, params};
use windlass_kernel::Millis;

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
    execute(conn, "DELETE FROM worker_sessions WHERE id = ?1", [id.0.cast_signed()])
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

    fn runner_groups(&mut self) -> StoreResult<Vec<RunnerGroup>> {
        let sql =
            "SELECT tenant, name, cluster, created_at, updated_at FROM runner_groups ORDER BY tenant, name";
        let read = |row: &Row<'_>| Ok(read_row![row, RunnerGroup: tenant name cluster created_at updated_at]);
        query_all(&self.conn, sql, [], read)
    }
}
