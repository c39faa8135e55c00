//! Ids, phases and values as columns.

use crate::commit::{DefinitionId, MailId, Position, Session, WorkflowId};
use crate::entry::WorkflowStatus;
use crate::origin::{Priority, Tenant};
use crate::outbox::DeliveryState;
use crate::rows::{Class, Part};
use crate::store::{StoreError, StoreResult};
use rusqlite::Row;
use rusqlite::types::ValueRef;
use serde::Serialize;
use serde::de::DeserializeOwned;
use windlass_kernel::{ExecutionId, Fence, Millis, NetDigest, Outcome, Phase, RunId};

/// The lowest number of a phase of an ended execution.
pub(super) const ENDED: i64 = 10;
pub(super) const OFFERED: i64 = Class::Offered as i64;

pub(super) fn phase_number(phase: Phase) -> i64 {
    match phase {
        Phase::Blank => 0,
        Phase::Queued => 1,
        Phase::Starting => 2,
        Phase::Running => 3,
        Phase::Paused => 4,
        Phase::Draining => 5,
        Phase::Compensating => 6,
        Phase::Finalizing => 7,
        Phase::Ended(Outcome::Completed) => ENDED,
        Phase::Ended(Outcome::Partial) => 11,
        Phase::Ended(Outcome::Failed) => 12,
        Phase::Ended(Outcome::Cancelled) => 13,
    }
}

/// Phases in the order of their numbers.
pub(super) const PHASES: [Phase; 12] = [
    Phase::Blank,
    Phase::Queued,
    Phase::Starting,
    Phase::Running,
    Phase::Paused,
    Phase::Draining,
    Phase::Compensating,
    Phase::Finalizing,
    Phase::Ended(Outcome::Completed),
    Phase::Ended(Outcome::Partial),
    Phase::Ended(Outcome::Failed),
    Phase::Ended(Outcome::Cancelled),
];

pub(super) fn id_bytes(id: ExecutionId) -> [u8; 16] {
    id.0.to_be_bytes()
}

pub(super) fn workflow_bytes(id: WorkflowId) -> [u8; 16] {
    id.0.to_be_bytes()
}

/// Returns the bound of a list as SQL takes it.
pub(super) fn limit(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

pub(super) fn json<T: Serialize>(value: &T) -> String {
    // Writing plain data with string keys cannot fail.
    serde_json::to_string(value).expect("stored values are plain data")
}

/// A type of the store that is a column.
pub(super) trait Column: Sized {
    fn read(row: &Row<'_>, column: usize) -> StoreResult<Self>;
}

impl<T: Column> Column for Option<T> {
    fn read(row: &Row<'_>, column: usize) -> StoreResult<Self> {
        match row.get_ref(column)? {
            ValueRef::Null => Ok(None),
            _ => T::read(row, column).map(Some),
        }
    }
}

/// Columns by the type that SQLite stores and the function that makes the value of it.
macro_rules! columns {
    ($($type:ty: $stored:ty, $make:expr;)*) => {
        $(impl Column for $type {
            fn read(row: &Row<'_>, column: usize) -> StoreResult<Self> {
                let make: fn($stored) -> Self = $make;
                Ok(make(row.get(column)?))
            }
        })*
    };
}

columns! {
    Millis: i64, Millis;
    ExecutionId: [u8; 16], |bytes| ExecutionId(u128::from_be_bytes(bytes));
    WorkflowId: [u8; 16], |bytes| WorkflowId(u128::from_be_bytes(bytes));
    DefinitionId: i64, DefinitionId;
    Position: i64, Position;
    MailId: i64, MailId;
    RunId: i64, |number| RunId(number.cast_unsigned());
    Fence: i64, |number| Fence(number.cast_unsigned());
    Session: i64, |number| Session(number.cast_unsigned());
    NetDigest: [u8; 32], NetDigest;
    u64: i64, i64::cast_unsigned;
    bool: bool, |value| value;
    u16: u16, |value| value;
    u32: u32, |value| value;
    i64: i64, |value| value;
    String: String, |value| value;
    Vec<u8>: Vec<u8>, |value| value;
    [u8; 32]: [u8; 32], |value| value;
}

/// Reads a struct whose fields are the first columns of a row, in this order:
/// `read_row![row, KeyHolder: phase at]`.
macro_rules! read_row {
    ($row:expr, $of:ident: $($field:ident)+) => {{
        let mut columns = 0..;
        $of { $($field: Columns::read($row, columns.next().unwrap_or_default())?),+ }
    }};
}
pub(super) use read_row;

/// Columns that are one of a few numbers.
macro_rules! numbered {
    ($($type:ty, $what:literal, $all:expr, $number:expr;)*) => {
        $(impl Column for $type {
            fn read(row: &Row<'_>, column: usize) -> StoreResult<Self> {
                let (number, number_of): (i64, fn(Self) -> i64) = (row.get(column)?, $number);
                let unknown = || StoreError::Undecodable(format!("{number} is not the number of {}", $what));
                $all.into_iter().find(|value| number_of(*value) == number).ok_or_else(unknown)
            }
        })*
    };
}

numbered! {
    Phase, "a phase", PHASES, phase_number;
    Part, "a table of the state", Part::ALL, |part| part as i64;
    Class, "a class of step-runs", [Class::Offered, Class::Other, Class::Asked, Class::Routed], |class| class as i64;
    Priority, "a priority", Priority::ALL, |priority| priority as i64;
}

/// Columns that are one of a few names.
macro_rules! named {
    ($($type:ident, $what:literal;)*) => {
        $(impl Column for $type {
            fn read(row: &Row<'_>, column: usize) -> StoreResult<Self> {
                let name = row.text(column)?;
                $type::of(name).ok_or_else(|| StoreError::Corrupt(format!("`{name}` is not {}", $what)))
            }
        })*
    };
}

named! {
    WorkflowStatus, "the status of a workflow";
    DeliveryState, "the state of a delivery";
}

impl Column for Tenant {
    fn read(row: &Row<'_>, column: usize) -> StoreResult<Self> {
        row.text(column).map(Tenant::new)
    }
}

/// Reads columns of a row as types of the store.
pub(super) trait Columns {
    fn read<T: Column>(&self, column: usize) -> StoreResult<T>;
    fn text(&self, column: usize) -> StoreResult<&str>;
    /// Parses a JSON column. `what` names the value in the error that reports unreadable JSON.
    fn json<T: DeserializeOwned>(&self, column: usize, what: &str) -> StoreResult<T>;
    fn optional_json<T: DeserializeOwned>(&self, column: usize, what: &str) -> StoreResult<Option<T>>;
}

impl Columns for Row<'_> {
    fn read<T: Column>(&self, column: usize) -> StoreResult<T> {
        T::read(self, column)
    }

    fn text(&self, column: usize) -> StoreResult<&str> {
        Ok(self.get_ref(column)?.as_str().map_err(rusqlite::Error::from)?)
    }

    fn json<T: DeserializeOwned>(&self, column: usize, what: &str) -> StoreResult<T> {
        serde_json::from_str(self.text(column)?)
            .map_err(|error| StoreError::Undecodable(format!("{what} cannot be read: {error}")))
    }

    fn optional_json<T: DeserializeOwned>(&self, column: usize, what: &str) -> StoreResult<Option<T>> {
        let is_null = self.get_ref(column)? == ValueRef::Null;
        if is_null { Ok(None) } else { self.json(column, what).map(Some) }
    }
}
