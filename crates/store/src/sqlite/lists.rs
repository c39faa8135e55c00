//! Lists with a bound, each read along an index from a place on.

use super::columns::{OFFERED, id, id_bytes, limit, parsed, priority, tenant};
use crate::commit::{Lease, MailId, Position, Session, Stop};
use crate::store::{Offer, StoreError, StoredLog, StoredMail};
use rusqlite::{Connection, OptionalExtension, Row, params};
use std::sync::Arc;
use windlass_kernel::{ExecutionId, Fence, Millis, RunId};

/// Runs a query and reads every row of it.
pub(super) fn all<T>(
    conn: &Connection,
    sql: &str,
    params: impl rusqlite::Params,
    read: impl Fn(&Row<'_>) -> Result<T, StoreError>,
) -> Result<Vec<T>, StoreError> {
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query(params)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(read(row)?);
    }
    Ok(found)
}

pub(super) fn key_of(conn: &Connection, id: ExecutionId) -> Result<Option<i64>, StoreError> {
    let mut statement = conn.prepare_cached("SELECT key FROM executions WHERE id = ?1")?;
    Ok(statement.query_row([id_bytes(id)], |row| row.get(0)).optional()?)
}

/// The number of an execution that a place in a list names.
pub(super) fn place(conn: &Connection, id: ExecutionId) -> Result<i64, StoreError> {
    key_of(conn, id)?.ok_or_else(|| {
        StoreError::Io(format!("a list cannot go on after execution {id}: it is not in the store"))
    })
}

fn id_of(conn: &Connection, key: i64) -> Result<ExecutionId, StoreError> {
    let mut statement = conn.prepare_cached("SELECT id FROM executions WHERE key = ?1")?;
    Ok(id(statement.query_row([key], |row| row.get(0))?))
}

pub(super) const OFFERS: &str = "SELECT s.run, s.fence, s.session, s.claimed_at, s.started_at, s.cursor, s.progress, e.id, \
     e.tenant, e.priority FROM step_runs s CROSS JOIN executions e ON e.key = s.execution \
     WHERE s.class = ?1 AND (s.execution, s.run) > (?2, ?3) \
     AND NOT EXISTS (SELECT 1 FROM quarantine q WHERE q.execution = e.id AND q.quarantined_at IS NOT NULL) \
     ORDER BY s.execution, s.run LIMIT ?4";

pub(super) fn offers(
    conn: &Connection,
    after: Option<(ExecutionId, RunId)>,
    count: usize,
) -> Result<Vec<Offer>, StoreError> {
    let (key, run) = match after {
        Some((id, run)) => (place(conn, id)?, run.0.cast_signed()),
        None => (i64::MIN, i64::MIN),
    };
    all(conn, OFFERS, params![OFFERED, key, run, limit(count)], offer)
}

pub(super) const OFFERS_OF: &str = "SELECT s.run, s.fence, s.session, s.claimed_at, s.started_at, s.cursor, s.progress, e.id, \
     e.tenant, e.priority FROM step_runs s CROSS JOIN executions e ON e.key = s.execution \
     WHERE s.class = ?1 AND s.execution = ?2 AND s.run > ?3 ORDER BY s.run LIMIT ?4";

pub(super) fn offers_of(
    conn: &Connection,
    execution: ExecutionId,
    after: RunId,
    count: usize,
) -> Result<Vec<Offer>, StoreError> {
    let Some(key) = key_of(conn, execution)? else { return Ok(Vec::new()) };
    all(conn, OFFERS_OF, params![OFFERED, key, after.0.cast_signed(), limit(count)], offer)
}

fn offer(row: &Row<'_>) -> Result<Offer, StoreError> {
    let execution = id(row.get(7)?);
    offer_of(execution, row).map_err(|error| error.of_execution(execution))
}

fn offer_of(execution: ExecutionId, row: &Row<'_>) -> Result<Offer, StoreError> {
    let run = RunId(row.get::<_, i64>(0)?.cast_unsigned());
    let fence = Fence(row.get::<_, i64>(1)?.cast_unsigned());
    let session: Option<i64> = row.get(2)?;
    let lease = match session {
        Some(session) => Some(Lease {
            execution,
            run,
            fence,
            session: Session(session.cast_unsigned()),
            claimed_at: Millis(row.get(3)?),
            started_at: row.get::<_, Option<i64>>(4)?.map(Millis),
        }),
        None => None,
    };
    let cursor: Option<String> = row.get(5)?;
    let cursor = cursor.map(|text| parsed(&text, "a cursor").map(Arc::new)).transpose()?;
    let progress: Option<String> = row.get(6)?;
    let progress = progress.map(|text| parsed(&text, "the progress of an offer")).transpose()?;
    let (tenant, priority) = (tenant(&row.get::<_, String>(8)?), priority(row.get(9)?)?);
    Ok(Offer { execution, run, fence, lease, cursor, progress, tenant, priority })
}

pub(super) const UNFINISHED: &str = "SELECT h.key FROM heads h CROSS JOIN executions e ON e.key = h.key \
     WHERE h.goes_on = 1 \
     AND NOT EXISTS (SELECT 1 FROM quarantine q WHERE q.execution = e.id AND q.quarantined_at IS NOT NULL) \
     ORDER BY h.key LIMIT ?1";

pub(super) fn unfinished(conn: &Connection, count: usize) -> Result<Vec<ExecutionId>, StoreError> {
    let keys = all(conn, UNFINISHED, [limit(count)], |row| Ok(row.get(0)?))?;
    keys.into_iter().map(|key| id_of(conn, key)).collect()
}

pub(super) const STOPS: &str = "SELECT execution, run, fence, session FROM stops \
     WHERE (execution, run, fence) > (?1, ?2, ?3) ORDER BY execution, run, fence LIMIT ?4";

pub(super) fn stops(conn: &Connection, after: Option<&Stop>, count: usize) -> Result<Vec<Stop>, StoreError> {
    let (key, run, fence) = match after {
        Some(stop) => (place(conn, stop.execution)?, stop.run.0.cast_signed(), stop.fence.0.cast_signed()),
        None => (i64::MIN, i64::MIN, i64::MIN),
    };
    all(conn, STOPS, params![key, run, fence, limit(count)], |row| {
        Ok(Stop {
            execution: id_of(conn, row.get(0)?)?,
            run: RunId(row.get::<_, i64>(1)?.cast_unsigned()),
            fence: Fence(row.get::<_, i64>(2)?.cast_unsigned()),
            session: Session(row.get::<_, i64>(3)?.cast_unsigned()),
        })
    })
}

pub(super) const INBOX: &str = "SELECT seq, target, letter, wants_answer FROM inbox \
     WHERE seq > ?1 AND settled = 0 \
     AND NOT EXISTS (SELECT 1 FROM quarantine q WHERE q.execution = target AND q.quarantined_at IS NOT NULL) \
     ORDER BY seq LIMIT ?2";

pub(super) fn inbox(
    conn: &Connection,
    after: Option<MailId>,
    count: usize,
) -> Result<Vec<StoredMail>, StoreError> {
    let after = after.map_or(i64::MIN, |mail| mail.0);
    all(conn, INBOX, params![after, limit(count)], |row| {
        let to = id(row.get(1)?);
        let letter = parsed(&row.get::<_, String>(2)?, "mail");
        let letter = letter.map_err(|error| error.of_execution(to))?;
        Ok(StoredMail { id: MailId(row.get(0)?), to, letter, answered: row.get(3)? })
    })
}

pub(super) const LOGS: &str = "SELECT position, run, step, attempt, lines FROM logs \
     WHERE execution = ?1 AND position > ?2 ORDER BY position LIMIT ?3";

pub(super) fn logs(
    conn: &Connection,
    execution: ExecutionId,
    after: Position,
    count: usize,
) -> Result<Vec<StoredLog>, StoreError> {
    let Some(key) = key_of(conn, execution)? else { return Ok(Vec::new()) };
    all(conn, LOGS, params![key, after.0, limit(count)], |row| {
        Ok(StoredLog {
            position: Position(row.get(0)?),
            run: RunId(row.get::<_, i64>(1)?.cast_unsigned()),
            step: row.get(2)?,
            attempt: row.get(3)?,
            lines: row.get(4)?,
        })
    })
}
