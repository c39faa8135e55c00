//! Step-runs that wait for people.

use super::SqliteReader;
use super::columns::{Columns as _, limit};
use super::executions::read_listed;
use super::statements::{execute, find_cursor, find_key, query_all};
use crate::codec::decode;
use crate::rows::Class;
use crate::store::StoreResult;
use crate::tasks::{StoredTask, TaskQuery, Tasks};
use rusqlite::{Connection, params};
use windlass_kernel::{Kind, Millis, RunId, StepRun};

pub(super) const TASKS: &str = "SELECT s.execution, s.run, s.state, s.asked_at, e.net FROM step_runs s \
     CROSS JOIN executions e ON e.key = s.execution \
     WHERE s.tenant = ?1 AND (s.execution, s.run) > (?2, ?3) AND s.execution <= ?4 ORDER BY s.execution, s.run LIMIT ?5";

impl Tasks for SqliteReader {
    fn tasks(&mut self, query: &TaskQuery) -> StoreResult<Vec<StoredTask>> {
        self.at_once(|conn| {
            let after = match query.after {
                Some((id, run)) => (find_cursor(conn, id)?, run.0.cast_signed()),
                None => (i64::MIN, i64::MIN),
            };
            let (first, last) = match query.execution.map(|id| find_key(conn, id)).transpose()? {
                Some(None) => return Ok(Vec::new()),
                Some(Some(key)) => (key, key),
                None => (i64::MIN, i64::MAX),
            };
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
