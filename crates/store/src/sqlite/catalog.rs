//! Workflows and their versions.

use super::SqliteReader;
use super::columns::{ENDED, digest, id, limit, parsed, tenant, workflow, workflow_bytes};
use super::lists::all;
use crate::catalog::{Catalog, StoredVersion, StoredWorkflow, WorkflowQuery};
use crate::commit::{DefinitionId, WorkflowId};
use crate::entry::WorkflowStatus;
use crate::origin::{IdempotencyKey, Tenant};
use crate::store::{StoreError, StoredDefinition, Which};
use rusqlite::{Connection, OptionalExtension, Row, params};
use windlass_kernel::{ExecutionId, Millis};

/// The number of a workflow that a tenant has.
pub(super) fn standing(conn: &Connection, of: &Tenant, which: &Which) -> Result<Option<i64>, StoreError> {
    let found = match which {
        Which::Id(id) => conn
            .prepare_cached("SELECT key FROM workflows WHERE id = ?2 AND tenant = ?1 AND deleted_at IS NULL")?
            .query_row(params![of.0, workflow_bytes(*id)], |row| row.get(0)),
        Which::Name(name) => conn
            .prepare_cached(
                "SELECT key FROM workflows WHERE tenant = ?1 AND name = ?2 AND deleted_at IS NULL \
                 ORDER BY key DESC LIMIT 1",
            )?
            .query_row(params![of.0, name], |row| row.get(0)),
    };
    Ok(found.optional()?)
}

pub(super) fn version(
    conn: &Connection,
    workflow: i64,
    version: Option<u32>,
) -> Result<Option<StoredDefinition>, StoreError> {
    match version {
        Some(version) => definition(conn, "d.workflow = ?1 AND d.version = ?2", params![workflow, version]),
        None => definition(conn, "d.workflow = ?1 ORDER BY d.version DESC", params![workflow]),
    }
}

pub(super) fn definition(
    conn: &Connection,
    which: &str,
    values: impl rusqlite::Params,
) -> Result<Option<StoredDefinition>, StoreError> {
    Ok(definitions(conn, &format!("{which} LIMIT 1"), values)?.into_iter().next())
}

fn definitions(
    conn: &Connection,
    which: &str,
    values: impl rusqlite::Params,
) -> Result<Vec<StoredDefinition>, StoreError> {
    let sql = format!(
        "SELECT d.id, d.name, d.version, d.dialect, d.source, d.workload, d.net, w.id, w.tenant \
         FROM definitions d JOIN workflows w ON w.key = d.workflow WHERE {which}"
    );
    all(conn, &sql, values, |row| {
        Ok(StoredDefinition {
            id: DefinitionId(row.get(0)?),
            name: row.get(1)?,
            version: row.get(2)?,
            dialect: row.get(3)?,
            source: row.get(4)?,
            workload: parsed(&row.get::<_, String>(5)?, "the workload of a definition")?,
            net: digest(row.get(6)?),
            workflow: workflow(row.get(7)?),
            tenant: tenant(&row.get::<_, String>(8)?),
        })
    })
}

const WORKFLOW: &str = "SELECT w.id, w.name, w.status, w.created_at, w.updated_at, d.version, d.id, d.dialect \
     FROM workflows w JOIN definitions d ON d.workflow = w.key \
     AND d.version = (SELECT max(version) FROM definitions WHERE workflow = w.key) \
     WHERE w.tenant = ?1 AND w.deleted_at IS NULL";

fn stored(row: &Row<'_>) -> Result<StoredWorkflow, StoreError> {
    let status: String = row.get(2)?;
    let status = WorkflowStatus::of(&status)
        .ok_or_else(|| StoreError::Corrupt(format!("`{status}` is not the status of a workflow")))?;
    Ok(StoredWorkflow {
        id: workflow(row.get(0)?),
        name: row.get(1)?,
        status,
        created_at: Millis(row.get(3)?),
        updated_at: Millis(row.get(4)?),
        version: row.get(5)?,
        definition: DefinitionId(row.get(6)?),
        dialect: row.get(7)?,
    })
}

impl Catalog for SqliteReader {
    fn workflow(&mut self, tenant: &Tenant, id: WorkflowId) -> Result<Option<StoredWorkflow>, StoreError> {
        let sql = format!("{WORKFLOW} AND w.id = ?2");
        let found = all(&self.conn, &sql, params![tenant.0, workflow_bytes(id)], stored)?;
        Ok(found.into_iter().next())
    }

    fn workflows(&mut self, query: &WorkflowQuery) -> Result<Vec<StoredWorkflow>, StoreError> {
        let sql = format!(
            "{WORKFLOW} AND (?2 IS NULL OR w.status = ?2) AND (?3 IS NULL OR instr(lower(w.name), lower(?3)) > 0) \
             ORDER BY w.key DESC LIMIT ?4 OFFSET ?5"
        );
        let status = query.status.map(WorkflowStatus::name);
        let bounds = (limit(query.limit), limit(query.offset));
        all(&self.conn, &sql, params![query.tenant.0, status, query.search, bounds.0, bounds.1], stored)
    }

    fn version(
        &mut self,
        tenant: &Tenant,
        workflow: WorkflowId,
        number: Option<u32>,
    ) -> Result<Option<StoredDefinition>, StoreError> {
        self.at_once(|conn| match standing(conn, tenant, &Which::Id(workflow))? {
            Some(key) => version(conn, key, number),
            None => Ok(None),
        })
    }

    fn versions(
        &mut self,
        tenant: &Tenant,
        workflow: WorkflowId,
        before: Option<u32>,
        count: usize,
    ) -> Result<Vec<StoredVersion>, StoreError> {
        self.at_once(|conn| {
            let Some(key) = standing(conn, tenant, &Which::Id(workflow))? else { return Ok(Vec::new()) };
            let sql = "SELECT version, id, name, dialect, net, at FROM definitions \
                       WHERE workflow = ?1 AND version < ?2 ORDER BY version DESC LIMIT ?3";
            let before = before.map_or(i64::MAX, i64::from);
            all(conn, sql, [key, before, limit(count)], |row| {
                Ok(StoredVersion {
                    version: row.get(0)?,
                    definition: DefinitionId(row.get(1)?),
                    name: row.get(2)?,
                    dialect: row.get(3)?,
                    net: digest(row.get(4)?),
                    at: Millis(row.get(5)?),
                })
            })
        })
    }

    fn keyed(
        &mut self,
        tenant: &Tenant,
        workflow: WorkflowId,
        key: &IdempotencyKey,
    ) -> Result<Option<(ExecutionId, [u8; 32])>, StoreError> {
        let sql = "SELECT e.id, i.request FROM workflows w JOIN idempotency i ON i.workflow = w.key \
                   JOIN executions e ON e.key = i.execution JOIN heads h ON h.key = e.key \
                   WHERE w.tenant = ?1 AND w.id = ?2 AND i.key = ?3 AND (h.phase < ?4 OR h.at >= ?5)";
        let values = params![tenant.0, workflow_bytes(workflow), key.key, ENDED, key.forgotten.0];
        let found = all(&self.conn, sql, values, |row| Ok((id(row.get(0)?), row.get(1)?)))?;
        Ok(found.into_iter().next())
    }

    fn durations(
        &mut self,
        tenant: &Tenant,
        workflow: WorkflowId,
        count: usize,
    ) -> Result<Vec<u64>, StoreError> {
        let sql = "SELECT h.at - e.created_at FROM executions e CROSS JOIN heads h ON h.key = e.key \
                   WHERE e.workflow = (SELECT key FROM workflows WHERE id = ?2 AND tenant = ?1) \
                   AND h.phase = ?3 ORDER BY e.key DESC LIMIT ?4";
        let values = params![tenant.0, workflow_bytes(workflow), ENDED, limit(count)];
        all(&self.conn, sql, values, |row| Ok(row.get::<_, i64>(0)?.max(0).cast_unsigned()))
    }
}
