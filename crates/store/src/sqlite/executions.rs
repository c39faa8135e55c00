//! Lists of executions, newest first, read by the most selective index.

use super::columns::{Columns as _, ENDED, PHASES, id_bytes, limit, phase_number, workflow_bytes};
use super::creation::{ORIGIN, ORIGIN_COLUMNS, first_key_after, last_key_before, read_options, read_origin};
use super::statements::{Conditions, find_cursor, query_all, query_count, query_first};
use crate::commit::WorkflowId;
use crate::origin::Tenant;
use crate::quarantine::Quarantine;
use crate::store::{ListedExecution, Query, Status, StoreResult};
use rusqlite::types::Value;
use rusqlite::{Connection, Row, params, params_from_iter};

/// Lists the newest executions of each requested phase, and of those the newest. No phase is read further than needed.
pub(super) fn list(conn: &Connection, query: &Query) -> StoreResult<Vec<ListedExecution>> {
    let mut keys = Vec::new();
    for phase in phases(query) {
        let (sql, values) = statement(conn, query, phase)?;
        keys.extend(query_all(conn, &sql, params_from_iter(values), |row| Ok(row.get::<_, i64>(0)?))?);
    }
    keys.sort_unstable_by(|left, right| right.cmp(left));
    keys.truncate(query.limit);
    keys.into_iter().map(|key| read_listed(conn, key)).collect()
}

/// Counts the open executions of a tenant, of which there are few, instead of all that it ever had.
pub(super) fn count_open(conn: &Connection, tenant: &Tenant, bound: usize) -> StoreResult<usize> {
    let sql = "SELECT count(*) FROM (SELECT 1 FROM heads WHERE tenant = ?1 AND phase < ?2 LIMIT ?3)";
    query_count(conn, sql, params![tenant.0, ENDED, limit(bound)])
}

/// Returns the phases of a list, each of which is a statement; `None` is any phase. The indexes of a tenant and of a workflow
/// have the phase before the key.
pub(super) fn phases(query: &Query) -> Vec<Option<i64>> {
    match query.status {
        None if is_bounded(query) && !is_narrower(query) => {
            PHASES.into_iter().map(|phase| Some(phase_number(phase))).collect()
        }
        None => vec![None],
        Some(Status::Phase(phase)) => vec![Some(phase_number(phase))],
        Some(Status::In(phases)) => phases.iter().map(|phase| Some(phase_number(*phase))).collect(),
        Some(Status::Open) => (0..ENDED).map(Some).collect(),
    }
}

/// The table that a list reads along an index in the order of the keys: the most selective one. The others are looked
/// up.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Driver {
    Tags,
    /// Tags of a tenant in one phase.
    TagPhases,
    Executions,
    Heads,
}

impl Driver {
    fn of(query: &Query, phase: Option<i64>) -> Driver {
        match query.tag {
            Some(_) if phase.is_some() && query.tenant.is_some() => Driver::TagPhases,
            Some(_) => Driver::Tags,
            None if phase.is_some() && is_bounded(query) && !is_narrower(query) => Driver::Heads,
            None => Driver::Executions,
        }
    }

    fn key(self) -> &'static str {
        match self {
            Driver::Tags | Driver::TagPhases => "t.execution",
            Driver::Executions => "e.key",
            Driver::Heads => "h.key",
        }
    }

    /// Returns the tables of a list. Rows of `executions` are read only if a condition needs them.
    fn tables(self, query: &Query) -> String {
        let reads_executions = query.correlation.is_some()
            || query.parent.is_some()
            || query.since.is_some()
            || query.until.is_some();
        let executions = if reads_executions { " CROSS JOIN executions e ON e.key = h.key" } else { "" };
        match self {
            Driver::Tags => format!("tags t CROSS JOIN heads h ON h.key = t.execution{executions}"),
            // The primary key leads to executions of every phase.
            Driver::TagPhases => {
                format!("tags t INDEXED BY tags_listed CROSS JOIN heads h ON h.key = t.execution{executions}")
            }
            Driver::Executions => "executions e CROSS JOIN heads h ON h.key = e.key".to_owned(),
            Driver::Heads => format!("heads h{executions}"),
        }
    }
}

/// Builds the statement for the keys that a query finds in one phase, or in any.
pub(super) fn statement(
    conn: &Connection,
    query: &Query,
    phase: Option<i64>,
) -> StoreResult<(String, Vec<Value>)> {
    let driver = Driver::of(query, phase);
    let key = driver.key();
    let own = match driver {
        Driver::Executions => "e",
        Driver::Tags | Driver::TagPhases | Driver::Heads => "h",
    };
    let mut conditions = Conditions::default();
    // One bound on each side: SQLite reads from the first bound that it finds.
    let mut below = query.before.map_or(Ok(i64::MAX), |id| find_cursor(conn, id))?;
    if let Some(until) = query.until {
        below = below.min(last_key_before(conn, until)?.saturating_add(1));
    }
    conditions.add(&format!("{key} < ?"), below);
    if let Some(since) = query.since {
        conditions.add(&format!("{key} >= ?"), first_key_after(conn, since)?);
        conditions.add("e.created_at > ?", since.0);
    }
    if let Some(until) = query.until {
        conditions.add("e.created_at < ?", until.0);
    }
    // The indexes of tenants and of workflows are not used if another one is more selective.
    let index = if query.workflow.is_some() || is_narrower(query) { "+" } else { "" };
    let tenant = match driver {
        Driver::TagPhases => "t.tenant = ?".to_owned(),
        Driver::Tags | Driver::Executions | Driver::Heads => format!("{index}{own}.tenant = ?"),
    };
    conditions.add_if(&tenant, query.tenant.as_ref().map(|tenant| tenant.0.to_string()));
    conditions.add_if("t.tag = ?", query.tag.clone());
    conditions.add_if("e.correlation = ?", query.correlation.clone());
    conditions.add_if("e.parent = ?", query.parent.map(|parent| id_bytes(parent).to_vec()));
    if let Some(workflow) = query.workflow {
        let workflow = find_workflow_key(conn, query.tenant.as_ref(), workflow)?;
        let index = if is_narrower(query) { "+" } else { "" };
        conditions.add(&format!("{index}{own}.workflow = ?"), workflow);
    }
    conditions.add_if(if driver == Driver::TagPhases { "t.phase = ?" } else { "h.phase = ?" }, phase);
    let select = format!("SELECT h.key FROM {}", driver.tables(query));
    Ok(conditions.finish(&select, &format!("{key} DESC"), limit(query.limit)))
}

/// Returns the number of a workflow, also of a deleted one: the newest of that id. Without one, an unused number.
fn find_workflow_key(conn: &Connection, of: Option<&Tenant>, id: WorkflowId) -> StoreResult<i64> {
    let sql = "SELECT max(key) FROM workflows WHERE id = ?1 AND (?2 IS NULL OR tenant = ?2)";
    let of = of.map(|tenant| tenant.0.to_string());
    let found =
        query_first(conn, sql, params![workflow_bytes(id), of], |row| Ok(row.get::<_, Option<i64>>(0)?))?;
    Ok(found.flatten().unwrap_or(i64::MIN))
}

/// Returns whether a list is of one tenant or of one workflow.
fn is_bounded(query: &Query) -> bool {
    query.workflow.is_some() || query.tenant.is_some()
}

/// Returns whether something narrows a list more than a workflow does.
fn is_narrower(query: &Query) -> bool {
    query.correlation.is_some() || query.parent.is_some() || query.tag.is_some()
}

pub(super) fn read_listed(conn: &Connection, key: i64) -> StoreResult<ListedExecution> {
    const AT: usize = ORIGIN_COLUMNS;
    let sql = format!(
        "SELECT {ORIGIN}, e.id, d.name, d.version, d.dialect, h.held, e.created_at, h.at, h.phase, \
         q.quarantined_at, q.reason, q.deaths, \
         (SELECT r.id FROM executions r WHERE r.retry_of = e.id AND r.tenant = e.tenant ORDER BY r.key DESC LIMIT 1) \
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
            retried_by: row.read(AT + 11)?,
        })
    })?;
    found.ok_or_else(|| rusqlite::Error::QueryReturnedNoRows.into())
}

fn read_quarantine(row: &Row<'_>, at: usize) -> StoreResult<Option<Quarantine>> {
    let Some(since) = row.read(at)? else { return Ok(None) };
    Ok(Some(Quarantine { since, reason: row.get(at + 1)?, deaths: row.get(at + 2)? }))
}
