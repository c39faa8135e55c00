//! The rows that count what tenants use. A transaction that only appends writes none of them: the usage of a tenant is
//! its row and the rows that were appended after the position up to which all are counted.

use super::columns::{Columns, read_row};
use super::statements::{execute, query_all};
use crate::commit::Position;
use crate::origin::Tenant;
use crate::store::StoreResult;
use crate::usage::{Usage, UsageChanges, Usages};
use rusqlite::{Connection, params};
use std::collections::BTreeMap;

/// Appended rows are counted by the transaction in which the position passes a multiple of this. It bounds the rows that
/// are read when a store is opened, and the time by which the counting delays a commit: about a millisecond.
pub(super) const COUNT_EVERY: i64 = 1024;

pub(super) fn load(conn: &Connection) -> StoreResult<Usages> {
    let sql = "SELECT journal, logs, artifacts, definitions, memories, tenant FROM usage";
    let rows = query_all(conn, sql, [], |row| {
        Ok((row.read(5)?, read_row![row, Usage: journal logs artifacts definitions memories]))
    })?;
    let usages = Usages::new(rows.into_iter().collect());
    usages.add(&read_uncounted(conn)?);
    Ok(usages)
}

/// Counts the appended rows up to the last position. A transaction that deletes some of them counts them before.
pub(super) fn count_appended(conn: &Connection, last: Position) -> StoreResult<()> {
    count(conn, &read_uncounted(conn)?)?;
    execute(conn, "UPDATE usage_counted SET position = ?1", [last.0])?;
    Ok(())
}

/// Returns the bytes of the appended rows that are not counted yet.
fn read_uncounted(conn: &Connection) -> StoreResult<UsageChanges> {
    let mut sums = UsageChanges::default();
    for (tenant, journal) in read_lengths(conn, "journal", "records")? {
        sums.add(&tenant, Usage { journal, ..Usage::default() });
    }
    for (tenant, logs) in read_lengths(conn, "logs", "lines")? {
        sums.add(&tenant, Usage { logs, ..Usage::default() });
    }
    Ok(sums)
}

/// Reads the length of each row that is not counted yet, with its tenant. The row of its execution may be deleted already.
/// A damaged store has rows without either, which count for nobody and are found by the check.
fn read_lengths(conn: &Connection, table: &str, column: &str) -> StoreResult<Vec<(Tenant, i64)>> {
    let sql = format!(
        "SELECT coalesce((SELECT tenant FROM executions WHERE key = execution), \
         (SELECT tenant FROM forgotten WHERE key = execution)), length({column}) \
         FROM {table} WHERE position > (SELECT position FROM usage_counted)"
    );
    let rows: Vec<(Option<Tenant>, i64)> = query_all(conn, &sql, [], |row| Ok((row.read(0)?, row.get(1)?)))?;
    Ok(rows.into_iter().filter_map(|(tenant, length)| Some((tenant?, length))).collect())
}

/// Adds changes, with one row per tenant.
pub(super) fn count(conn: &Connection, changes: &UsageChanges) -> StoreResult<()> {
    let sql = "INSERT INTO usage (tenant, journal, logs, artifacts, definitions, memories) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (tenant) DO UPDATE SET \
               journal = journal + excluded.journal, logs = logs + excluded.logs, \
               artifacts = artifacts + excluded.artifacts, definitions = definitions + excluded.definitions, \
               memories = memories + excluded.memories";
    for (tenant, Usage { journal, logs, artifacts, definitions, memories }) in &changes.0 {
        execute(conn, sql, params![tenant.0, journal, logs, artifacts, definitions, memories])?;
    }
    Ok(())
}

/// Replaces the count of artifacts by their actual bytes.
pub(super) fn set_artifacts(conn: &Connection, left: &BTreeMap<Tenant, u64>) -> StoreResult<()> {
    conn.execute("UPDATE usage SET artifacts = 0", [])?;
    let sql = "INSERT INTO usage (tenant, artifacts) VALUES (?1, ?2) \
               ON CONFLICT (tenant) DO UPDATE SET artifacts = excluded.artifacts";
    for (tenant, bytes) in left {
        execute(conn, sql, params![tenant.0, i64::try_from(*bytes).unwrap_or(i64::MAX)])?;
    }
    Ok(())
}
