//! Timers that come due. They are columns of three tables, each with its index; one list is made of them.

use super::columns::{ENDED, id, limit, phase};
use super::lists::place;
use crate::codec::decode;
use crate::store::{DueTimer, StoreError};
use rusqlite::{Connection, params};
use windlass_kernel::{Execution, ExecutionId, Millis, Phase, RunId, StepId, StepRun, Timer, TokenId};

/// Where a row stands in the list: by time, then table, then place in the table.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    due: i64,
    table: u8,
    execution: i64,
    sub: Vec<u8>,
}

const HEADS: u8 = 0;
const RUNS: u8 = 1;
const GATES: u8 = 2;

pub(super) fn due(
    conn: &Connection,
    after: Option<&DueTimer>,
    until: Millis,
    count: usize,
) -> Result<Vec<DueTimer>, StoreError> {
    let after = after.map(|timer| place_of(conn, timer)).transpose()?;
    let mut found = heads(conn, after.as_ref(), until, count)?;
    found.extend(runs(conn, after.as_ref(), until, count)?);
    found.extend(gates(conn, after.as_ref(), until, count)?);
    found.sort_by(|(left, _), (right, _)| left.cmp(right));
    found.truncate(count);
    Ok(found.into_iter().map(|(_, timer)| timer).collect())
}

fn place_of(conn: &Connection, timer: &DueTimer) -> Result<Place, StoreError> {
    let (table, sub) = match timer.timer {
        Timer::Start | Timer::Deadline => (HEADS, Vec::new()),
        Timer::Backoff { run }
        | Timer::Delay { run }
        | Timer::Routing { run }
        | Timer::Manual { run }
        | Timer::Attempt { run, .. } => (RUNS, run.0.to_be_bytes().to_vec()),
        Timer::Gate { step, token } => (GATES, crate::codec::encode(&(step, token))),
    };
    Ok(Place { due: timer.at.0, table, execution: place(conn, timer.execution)?, sub })
}

/// The first place of a table that comes after `after`: `(due, execution, sub)`, exclusive.
fn from(after: Option<&Place>, table: u8) -> (i64, i64, Vec<u8>) {
    match after {
        None => (i64::MIN, i64::MIN, Vec::new()),
        Some(place) if place.table == table => (place.due, place.execution, place.sub.clone()),
        // Rows of a later table with the same time are still to come, those of an earlier one are not.
        Some(place) if place.table < table => (place.due, i64::MIN, Vec::new()),
        Some(place) => (place.due, i64::MAX, Vec::new()),
    }
}

type Found = Vec<(Place, DueTimer)>;

/// A hold keeps the timers of step-runs and gates due without letting them fire.
pub(super) const HEADS_DUE: &str = "SELECT h.due, h.key, h.phase, e.id FROM heads h JOIN executions e ON e.key = h.key \
     WHERE h.due IS NOT NULL AND h.due <= ?1 AND (h.due, h.key) > (?2, ?3) \
     AND NOT EXISTS (SELECT 1 FROM quarantine q WHERE q.execution = e.id AND q.quarantined_at IS NOT NULL) \
     ORDER BY h.due, h.key LIMIT ?4";
pub(super) const RUNS_DUE: &str = "SELECT s.due, s.execution, s.run, s.state, e.id FROM step_runs s \
     JOIN heads h ON h.key = s.execution JOIN executions e ON e.key = s.execution \
     WHERE s.due IS NOT NULL AND s.due <= ?1 AND (s.due, s.execution, s.run) > (?2, ?3, ?4) \
     AND h.held = 0 AND h.phase < ?5 \
     AND NOT EXISTS (SELECT 1 FROM quarantine q WHERE q.execution = e.id AND q.quarantined_at IS NOT NULL) \
     ORDER BY s.due, s.execution, s.run LIMIT ?6";
pub(super) const GATES_DUE: &str = "SELECT p.due, p.execution, p.key, e.id FROM parts p \
     JOIN heads h ON h.key = p.execution JOIN executions e ON e.key = p.execution \
     WHERE p.due IS NOT NULL AND p.due <= ?1 AND (p.due, p.execution, p.key) > (?2, ?3, ?4) \
     AND h.held = 0 AND h.phase < ?5 \
     AND NOT EXISTS (SELECT 1 FROM quarantine q WHERE q.execution = e.id AND q.quarantined_at IS NOT NULL) \
     ORDER BY p.due, p.execution, p.key LIMIT ?6";

fn heads(conn: &Connection, after: Option<&Place>, until: Millis, count: usize) -> Result<Found, StoreError> {
    let (due, key, _) = from(after, HEADS);
    let mut statement = conn.prepare_cached(HEADS_DUE)?;
    let mut rows = statement.query(params![until.0, due, key, limit(count)])?;
    let mut found = Found::new();
    while let Some(row) = rows.next()? {
        let timer = if phase(row.get(2)?)? == Phase::Queued { Timer::Start } else { Timer::Deadline };
        let place = Place { due: row.get(0)?, table: HEADS, execution: row.get(1)?, sub: Vec::new() };
        found.push(timed(place, id(row.get(3)?), timer));
    }
    Ok(found)
}

fn runs(conn: &Connection, after: Option<&Place>, until: Millis, count: usize) -> Result<Found, StoreError> {
    let (due, key, sub) = from(after, RUNS);
    let run = <[u8; 8]>::try_from(sub.as_slice()).map_or(i64::MIN, i64::from_be_bytes);
    let mut statement = conn.prepare_cached(RUNS_DUE)?;
    let mut rows = statement.query(params![until.0, due, key, run, ENDED, limit(count)])?;
    let mut found = Found::new();
    while let Some(row) = rows.next()? {
        let run = RunId(row.get::<_, i64>(2)?.cast_unsigned());
        let execution = id(row.get(4)?);
        let timer = decode(&row.get::<_, Vec<u8>>(3)?).and_then(|state: StepRun| {
            let timer = Execution::timer_of(run, &state).map(|(timer, _)| timer);
            timer.ok_or_else(|| StoreError::Undecodable(format!("step-run {run:?} is due but has no timer")))
        });
        let timer = timer.map_err(|error| error.of_execution(execution))?;
        let sub = run.0.to_be_bytes().to_vec();
        let place = Place { due: row.get(0)?, table: RUNS, execution: row.get(1)?, sub };
        found.push(timed(place, execution, timer));
    }
    Ok(found)
}

fn gates(conn: &Connection, after: Option<&Place>, until: Millis, count: usize) -> Result<Found, StoreError> {
    let (due, key, sub) = from(after, GATES);
    let mut statement = conn.prepare_cached(GATES_DUE)?;
    let mut rows = statement.query(params![until.0, due, key, sub, ENDED, limit(count)])?;
    let mut found = Found::new();
    while let Some(row) = rows.next()? {
        let sub: Vec<u8> = row.get(2)?;
        let execution = id(row.get(3)?);
        let (step, token): (StepId, TokenId) = decode(&sub).map_err(|error| error.of_execution(execution))?;
        let place = Place { due: row.get(0)?, table: GATES, execution: row.get(1)?, sub };
        found.push(timed(place, execution, Timer::Gate { step, token }));
    }
    Ok(found)
}

fn timed(place: Place, execution: ExecutionId, timer: Timer) -> (Place, DueTimer) {
    let at = Millis(place.due);
    (place, DueTimer { at, execution, timer })
}
