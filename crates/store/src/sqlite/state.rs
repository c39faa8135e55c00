//! The rows of one execution's state, written and read.

use super::columns::{Columns, read_row};
use super::statements::{execute, query_all, query_first};
use crate::codec::encode;
use crate::commit::{Lease, Position};
use crate::rows::{HeadRow, LiveRun, PartRow, Rows, RunRow};
use crate::store::{StoreError, StoreResult};
use rusqlite::{Connection, params};
use windlass_kernel::{Ctx, RunId};

/// Changes a step-run whose row stays in its class. A lease, a cursor and progress stay with the offer of one fence
/// (`rules::keeps_lease`).
pub(super) fn refresh_run(
    conn: &Connection,
    key: i64,
    run: RunId,
    row: &LiveRun,
    lease: Option<&Lease>,
) -> StoreResult<()> {
    let sql = "UPDATE step_runs SET due = ?5, state = ?6, fence = ?4, \
               session = iif(fence IS ?4, session, NULL), claimed_at = iif(fence IS ?4, claimed_at, NULL), \
               started_at = iif(fence IS ?4, started_at, NULL), cursor = iif(fence IS ?4, cursor, NULL), \
               progress = iif(fence IS ?4, progress, NULL) \
               WHERE class = ?1 AND execution = ?2 AND run = ?3";
    let (class, run) = (row.class as i64, run.0.cast_signed());
    let fence = row.fence.map(|fence| fence.0.cast_signed());
    let changed = execute(conn, sql, params![class, key, run, fence, row.due.map(|due| due.0), row.state])?;
    must_change_one(changed, "a step-run that continues")?;
    let Some(lease) = lease else { return Ok(()) };
    let sql = "UPDATE step_runs SET session = ?4, claimed_at = ?5, started_at = ?6 \
               WHERE class = ?1 AND execution = ?2 AND run = ?3";
    let (session, started_at) = (lease.session.0.cast_signed(), lease.started_at.map(|at| at.0));
    execute(conn, sql, params![class, key, run, session, lease.claimed_at.0, started_at])?;
    Ok(())
}

pub(super) fn write_part(conn: &Connection, key: i64, row: &PartRow) -> StoreResult<()> {
    let Some(value) = &row.value else {
        let sql = "DELETE FROM parts WHERE execution = ?1 AND part = ?2 AND key = ?3";
        let changed = execute(conn, sql, params![key, row.part as i64, row.key])?;
        return must_change_one(changed, "a removed entry of the state");
    };
    let sql = "INSERT INTO parts (execution, part, key, due, value) VALUES (?1, ?2, ?3, ?4, ?5) \
               ON CONFLICT (execution, part, key) DO UPDATE SET due = excluded.due, value = excluded.value";
    execute(conn, sql, params![key, row.part as i64, row.key, row.due.map(|due| due.0), value])?;
    Ok(())
}

/// Checks that a change met the one row it was made for; otherwise the rows do not follow from the journal (K1).
pub(super) fn must_change_one(changed: usize, what: &str) -> StoreResult<()> {
    if changed == 1 {
        return Ok(());
    }
    Err(StoreError::Corrupt(format!("{what} is not in the rows of its execution; run the check (K1)")))
}

pub(super) fn read_rows(conn: &Connection, key: i64) -> StoreResult<Rows> {
    let runs = read_runs(conn, key)?.into_iter();
    let facts = read_facts(conn, key)?;
    Ok(Rows {
        head: read_head(conn, key)?,
        // A context has no row until it is not empty for the first time.
        ctx: Some(read_context(conn, key)?.unwrap_or_else(|| encode(&Ctx::default()))),
        runs: runs.map(|(run, row)| RunRow { run, before: None, after: Some(row) }).collect(),
        parts: read_parts(conn, key)?,
        facts: facts.into_iter().map(|(run, _)| run).collect(),
    })
}

pub(super) fn read_head(conn: &Connection, key: i64) -> StoreResult<HeadRow> {
    let sql = "SELECT version, phase, held, at, due, goes_on, state FROM heads WHERE key = ?1";
    let found = query_first(conn, sql, [key], |row| {
        Ok(read_row![row, HeadRow: version phase held at due goes_on state])
    })?;
    found.ok_or_else(|| StoreError::Undecodable("an execution has no head".to_owned()))
}

pub(super) fn read_context(conn: &Connection, key: i64) -> StoreResult<Option<Vec<u8>>> {
    query_first(conn, "SELECT ctx FROM contexts WHERE key = ?1", [key], |row| Ok(row.get(0)?))
}

pub(super) fn read_runs(conn: &Connection, key: i64) -> StoreResult<Vec<(RunId, LiveRun)>> {
    // The key begins with the class, so each class is one short range.
    let sql =
        "SELECT class, fence, due, state, run FROM step_runs WHERE class IN (0, 1, 2, 3) AND execution = ?1";
    query_all(conn, sql, [key], |row| Ok((row.read(4)?, read_row![row, LiveRun: class fence due state])))
}

pub(super) fn read_parts(conn: &Connection, key: i64) -> StoreResult<Vec<PartRow>> {
    let sql = "SELECT part, key, due, value FROM parts WHERE execution = ?1";
    query_all(conn, sql, [key], |row| Ok(read_row![row, PartRow: part key due value]))
}

pub(super) fn read_facts(conn: &Connection, key: i64) -> StoreResult<Vec<(RunId, Position)>> {
    let sql = "SELECT run, position FROM facts WHERE execution = ?1";
    query_all(conn, sql, [key], |row| Ok((row.read(0)?, Position(row.get(1)?))))
}
