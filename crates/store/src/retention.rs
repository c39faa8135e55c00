//! Retention: which executions may be deleted, and which artifacts are still referred to.

use crate::artifacts::References;
use crate::origin::Tenant;
use crate::store::{Reader, StoreResult};
use windlass_kernel::{ExecutionId, Millis, Phase};

pub trait Retention: Reader {
    /// Returns executions that ended before a time and may be deleted, the longest ended first.
    fn forgettable(&mut self, ended_before: Millis, limit: usize) -> StoreResult<Vec<Forgettable>>;

    /// Counts executions that ended before a time and may be deleted.
    fn count_forgettable(&mut self, ended_before: Millis) -> StoreResult<u64>;

    /// Returns the keys of all artifacts that rows of the store refer to, by the tenant of the row.
    fn referenced(&mut self) -> StoreResult<References>;
}

#[derive(Debug, Clone, PartialEq)]
pub struct Forgettable {
    pub execution: ExecutionId,
    pub tenant: Tenant,
    pub name: Option<String>,
    pub phase: Phase,
    pub ended_at: Millis,
}
