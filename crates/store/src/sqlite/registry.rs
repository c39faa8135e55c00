//! Actions with their revisions, routing targets, and step-runs that wait for them.

use super::SqliteReader;
use super::columns::{Column, Columns, limit, read_row};
use super::quarantine::is_not_quarantined;
use super::statements::{execute, find_cursor, query_all, query_count, query_first};
use super::write::Transaction;
use crate::codec::decode;
use crate::commit::Applied;
use crate::origin::Tenant;
use crate::registry::{
    ActionDocument, ActionId, ActionRevision, AwaitedRoute, Registry, RegistryWrite, RoutingTarget,
    StoredAction, TargetKind, WhichAction,
};
use crate::rows::Class;
use crate::rules::{
    ActionVerdict, KnownAction, apply_poll, count_action, free_action, judge_action, put_target,
};
use crate::store::{StoreError, StoreResult};
use rusqlite::{Connection, Row, params};
use windlass_kernel::{ExecutionId, RunId};

impl Column for ActionId {
    fn read(row: &Row<'_>, column: usize) -> StoreResult<Self> {
        let bytes: [u8; 16] = row.get(column)?;
        Ok(ActionId(u128::from_be_bytes(bytes)))
    }
}

impl Column for TargetKind {
    fn read(row: &Row<'_>, column: usize) -> StoreResult<Self> {
        let name = row.text(column)?;
        TargetKind::of(name)
            .ok_or_else(|| StoreError::Corrupt(format!("`{name}` is not the kind of a routing target")))
    }
}

pub(super) fn write(transaction: &mut Transaction<'_>, write: &RegistryWrite) -> StoreResult<Applied> {
    let conn = transaction.conn;
    let changed = match write {
        RegistryWrite::PutAction(put) => return put_action(transaction, put),
        RegistryWrite::EnableAction { tenant, name, enabled, at } => {
            let sql = "UPDATE actions SET enabled = ?3, updated_at = ?4 WHERE tenant = ?1 AND name = ?2";
            execute(conn, sql, params![tenant.0, name, enabled, at.0])?
        }
        RegistryWrite::DeleteAction { tenant, name } => return delete_action(transaction, tenant, name),
        RegistryWrite::PutTarget(target) => {
            let known = find_target(conn, &target.tenant, target.kind, &target.name)?;
            let sql = "SELECT count(*) FROM routing_targets WHERE tenant = ?1 AND kind = ?2";
            let count = query_count(conn, sql, params![target.tenant.0, target.kind.name()])?;
            let Some(row) = put_target(target, known.as_ref(), count) else { return Ok(Applied::Conflict) };
            write_target(conn, &row)?
        }
        RegistryWrite::TargetPolled(poll) => {
            let known = find_target(conn, &poll.tenant, poll.kind, &poll.name)?;
            let row = known.and_then(|known| apply_poll(&known, poll));
            row.map_or(Ok(0), |row| write_target(conn, &row))?
        }
        RegistryWrite::DeleteTarget { tenant, kind, name } => {
            let sql = "DELETE FROM routing_targets WHERE tenant = ?1 AND kind = ?2 AND name = ?3";
            execute(conn, sql, params![tenant.0, kind.name(), name])?
        }
    };
    Ok(if changed == 1 { Applied::Done } else { Applied::Duplicate })
}

fn put_action(transaction: &mut Transaction<'_>, put: &ActionDocument) -> StoreResult<Applied> {
    let conn = transaction.conn;
    let sql = "SELECT a.id, a.revision, r.document = ?3 FROM actions a \
               JOIN action_revisions r ON r.action = a.id AND r.revision = a.revision \
               WHERE a.tenant = ?1 AND a.name = ?2";
    let known = query_first(conn, sql, params![put.tenant.0, put.name, put.document], |row| {
        Ok(read_row![row, KnownAction: id revision is_same])
    })?;
    let count = query_count(conn, "SELECT count(*) FROM actions WHERE tenant = ?1", [&put.tenant.0])?;
    let (action, revision) = match judge_action(known.as_ref(), count) {
        ActionVerdict::Answer(applied) => return Ok(applied),
        ActionVerdict::Create => (put.id, 1),
        ActionVerdict::Revise { action, revision } => (action, revision),
    };
    let id = action.0.to_be_bytes();
    let sql = "INSERT INTO actions (id, tenant, name, description, enabled, revision, created_at, updated_at) \
               VALUES (?1, ?2, ?3, ?4, 1, ?5, ?6, ?6) ON CONFLICT (id) DO UPDATE SET \
               description = excluded.description, revision = excluded.revision, updated_at = excluded.updated_at";
    execute(conn, sql, params![id, put.tenant.0, put.name, put.description, revision, put.at.0])?;
    let sql =
        "INSERT INTO action_revisions (action, revision, document, author, at) VALUES (?1, ?2, ?3, ?4, ?5)";
    execute(conn, sql, params![id, revision, put.document, put.author, put.at.0])?;
    transaction.usage.add(&put.tenant, count_action(&put.document));
    Ok(Applied::Done)
}

fn delete_action(transaction: &mut Transaction<'_>, tenant: &Tenant, name: &str) -> StoreResult<Applied> {
    let conn = transaction.conn;
    let which = WhichAction::Name(name.to_owned());
    let Some(action) = find_action(conn, tenant, &which)? else { return Ok(Applied::Duplicate) };
    let id = action.id.0.to_be_bytes();
    let sql = "SELECT coalesce(sum(octet_length(document)), 0) FROM action_revisions WHERE action = ?1";
    let documents: i64 = conn.prepare_cached(sql)?.query_row([id], |row| row.get(0))?;
    execute(conn, "DELETE FROM action_revisions WHERE action = ?1", [id])?;
    execute(conn, "DELETE FROM actions WHERE id = ?1", [id])?;
    transaction.usage.add(tenant, free_action(documents.cast_unsigned()));
    Ok(Applied::Done)
}

fn write_target(conn: &Connection, target: &RoutingTarget) -> StoreResult<usize> {
    let sql = "INSERT OR REPLACE INTO routing_targets (tenant, kind, name, cluster, routing_key, ready, ready_url, \
               reason, polled_at, created_at, updated_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";
    let RoutingTarget { tenant, kind, name, cluster, routing_key, ready, ready_url, reason, .. } = target;
    let (polled_at, created_at) = (target.polled_at.map(|at| at.0), target.created_at.0);
    let key = (&tenant.0, kind.name(), name);
    let row = params![
        key.0,
        key.1,
        key.2,
        cluster,
        routing_key,
        ready,
        ready_url,
        reason,
        polled_at,
        created_at,
        target.updated_at.0
    ];
    execute(conn, sql, row)
}

const ACTION: &str =
    "SELECT id, tenant, name, description, enabled, revision, created_at, updated_at FROM actions";
const TARGET: &str = "SELECT tenant, kind, name, cluster, routing_key, ready, ready_url, reason, polled_at, created_at, \
     updated_at FROM routing_targets";

/// Step-runs of one class are a range of the table.
pub(super) const AWAITED: &str = concat!(
    "SELECT s.run, s.state, e.id, e.tenant FROM step_runs s \
     CROSS JOIN executions e ON e.key = s.execution \
     WHERE s.class = ?1 AND (s.execution, s.run) > (?2, ?3) AND ",
    is_not_quarantined!("e.id"),
    " ORDER BY s.execution, s.run LIMIT ?4"
);

fn read_action(row: &Row<'_>) -> StoreResult<StoredAction> {
    Ok(read_row![row, StoredAction: id tenant name description enabled revision created_at updated_at])
}

fn read_target(row: &Row<'_>) -> StoreResult<RoutingTarget> {
    Ok(
        read_row![row, RoutingTarget: tenant kind name cluster routing_key ready ready_url reason polled_at created_at
        updated_at],
    )
}

fn find_action(conn: &Connection, of: &Tenant, which: &WhichAction) -> StoreResult<Option<StoredAction>> {
    match which {
        WhichAction::Id(id) => {
            let values = params![of.0, id.0.to_be_bytes()];
            query_first(conn, &format!("{ACTION} WHERE tenant = ?1 AND id = ?2"), values, read_action)
        }
        WhichAction::Name(name) => {
            let sql = format!("{ACTION} WHERE tenant = ?1 AND name = ?2");
            query_first(conn, &sql, params![of.0, name], read_action)
        }
    }
}

fn find_target(
    conn: &Connection,
    of: &Tenant,
    kind: TargetKind,
    name: &str,
) -> StoreResult<Option<RoutingTarget>> {
    let sql = format!("{TARGET} WHERE tenant = ?1 AND kind = ?2 AND name = ?3");
    query_first(conn, &sql, params![of.0, kind.name(), name], read_target)
}

impl Registry for SqliteReader {
    fn actions(
        &mut self,
        tenant: &Tenant,
        after: Option<&str>,
        count: usize,
    ) -> StoreResult<Vec<StoredAction>> {
        let sql = format!("{ACTION} WHERE tenant = ?1 AND name > ?2 ORDER BY name LIMIT ?3");
        query_all(&self.conn, &sql, params![tenant.0, after.unwrap_or(""), limit(count)], read_action)
    }

    fn action(
        &mut self,
        tenant: &Tenant,
        which: &WhichAction,
        revision: Option<u32>,
    ) -> StoreResult<Option<(StoredAction, ActionRevision)>> {
        self.at_once(|conn| {
            let Some(action) = find_action(conn, tenant, which)? else { return Ok(None) };
            let sql = "SELECT revision, document, author, at FROM action_revisions \
                       WHERE action = ?1 AND revision = ?2";
            let values = params![action.id.0.to_be_bytes(), revision.unwrap_or(action.revision)];
            let found = query_first(conn, sql, values, |row| {
                Ok(read_row![row, ActionRevision: revision document author at])
            })?;
            Ok(found.map(|revision| (action, revision)))
        })
    }

    fn action_revisions(
        &mut self,
        tenant: &Tenant,
        name: &str,
        before: Option<u32>,
        count: usize,
    ) -> StoreResult<Vec<ActionRevision>> {
        let sql = "SELECT r.revision, '', r.author, r.at FROM actions a JOIN action_revisions r ON r.action = a.id \
                   WHERE a.tenant = ?1 AND a.name = ?2 AND r.revision < ?3 ORDER BY r.revision DESC LIMIT ?4";
        let before = before.map_or(i64::MAX, i64::from);
        query_all(&self.conn, sql, params![tenant.0, name, before, limit(count)], |row| {
            Ok(read_row![row, ActionRevision: revision document author at])
        })
    }

    fn targets(
        &mut self,
        tenant: &Tenant,
        kind: TargetKind,
        after: Option<&str>,
        count: usize,
    ) -> StoreResult<Vec<RoutingTarget>> {
        let sql = format!("{TARGET} WHERE tenant = ?1 AND kind = ?2 AND name > ?3 ORDER BY name LIMIT ?4");
        let values = params![tenant.0, kind.name(), after.unwrap_or(""), limit(count)];
        query_all(&self.conn, &sql, values, read_target)
    }

    fn target(
        &mut self,
        tenant: &Tenant,
        kind: TargetKind,
        name: &str,
    ) -> StoreResult<Option<RoutingTarget>> {
        find_target(&self.conn, tenant, kind, name)
    }

    fn awaited_routes(
        &mut self,
        after: Option<(ExecutionId, RunId)>,
        count: usize,
    ) -> StoreResult<Vec<AwaitedRoute>> {
        self.at_once(|conn| {
            let (key, run) = match after {
                Some((id, run)) => (find_cursor(conn, id)?, run.0.cast_signed()),
                None => (i64::MIN, i64::MIN),
            };
            query_all(conn, AWAITED, params![Class::Routed as i64, key, run, limit(count)], |row| {
                let (run, execution, tenant) = (row.read(0)?, row.read(2)?, row.read(3)?);
                let state: Vec<u8> = row.get(1)?;
                let state = decode(&state).map_err(|error| error.of_execution(execution))?;
                Ok(AwaitedRoute { execution, tenant, run, state })
            })
        })
    }
}
