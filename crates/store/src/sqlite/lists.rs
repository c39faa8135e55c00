//! Lists with a bound, each read along an index from a place on.

use super::columns::{ENDED, OFFERED, digest, id, id_bytes, limit, parsed, phase, phase_number};
use crate::commit::{DefinitionId, Lease, MailId, Position, Session, Stop};
use crate::store::{Listed, Offer, Query, Status, StoreError, StoredDefinition, StoredLog, StoredMail};
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

pub(super) const OFFERS: &str = "SELECT execution, run, fence, session, claimed_at, started_at, cursor FROM step_runs \
     WHERE class = ?1 AND (execution, run) > (?2, ?3) ORDER BY execution, run LIMIT ?4";

pub(super) fn offers(
    conn: &Connection,
    after: Option<(ExecutionId, RunId)>,
    count: usize,
) -> Result<Vec<Offer>, StoreError> {
    let (key, run) = match after {
        Some((id, run)) => (place(conn, id)?, run.0.cast_signed()),
        None => (i64::MIN, i64::MIN),
    };
    all(conn, OFFERS, params![OFFERED, key, run, limit(count)], |row| offer(conn, row))
}

fn offer(conn: &Connection, row: &Row<'_>) -> Result<Offer, StoreError> {
    let execution = id_of(conn, row.get(0)?)?;
    let run = RunId(row.get::<_, i64>(1)?.cast_unsigned());
    let fence = Fence(row.get::<_, i64>(2)?.cast_unsigned());
    let session: Option<i64> = row.get(3)?;
    let lease = match session {
        Some(session) => Some(Lease {
            execution,
            run,
            fence,
            session: Session(session.cast_unsigned()),
            claimed_at: Millis(row.get(4)?),
            started_at: row.get::<_, Option<i64>>(5)?.map(Millis),
        }),
        None => None,
    };
    let cursor: Option<String> = row.get(6)?;
    let cursor = cursor.map(|text| parsed(&text, "a cursor").map(Arc::new)).transpose()?;
    Ok(Offer { execution, run, fence, lease, cursor })
}

pub(super) const UNFINISHED: &str = "SELECT key FROM heads WHERE goes_on = 1 ORDER BY key LIMIT ?1";

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
     WHERE seq > ?1 AND settled = 0 ORDER BY seq LIMIT ?2";

pub(super) fn inbox(
    conn: &Connection,
    after: Option<MailId>,
    count: usize,
) -> Result<Vec<StoredMail>, StoreError> {
    let after = after.map_or(i64::MIN, |mail| mail.0);
    all(conn, INBOX, params![after, limit(count)], |row| {
        Ok(StoredMail {
            id: MailId(row.get(0)?),
            to: id(row.get(1)?),
            letter: parsed(&row.get::<_, String>(2)?, "mail")?,
            answered: row.get(3)?,
        })
    })
}

pub(super) const NEWEST: &str = "SELECT key FROM heads WHERE key < ?1 ORDER BY key DESC LIMIT ?2";
pub(super) const NEWEST_OF_PHASE: &str =
    "SELECT key FROM heads WHERE phase = ?3 AND key < ?1 ORDER BY key DESC LIMIT ?2";

/// The newest of each phase that is asked for, and of those the newest: no phase is read further than it must be.
pub(super) fn list(conn: &Connection, query: &Query) -> Result<Vec<Listed>, StoreError> {
    let before = query.before.map_or(Ok(i64::MAX), |id| place(conn, id))?;
    let bound = limit(query.limit);
    let read = |row: &Row<'_>| -> Result<i64, StoreError> { Ok(row.get(0)?) };
    let mut keys = Vec::new();
    match query.status {
        None => keys = all(conn, NEWEST, params![before, bound], read)?,
        Some(Status::Phase(phase)) => {
            keys = all(conn, NEWEST_OF_PHASE, params![before, bound, phase_number(phase)], read)?;
        }
        Some(Status::Open) => {
            for phase in 0..ENDED {
                keys.extend(all(conn, NEWEST_OF_PHASE, params![before, bound, phase], read)?);
            }
        }
    }
    keys.sort_unstable_by(|left, right| right.cmp(left));
    keys.truncate(query.limit);
    keys.into_iter().map(|key| listed(conn, key)).collect()
}

fn listed(conn: &Connection, key: i64) -> Result<Listed, StoreError> {
    let mut statement = conn.prepare_cached(
        "SELECT e.id, e.definition, d.name, d.version, d.dialect, e.trigger, h.held, e.created_at, h.at, \
         h.phase, e.parent FROM heads h JOIN executions e ON e.key = h.key \
         LEFT JOIN definitions d ON d.id = e.definition WHERE h.key = ?1",
    )?;
    let mut rows = statement.query([key])?;
    let row = rows.next()?.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
    Ok(Listed {
        execution: id(row.get(0)?),
        definition: row.get::<_, Option<i64>>(1)?.map(DefinitionId),
        name: row.get(2)?,
        version: row.get(3)?,
        dialect: row.get(4)?,
        trigger: row.get(5)?,
        held: row.get(6)?,
        created_at: Millis(row.get(7)?),
        at: Millis(row.get(8)?),
        phase: phase(row.get(9)?)?,
        parent: row.get::<_, Option<_>>(10)?.map(id),
    })
}

pub(super) fn definition(
    conn: &Connection,
    which: &str,
    values: impl rusqlite::Params,
) -> Result<Option<StoredDefinition>, StoreError> {
    let sql = format!(
        "SELECT id, name, version, dialect, source, workload, net FROM definitions WHERE {which} LIMIT 1"
    );
    let found = all(conn, &sql, values, |row| {
        Ok(StoredDefinition {
            id: DefinitionId(row.get(0)?),
            name: row.get(1)?,
            version: row.get(2)?,
            dialect: row.get(3)?,
            source: row.get(4)?,
            workload: parsed(&row.get::<_, String>(5)?, "the workload of a definition")?,
            net: digest(row.get(6)?),
        })
    })?;
    Ok(found.into_iter().next())
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
