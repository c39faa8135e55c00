//! The table of suspects.

use super::columns::{Columns, ENDED, id_bytes, phase_number, read_row};
use super::reader::SqliteReader;
use super::statements::{execute, find_key, query_all, query_first};
use crate::quarantine::{ExecutionOutline, Quarantined, Suspect};
use crate::rules::{ABANDONED_ROWS, AbandonedHead, WorkRows, abandon_head};
use crate::store::StoreResult;
use rusqlite::{Connection, Row, params};
use windlass_kernel::{ExecutionId, Millis};

const COLUMNS: &str = "SELECT execution, version, deaths, quarantined_at, reason FROM quarantine";

pub(super) fn put(conn: &Connection, suspect: &Suspect) -> StoreResult<usize> {
    let sql = "INSERT INTO quarantine (execution, version, deaths, quarantined_at, reason) \
               VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (execution) DO UPDATE SET version = excluded.version, \
               deaths = excluded.deaths, quarantined_at = excluded.quarantined_at, reason = excluded.reason";
    let Suspect { execution, version, deaths, quarantined_at, reason } = suspect;
    let since = quarantined_at.map(|at| at.0);
    let row = params![id_bytes(*execution), version.cast_signed(), deaths, since, reason];
    execute(conn, sql, row)
}

pub(super) fn remove(conn: &Connection, execution: ExecutionId) -> StoreResult<usize> {
    execute(conn, "DELETE FROM quarantine WHERE execution = ?1", [id_bytes(execution)])
}

/// Ends an execution whose rows may be damaged. The phase is compared and not decoded for that reason.
pub(super) fn abandon(conn: &Connection, execution: ExecutionId, at: Millis) -> StoreResult<usize> {
    let Some(key) = find_key(conn, execution)? else { return Ok(0) };
    let sql = "SELECT phase >= ?2 FROM heads WHERE key = ?1";
    let has_ended = query_first(conn, sql, [key, ENDED], |row| Ok(row.get(0)?))?;
    let head = has_ended.and_then(|has_ended| abandon_head(has_ended, at));
    let Some(AbandonedHead { phase, at, held, due, goes_on }) = head else { return Ok(0) };
    let sql = "UPDATE heads SET phase = ?2, at = ?3, held = ?4, due = ?5, goes_on = ?6 WHERE key = ?1";
    let due = due.map(|due| due.0);
    let changed = execute(conn, sql, params![key, phase_number(phase), at.0, held, due, goes_on])?;
    for rows in ABANDONED_ROWS {
        match rows {
            WorkRows::StepRuns => execute(conn, "DELETE FROM step_runs WHERE execution = ?1", [key])?,
            WorkRows::Stops => execute(conn, "DELETE FROM stops WHERE execution = ?1", [key])?,
            WorkRows::OpenMail => {
                let sql = "DELETE FROM inbox WHERE target = ?1 AND settled = 0";
                execute(conn, sql, [id_bytes(execution)])?
            }
            WorkRows::Mark => remove(conn, execution)?,
        };
    }
    Ok(changed)
}

/// Condition that an execution is not quarantined; the parameter is the column of its id.
macro_rules! is_not_quarantined {
    ($execution:literal) => {
        concat!(
            "NOT EXISTS (SELECT 1 FROM quarantine q WHERE q.execution = ",
            $execution,
            " AND q.quarantined_at IS NOT NULL)"
        )
    };
}
pub(super) use is_not_quarantined;

pub(super) fn find_suspect(conn: &Connection, execution: ExecutionId) -> StoreResult<Option<Suspect>> {
    query_first(conn, &format!("{COLUMNS} WHERE execution = ?1"), [id_bytes(execution)], read_suspect)
}

fn read_suspect(row: &Row<'_>) -> StoreResult<Suspect> {
    Ok(read_row![row, Suspect: execution version deaths quarantined_at reason])
}

impl Quarantined for SqliteReader {
    fn suspects(&mut self) -> StoreResult<Vec<Suspect>> {
        self.at_once(|conn| query_all(conn, &format!("{COLUMNS} ORDER BY execution"), [], read_suspect))
    }

    fn outline(&mut self, execution: ExecutionId) -> StoreResult<Option<ExecutionOutline>> {
        let sql = "SELECT h.version, e.tenant, e.parent FROM executions e LEFT JOIN heads h ON h.key = e.key \
                   WHERE e.id = ?1";
        let read = |row: &Row<'_>| {
            Ok(ExecutionOutline {
                version: row.get::<_, Option<i64>>(0)?.unwrap_or_default().cast_unsigned(),
                tenant: row.read(1)?,
                parent: row.read(2)?,
            })
        };
        query_first(&self.conn, sql, [id_bytes(execution)], read)
    }
}
