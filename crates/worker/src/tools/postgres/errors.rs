//! Errors of the server as failures.

use super::config::Statement;
use crate::egress::connection_code;
use crate::failure::{self, failure, shown};
use crate::pipeline::CallResult;
use serde_json::{Map, Value, json};
use tokio_postgres::Error;
use tokio_postgres::error::{DbError, ErrorPosition};
use windlass_protocol::{Failure, FailureCode, codes};

pub(super) struct PostgresError {
    failure: Box<Failure>,
    sqlstate: Option<String>,
}

impl From<PostgresError> for CallResult {
    fn from(trouble: PostgresError) -> CallResult {
        let facts =
            trouble.sqlstate.map(|state| ("pg".to_owned(), json!({ "code": state, "sqlstate": state })));
        CallResult { outcome: Err(trouble.failure), facts: facts.into_iter().collect() }
    }
}

impl From<Box<Failure>> for PostgresError {
    fn from(failure: Box<Failure>) -> PostgresError {
        PostgresError { failure, sqlstate: None }
    }
}

impl From<Error> for PostgresError {
    fn from(error: Error) -> PostgresError {
        match error.as_db_error() {
            Some(error) => PostgresError::of_server(error),
            None if error.is_closed() || is_io(&error) => PostgresError::connecting(error),
            None => failure(codes::DB_ERROR, cause(&error)).into(),
        }
    }
}

impl PostgresError {
    /// Converts an error that is not an answer of the server: a failed connection.
    pub(super) fn connecting(error: Error) -> PostgresError {
        match error.as_db_error() {
            Some(error) => PostgresError::of_server(error),
            None => {
                // Other errors of the connection are of the database itself.
                let code = match connection_code(&error) {
                    codes::CONNECTION_RESET => codes::DB_CONNECTION,
                    code => code,
                };
                let message = format!("no connection to postgres: {}", cause(&error));
                failure(code, message).into()
            }
        }
    }

    fn of_server(error: &DbError) -> PostgresError {
        let state = error.code().code();
        let message = format!("postgres reported: {} ({state})", shown(error.message()));
        let mut failed = failure(code_of(state), message);
        failed.details = details(error, state);
        PostgresError { failure: failed, sqlstate: Some(state.to_owned()) }
    }

    /// Adds the number of the failed statement, if there are several.
    pub(super) fn in_command(mut self, name: &str, all: &[Statement]) -> PostgresError {
        if all.len() > 1 {
            self.failure.message = format!("{name}: {}", self.failure.message);
            if let Value::Object(details) = &mut self.failure.details {
                details.insert("command".to_owned(), json!(name));
            }
        }
        self
    }
}

/// Returns the code for a SQLSTATE or its class, which is its first two characters.
fn code_of(state: &str) -> FailureCode {
    match (state.get(..2).unwrap_or_default(), state) {
        (_, "40001" | "40P01") => codes::DB_DEADLOCK,
        (_, "57014" | "55P03") => codes::DB_TIMEOUT,
        ("08", _) | (_, "57P01" | "57P02" | "57P03" | "53300") => codes::DB_CONNECTION,
        ("23", _) => codes::DB_CONSTRAINT,
        ("28", _) => codes::AUTHENTICATION_FAILED,
        (_, "42501") => codes::PERMISSION_DENIED,
        (_, "42601") => codes::DB_SYNTAX,
        ("22" | "3D" | "3F" | "42", _) => codes::DB_STATEMENT,
        ("53" | "58", _) => codes::DB_UNAVAILABLE,
        _ => codes::DB_ERROR,
    }
}

fn details(error: &DbError, state: &str) -> Value {
    let position = error.position().and_then(|position| match position {
        ErrorPosition::Original(at) => Some(at.to_string()),
        ErrorPosition::Internal { .. } => None,
    });
    let parts = [
        ("sqlstate", Some(state.to_owned())),
        ("detail", error.detail().map(shown)),
        ("hint", error.hint().map(shown)),
        ("position", position),
        ("schema", error.schema().map(str::to_owned)),
        ("table", error.table().map(str::to_owned)),
        ("column", error.column().map(str::to_owned)),
        ("constraint", error.constraint().map(str::to_owned)),
    ];
    let given = parts.into_iter().filter_map(|(key, value)| Some((key.to_owned(), Value::String(value?))));
    Value::Object(given.collect::<Map<_, _>>())
}

fn is_io(error: &Error) -> bool {
    std::error::Error::source(error).is_some_and(|cause| cause.is::<std::io::Error>())
}

fn cause(error: &Error) -> String {
    let message = std::error::Error::source(error)
        .map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"));
    shown(&message)
}

pub(super) fn invalid(message: String) -> Box<Failure> {
    failure::invalid(message)
}

pub(super) fn too_large() -> PostgresError {
    let message =
        "the rows are larger than `max_result_bytes`; ask for fewer of them with LIMIT, or allow more";
    failure(codes::RESULT_TOO_LARGE, message).into()
}
