//! Lists with a bound, each read along an index from a place on: offers, unfinished executions, stops, logs.

use super::columns::{Columns, OFFERED, limit, read_row};
use super::quarantine::is_not_quarantined;
use super::statements::{find_cursor, find_key, query_all, query_first};
use crate::commit::{Lease, Position, Stop};
use crate::store::{Offer, StoreResult, StoredLog};
use rusqlite::{Connection, Row, params};
use std::sync::Arc;
use windlass_kernel::{ExecutionId, Fence, RunId};

fn find_id(conn: &Connection, key: i64) -> StoreResult<ExecutionId> {
    let found = query_first(conn, "SELECT id FROM executions WHERE key = ?1", [key], |row| row.read(0))?;
    found.ok_or_else(|| rusqlite::Error::QueryReturnedNoRows.into())
}

pub(super) const OFFERS: &str = concat!(
    "SELECT s.run, s.fence, s.session, s.claimed_at, s.started_at, s.cursor, s.progress, e.id, \
     e.tenant, e.priority FROM step_runs s CROSS JOIN executions e ON e.key = s.execution \
     WHERE s.class = ?1 AND (s.execution, s.run) > (?2, ?3) AND ",
    is_not_quarantined!("e.id"),
    " ORDER BY s.execution, s.run LIMIT ?4"
);

pub(super) fn offers(
    conn: &Connection,
    after: Option<(ExecutionId, RunId)>,
    count: usize,
) -> StoreResult<Vec<Offer>> {
    let (key, run) = match after {
        Some((id, run)) => (find_cursor(conn, id)?, run.0.cast_signed()),
        None => (i64::MIN, i64::MIN),
    };
    query_all(conn, OFFERS, params![OFFERED, key, run, limit(count)], offer)
}

pub(super) const OFFERS_OF: &str = "SELECT s.run, s.fence, s.session, s.claimed_at, s.started_at, s.cursor, s.progress, e.id, \
     e.tenant, e.priority FROM step_runs s CROSS JOIN executions e ON e.key = s.execution \
     WHERE s.class = ?1 AND s.execution = ?2 AND s.run > ?3 ORDER BY s.run LIMIT ?4";

pub(super) fn offers_of(
    conn: &Connection,
    execution: ExecutionId,
    after: RunId,
    count: usize,
) -> StoreResult<Vec<Offer>> {
    let Some(key) = find_key(conn, execution)? else { return Ok(Vec::new()) };
    query_all(conn, OFFERS_OF, params![OFFERED, key, after.0.cast_signed(), limit(count)], offer)
}

fn offer(row: &Row<'_>) -> StoreResult<Offer> {
    let execution = row.read(7)?;
    read_offer(execution, row).map_err(|error| error.of_execution(execution))
}

fn read_offer(execution: ExecutionId, row: &Row<'_>) -> StoreResult<Offer> {
    let (run, fence): (RunId, Fence) = (row.read(0)?, row.read(1)?);
    let lease = match row.read(2)? {
        Some(session) => {
            let (claimed_at, started_at) = (row.read(3)?, row.read(4)?);
            Some(Lease { execution, run, fence, session, claimed_at, started_at })
        }
        None => None,
    };
    let cursor = row.optional_json(5, "a cursor")?.map(Arc::new);
    let progress = row.optional_json(6, "the progress of an offer")?;
    let (tenant, priority) = (row.read(8)?, row.read(9)?);
    Ok(Offer { execution, run, fence, lease, cursor, progress, tenant, priority })
}

pub(super) const UNFINISHED: &str = concat!(
    "SELECT h.key FROM heads h CROSS JOIN executions e ON e.key = h.key \
     WHERE h.goes_on = 1 AND ",
    is_not_quarantined!("e.id"),
    " ORDER BY h.key LIMIT ?1"
);

pub(super) fn unfinished(conn: &Connection, count: usize) -> StoreResult<Vec<ExecutionId>> {
    let keys = query_all(conn, UNFINISHED, [limit(count)], |row| Ok(row.get(0)?))?;
    keys.into_iter().map(|key| find_id(conn, key)).collect()
}

pub(super) const STOPS: &str = "SELECT execution, run, fence, session FROM stops \
     WHERE (execution, run, fence) > (?1, ?2, ?3) ORDER BY execution, run, fence LIMIT ?4";

pub(super) fn stops(conn: &Connection, after: Option<&Stop>, count: usize) -> StoreResult<Vec<Stop>> {
    let (key, run, fence) = match after {
        Some(stop) => {
            (find_cursor(conn, stop.execution)?, stop.run.0.cast_signed(), stop.fence.0.cast_signed())
        }
        None => (i64::MIN, i64::MIN, i64::MIN),
    };
    query_all(conn, STOPS, params![key, run, fence, limit(count)], |row| {
        Ok(Stop {
            execution: find_id(conn, row.get(0)?)?,
            run: row.read(1)?,
            fence: row.read(2)?,
            session: row.read(3)?,
        })
    })
}

pub(super) const LOGS: &str = "SELECT position, run, step, attempt, lines FROM logs \
     WHERE execution = ?1 AND position > ?2 ORDER BY position LIMIT ?3";

pub(super) fn logs(
    conn: &Connection,
    execution: ExecutionId,
    after: Position,
    count: usize,
) -> StoreResult<Vec<StoredLog>> {
    let Some(key) = find_key(conn, execution)? else { return Ok(Vec::new()) };
    query_all(conn, LOGS, params![key, after.0, limit(count)], |row| {
        Ok(read_row![row, StoredLog: position run step attempt lines])
    })
}

pub(super) const LOGS_BEFORE: &str = "SELECT position, run, step, attempt, lines FROM logs \
     WHERE execution = ?1 AND position < ?2 ORDER BY position DESC LIMIT ?3";

pub(super) fn logs_before(
    conn: &Connection,
    execution: ExecutionId,
    before: Position,
    count: usize,
) -> StoreResult<Vec<StoredLog>> {
    let Some(key) = find_key(conn, execution)? else { return Ok(Vec::new()) };
    query_all(conn, LOGS_BEFORE, params![key, before.0, limit(count)], |row| {
        Ok(read_row![row, StoredLog: position run step attempt lines])
    })
}

pub(super) const RUN_LOGS: &str = "SELECT position, run, step, attempt, lines FROM logs \
     WHERE execution = ?1 AND run = ?2 AND position > ?3 ORDER BY position LIMIT ?4";

pub(super) fn run_logs(
    conn: &Connection,
    execution: ExecutionId,
    run: RunId,
    after: Position,
    count: usize,
) -> StoreResult<Vec<StoredLog>> {
    let Some(key) = find_key(conn, execution)? else { return Ok(Vec::new()) };
    query_all(conn, RUN_LOGS, params![key, run.0.cast_signed(), after.0, limit(count)], |row| {
        Ok(read_row![row, StoredLog: position run step attempt lines])
    })
}
