//! Large values as they are told. What was set aside is a reference in the journal; inputs and outputs are told as they are
//! up to a bound, and what stays a reference says where its value can be had.

use super::wire::execution_id;
use serde_json::{Value, json};
use std::sync::Arc;
use windlass_artifact::key;
use windlass_kernel::ExecutionId;

/// JSON of large values that the inputs, and likewise the outputs, of one execution are told with. An answer stays within
/// what clients read at once.
pub const TOLD_BYTES_MAX: u64 = 1 << 20;

/// Gives the value of an artifact by its key, if it is there.
pub type Open<'o> = dyn Fn(&str) -> Option<Arc<Value>> + 'o;

/// A reference with the place of its value; any other value as it is.
#[must_use]
pub fn reference(execution: ExecutionId, value: &Value) -> Value {
    let mut told = value.clone();
    if let Some(key) = key(value) {
        told["url"] = json!(format!("/api/v1/executions/{}/artifacts/{key}", execution_id(execution)));
    }
    told
}

/// The same for a value that is shared.
#[must_use]
pub fn shared(execution: ExecutionId, value: &Arc<Value>) -> Arc<Value> {
    match key(value) {
        Some(_) => Arc::new(reference(execution, value)),
        None => value.clone(),
    }
}

/// Values that are told as they are, as long as there is room for them.
pub(super) struct Room<'o> {
    execution: ExecutionId,
    open: &'o Open<'o>,
    left: u64,
}

impl<'o> Room<'o> {
    pub(super) fn new(execution: ExecutionId, open: &'o Open<'o>) -> Room<'o> {
        Room { execution, open, left: TOLD_BYTES_MAX }
    }

    pub(super) fn tell(&mut self, value: &Value) -> Value {
        let Some(key) = key(value) else { return value.clone() };
        let fitting = value["bytes"].as_u64().and_then(|bytes| self.left.checked_sub(bytes));
        match fitting.and_then(|left| Some((left, (self.open)(key)?))) {
            Some((left, opened)) => {
                self.left = left;
                Arc::unwrap_or_clone(opened)
            }
            None => reference(self.execution, value),
        }
    }
}
