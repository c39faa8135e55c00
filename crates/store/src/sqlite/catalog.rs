//! Workflows and their versions.

use super::SqliteReader;
use super::columns::{Columns, ENDED, limit, read_row, workflow_bytes};
use super::statements::{query_all, query_count, query_first};
use crate::catalog::{Catalog, StoredVersion, StoredWorkflow, WorkflowQuery};
use crate::commit::{StoredManifest, WorkflowId};
use crate::entry::WorkflowStatus;
use crate::origin::{IdempotencyKey, Tenant};
use crate::rules::{KeyHolder, holds_key};
use crate::store::{StoreResult, StoredDefinition, Which};
use rusqlite::{Connection, Row, params};
use windlass_kernel::ExecutionId;

/// Returns the number of a workflow that a tenant has.
pub(super) fn find_workflow(conn: &Connection, of: &Tenant, which: &Which) -> StoreResult<Option<i64>> {
    match which {
        Which::Id(id) => {
            let sql = "SELECT key FROM workflows WHERE id = ?2 AND tenant = ?1 AND deleted_at IS NULL";
            query_first(conn, sql, params![of.0, workflow_bytes(*id)], |row| Ok(row.get(0)?))
        }
        Which::Name(name) => {
            let sql = "SELECT key FROM workflows WHERE tenant = ?1 AND name = ?2 AND deleted_at IS NULL \
                       ORDER BY key DESC LIMIT 1";
            query_first(conn, sql, params![of.0, name], |row| Ok(row.get(0)?))
        }
    }
}

pub(super) fn find_version(
    conn: &Connection,
    workflow: i64,
    version: Option<u32>,
) -> StoreResult<Option<StoredDefinition>> {
    match version {
        Some(version) => {
            find_definition(conn, "d.workflow = ?1 AND d.version = ?2", params![workflow, version])
        }
        None => find_definition(conn, "d.workflow = ?1 ORDER BY d.version DESC", params![workflow]),
    }
}

pub(super) fn find_definition(
    conn: &Connection,
    which: &str,
    values: impl rusqlite::Params,
) -> StoreResult<Option<StoredDefinition>> {
    query_first(conn, &format!("{DEFINITION} WHERE {which} LIMIT 1"), values, read_definition)
}

const DEFINITION: &str = "SELECT d.id, d.name, d.version, d.dialect, d.source, d.workload, d.net, w.id, w.tenant, \
     d.compiler, d.manifest FROM definitions d JOIN workflows w ON w.key = d.workflow";

fn read_definition(row: &Row<'_>) -> StoreResult<StoredDefinition> {
    Ok(StoredDefinition {
        id: row.read(0)?,
        name: row.get(1)?,
        version: row.get(2)?,
        dialect: row.get(3)?,
        source: row.get(4)?,
        workload: row.json(5, "the workload of a definition")?,
        net: row.read(6)?,
        workflow: row.read(7)?,
        tenant: row.read(8)?,
        manifest: StoredManifest { compiler: row.get(9)?, json: row.get(10)? },
    })
}

const WORKFLOW: &str = "SELECT w.id, w.name, w.status, w.created_at, w.updated_at, d.version, d.id, d.dialect, \
     w.created_by FROM workflows w JOIN definitions d ON d.workflow = w.key \
     AND d.version = (SELECT max(version) FROM definitions WHERE workflow = w.key) \
     WHERE w.tenant = ?1 AND w.deleted_at IS NULL";

fn read_workflow(row: &Row<'_>) -> StoreResult<StoredWorkflow> {
    Ok(read_row![row, StoredWorkflow: id name status created_at updated_at version definition dialect
        created_by])
}

impl Catalog for SqliteReader {
    fn workflow(&mut self, tenant: &Tenant, id: WorkflowId) -> StoreResult<Option<StoredWorkflow>> {
        let sql = format!("{WORKFLOW} AND w.id = ?2");
        query_first(&self.conn, &sql, params![tenant.0, workflow_bytes(id)], read_workflow)
    }

    /// Leaves out the definitions of targets of schedules, which are not workflows of a user.
    fn workflows(&mut self, query: &WorkflowQuery) -> StoreResult<Vec<StoredWorkflow>> {
        let sql = format!(
            "{WORKFLOW} AND (?2 IS NULL OR w.status = ?2) AND (?3 IS NULL OR instr(lower(w.name), lower(?3)) > 0) \
             AND (?6 IS NULL OR d.dialect = ?6) \
             AND NOT EXISTS (SELECT 1 FROM schedules s WHERE s.definition = w.id) ORDER BY w.key DESC LIMIT ?4 OFFSET ?5"
        );
        let status = query.status.map(WorkflowStatus::name);
        let bounds = (limit(query.limit), limit(query.offset));
        let values = params![query.tenant.0, status, query.search, bounds.0, bounds.1, query.dialect];
        query_all(&self.conn, &sql, values, read_workflow)
    }

    fn version(
        &mut self,
        tenant: &Tenant,
        workflow: WorkflowId,
        number: Option<u32>,
    ) -> StoreResult<Option<StoredDefinition>> {
        self.at_once(|conn| match find_workflow(conn, tenant, &Which::Id(workflow))? {
            Some(key) => find_version(conn, key, number),
            None => Ok(None),
        })
    }

    fn outdated_versions(&mut self, compiler: u32, count: usize) -> StoreResult<Vec<StoredDefinition>> {
        let sql = format!("{DEFINITION} WHERE d.compiler < ?1 ORDER BY d.compiler, d.id LIMIT ?2");
        query_all(&self.conn, &sql, params![compiler, limit(count)], read_definition)
    }

    fn versions(
        &mut self,
        tenant: &Tenant,
        workflow: WorkflowId,
        before: Option<u32>,
        count: usize,
    ) -> StoreResult<Vec<StoredVersion>> {
        self.at_once(|conn| {
            let Some(key) = find_workflow(conn, tenant, &Which::Id(workflow))? else { return Ok(Vec::new()) };
            let sql = "SELECT version, id, name, dialect, net, at FROM definitions \
                       WHERE workflow = ?1 AND version < ?2 ORDER BY version DESC LIMIT ?3";
            let before = before.map_or(i64::MAX, i64::from);
            query_all(conn, sql, [key, before, limit(count)], |row| {
                Ok(read_row![row, StoredVersion: version definition name dialect net at])
            })
        })
    }

    fn keyed(
        &mut self,
        tenant: &Tenant,
        workflow: WorkflowId,
        key: &IdempotencyKey,
    ) -> StoreResult<Option<(ExecutionId, [u8; 32])>> {
        let sql = "SELECT e.id, i.request, h.phase, h.at FROM workflows w JOIN idempotency i ON i.workflow = w.key \
                   JOIN executions e ON e.key = i.execution JOIN heads h ON h.key = e.key \
                   WHERE w.tenant = ?1 AND w.id = ?2 AND i.key = ?3 ORDER BY w.key DESC";
        let values = params![tenant.0, workflow_bytes(workflow), key.key];
        let found = query_first(&self.conn, sql, values, |row| {
            let holder = KeyHolder { phase: row.read(2)?, at: row.read(3)? };
            Ok((row.read(0)?, row.get(1)?, holder))
        })?;
        let held = found.filter(|(.., holder)| holds_key(holder, key));
        Ok(held.map(|(execution, request, _)| (execution, request)))
    }

    fn count_executions(
        &mut self,
        tenant: &Tenant,
        workflow: WorkflowId,
        bound: usize,
    ) -> StoreResult<usize> {
        let sql = "SELECT count(*) FROM (SELECT 1 FROM heads WHERE workflow = \
                   (SELECT max(key) FROM workflows WHERE id = ?2 AND tenant = ?1) LIMIT ?3)";
        query_count(&self.conn, sql, params![tenant.0, workflow_bytes(workflow), limit(bound)])
    }

    fn durations(&mut self, tenant: &Tenant, workflow: WorkflowId, count: usize) -> StoreResult<Vec<u64>> {
        let sql = "SELECT h.at - e.created_at FROM heads h CROSS JOIN executions e ON e.key = h.key \
                   WHERE h.workflow = (SELECT max(key) FROM workflows WHERE id = ?2 AND tenant = ?1) \
                   AND h.phase = ?3 ORDER BY h.key DESC LIMIT ?4";
        let values = params![tenant.0, workflow_bytes(workflow), ENDED, limit(count)];
        query_all(&self.conn, sql, values, |row| Ok(row.get::<_, i64>(0)?.max(0).cast_unsigned()))
    }
}
