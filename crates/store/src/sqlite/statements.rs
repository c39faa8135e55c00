//! Statements: prepared once, and the rows of their results.

use super::columns::id_bytes;
use crate::store::{StoreError, StoreResult};
use rusqlite::types::Value;
use rusqlite::{Connection, Params, Row};
use windlass_kernel::ExecutionId;

/// Runs `work` as one transaction that no other process writes in: all of it is kept, or nothing.
pub(super) fn in_transaction<T, E: From<StoreError>>(
    conn: &Connection,
    work: impl FnOnce() -> Result<T, E>,
) -> Result<T, E> {
    execute(conn, "BEGIN IMMEDIATE", [])?;
    let done = work().and_then(|done| {
        execute(conn, "COMMIT", [])?;
        Ok(done)
    });
    if done.is_err() {
        // After some errors SQLite has rolled back by itself; in both cases nothing is written.
        let _ = conn.execute_batch("ROLLBACK");
    }
    done
}

/// Runs a statement and returns how many rows it changed.
pub(super) fn execute(conn: &Connection, sql: &str, params: impl Params) -> StoreResult<usize> {
    Ok(conn.prepare_cached(sql)?.execute(params)?)
}

/// Runs a query and reads every row of it.
pub(super) fn query_all<T>(
    conn: &Connection,
    sql: &str,
    params: impl Params,
    read: impl Fn(&Row<'_>) -> StoreResult<T>,
) -> StoreResult<Vec<T>> {
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query(params)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(read(row)?);
    }
    Ok(found)
}

/// Runs a query and reads its first row, if there is one.
pub(super) fn query_first<T>(
    conn: &Connection,
    sql: &str,
    params: impl Params,
    read: impl FnOnce(&Row<'_>) -> StoreResult<T>,
) -> StoreResult<Option<T>> {
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query(params)?;
    rows.next()?.map(read).transpose()
}

/// Runs a query that counts.
pub(super) fn query_count(conn: &Connection, sql: &str, params: impl Params) -> StoreResult<usize> {
    let count: i64 = conn.prepare_cached(sql)?.query_row(params, |row| row.get(0))?;
    Ok(usize::try_from(count).unwrap_or(0))
}

/// Returns the number of an execution.
pub(super) fn find_key(conn: &Connection, id: ExecutionId) -> StoreResult<Option<i64>> {
    let sql = "SELECT key FROM executions WHERE id = ?1";
    query_first(conn, sql, [id_bytes(id)], |row| Ok(row.get(0)?))
}

/// Returns the number of an execution that a list continues after.
pub(super) fn find_cursor(conn: &Connection, id: ExecutionId) -> StoreResult<i64> {
    find_key(conn, id)?.ok_or_else(|| {
        StoreError::Io(format!("a list cannot continue after execution {id}: it is not in the store"))
    })
}

/// Conditions of a query, joined by AND, with the values of their parameters.
#[derive(Debug, Default)]
pub(super) struct Conditions {
    sql: Vec<String>,
    values: Vec<Value>,
}

impl Conditions {
    /// Adds a condition; `?` in it is the value.
    pub(super) fn add(&mut self, sql: &str, value: impl Into<Value>) {
        self.values.push(value.into());
        self.sql.push(sql.replace('?', &format!("?{}", self.values.len())));
    }

    pub(super) fn add_if(&mut self, sql: &str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.add(sql, value);
        }
    }

    /// Returns the whole statement: all conditions after `select`, then the order, then the limit.
    pub(super) fn finish(mut self, select: &str, order: &str, limit: i64) -> (String, Vec<Value>) {
        self.values.push(limit.into());
        let (conditions, last) = (self.sql.join(" AND "), self.values.len());
        (format!("{select} WHERE {conditions} ORDER BY {order} LIMIT ?{last}"), self.values)
    }
}
