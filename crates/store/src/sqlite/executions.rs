//! Lists of executions: newest first, by whatever narrows them most.

use super::columns::{
    ENDED, id, id_bytes, limit, parsed, phase, phase_number, tenant, workflow, workflow_bytes,
};
use super::lists::{all, place};
use crate::commit::DefinitionId;
use crate::origin::Tenant;
use crate::quarantine::Quarantine;
use crate::store::{Listed, Query, Status, StoreError};
use rusqlite::types::Value;
use rusqlite::{Connection, Row, params, params_from_iter};
use std::sync::Arc;
use windlass_kernel::Millis;

/// The newest of each phase that is asked for, and of those the newest: no phase is read further than it must be.
pub(super) fn list(conn: &Connection, query: &Query) -> Result<Vec<Listed>, StoreError> {
    let mut keys = Vec::new();
    for phase in phases(query.status) {
        let (sql, values) = statement(conn, query, phase)?;
        keys.extend(all(conn, &sql, params_from_iter(values), |row| Ok(row.get::<_, i64>(0)?))?);
    }
    keys.sort_unstable_by(|left, right| right.cmp(left));
    keys.truncate(query.limit);
    keys.into_iter().map(|key| listed(conn, key)).collect()
}

/// From the few that are open to their tenants, not from all that the tenant ever had.
pub(super) fn count_open(conn: &Connection, tenant: &Tenant, bound: usize) -> Result<usize, StoreError> {
    let sql = "SELECT count(*) FROM (SELECT 1 FROM heads h CROSS JOIN executions e ON e.key = h.key \
               WHERE h.phase < ?2 AND e.tenant = ?1 LIMIT ?3)";
    let mut statement = conn.prepare_cached(sql)?;
    let count: i64 = statement.query_row(params![tenant.0, ENDED, limit(bound)], |row| row.get(0))?;
    Ok(usize::try_from(count).unwrap_or_default())
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
) -> Result<(String, Vec<Value>), StoreError> {
    let mut values: Vec<Value> = vec![query.before.map_or(Ok(i64::MAX), |id| place(conn, id))?.into()];
    let mut wheres = vec!["e.key < ?1".to_owned()];
    let mut also = |sql: &str, value: Value| {
        values.push(value);
        wheres.push(sql.replace('?', &format!("?{}", values.len())));
    };
    if let Some(tenant) = &query.tenant {
        // Not by its index where another one narrows more.
        let sql = if is_narrow(query) || by_phase(query, phase) { "+e.tenant = ?" } else { "e.tenant = ?" };
        also(sql, tenant.0.to_string().into());
    }
    if let Some(tag) = &query.tag {
        also("t.tag = ?", tag.clone().into());
    }
    if let Some(correlation) = &query.correlation {
        also("e.correlation = ?", correlation.clone().into());
    }
    if let Some(parent) = query.parent {
        also("e.parent = ?", id_bytes(parent).to_vec().into());
    }
    if let Some(workflow) = query.workflow {
        also(
            "e.workflow = (SELECT key FROM workflows WHERE id = ?)",
            workflow_bytes(workflow).to_vec().into(),
        );
    }
    if let Some(phase) = phase {
        also("h.phase = ?", phase.into());
    }
    if let Some(since) = query.since {
        also("e.created_at >= ?", since.0.into());
    }
    if let Some(until) = query.until {
        also("e.created_at < ?", until.0.into());
    }
    values.push(limit(query.limit).into());
    let sql = format!(
        "SELECT e.key FROM {} WHERE {} ORDER BY {} DESC LIMIT ?{}",
        tables(query, phase),
        wheres.join(" AND "),
        if query.tag.is_some() {
            "t.execution"
        } else if by_phase(query, phase) {
            "h.key"
        } else {
            "e.key"
        },
        values.len()
    );
    Ok((sql, values))
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

fn listed(conn: &Connection, key: i64) -> Result<Listed, StoreError> {
    let sql = "SELECT e.id, e.definition, d.name, d.version, d.dialect, e.trigger, h.held, e.created_at, h.at, \
         h.phase, e.parent, e.tenant, e.options, w.id, q.quarantined_at, q.reason, q.deaths \
         FROM heads h JOIN executions e ON e.key = h.key LEFT JOIN quarantine q ON q.execution = e.id \
         LEFT JOIN definitions d ON d.id = e.definition LEFT JOIN workflows w ON w.key = e.workflow \
         WHERE h.key = ?1";
    let found = all(conn, sql, [key], |row| {
        Ok(Listed {
            execution: id(row.get(0)?),
            definition: row.get::<_, Option<i64>>(1)?.map(DefinitionId),
            name: row.get(2)?,
            version: row.get(3)?,
            dialect: row.get(4)?,
            trigger: row.get(5)?,
            held: row.get(6)?,
            quarantine: quarantine(row)?,
            created_at: Millis(row.get(7)?),
            at: Millis(row.get(8)?),
            phase: phase(row.get(9)?)?,
            parent: row.get::<_, Option<_>>(10)?.map(id),
            tenant: tenant(&row.get::<_, String>(11)?),
            // One that cannot be read is quarantined when it is met; the others of a list are shown all the same.
            options: Arc::new(parsed(&row.get::<_, String>(12)?, "its options").unwrap_or_default()),
            workflow: row.get::<_, Option<_>>(13)?.map(workflow),
        })
    })?;
    found.into_iter().next().ok_or_else(|| rusqlite::Error::QueryReturnedNoRows.into())
}

fn quarantine(row: &Row<'_>) -> Result<Option<Quarantine>, StoreError> {
    let Some(since) = row.get::<_, Option<i64>>(14)? else { return Ok(None) };
    Ok(Some(Quarantine { since: Millis(since), reason: row.get(15)?, deaths: row.get(16)? }))
}
