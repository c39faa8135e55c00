//! Connections and their settings.

use super::errors::at;
use super::migrate;
use crate::store::StoreError;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use std::path::Path;
use std::time::Duration;

/// Other processes write a row of mail at a time; nobody holds the lock for long.
pub(super) const BUSY_WAIT: Duration = Duration::from_secs(10);
const STATEMENTS_MAX: usize = 64;

/// A connection that writes; the file is made if it is not there.
pub(super) fn writing(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    let conn = open(path, flags)?;
    // The page size holds for a new file only. A full sync makes every commit durable before it is answered.
    conn.execute_batch(
        "PRAGMA page_size = 4096;
         PRAGMA journal_mode = WAL;
         PRAGMA synchronous = FULL;
         PRAGMA wal_autocheckpoint = 0;
         PRAGMA foreign_keys = OFF;
         PRAGMA temp_store = MEMORY;
         PRAGMA cache_size = -65536;",
    )
    .map_err(|error| at(path.display())(error.into()))?;
    Ok(conn)
}

/// A connection that cannot write.
pub(super) fn reading(path: &Path) -> Result<Connection, StoreError> {
    if !path.exists() {
        return Err(no_store(path));
    }
    let conn = open(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    conn.execute_batch("PRAGMA temp_store = MEMORY; PRAGMA cache_size = -16384;")
        .map_err(|error| at(path.display())(error.into()))?;
    Ok(conn)
}

fn open(path: &Path, flags: OpenFlags) -> Result<Connection, StoreError> {
    let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_EXRESCODE;
    let open = || -> Result<Connection, rusqlite::Error> {
        let conn = Connection::open_with_flags(path, flags)?;
        conn.busy_timeout(BUSY_WAIT)?;
        conn.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
        // A plan must not depend on bound values: SQLite would prepare a cached statement anew for every other value.
        conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        Ok(conn)
    };
    open().map_err(|error| at(path.display())(error.into()))
}

/// Refuses what this program must not write to, before anything can be written. Gives how far its schema is.
pub(super) fn inspect(path: &Path) -> Result<u32, StoreError> {
    let is_new = path.metadata().map_or(true, |file| file.is_file() && file.len() == 0);
    if is_new {
        return Ok(0);
    }
    migrate::applied(&reading(path)?, path).map_err(at(path.display()))
}

/// Refuses what is not a store that can be used as it is.
pub(super) fn inspect_existing(path: &Path) -> Result<(), StoreError> {
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
