//! Step-runs, gates and held executions that wait for people.

use super::SqliteReader;
use super::columns::{Columns as _, limit};
use super::executions::read_listed;
use super::statements::{execute, find_cursor, find_key, query_all};
use crate::codec::{decode, encode};
use crate::rows::{Class, PartRow};
use crate::store::{ListedExecution, StoreResult};
use crate::tasks::{GateQuery, HeldQuery, StoredGate, StoredTask, TaskQuery, Tasks};
use rusqlite::{Connection, params};
use windlass_kernel::{ExecutionId, Gate, Kind, Millis, RunId, StepRun};

pub(super) const TASKS: &str = "SELECT s.execution, s.run, s.state, s.asked_at, e.net FROM step_runs s \
     CROSS JOIN executions e ON e.key = s.execution \
     WHERE s.tenant = ?1 AND (s.execution, s.run) > (?2, ?3) AND s.execution <= ?4 ORDER BY s.execution, s.run LIMIT ?5";

pub(super) const GATES: &str = "SELECT p.execution, p.key, p.value, p.asked_at, e.net FROM parts p \
     CROSS JOIN executions e ON e.key = p.execution \
     WHERE p.tenant = ?1 AND (p.execution, p.key) > (?2, ?3) AND p.execution <= ?4 ORDER BY p.execution, p.key LIMIT ?5";

pub(super) const HELD: &str = "SELECT key FROM heads \
     WHERE tenant = ?1 AND held = 1 AND phase < 10 AND key > ?2 AND key <= ?3 ORDER BY key LIMIT ?4";

impl Tasks for SqliteReader {
    fn tasks(&mut self, query: &TaskQuery) -> StoreResult<Vec<StoredTask>> {
        self.at_once(|conn| {
            let after = match query.after {
                Some((id, run)) => (find_cursor(conn, id)?, run.0.cast_signed()),
                None => (i64::MIN, i64::MIN),
            };
            let Some((first, last)) = find_keys(conn, query.execution)? else { return Ok(Vec::new()) };
            let (key, run) = after.max((first, i64::MIN));
            query_all(conn, TASKS, params![query.tenant.0, key, run, last, limit(query.limit)], |row| {
                let execution = read_listed(conn, row.get(0)?)?;
                let id = execution.execution;
                let state: Vec<u8> = row.get(2)?;
                let state = decode(&state).map_err(|error| error.of_execution(id))?;
                let (run, asked_at, net) = (row.read(1)?, row.read(3)?, row.read(4)?);
                Ok(StoredTask { execution, net, run, state, asked_at })
            })
        })
    }

    fn gates(&mut self, query: &GateQuery) -> StoreResult<Vec<StoredGate>> {
        self.at_once(|conn| {
            let after = match query.after {
                Some((id, step, token)) => (find_cursor(conn, id)?, encode(&(step, token))),
                None => (i64::MIN, Vec::new()),
            };
            let Some((first, last)) = find_keys(conn, query.execution)? else { return Ok(Vec::new()) };
            let (key, gate) = after.max((first, Vec::new()));
            query_all(conn, GATES, params![query.tenant.0, key, gate, last, limit(query.limit)], |row| {
                let execution = read_listed(conn, row.get(0)?)?;
                let id = execution.execution;
                let (place, gate): (Vec<u8>, Vec<u8>) = (row.get(1)?, row.get(2)?);
                let (step, token) = decode(&place).map_err(|error| error.of_execution(id))?;
                let gate: Gate = decode(&gate).map_err(|error| error.of_execution(id))?;
                let (asked_at, net) = (row.read(3)?, row.read(4)?);
                Ok(StoredGate { execution, net, step, token, deadline: gate.deadline, asked_at })
            })
        })
    }

    fn held(&mut self, query: &HeldQuery) -> StoreResult<Vec<ListedExecution>> {
        self.at_once(|conn| {
            let after = query.after.map_or(Ok(i64::MIN), |id| find_cursor(conn, id))?;
            let Some((first, last)) = find_keys(conn, query.execution)? else { return Ok(Vec::new()) };
            let after = after.max(first.saturating_sub(1));
            query_all(conn, HELD, params![query.tenant.0, after, last, limit(query.limit)], |row| {
                read_listed(conn, row.get(0)?)
            })
        })
    }
}

/// Returns the first and the last number of the executions that a list is about; None if there is no such execution.
fn find_keys(conn: &Connection, execution: Option<ExecutionId>) -> StoreResult<Option<(i64, i64)>> {
    match execution {
        None => Ok(Some((i64::MIN, i64::MAX))),
        Some(id) => Ok(find_key(conn, id)?.map(|key| (key, key))),
    }
}

/// Adds the columns that lists of gates need to the row of a token that begins to wait at one.
pub(super) fn note_gate(conn: &Connection, key: i64, gate: &PartRow, at: Millis) -> StoreResult<()> {
    let sql = "UPDATE parts SET asked_at = ?4, tenant = (SELECT tenant FROM executions WHERE key = ?1) \
               WHERE execution = ?1 AND part = ?2 AND key = ?3 AND tenant IS NULL";
    execute(conn, sql, params![key, gate.part as i64, gate.key, at.0])?;
    Ok(())
}

/// Adds the columns that lists of tasks need to the row of a step-run that begins to wait for a person.
pub(super) fn note_asked(conn: &Connection, key: i64, run: RunId, at: Millis) -> StoreResult<()> {
    let sql = "UPDATE step_runs SET asked_at = ?4, tenant = (SELECT tenant FROM executions WHERE key = ?2) \
               WHERE class = ?1 AND execution = ?2 AND run = ?3";
    execute(conn, sql, params![Class::Asked as i64, key, run.0.cast_signed(), at.0])?;
    Ok(())
}

/// Moves the rows of step-runs that wait for people to their class. Earlier releases wrote them among all others.
pub(super) fn classify_asked(conn: &Connection) -> StoreResult<()> {
    let rows = query_all(conn, "SELECT execution, run, state FROM step_runs WHERE class = 1", [], |row| {
        let state: Vec<u8> = row.get(2)?;
        let is_asked = decode::<StepRun>(&state).is_ok_and(|run| run.state.kind() == Kind::Manual);
        Ok(is_asked.then_some((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)))
    })?;
    let sql = "UPDATE step_runs SET class = 2, tenant = (SELECT tenant FROM executions WHERE key = ?1), \
               asked_at = (SELECT at FROM heads WHERE key = ?1) \
               WHERE class = 1 AND execution = ?1 AND run = ?2";
    rows.into_iter().flatten().try_for_each(|(key, run)| execute(conn, sql, [key, run]).map(drop))
}
