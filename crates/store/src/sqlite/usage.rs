//! The rows that count what tenants use.

use super::columns::{Columns, read_row};
use super::statements::{execute, query_all};
use crate::origin::Tenant;
use crate::store::StoreResult;
use crate::usage::{Usage, UsageChanges};
use rusqlite::{Connection, params};
use std::collections::BTreeMap;

pub(super) fn load(conn: &Connection) -> StoreResult<BTreeMap<Tenant, Usage>> {
    let sql = "SELECT journal, logs, artifacts, definitions, memories, tenant FROM usage";
    let rows = query_all(conn, sql, [], |row| {
        Ok((row.read(5)?, read_row![row, Usage: journal logs artifacts definitions memories]))
    })?;
    Ok(rows.into_iter().collect())
}

/// Adds the changes of a batch, with one row per tenant.
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
