//! Forgetting what has ended long ago: which executions may go, and which artifacts nothing refers to any more.

use crate::artifacts::References;
use crate::origin::Tenant;
use crate::store::{Reader, StoreError};
use windlass_kernel::{ExecutionId, Millis, Phase};

pub trait Retention: Reader {
    /// Executions that ended before then and that nobody needs any more, the longest ended first.
    fn forgettable(&mut self, ended_before: Millis, limit: usize) -> Result<Vec<Forgettable>, StoreError>;

    /// How many there are.
    fn count_forgettable(&mut self, ended_before: Millis) -> Result<u64, StoreError>;

    /// Keys of all artifacts that anything in the store names, by the tenant whose row it is.
    fn referenced(&mut self) -> Result<References, StoreError>;
}

#[derive(Debug, Clone, PartialEq)]
pub struct Forgettable {
    pub execution: ExecutionId,
    pub tenant: Tenant,
    pub name: Option<String>,
    pub phase: Phase,
    pub ended_at: Millis,
}
