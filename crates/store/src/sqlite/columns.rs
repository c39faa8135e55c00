//! How ids, phases and values stand in columns.

use crate::commit::WorkflowId;
use crate::origin::{Priority, Tenant};
use crate::rows::{Class, Part};
use crate::store::StoreError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use windlass_kernel::{ExecutionId, NetDigest, Outcome, Phase};

/// From here on a phase number means that the execution has ended.
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

pub(super) fn phase(number: i64) -> Result<Phase, StoreError> {
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

pub(super) fn part(number: i64) -> Result<Part, StoreError> {
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

pub(super) fn class(number: i64) -> Result<Class, StoreError> {
    match number {
        OFFERED => Ok(Class::Offered),
        1 => Ok(Class::Other),
        _ => Err(StoreError::Undecodable(format!("{number} is not the number of a class of step-runs"))),
    }
}

pub(super) fn id_bytes(id: ExecutionId) -> [u8; 16] {
    id.0.to_be_bytes()
}

pub(super) fn id(bytes: [u8; 16]) -> ExecutionId {
    ExecutionId(u128::from_be_bytes(bytes))
}

pub(super) fn workflow_bytes(id: WorkflowId) -> [u8; 16] {
    id.0.to_be_bytes()
}

pub(super) fn workflow(bytes: [u8; 16]) -> WorkflowId {
    WorkflowId(u128::from_be_bytes(bytes))
}

pub(super) fn tenant(id: &str) -> Tenant {
    Tenant::new(id)
}

pub(super) fn priority(number: i64) -> Result<Priority, StoreError> {
    let found = Priority::ALL.into_iter().find(|priority| *priority as i64 == number);
    found.ok_or_else(|| StoreError::Undecodable(format!("{number} is not the number of a priority")))
}

pub(super) fn digest(bytes: [u8; 32]) -> NetDigest {
    NetDigest(bytes)
}

/// A bound of a list, as SQL takes it.
pub(super) fn limit(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

pub(super) fn json<T: Serialize>(value: &T) -> String {
    // Plain data with string keys: there is no error that writing it could meet.
    serde_json::to_string(value).expect("stored values are plain data")
}

pub(super) fn parsed<T: DeserializeOwned>(text: &str, what: &str) -> Result<T, StoreError> {
    serde_json::from_str(text)
        .map_err(|error| StoreError::Undecodable(format!("{what} cannot be read: {error}")))
}
