//! Definitions: versions of workflows, and the nets they compile to.

use super::audit_rows::add_audit;
use super::columns::{self, Columns as _, workflow_bytes};
use super::hooks;
use super::statements::{execute, query_first};
use super::write::Transaction;
use crate::commit::{Applied, Definition, DefinitionId, StoredManifest, WorkflowId};
use crate::entry::WorkflowStatus;
use crate::hooks::HookClaim;
use crate::rules::{
    DefinitionFacts, DefinitionVerdict, WorkflowFacts, audit_definition, count_definition, judge_definition,
};
use crate::store::StoreResult;
use rusqlite::{Connection, Params, Row, params};
use windlass_kernel::Net;

pub(super) fn define(transaction: &mut Transaction<'_>, definition: &Definition) -> StoreResult<Applied> {
    let conn = transaction.conn;
    let (workflow, id, version) = match judge_definition(definition, &mut Lookups { conn, definition })? {
        DefinitionVerdict::Answer(applied) => return Ok(applied),
        DefinitionVerdict::Insert { workflow, id, version } => (workflow, id, version),
    };
    let key = match workflow {
        Some(workflow) => workflow.key,
        None => insert_workflow(conn, definition, id)?,
    };
    let stored = insert_version(conn, definition, key, version)?;
    hooks::replace(conn, &definition.tenant, key, &definition.hooks, definition.at)?;
    super::schedules::write_triggered(conn, (&definition.tenant, id), &definition.schedules)?;
    if let Some(audit) = audit_definition(definition, id, version) {
        add_audit(conn, transaction.seal, &audit)?;
    }
    transaction.usage.add(&definition.tenant, count_definition(definition));
    Ok(Applied::Defined(stored, version, id))
}

pub(super) fn keep_net(conn: &Connection, net: &Net) -> StoreResult<()> {
    let sql = "INSERT OR IGNORE INTO nets (digest, spec) VALUES (?1, ?2)";
    execute(conn, sql, params![net.digest().0, columns::json(net.spec())])?;
    Ok(())
}

fn insert_version(
    conn: &Connection,
    definition: &Definition,
    workflow: i64,
    version: u32,
) -> StoreResult<DefinitionId> {
    keep_net(conn, &definition.net)?;
    let Definition { name, dialect, source, status, manifest, .. } = definition;
    let (net, at) = (definition.net.digest().0, definition.at.0);
    let workload = columns::json(&definition.workload);
    let sql = "INSERT INTO definitions (workflow, name, version, dialect, net, at, workload, source, compiler, \
               manifest) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
    let StoredManifest { compiler, json } = manifest;
    let row = params![workflow, name, version, dialect, net, at, workload, source, compiler, json];
    execute(conn, sql, row)?;
    let id = DefinitionId(conn.last_insert_rowid());
    let sql = "UPDATE workflows SET name = ?2, updated_at = ?3, status = coalesce(?4, status) WHERE key = ?1";
    execute(conn, sql, params![workflow, name, at, status.map(WorkflowStatus::name)])?;
    Ok(id)
}

fn insert_workflow(conn: &Connection, definition: &Definition, id: WorkflowId) -> StoreResult<i64> {
    let sql = "INSERT INTO workflows (id, tenant, name, status, created_at, updated_at, created_by) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?5, ?6)";
    let Definition { tenant, name, at, .. } = definition;
    let status = definition.status.unwrap_or_default().name();
    let author = definition.author.as_ref().map(|author| &author.actor);
    execute(conn, sql, params![workflow_bytes(id), tenant.0, name, status, at.0, author])?;
    Ok(conn.last_insert_rowid())
}

/// Looks up the facts that the rules need about one definition.
struct Lookups<'d> {
    conn: &'d Connection,
    definition: &'d Definition,
}

const WORKFLOW: &str = "SELECT w.key, w.id, \
     coalesce((SELECT max(version) FROM definitions d WHERE d.workflow = w.key), 0) FROM workflows w \
     WHERE w.tenant = ?1 AND w.deleted_at IS NULL";

impl Lookups<'_> {
    fn find(&self, which: &str, values: impl Params) -> StoreResult<Option<WorkflowFacts<i64>>> {
        let read =
            |row: &Row<'_>| Ok(WorkflowFacts { key: row.get(0)?, id: row.read(1)?, newest: row.get(2)? });
        query_first(self.conn, &format!("{WORKFLOW} {which}"), values, read)
    }
}

impl DefinitionFacts for Lookups<'_> {
    type Key = i64;

    fn find_named(&mut self) -> StoreResult<Option<WorkflowFacts<i64>>> {
        let values = params![self.definition.tenant.0, self.definition.name];
        self.find("AND w.name = ?2 ORDER BY w.key DESC LIMIT 1", values)
    }

    fn find_by_id(&mut self, id: WorkflowId) -> StoreResult<Option<WorkflowFacts<i64>>> {
        self.find("AND w.id = ?2", params![self.definition.tenant.0, workflow_bytes(id)])
    }

    fn find_same(&mut self, workflow: &WorkflowFacts<i64>) -> StoreResult<Option<DefinitionId>> {
        let sql =
            "SELECT id FROM definitions WHERE workflow = ?1 AND version = ?2 AND net = ?3 AND source = ?4";
        let Definition { net, source, .. } = self.definition;
        let values = params![workflow.key, workflow.newest, net.digest().0, source];
        query_first(self.conn, sql, values, |row| row.read(0))
    }

    fn hook_owner(&mut self, claim: &HookClaim) -> StoreResult<Option<WorkflowId>> {
        hooks::find_owner(self.conn, &self.definition.tenant, claim)
    }
}
