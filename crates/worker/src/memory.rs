//! What workflows remember beyond their executions.

use serde_json::Value;
use std::fmt;

/// The worker's way to the memories. May block: it is called beside the pool's thread.
pub trait Memory: fmt::Debug + Send + Sync + 'static {
    /// On disk after `Ok`; the value of a key that is there is replaced.
    fn store(&self, memory: Remembered) -> Result<(), MemoryError>;
    /// The newest first.
    fn search(&self, wanted: &Wanted) -> Result<Vec<Found>, MemoryError>;
}

#[derive(Debug, Clone, PartialEq)]
pub struct Remembered {
    pub tenant: String,
    /// 32 hexadecimal digits.
    pub workflow: String,
    pub key: String,
    pub value: Value,
}

/// All that is given must fit.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Wanted {
    pub tenant: String,
    pub workflow: String,
    pub key: Option<String>,
    pub prefix: Option<String>,
    /// Each of them stands in the key or in the value, whatever the case of its letters.
    pub words: Vec<String>,
    pub limit: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    pub key: String,
    pub value: Value,
    /// Milliseconds since the Unix epoch.
    pub at: i64,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct MemoryError(pub String);

/// Of a worker without memories.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoMemory;

impl Memory for NoMemory {
    fn store(&self, _: Remembered) -> Result<(), MemoryError> {
        Err(MemoryError("this worker keeps no memories".to_owned()))
    }

    fn search(&self, _: &Wanted) -> Result<Vec<Found>, MemoryError> {
        Err(MemoryError("this worker keeps no memories".to_owned()))
    }
}
