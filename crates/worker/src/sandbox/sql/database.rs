//! The connection of one statement: its own database, and limits on the statement.

use super::permission::Refusal;
use super::quota::unreadable;
use super::statement::trouble;
use super::{Database, Statement, tables};
use crate::failure::failure;
use rusqlite::config::DbConfig;
use rusqlite::hooks::AuthContext;
use rusqlite::limits::Limit;
use rusqlite::{Connection, OpenFlags};
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};
use windlass_protocol::{Failure, codes};

/// Maximum time of one statement. The timeout of a node may be shorter.
pub(crate) const STATEMENT_TIME: Duration = Duration::from_secs(60);

/// A journal can be as large as its database, and a little larger.
pub(crate) const FILE_BYTES_FACTOR: u64 = 2;

/// Maximum memory of SQLite: pages, sorting, tables in memory. Half of the memory of the process; rows and parameters
/// use the rest. Beyond it SQLite reports an error, while the process could only abort.
const HEAP_BYTES: u64 = 128 << 20;

/// Another execution may be writing to the same file.
const BUSY: Duration = Duration::from_secs(10);

/// Steps of SQLite's machine between two checks of the clock: some microseconds.
const CLOCK_STEPS: i32 = 10_000;

/// Time between two checks of the total size of the tenant's databases.
const QUOTA_LOOK: Duration = Duration::from_millis(250);

/// SQLite's own bounds are for programs that trust their statements.
const LIMITS: [(Limit, i32); 11] = [
    // One value or row.
    (Limit::SQLITE_LIMIT_LENGTH, 32 << 20),
    (Limit::SQLITE_LIMIT_SQL_LENGTH, 1 << 20),
    (Limit::SQLITE_LIMIT_EXPR_DEPTH, 200),
    (Limit::SQLITE_LIMIT_COMPOUND_SELECT, 100),
    (Limit::SQLITE_LIMIT_VDBE_OP, 1_000_000),
    (Limit::SQLITE_LIMIT_FUNCTION_ARG, 200),
    // The time of LIKE and GLOB is exponential in the number of wildcards.
    (Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1_000),
    (Limit::SQLITE_LIMIT_TRIGGER_DEPTH, 32),
    (Limit::SQLITE_LIMIT_WORKER_THREADS, 0),
    // Other files are out of reach.
    (Limit::SQLITE_LIMIT_ATTACHED, 0),
    (Limit::SQLITE_LIMIT_VARIABLE_NUMBER, 10_000),
];

pub(super) struct Opened {
    pub(super) conn: Connection,
    pub(super) refusal: Refusal,
    pub(super) stop: Stop,
}

/// Reason for which a statement was interrupted.
#[derive(Debug, Clone, Default)]
pub(super) struct Stop(Arc<AtomicU8>);

const LATE: u8 = 1;
const FULL: u8 = 2;

impl Stop {
    pub(super) fn failure(&self, statement: &Statement) -> Option<Box<Failure>> {
        match (self.0.load(Ordering::Relaxed), &statement.database) {
            (LATE, _) => {
                let seconds = STATEMENT_TIME.as_secs();
                let message =
                    format!("the statement took longer than {seconds} s and was stopped; reduce its work");
                Some(failure(codes::LIMIT_EXCEEDED, message))
            }
            (FULL, Some(database)) => Some(database.full()),
            _ => None,
        }
    }
}

/// Opens the database and creates the tables, and only then applies the rules for the statement.
pub(super) fn open(statement: &Statement) -> Result<Opened, Box<Failure>> {
    let mut conn = match &statement.database {
        None => Connection::open_in_memory().map_err(|error| trouble(&error, statement))?,
        Some(database) => open_file(database, statement)?,
    };
    let refusal = Refusal::default();
    configure(&conn).map_err(|error| trouble(&error, statement))?;
    if let Some(database) = &statement.database {
        bound_size(&conn, database, statement)?;
    }
    tables::fill(&conn, statement)?;
    let stop = Stop::default();
    watch(&mut conn, statement, &stop, &refusal).map_err(|error| trouble(&error, statement))?;
    Ok(Opened { conn, refusal, stop })
}

/// Opens the file. Links are refused: one in the tenant's folder could lead to another tenant's database.
fn open_file(database: &Database, statement: &Statement) -> Result<Connection, Box<Failure>> {
    let made = database.folder.join(&database.name).parent().map_or(Ok(()), fs::create_dir_all);
    let folder = made.and_then(|()| database.folder.canonicalize()).map_err(|error| unreadable(&error))?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    Connection::open_with_flags(folder.join(&database.name), flags)
        .map_err(|error| trouble(&error, statement))
}

fn configure(conn: &Connection) -> rusqlite::Result<()> {
    conn.busy_timeout(BUSY)?;
    for (config, on) in [
        (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
        (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, false),
        (DbConfig::SQLITE_DBCONFIG_WRITABLE_SCHEMA, false),
    ] {
        conn.set_db_config(config, on)?;
    }
    for (limit, value) in LIMITS {
        conn.set_limit(limit, value)?;
    }
    // Temporary tables and sorting stay in memory, where they are counted. Space of deleted rows is given back to the
    // file system, and so to the tenant's other databases. A file that was written by hand is checked as it is read.
    conn.execute_batch(&format!(
        "PRAGMA hard_heap_limit = {HEAP_BYTES}; PRAGMA temp_store = MEMORY; PRAGMA mmap_size = 0; \
         PRAGMA cell_size_check = ON; PRAGMA auto_vacuum = FULL"
    ))
}

fn bound_size(conn: &Connection, database: &Database, statement: &Statement) -> Result<(), Box<Failure>> {
    let number = |pragma: &str| conn.pragma_query_value(None, pragma, |row| row.get::<_, u32>(0));
    let sizes = number("page_size").and_then(|size| Ok((size, number("page_count")?)));
    let (page_bytes, pages) = sizes.map_err(|error| trouble(&error, statement))?;
    let page_bytes = u64::from(page_bytes);
    let Some(room) = database.room(u64::from(pages) * page_bytes)? else { return Ok(()) };
    // A database that is too large already keeps its rows, and cannot grow.
    let pages_max = (room / page_bytes).max(1);
    let bounded = conn.execute_batch(&format!("PRAGMA max_page_count = {pages_max}"));
    bounded.map_err(|error| trouble(&error, statement))
}

/// Begins the statement: from here on every action is checked, and its time runs.
fn watch(
    conn: &mut Connection,
    statement: &Statement,
    stop: &Stop,
    refusal: &Refusal,
) -> rusqlite::Result<()> {
    let judge = refusal.clone();
    conn.authorizer(Some(move |context: AuthContext<'_>| judge.judge(&context)))?;
    let (stop, began) = (stop.clone(), Instant::now());
    let database = statement.database.as_ref().map(|database| Database {
        folder: database.folder.clone(),
        name: database.name.clone(),
        quota: database.quota,
    });
    let mut looked = began;
    let is_over = move || {
        if began.elapsed() > STATEMENT_TIME {
            stop.0.store(LATE, Ordering::Relaxed);
            return true;
        }
        if looked.elapsed() > QUOTA_LOOK {
            looked = Instant::now();
            if database.as_ref().is_some_and(Database::is_full) {
                stop.0.store(FULL, Ordering::Relaxed);
                return true;
            }
        }
        false
    };
    conn.progress_handler(CLOCK_STEPS, Some(is_over))
}
