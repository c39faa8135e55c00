//! Lists of executions, newest first, read by the most selective index.

use super::columns::{Columns as _, ENDED, id_bytes, limit, phase_number, workflow_bytes};
use super::creation::{ORIGIN, ORIGIN_COLUMNS, read_options, read_origin};
use super::statements::{Conditions, find_cursor, query_all, query_count, query_first};
use crate::commit::WorkflowId;
use crate::origin::Tenant;
use crate::quarantine::Quarantine;
use crate::store::{ListedExecution, Query, Status, StoreResult};
use rusqlite::types::Value;
use rusqlite::{Connection, Row, params, params_from_iter};

/// The newest of each phase that is asked for, and of those the newest: no phase is read further than it must be.
pub(super) fn list(conn: &Connection, query: &Query) -> StoreResult<Vec<ListedExecution>> {
    let mut keys = Vec::new();
    for phase in phases(query.status) {
        let (sql, values) = statement(conn, query, phase)?;
        keys.extend(query_all(conn, &sql, params_from_iter(values), |row| Ok(row.get::<_, i64>(0)?))?);
    }
    keys.sort_unstable_by(|left, right| right.cmp(left));
    keys.truncate(query.limit);
    keys.into_iter().map(|key| read_listed(conn, key)).collect()
}

/// Counts from the few executions that are open, not from all that the tenant ever had.
pub(super) fn count_open(conn: &Connection, tenant: &Tenant, bound: usize) -> StoreResult<usize> {
    let sql = "SELECT count(*) FROM (SELECT 1 FROM heads h CROSS JOIN executions e ON e.key = h.key \
               WHERE h.phase < ?2 AND e.tenant = ?1 LIMIT ?3)";
    query_count(conn, sql, params![tenant.0, ENDED, limit(bound)])
}

fn phases(status: Option<Status>) -> Vec<Option<i64>> {
    match status {
        None => vec![None],
        Some(Status::Phase(phase)) => vec![Some(phase_number(phase))],
        Some(Status::In(phases)) => phases.iter().map(|phase| Some(phase_number(*phase))).collect(),
        Some(Status::Open) => (0..ENDED).map(Some).collect(),
    }
}

/// The keys that a query finds in one phase, or in any. The table that comes first is the one that narrows most; each is
/// read along an index in the order of the keys.
pub(super) fn statement(
    conn: &Connection,
    query: &Query,
    phase: Option<i64>,
) -> StoreResult<(String, Vec<Value>)> {
    let mut conditions = Conditions::default();
    conditions.add("e.key < ?", query.before.map_or(Ok(i64::MAX), |id| find_cursor(conn, id))?);
    // The index of tenants is not used if another one is more selective.
    let is_narrowed = is_narrow(query) || by_phase(query, phase);
    let of_tenant = if is_narrowed { "+e.tenant = ?" } else { "e.tenant = ?" };
    conditions.add_if(of_tenant, query.tenant.as_ref().map(|tenant| tenant.0.to_string()));
    conditions.add_if("t.tag = ?", query.tag.clone());
    conditions.add_if("e.correlation = ?", query.correlation.clone());
    conditions.add_if("e.parent = ?", query.parent.map(|parent| id_bytes(parent).to_vec()));
    if let Some(workflow) = query.workflow {
        conditions.add("e.workflow = ?", find_workflow_key(conn, query.tenant.as_ref(), workflow)?);
    }
    conditions.add_if("h.phase = ?", phase);
    conditions.add_if("e.created_at > ?", query.since.map(|since| since.0));
    conditions.add_if("e.created_at < ?", query.until.map(|until| until.0));
    let order = if query.tag.is_some() {
        "t.execution DESC"
    } else if by_phase(query, phase) {
        "h.key DESC"
    } else {
        "e.key DESC"
    };
    let select = format!("SELECT e.key FROM {}", tables(query, phase));
    Ok(conditions.finish(&select, order, limit(query.limit)))
}

/// Returns the number of a workflow, also of a deleted one: the newest of that id. Without one, a number that none has.
fn find_workflow_key(conn: &Connection, of: Option<&Tenant>, id: WorkflowId) -> StoreResult<i64> {
    let sql = "SELECT max(key) FROM workflows WHERE id = ?1 AND (?2 IS NULL OR tenant = ?2)";
    let of = of.map(|tenant| tenant.0.to_string());
    let found =
        query_first(conn, sql, params![workflow_bytes(id), of], |row| Ok(row.get::<_, Option<i64>>(0)?))?;
    Ok(found.flatten().unwrap_or(i64::MIN))
}

fn is_narrow(query: &Query) -> bool {
    query.workflow.is_some() || query.correlation.is_some() || query.parent.is_some() || query.tag.is_some()
}

/// Few executions are in most phases, but what makes a query narrow makes it narrower.
fn by_phase(query: &Query, phase: Option<i64>) -> bool {
    phase.is_some() && !is_narrow(query)
}

fn tables(query: &Query, phase: Option<i64>) -> &'static str {
    if query.tag.is_some() {
        "tags t CROSS JOIN executions e ON e.key = t.execution CROSS JOIN heads h ON h.key = e.key"
    } else if by_phase(query, phase) {
        "heads h CROSS JOIN executions e ON e.key = h.key"
    } else {
        "executions e CROSS JOIN heads h ON h.key = e.key"
    }
}

pub(super) fn read_listed(conn: &Connection, key: i64) -> StoreResult<ListedExecution> {
    const AT: usize = ORIGIN_COLUMNS;
    let sql = format!(
        "SELECT {ORIGIN}, e.id, d.name, d.version, d.dialect, h.held, e.created_at, h.at, h.phase, \
         q.quarantined_at, q.reason, q.deaths \
         FROM heads h JOIN executions e ON e.key = h.key LEFT JOIN quarantine q ON q.execution = e.id \
         LEFT JOIN definitions d ON d.id = e.definition LEFT JOIN workflows w ON w.key = e.workflow \
         WHERE h.key = ?1"
    );
    let found = query_first(conn, &sql, [key], |row| {
        Ok(ListedExecution {
            execution: row.read(AT)?,
            // An execution that cannot be read is quarantined when it is loaded; a list shows the others all the same.
            origin: read_origin(row, read_options(row).unwrap_or_default())?,
            name: row.get(AT + 1)?,
            version: row.get(AT + 2)?,
            dialect: row.get(AT + 3)?,
            held: row.get(AT + 4)?,
            created_at: row.read(AT + 5)?,
            at: row.read(AT + 6)?,
            phase: row.read(AT + 7)?,
            quarantine: read_quarantine(row, AT + 8)?,
        })
    })?;
    found.ok_or_else(|| rusqlite::Error::QueryReturnedNoRows.into())
}

fn read_quarantine(row: &Row<'_>, at: usize) -> StoreResult<Option<Quarantine>> {
    let Some(since) = row.read(at)? else { return Ok(None) };
    Ok(Some(Quarantine { since, reason: row.get(at + 1)?, deaths: row.get(at + 2)? }))
}
