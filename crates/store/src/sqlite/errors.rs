//! What SQLite says, in the store's words.

use crate::store::StoreError;
use rusqlite::ErrorCode;

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        let what = error.to_string();
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => StoreError::Full(what),
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => StoreError::Corrupt(what),
            // Rows are made by `project` alone: a row that is there and must not be is a broken invariant.
            Some(ErrorCode::ConstraintViolation) => StoreError::Corrupt(what),
            Some(_) => StoreError::Io(what),
            None => of_driver(&error, what),
        }
    }
}

/// Errors that the driver found itself, in what SQLite gave.
fn of_driver(error: &rusqlite::Error, what: String) -> StoreError {
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

/// The same error, with the place it was met at in front.
pub(super) fn at(place: impl std::fmt::Display) -> impl FnOnce(StoreError) -> StoreError {
    move |error| match error {
        StoreError::Full(what) => StoreError::Full(format!("{place}: {what}")),
        StoreError::Io(what) => StoreError::Io(format!("{place}: {what}")),
        StoreError::Corrupt(what) => StoreError::Corrupt(format!("{place}: {what}")),
        StoreError::Undecodable(what) => StoreError::Undecodable(format!("{place}: {what}")),
        error @ (StoreError::Damaged(_) | StoreError::Unreadable { .. } | StoreError::Newer { .. }) => error,
    }
}
