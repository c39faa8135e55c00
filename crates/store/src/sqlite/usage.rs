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
    // Another process may count rows between two reads.
    let moment = conn.unchecked_transaction()?;
    let sql = "SELECT journal, logs, artifacts, definitions, memories, tenant FROM usage";
    let rows = query_all(&moment, sql, [], |row| {
        Ok((row.read(5)?, read_row![row, Usage: journal logs artifacts definitions memories]))
    })?;
    let usages = Usages::new(rows.into_iter().collect());
    usages.add(&read_uncounted(&moment)?);
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

/// Sums the lengths of the rows that are not counted yet by execution, and returns the sums with their tenants.
fn read_lengths(conn: &Connection, table: &str, column: &str) -> StoreResult<Vec<(Tenant, i64)>> {
    let sql = format!(
        "SELECT execution, length({column}) FROM {table} WHERE position > (SELECT position FROM usage_counted)"
    );
    let mut sums: BTreeMap<i64, i64> = BTreeMap::new();
    for (execution, length) in query_all(conn, &sql, [], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?)))? {
        *sums.entry(execution).or_default() += length;
    }
    // Prepared once for all. The row of an execution may be deleted already. Rows of a damaged store may belong to no tenant.
    let mut owner = conn.prepare_cached(
        "SELECT coalesce((SELECT tenant FROM executions WHERE key = ?1), \
         (SELECT tenant FROM forgotten WHERE key = ?1))",
    )?;
    let mut found = Vec::new();
    for (execution, length) in sums {
        let tenant: Option<String> = owner.query_row([execution], |row| row.get(0))?;
        found.extend(tenant.map(|tenant| (Tenant::new(&tenant), length)));
    }
    Ok(found)
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
