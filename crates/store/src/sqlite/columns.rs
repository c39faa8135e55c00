//! Ids, phases and values as columns.

use crate::commit::WorkflowId;
use crate::origin::{Priority, Tenant};
use crate::rows::{Class, Part};
use crate::store::StoreError;
use rusqlite::Row;
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

fn phase(number: i64) -> Result<Phase, StoreError> {
    Ok(match number {
        0 => Phase::Blank,
        1 => Phase::Queued,
        2 => Phase::Starting,
        3 => Phase::Running,
        4 => Phase::Paused,
        5 => Phase::Draining,
        6 => Phase::Compensating,
        7 => Phase::Finalizing,
        ENDED => Phase::Ended(Outcome::Completed),
        11 => Phase::Ended(Outcome::Partial),
        12 => Phase::Ended(Outcome::Failed),
        13 => Phase::Ended(Outcome::Cancelled),
        _ => return Err(StoreError::Undecodable(format!("{number} is not the number of a phase"))),
    })
}

fn part(number: i64) -> Result<Part, StoreError> {
    Ok(match number {
        1 => Part::Arrived,
        2 => Part::Gated,
        3 => Part::Join,
        4 => Part::Ready,
        5 => Part::Hungry,
        6 => Part::Scope,
        7 => Part::Region,
        8 => Part::Latest,
        9 => Part::Owed,
        _ => {
            return Err(StoreError::Undecodable(format!(
                "{number} is not the number of a table of the state"
            )));
        }
    })
}

fn class(number: i64) -> Result<Class, StoreError> {
    match number {
        OFFERED => Ok(Class::Offered),
        1 => Ok(Class::Other),
        _ => Err(StoreError::Undecodable(format!("{number} is not the number of a class of step-runs"))),
    }
}

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
    // Plain data with string keys: there is no error that writing it could meet.
    serde_json::to_string(value).expect("stored values are plain data")
}

fn parse<T: DeserializeOwned>(text: &str, what: &str) -> Result<T, StoreError> {
    serde_json::from_str(text)
        .map_err(|error| StoreError::Undecodable(format!("{what} cannot be read: {error}")))
}

/// Reads columns of a row as the types of the store.
pub(super) trait Columns {
    fn unsigned(&self, column: usize) -> Result<u64, StoreError>;
    fn text(&self, column: usize) -> Result<&str, StoreError>;
    fn time(&self, column: usize) -> Result<Millis, StoreError>;
    fn optional_time(&self, column: usize) -> Result<Option<Millis>, StoreError>;
    fn execution(&self, column: usize) -> Result<ExecutionId, StoreError>;
    fn optional_execution(&self, column: usize) -> Result<Option<ExecutionId>, StoreError>;
    fn workflow(&self, column: usize) -> Result<WorkflowId, StoreError>;
    fn optional_workflow(&self, column: usize) -> Result<Option<WorkflowId>, StoreError>;
    fn run(&self, column: usize) -> Result<RunId, StoreError>;
    fn fence(&self, column: usize) -> Result<Option<Fence>, StoreError>;
    fn net(&self, column: usize) -> Result<NetDigest, StoreError>;
    fn tenant(&self, column: usize) -> Result<Tenant, StoreError>;
    fn priority(&self, column: usize) -> Result<Priority, StoreError>;
    fn phase(&self, column: usize) -> Result<Phase, StoreError>;
    fn part(&self, column: usize) -> Result<Part, StoreError>;
    fn class(&self, column: usize) -> Result<Class, StoreError>;
    /// `what` names the value in the error that reports unreadable JSON.
    fn json<T: DeserializeOwned>(&self, column: usize, what: &str) -> Result<T, StoreError>;
    fn optional_json<T: DeserializeOwned>(&self, column: usize, what: &str) -> Result<Option<T>, StoreError>;
}

impl Columns for Row<'_> {
    fn unsigned(&self, column: usize) -> Result<u64, StoreError> {
        Ok(self.get::<_, i64>(column)?.cast_unsigned())
    }

    fn text(&self, column: usize) -> Result<&str, StoreError> {
        Ok(self.get_ref(column)?.as_str().map_err(rusqlite::Error::from)?)
    }

    fn time(&self, column: usize) -> Result<Millis, StoreError> {
        Ok(Millis(self.get(column)?))
    }

    fn optional_time(&self, column: usize) -> Result<Option<Millis>, StoreError> {
        Ok(self.get::<_, Option<i64>>(column)?.map(Millis))
    }

    fn execution(&self, column: usize) -> Result<ExecutionId, StoreError> {
        Ok(ExecutionId(u128::from_be_bytes(self.get(column)?)))
    }

    fn optional_execution(&self, column: usize) -> Result<Option<ExecutionId>, StoreError> {
        Ok(self.get::<_, Option<_>>(column)?.map(|bytes| ExecutionId(u128::from_be_bytes(bytes))))
    }

    fn workflow(&self, column: usize) -> Result<WorkflowId, StoreError> {
        Ok(WorkflowId(u128::from_be_bytes(self.get(column)?)))
    }

    fn optional_workflow(&self, column: usize) -> Result<Option<WorkflowId>, StoreError> {
        Ok(self.get::<_, Option<_>>(column)?.map(|bytes| WorkflowId(u128::from_be_bytes(bytes))))
    }

    fn run(&self, column: usize) -> Result<RunId, StoreError> {
        self.unsigned(column).map(RunId)
    }

    fn fence(&self, column: usize) -> Result<Option<Fence>, StoreError> {
        Ok(self.get::<_, Option<i64>>(column)?.map(|fence| Fence(fence.cast_unsigned())))
    }

    fn net(&self, column: usize) -> Result<NetDigest, StoreError> {
        Ok(NetDigest(self.get(column)?))
    }

    fn tenant(&self, column: usize) -> Result<Tenant, StoreError> {
        self.text(column).map(Tenant::new)
    }

    fn priority(&self, column: usize) -> Result<Priority, StoreError> {
        let number: i64 = self.get(column)?;
        let found = Priority::ALL.into_iter().find(|priority| *priority as i64 == number);
        found.ok_or_else(|| StoreError::Undecodable(format!("{number} is not the number of a priority")))
    }

    fn phase(&self, column: usize) -> Result<Phase, StoreError> {
        phase(self.get(column)?)
    }

    fn part(&self, column: usize) -> Result<Part, StoreError> {
        part(self.get(column)?)
    }

    fn class(&self, column: usize) -> Result<Class, StoreError> {
        class(self.get(column)?)
    }

    fn json<T: DeserializeOwned>(&self, column: usize, what: &str) -> Result<T, StoreError> {
        parse(self.text(column)?, what)
    }

    fn optional_json<T: DeserializeOwned>(&self, column: usize, what: &str) -> Result<Option<T>, StoreError> {
        let text: Option<String> = self.get(column)?;
        text.map(|text| parse(&text, what)).transpose()
    }
}
