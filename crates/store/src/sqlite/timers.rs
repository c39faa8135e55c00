//! Timers that come due. They are columns of three tables, each with its index; one list is made of them.

use super::columns::{Columns as _, ENDED, limit};
use super::quarantine::is_not_quarantined;
use super::statements::{find_cursor, query_all};
use crate::rules::{TimerPlace, TimerTable, gate_timer, head_timer, merge_timers, run_timer};
use crate::store::{DueTimer, StoreResult};
use rusqlite::{Connection, params};
use windlass_kernel::{ExecutionId, Millis, Timer};

pub(super) fn due(
    conn: &Connection,
    after: Option<&DueTimer>,
    until: Millis,
    count: usize,
) -> StoreResult<Vec<DueTimer>> {
    let after = match after {
        Some(timer) => Some(TimerPlace::of(timer, find_cursor(conn, timer.execution)?)),
        None => None,
    };
    let resume = |table| TimerPlace::resume(after.as_ref(), table);
    let mut found = read_heads(conn, &resume(TimerTable::Heads), until, count)?;
    found.extend(read_runs(conn, &resume(TimerTable::Runs), until, count)?);
    found.extend(read_gates(conn, &resume(TimerTable::Gates), until, count)?);
    Ok(merge_timers(found, count))
}

type Found = Vec<(TimerPlace, DueTimer)>;

/// Timers of executions that run (`rules::table_fires`) and that are not quarantined.
pub(super) const HEADS_DUE: &str = concat!(
    "SELECT h.due, h.key, h.phase, e.id FROM heads h JOIN executions e ON e.key = h.key \
     WHERE h.due IS NOT NULL AND h.due <= ?1 AND (h.due, h.key) > (?2, ?3) AND ",
    is_not_quarantined!("e.id"),
    " ORDER BY h.due, h.key LIMIT ?4"
);
pub(super) const RUNS_DUE: &str = concat!(
    "SELECT s.due, s.execution, s.run, s.state, e.id FROM step_runs s \
     JOIN heads h ON h.key = s.execution JOIN executions e ON e.key = s.execution \
     WHERE s.due IS NOT NULL AND s.due <= ?1 AND (s.due, s.execution, s.run) > (?2, ?3, ?4) \
     AND h.held = 0 AND h.phase < ?5 AND ",
    is_not_quarantined!("e.id"),
    " ORDER BY s.due, s.execution, s.run LIMIT ?6"
);
pub(super) const GATES_DUE: &str = concat!(
    "SELECT p.due, p.execution, p.key, e.id FROM parts p \
     JOIN heads h ON h.key = p.execution JOIN executions e ON e.key = p.execution \
     WHERE p.due IS NOT NULL AND p.due <= ?1 AND (p.due, p.execution, p.key) > (?2, ?3, ?4) \
     AND h.held = 0 AND h.phase < ?5 AND ",
    is_not_quarantined!("e.id"),
    " ORDER BY p.due, p.execution, p.key LIMIT ?6"
);

fn read_heads(conn: &Connection, after: &TimerPlace, until: Millis, count: usize) -> StoreResult<Found> {
    query_all(conn, HEADS_DUE, [until.0, after.due.0, after.execution, limit(count)], |row| {
        let (due, table, execution) = (row.read(0)?, after.table, row.get(1)?);
        let place = TimerPlace { due, table, execution, row: Vec::new() };
        Ok(timed(place, row.read(3)?, head_timer(row.read(2)?)))
    })
}

fn read_runs(conn: &Connection, after: &TimerPlace, until: Millis, count: usize) -> StoreResult<Found> {
    let run = <[u8; 8]>::try_from(after.row.as_slice()).map_or(i64::MIN, i64::from_be_bytes);
    let values = [until.0, after.due.0, after.execution, run, ENDED, limit(count)];
    query_all(conn, RUNS_DUE, values, |row| {
        let (run, execution) = (row.read(2)?, row.read(4)?);
        let state = row.get_ref(3)?.as_blob().map_err(rusqlite::Error::from)?;
        let timer = run_timer(run, state).map_err(|error| error.of_execution(execution))?;
        let key = run.0.to_be_bytes().to_vec();
        let (due, table) = (row.read(0)?, after.table);
        Ok(timed(TimerPlace { due, table, execution: row.get(1)?, row: key }, execution, timer))
    })
}

fn read_gates(conn: &Connection, after: &TimerPlace, until: Millis, count: usize) -> StoreResult<Found> {
    let values = params![until.0, after.due.0, after.execution, after.row, ENDED, limit(count)];
    query_all(conn, GATES_DUE, values, |row| {
        let (key, execution): (Vec<u8>, _) = (row.get(2)?, row.read(3)?);
        let timer = gate_timer(&key).map_err(|error| error.of_execution(execution))?;
        let (due, table) = (row.read(0)?, after.table);
        Ok(timed(TimerPlace { due, table, execution: row.get(1)?, row: key }, execution, timer))
    })
}

fn timed(place: TimerPlace, execution: ExecutionId, timer: Timer) -> (TimerPlace, DueTimer) {
    let at = place.due;
    (place, DueTimer { at, execution, timer })
}
