//! The statement itself: its parameters, its rows and its errors.

use super::Statement;
use super::database::{Opened, open};
use super::tables;
use crate::failure::{failure, invalid, shown};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use rusqlite::types::ValueRef;
use rusqlite::{ErrorCode, Row, params_from_iter};
use serde_json::{Value, json};
use windlass_protocol::{Failure, codes};

/// Maximum size of rows as JSON, which are held in memory and stored with the execution.
pub(crate) const ROWS_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Runs the statement and returns `{rows, row_count, columns}` as JSON.
pub(crate) fn run(statement: &Statement) -> Result<Vec<u8>, Box<Failure>> {
    let opened = open(statement)?;
    let done = execute(&opened, statement);
    done.map_err(|error| match error {
        StatementError::Failed(failure) => failure,
        StatementError::Sqlite(error) => match (opened.stop.failure(statement), opened.refusal.take()) {
            (Some(stopped), _) => stopped,
            (None, Some(what)) => not_allowed(&what),
            (None, None) => trouble(&error, statement),
        },
    })
}

enum StatementError {
    Sqlite(rusqlite::Error),
    Failed(Box<Failure>),
}

impl From<rusqlite::Error> for StatementError {
    fn from(error: rusqlite::Error) -> StatementError {
        StatementError::Sqlite(error)
    }
}

impl From<Box<Failure>> for StatementError {
    fn from(failure: Box<Failure>) -> StatementError {
        StatementError::Failed(failure)
    }
}

fn execute(opened: &Opened, work: &Statement) -> Result<Vec<u8>, StatementError> {
    let mut statement = opened.conn.prepare(&work.query)?;
    let (wanted, given) = (statement.parameter_count(), work.params.len());
    if wanted != given {
        return Err(invalid(format!("the statement takes {wanted} params, and there are {given}")).into());
    }
    let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
    if let Some((_, twice)) = columns.iter().enumerate().find(|(at, name)| columns[..*at].contains(name)) {
        return Err(invalid(format!("two columns have the name `{twice}`; rename one with AS")).into());
    }
    // Written at once as text: as values, many small cells would take a hundred times their size.
    let names: Vec<String> = columns.iter().map(|name| format!("{}:", json!(name))).collect();
    let mut written = b"{\"rows\":[".to_vec();
    let mut rows = statement.query(params_from_iter(work.params.iter().map(tables::cell)))?;
    let mut count: u64 = 0;
    while let Some(row) = rows.next()? {
        if count > 0 {
            written.push(b',');
        }
        write_row(&mut written, row, &names)?;
        count += 1;
    }
    drop(rows);
    let row_count = if columns.is_empty() { opened.conn.changes() } else { count };
    written.extend(format!("],\"row_count\":{row_count},\"columns\":{}}}", json!(columns)).bytes());
    Ok(written)
}

fn write_row(written: &mut Vec<u8>, row: &Row<'_>, names: &[String]) -> Result<(), StatementError> {
    written.push(b'{');
    for (index, name) in names.iter().enumerate() {
        if index > 0 {
            written.push(b',');
        }
        let cell = row.get_ref(index)?;
        let length = match cell {
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.len(),
            ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => 0,
        };
        if written.len() + name.len() + length > ROWS_BYTES_MAX {
            return Err(too_large().into());
        }
        written.extend_from_slice(name.as_bytes());
        written.extend_from_slice(json_of(cell).to_string().as_bytes());
    }
    written.push(b'}');
    if written.len() > ROWS_BYTES_MAX { Err(too_large().into()) } else { Ok(()) }
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
        codes::RESULT_TOO_LARGE,
        format!("the rows have more than {ROWS_BYTES_MAX} bytes; select fewer rows"),
    )
}

fn not_allowed(what: &str) -> Box<Failure> {
    let message = format!(
        "a statement may not use {}; it may read and change its own database, see docs/nodes.md",
        shown(what)
    );
    failure(codes::PERMISSION_DENIED, message)
}

/// Formats an error like those of the other databases.
pub(super) fn trouble(error: &rusqlite::Error, statement: &Statement) -> Box<Failure> {
    let message = format!("the statement failed: {}", shown(&error.to_string()));
    let rusqlite::Error::SqliteFailure(code, _) = error else {
        return match error {
            rusqlite::Error::MultipleStatement => {
                invalid("`query` of sql is one statement; use one node for each")
            }
            _ => failure(codes::DB_SYNTAX, message),
        };
    };
    match (code.code, &statement.database) {
        (ErrorCode::ConstraintViolation, _) => failure(codes::DB_CONSTRAINT, message),
        (ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked, _) => failure(codes::DB_TIMEOUT, message),
        (ErrorCode::OutOfMemory, _) => {
            let message = format!(
                "{message}: it needs more memory than a statement may have; process less data at a time"
            );
            failure(codes::LIMIT_EXCEEDED, message)
        }
        (ErrorCode::DiskFull, Some(database)) => database.full(),
        (ErrorCode::CannotOpen | ErrorCode::NotADatabase | ErrorCode::DiskFull, _) => {
            failure(codes::DB_NOT_OPENED, message)
        }
        _ => failure(codes::DB_STATEMENT, message),
    }
}
