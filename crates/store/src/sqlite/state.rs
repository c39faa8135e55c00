//! The rows of one execution's state.

use super::columns::{class, part, phase};
use super::lists::all;
use crate::codec::encode;
use crate::rows::{HeadRow, LiveRun, PartRow, Rows, RunRow};
use crate::store::StoreError;
use rusqlite::{Connection, OptionalExtension};
use windlass_kernel::{Ctx, Fence, Millis, RunId};

pub(super) fn rows(conn: &Connection, key: i64) -> Result<Rows, StoreError> {
    let runs = runs(conn, key)?.into_iter();
    let facts = facts(conn, key)?;
    Ok(Rows {
        head: head(conn, key)?,
        // An empty context has no row until it was something else once.
        ctx: Some(ctx(conn, key)?.unwrap_or_else(|| encode(&Ctx::default()))),
        runs: runs.map(|(run, row)| RunRow { run, before: None, after: Some(row) }).collect(),
        parts: parts(conn, key)?,
        facts: facts.into_iter().map(|(run, _)| run).collect(),
    })
}

pub(super) fn head(conn: &Connection, key: i64) -> Result<HeadRow, StoreError> {
    let sql = "SELECT version, phase, held, at, due, goes_on, state FROM heads WHERE key = ?1";
    let found = all(conn, sql, [key], |row| {
        Ok(HeadRow {
            version: row.get::<_, i64>(0)?.cast_unsigned(),
            phase: phase(row.get(1)?)?,
            held: row.get(2)?,
            at: Millis(row.get(3)?),
            due: row.get::<_, Option<i64>>(4)?.map(Millis),
            goes_on: row.get(5)?,
            state: row.get(6)?,
        })
    })?;
    found.into_iter().next().ok_or_else(|| StoreError::Undecodable("an execution has no head".to_owned()))
}

pub(super) fn ctx(conn: &Connection, key: i64) -> Result<Option<Vec<u8>>, StoreError> {
    let mut statement = conn.prepare_cached("SELECT ctx FROM contexts WHERE key = ?1")?;
    Ok(statement.query_row([key], |row| row.get(0)).optional()?)
}

pub(super) fn runs(conn: &Connection, key: i64) -> Result<Vec<(RunId, LiveRun)>, StoreError> {
    // The key begins with the class, so each class is one short range.
    let sql = "SELECT class, run, fence, due, state FROM step_runs WHERE class IN (0, 1) AND execution = ?1";
    all(conn, sql, [key], |row| {
        let live = LiveRun {
            class: class(row.get(0)?)?,
            fence: row.get::<_, Option<i64>>(2)?.map(|fence| Fence(fence.cast_unsigned())),
            due: row.get::<_, Option<i64>>(3)?.map(Millis),
            state: row.get(4)?,
        };
        Ok((RunId(row.get::<_, i64>(1)?.cast_unsigned()), live))
    })
}

pub(super) fn parts(conn: &Connection, key: i64) -> Result<Vec<PartRow>, StoreError> {
    let sql = "SELECT part, key, due, value FROM parts WHERE execution = ?1";
    all(conn, sql, [key], |row| {
        Ok(PartRow {
            part: part(row.get(0)?)?,
            key: row.get(1)?,
            due: row.get::<_, Option<i64>>(2)?.map(Millis),
            value: Some(row.get(3)?),
        })
    })
}

pub(super) fn facts(conn: &Connection, key: i64) -> Result<Vec<(RunId, i64)>, StoreError> {
    let sql = "SELECT run, position FROM facts WHERE execution = ?1";
    all(conn, sql, [key], |row| Ok((RunId(row.get::<_, i64>(0)?.cast_unsigned()), row.get(1)?)))
}
