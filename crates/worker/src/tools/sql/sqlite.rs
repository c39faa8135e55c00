//! Statements for SQLite, beside the pool's thread. A statement reaches its own database and nothing else.

use super::tables;
use crate::failure::{failure, invalid, shown};
use crate::halt::Halt;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use rusqlite::limits::Limit;
use rusqlite::types::{Value as Cell, ValueRef};
use rusqlite::{Connection, InterruptHandle, params_from_iter};
use serde_json::{Map, Value, json};
use std::fs;
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;
use windlass_protocol::Failure;

/// Rows are held in memory and kept with the execution.
const RESULT_MAX: usize = 32 * 1024 * 1024;
/// One value or statement.
const LENGTH_MAX: i32 = 32 * 1024 * 1024;
/// Another execution may be writing to the same file.
const BUSY: Duration = Duration::from_secs(10);

pub(super) struct Work {
    pub(super) query: String,
    pub(super) params: Vec<Value>,
    pub(super) file: Option<PathBuf>,
    pub(super) tables: Map<String, Value>,
}

pub(super) async fn run(work: Work, mut halt: Halt) -> Result<Value, Box<Failure>> {
    let (ready, interrupt) = oneshot::channel::<InterruptHandle>();
    let mut running = spawn_blocking(move || {
        let conn = open(&work)?;
        // Nobody may be left who would stop it.
        let _ = ready.send(conn.get_interrupt_handle());
        done(&conn, &work)
    });
    let broken = |error: tokio::task::JoinError| failure("unknown", "WORKER_DEFECT", error.to_string());
    tokio::select! {
        biased;
        done = &mut running => done.map_err(broken)?,
        _ = halt.pulled() => {
            if let Ok(interrupt) = interrupt.await {
                interrupt.interrupt();
            }
            let _ = running.await;
            Err(failure("unknown", "CANCELLED", "the statement was stopped"))
        }
    }
}

fn open(work: &Work) -> Result<Connection, Box<Failure>> {
    let conn = match &work.file {
        None => Connection::open_in_memory(),
        Some(file) => {
            let made = file.parent().map_or(Ok(()), fs::create_dir_all);
            made.map_err(|error| {
                failure("unknown", "DB_CONNECTION", format!("no folder for databases: {error}"))
            })?;
            Connection::open(file)
        }
    };
    let conn = conn.map_err(|error| trouble(&error))?;
    let limited = conn
        .busy_timeout(BUSY)
        // Other files are out of reach: neither ATTACH nor VACUUM INTO works.
        .and_then(|()| conn.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0))
        .and_then(|_| conn.set_limit(Limit::SQLITE_LIMIT_LENGTH, LENGTH_MAX));
    limited.map_err(|error| trouble(&error))?;
    tables::fill(&conn, &work.tables)?;
    Ok(conn)
}

fn done(conn: &Connection, work: &Work) -> Result<Value, Box<Failure>> {
    let mut statement = conn.prepare(&work.query).map_err(|error| trouble(&error))?;
    let (wanted, given) = (statement.parameter_count(), work.params.len());
    if wanted != given {
        return Err(invalid(format!("the statement takes {wanted} params, and there are {given}")));
    }
    let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
    if let Some((_, twice)) = columns.iter().enumerate().find(|(at, name)| columns[..*at].contains(name)) {
        return Err(invalid(format!("two columns are called `{twice}`; give one another name with AS")));
    }
    let params = params_from_iter(work.params.iter().map(tables::cell));
    let (mut rows, mut left) = (Vec::new(), RESULT_MAX);
    let mut found = statement.query(params).map_err(|error| trouble(&error))?;
    while let Some(row) = found.next().map_err(|error| trouble(&error))? {
        let mut told = Map::new();
        for (index, name) in columns.iter().enumerate() {
            let value = json_of(row.get_ref(index).map_err(|error| trouble(&error))?);
            left = left.checked_sub(name.len() + value.to_string().len()).ok_or_else(too_large)?;
            told.insert(name.clone(), value);
        }
        rows.push(Value::Object(told));
    }
    drop(found);
    let row_count = if columns.is_empty() { conn.changes() } else { rows.len() as u64 };
    Ok(json!({ "rows": rows, "row_count": row_count, "columns": columns }))
}

fn json_of(cell: ValueRef<'_>) -> Value {
    match cell {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => json!(number),
        ValueRef::Real(number) => json!(number),
        ValueRef::Text(text) => json!(String::from_utf8_lossy(text)),
        ValueRef::Blob(bytes) => json!({ "$base64": BASE64_STANDARD.encode(bytes) }),
    }
}

fn too_large() -> Box<Failure> {
    failure(
        "validation",
        "RESULT_TOO_LARGE",
        format!("the rows have more than {RESULT_MAX} bytes; ask for fewer"),
    )
}

/// In the words that the other databases' errors have.
pub(super) fn trouble(error: &rusqlite::Error) -> Box<Failure> {
    use rusqlite::ErrorCode;
    let message = format!("the statement failed: {}", shown(&error.to_string()));
    match error {
        rusqlite::Error::MultipleStatement => {
            invalid("`query` of sql is one statement; use one node for each")
        }
        rusqlite::Error::SqliteFailure(code, _) => match code.code {
            ErrorCode::ConstraintViolation => failure("validation", "DB_CONSTRAINT", message),
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => failure("timeout", "DB_TIMEOUT", message),
            ErrorCode::OperationInterrupted => failure("unknown", "CANCELLED", message),
            ErrorCode::CannotOpen | ErrorCode::NotADatabase | ErrorCode::DiskFull => {
                failure("unknown", "DB_CONNECTION", message)
            }
            _ => failure("validation", "DB_STATEMENT", message),
        },
        _ => failure("validation", "DB_SYNTAX", message),
    }
}

pub(super) type Param = Cell;
