//! Copies of artifacts in an object store, and executions that wait for them.

use super::SqliteReader;
use super::chain::Chain;
use super::columns::{Column, Columns, OFFERED, limit, phase_number, read_row};
use super::quarantine::is_not_quarantined;
use super::statements::{execute, find_cursor, query_all, query_first};
use crate::artifacts::find_keys;
use crate::commit::Applied;
use crate::objects::{
    AwaitedUploads, ObjectLoad, ObjectState, ObjectWrite, Objects, PutArtifact, StoredObject,
};
use crate::origin::Tenant;
use crate::rows::WHOLE;
use crate::rules::{ObjectRow, change_object, end_claim, judge_place, move_object, put_object};
use crate::store::{StoreError, StoreResult};
use rusqlite::{Connection, Row, params};
use std::collections::BTreeSet;
use windlass_kernel::{ExecutionId, Millis, Phase};

impl Column for ObjectState {
    fn read(row: &Row<'_>, column: usize) -> StoreResult<Self> {
        let name = row.text(column)?;
        ObjectState::of(name)
            .ok_or_else(|| StoreError::Corrupt(format!("`{name}` is not the state of an object")))
    }
}

pub(super) fn write(conn: &Connection, write: &ObjectWrite) -> StoreResult<Applied> {
    match write {
        ObjectWrite::Put(artifact) => put(conn, artifact),
        ObjectWrite::Change { tenant, key, change, at } => {
            let changed = find(conn, tenant, key)?.and_then(|known| change_object(&known, change, *at));
            let Some(row) = changed else { return Ok(Applied::Duplicate) };
            write_changed(conn, (tenant, key), &row)?;
            Ok(Applied::Done)
        }
        ObjectWrite::Place { place, at } => change_place(conn, place, *at),
        ObjectWrite::EndClaims { at } => end_claims(conn, *at),
    }
}

fn end_claims(conn: &Connection, at: Millis) -> StoreResult<Applied> {
    let claimed = query_all(conn, &format!("{OBJECT} WHERE claimed = 1"), [], read_object)?;
    let ended: Vec<StoredObject> = claimed.iter().filter_map(|known| end_claim(known, at)).collect();
    ended.iter().try_for_each(|row| write_row(conn, row))?;
    Ok(if ended.is_empty() { Applied::Duplicate } else { Applied::Done })
}

/// Objects that are read and written at a time when the object store is replaced.
const MOVED_AT_ONCE: usize = 1_000;

fn change_place(conn: &Connection, place: &str, at: Millis) -> StoreResult<Applied> {
    let verdict = judge_place(find_place(conn)?.as_deref(), place);
    if verdict != Applied::Done {
        return Ok(verdict);
    }
    execute(conn, "INSERT OR REPLACE INTO object_place (one, place) VALUES (1, ?1)", [place])?;
    let mut page = list(conn, None, MOVED_AT_ONCE)?;
    while let Some(last) = page.last() {
        for known in &page {
            write_changed(conn, (&known.tenant, &known.key), &move_object(known, at))?;
        }
        page = list(conn, Some((&last.tenant, last.key.as_str())), MOVED_AT_ONCE)?;
    }
    Ok(Applied::Done)
}

fn find_place(conn: &Connection) -> StoreResult<Option<String>> {
    query_first(conn, "SELECT place FROM object_place", [], |row| Ok(row.get(0)?))
}

/// Records that an artifact was put into the data folder; `Duplicate` when that changes nothing.
pub(super) fn put(conn: &Connection, artifact: &PutArtifact) -> StoreResult<Applied> {
    let known = find(conn, &artifact.tenant, &artifact.key)?;
    let row = put_object(known.as_ref(), artifact);
    if known.as_ref() == Some(&row) {
        return Ok(Applied::Duplicate);
    }
    write_row(conn, &row)?;
    Ok(Applied::Done)
}

fn write_changed(conn: &Connection, (of, key): (&Tenant, &str), row: &ObjectRow) -> StoreResult<()> {
    match row {
        ObjectRow::Keep(row) => write_row(conn, row),
        ObjectRow::Remove => {
            let sql = "DELETE FROM objects WHERE tenant = ?1 AND key = ?2";
            execute(conn, sql, params![of.0, key]).map(drop)
        }
    }
}

fn write_row(conn: &Connection, object: &StoredObject) -> StoreResult<()> {
    let sql = "INSERT OR REPLACE INTO objects (tenant, key, bytes, state, attempts, claimed, due, error, put_at) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
    let StoredObject { tenant, key, bytes, state, attempts, claimed, due, error, put_at } = object;
    let (bytes, due) = (bytes.cast_signed(), due.map(|due| due.0));
    let row = params![tenant.0, key, bytes, state.name(), attempts, claimed, due, error, put_at.0];
    execute(conn, sql, row)?;
    Ok(())
}

const OBJECT: &str = "SELECT tenant, key, bytes, state, attempts, claimed, due, error, put_at FROM objects";
/// Query for the next tenant with due objects.
pub(super) const NEXT_TENANT: &str = "SELECT min(tenant) FROM objects WHERE tenant > ?1 AND due IS NOT NULL";
pub(super) const DUE: &str = "SELECT tenant, key, bytes, state, attempts, claimed, due, error, put_at FROM objects \
     WHERE tenant = ?1 AND due IS NOT NULL ORDER BY due LIMIT ?2";
/// Query for executions that wait for their uploads: only those that one worker takes as a whole, whose row exists
/// until the end.
pub(super) const AWAITED: &str = concat!(
    "SELECT e.id, e.tenant FROM heads h CROSS JOIN executions e ON e.key = h.key \
     WHERE h.phase = ?1 AND h.key > ?2 \
     AND EXISTS (SELECT 1 FROM step_runs s WHERE s.class = ?3 AND s.execution = h.key AND s.run = ?4) AND ",
    is_not_quarantined!("e.id"),
    " ORDER BY h.key LIMIT ?5"
);

fn read_object(row: &Row<'_>) -> StoreResult<StoredObject> {
    Ok(read_row![row, StoredObject: tenant key bytes state attempts claimed due error put_at])
}

fn find(conn: &Connection, of: &Tenant, key: &str) -> StoreResult<Option<StoredObject>> {
    query_first(conn, &format!("{OBJECT} WHERE tenant = ?1 AND key = ?2"), params![of.0, key], read_object)
}

/// Returns objects in order, after a given one.
fn list(conn: &Connection, after: Option<(&Tenant, &str)>, count: usize) -> StoreResult<Vec<StoredObject>> {
    let sql = format!("{OBJECT} WHERE (tenant, key) > (?1, ?2) ORDER BY tenant, key LIMIT ?3");
    let (tenant, key) = after.map_or(("", ""), |(tenant, key)| (tenant.0.as_ref(), key));
    query_all(conn, &sql, params![tenant, key, limit(count)], read_object)
}

impl Objects for SqliteReader {
    fn object_place(&mut self) -> StoreResult<Option<String>> {
        find_place(&self.conn)
    }

    fn object(&mut self, tenant: &Tenant, key: &str) -> StoreResult<Option<StoredObject>> {
        find(&self.conn, tenant, key)
    }

    fn objects(&mut self, after: Option<(&Tenant, &str)>, count: usize) -> StoreResult<Vec<StoredObject>> {
        list(&self.conn, after, count)
    }

    fn due_objects(&mut self, each: usize) -> StoreResult<Vec<StoredObject>> {
        self.at_once(|conn| {
            let (mut found, mut after) = (Vec::new(), String::new());
            loop {
                let next = query_first(conn, NEXT_TENANT, [&after], |row| row.read::<Option<Tenant>>(0))?;
                let Some(tenant) = next.flatten() else { return Ok(found) };
                found.extend(query_all(conn, DUE, params![tenant.0, limit(each)], read_object)?);
                after = tenant.to_string();
            }
        })
    }

    fn object_load(&mut self, bound: usize) -> StoreResult<ObjectLoad> {
        let sql = "SELECT coalesce(sum(state = ?2), 0), coalesce(sum(state = ?3), 0) \
             FROM (SELECT state FROM objects INDEXED BY objects_due WHERE tenant >= '' AND due IS NOT NULL LIMIT ?1)";
        let (waiting, failed) = (ObjectState::Waiting.name(), ObjectState::Failed.name());
        let found = query_first(&self.conn, sql, params![limit(bound), waiting, failed], |row| {
            let count =
                |column| Ok::<_, StoreError>(usize::try_from(row.get::<_, i64>(column)?).unwrap_or(0));
            Ok(ObjectLoad { waiting: count(0)?, failed: count(1)? })
        })?;
        Ok(found.unwrap_or_default())
    }

    fn awaited_uploads(
        &mut self,
        after: Option<ExecutionId>,
        count: usize,
    ) -> StoreResult<Vec<AwaitedUploads>> {
        self.at_once(|conn| {
            let after = after.map_or(Ok(i64::MIN), |id| find_cursor(conn, id))?;
            let (phase, whole) = (phase_number(Phase::Finalizing), WHOLE.0.cast_signed());
            query_all(conn, AWAITED, params![phase, after, OFFERED, whole, limit(count)], |row| {
                Ok(read_row![row, AwaitedUploads: execution tenant])
            })
        })
    }

    fn named_artifacts(&mut self, execution: ExecutionId) -> StoreResult<BTreeSet<String>> {
        let named = self.of(execution, |Chain { conn, key, .. }| find_named(conn, key))?;
        Ok(named.unwrap_or_default())
    }
}

/// Returns every string in the inputs and the journal of an execution that has the form of a key.
fn find_named(conn: &Connection, key: i64) -> StoreResult<BTreeSet<String>> {
    let inputs = query_first(conn, "SELECT inputs FROM executions WHERE key = ?1", [key], |row| {
        Ok(find_keys(row.text(0)?.as_bytes()))
    })?;
    let mut named: BTreeSet<String> = inputs.into_iter().flatten().collect();
    let mut at: Option<i64> =
        query_first(conn, "SELECT last FROM heads WHERE key = ?1", [key], |row| Ok(row.get(0)?))?;
    while let Some(position) = at {
        let sql = "SELECT before, records FROM journal WHERE position = ?1";
        let before = query_first(conn, sql, [position], |row| {
            let bytes = row.get_ref(1)?.as_bytes().map_err(rusqlite::Error::from)?;
            named.extend(find_keys(bytes));
            Ok(row.get(0)?)
        })?;
        at = before.flatten();
    }
    Ok(named)
}
