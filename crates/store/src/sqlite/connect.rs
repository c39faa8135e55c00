//! Connections, their settings, and errors of SQLite as errors of a store.

use super::migrate;
use crate::store::{StoreError, StoreResult};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use std::path::Path;
use std::time::Duration;

/// Maximum wait for the lock. Other processes write one row of mail at a time and hold the lock for a short time.
pub(super) const BUSY_WAIT: Duration = Duration::from_secs(10);
const STATEMENTS_MAX: usize = 64;

/// Opens a connection that writes; creates the file if it does not exist.
pub(super) fn open_writer(path: &Path) -> StoreResult<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    let conn = open(path, flags)?;
    // The page size applies to a new file only. A full sync makes every commit durable before its result is returned.
    conn.execute_batch(
        "PRAGMA page_size = 4096;
         PRAGMA journal_mode = WAL;
         PRAGMA synchronous = FULL;
         PRAGMA wal_autocheckpoint = 0;
         PRAGMA foreign_keys = OFF;
         PRAGMA temp_store = MEMORY;
         PRAGMA cache_size = -65536;",
    )
    .map_err(|error| located(path.display())(error.into()))?;
    Ok(conn)
}

/// Opens a connection that cannot write.
pub(super) fn open_reader(path: &Path) -> StoreResult<Connection> {
    if !path.exists() {
        return Err(no_store(path));
    }
    let conn = open(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    conn.execute_batch("PRAGMA temp_store = MEMORY; PRAGMA cache_size = -16384;")
        .map_err(|error| located(path.display())(error.into()))?;
    Ok(conn)
}

fn open(path: &Path, flags: OpenFlags) -> StoreResult<Connection> {
    let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_EXRESCODE;
    let open = || -> Result<Connection, rusqlite::Error> {
        let conn = Connection::open_with_flags(path, flags)?;
        conn.busy_timeout(BUSY_WAIT)?;
        conn.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
        // A query plan must not depend on bound values: SQLite would prepare a cached statement again for every new
        // value.
        conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        Ok(conn)
    };
    open().map_err(|error| located(path.display())(error.into()))
}

/// Refuses a file that this program must not write to, before anything is written. Returns the number of its schema.
pub(super) fn inspect(path: &Path) -> StoreResult<u32> {
    let is_new = path.metadata().map_or(true, |file| file.is_file() && file.len() == 0);
    if is_new {
        return Ok(0);
    }
    migrate::applied(&open_reader(path)?, path).map_err(located(path.display()))
}

/// Refuses a file that is not a store with the newest schema.
pub(super) fn inspect_existing(path: &Path) -> StoreResult<()> {
    match inspect(path)? {
        migrate::KNOWN => Ok(()),
        0 => Err(no_store(path)),
        older => Err(StoreError::Io(format!(
            "{} was written by an older version (schema {older}, this program has {}): start the server or run \
             something in it once, which brings it up to date",
            path.display(),
            migrate::KNOWN
        ))),
    }
}

fn no_store(path: &Path) -> StoreError {
    StoreError::Io(format!("there is no store at {}: check the path of the data folder", path.display()))
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        let what = error.to_string();
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => StoreError::Full(what),
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => StoreError::Corrupt(what),
            // Rows are made by `project` alone: an existing row that must not exist is a broken invariant.
            Some(ErrorCode::ConstraintViolation) => StoreError::Corrupt(what),
            Some(_) => StoreError::Io(what),
            None => from_driver(&error, what),
        }
    }
}

/// Errors that the driver itself found in a result of SQLite.
fn from_driver(error: &rusqlite::Error, what: String) -> StoreError {
    use rusqlite::Error::{FromSqlConversionFailure, IntegralValueOutOfRange, InvalidColumnType};
    use rusqlite::Error::{QueryReturnedNoRows, Utf8Error};
    match error {
        QueryReturnedNoRows => StoreError::Undecodable("a row that must be there is missing".to_owned()),
        FromSqlConversionFailure(..)
        | IntegralValueOutOfRange(..)
        | InvalidColumnType(..)
        | Utf8Error(..) => StoreError::Undecodable(what),
        _ => StoreError::Io(what),
    }
}

/// Returns the same error with the place where it occurred in front.
pub(super) fn located(place: impl std::fmt::Display) -> impl FnOnce(StoreError) -> StoreError {
    move |error| match error {
        StoreError::Full(what) => StoreError::Full(format!("{place}: {what}")),
        StoreError::Io(what) => StoreError::Io(format!("{place}: {what}")),
        StoreError::Corrupt(what) => StoreError::Corrupt(format!("{place}: {what}")),
        StoreError::Undecodable(what) => StoreError::Undecodable(format!("{place}: {what}")),
        error @ (StoreError::Damaged(_) | StoreError::Unreadable { .. } | StoreError::Newer { .. }) => error,
    }
}
