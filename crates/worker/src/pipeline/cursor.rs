//! State of a run: everything that changes, so that another worker can continue from it (R14).

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use windlass_protocol::{ChildEnd, Failure, Returned, TaskTry, TryTimes};

/// Version of the format. It is raised when the cursor of an older worker can no longer be read.
const VERSION: u32 = 1;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Cursor {
    version: u32,
    /// The label of the next task.
    pub(super) at: String,
    /// Arguments of the step, rendered once, so that every worker has the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) args: Option<Value>,
    /// Pause before the next task that is still to be made.
    #[serde(default)]
    pub(super) wait_ms: u64,
    #[serde(default)]
    pub(super) calls: u32,
    /// Number of completed calls; repeated tries of a call do not count.
    #[serde(default)]
    pub(super) passed: u32,
    /// Number of tries of a label since it last succeeded.
    #[serde(default)]
    pub(super) tries: BTreeMap<String, u32>,
    /// Result of the last task that succeeded.
    #[serde(default)]
    pub(super) prev: Value,
    #[serde(default)]
    pub(super) results: Map<String, Value>,
    #[serde(default)]
    pub(super) iter: Map<String, Value>,
    #[serde(default)]
    pub(super) ctx: Map<String, Value>,
    /// Keys of `ctx` that are not reported yet.
    #[serde(default)]
    pub(super) unsent: BTreeSet<String>,
    /// State of the call at the cursor, in the format of its tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) memo: Option<Value>,
    /// Counters of calls.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub(super) counted: Map<String, Value>,
    /// The first tries of tasks that failed at least once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) tried: Vec<TaskTry>,
    /// Number of tries after the first one of a task.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) retries: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl Cursor {
    pub(super) fn start(label: &str) -> Cursor {
        Cursor {
            version: VERSION,
            at: label.to_owned(),
            args: None,
            wait_ms: 0,
            calls: 0,
            passed: 0,
            tries: BTreeMap::new(),
            prev: Value::Null,
            results: Map::new(),
            iter: Map::new(),
            ctx: Map::new(),
            unsent: BTreeSet::new(),
            memo: None,
            counted: Map::new(),
            tried: Vec::new(),
            retries: 0,
        }
    }

    /// Notes a try of the task at the cursor. One that succeeds at once is not noted.
    pub(super) fn note_try(&mut self, number: u32, failure: Option<&Failure>, times: Option<TryTimes>) {
        self.retries += u32::from(number > 1);
        if (failure.is_some() || number > 1) && self.tried.len() < TaskTry::MAX {
            let error = failure.map(|failure| Failure {
                message: failure.message.chars().take(TaskTry::MESSAGE_MAX).collect(),
                details: Value::Null,
                ..failure.clone()
            });
            self.tried.push(TaskTry { task: self.at.clone(), number, error, times });
        }
    }

    /// Returns the metadata of the report: counters of calls, and the tries.
    pub(super) fn metadata(&self) -> Map<String, Value> {
        let mut metadata = self.counted.clone();
        if !self.tried.is_empty() {
            metadata.insert(TaskTry::KEY.to_owned(), json!(self.tried));
        }
        if self.retries > 0 {
            metadata.insert(TaskTry::COUNT.to_owned(), json!(self.retries));
        }
        metadata
    }

    /// Reads the cursor, and the end of the other execution that the run waited for.
    pub(super) fn read(stored: &Value) -> Result<(Cursor, Option<ChildEnd>), String> {
        let waited = stored.get("then").map(|_| Returned::deserialize(stored));
        let returned = waited.transpose().map_err(|error| error.to_string())?;
        let own = returned.as_ref().map_or(stored, |returned| &returned.then);
        let cursor = Cursor::deserialize(own).map_err(|error| error.to_string())?;
        match cursor.version {
            VERSION => Ok((cursor, returned.map(|returned| returned.child))),
            other => Err(format!("it has version {other}, and this worker knows {VERSION}")),
        }
    }

    pub(super) fn stored(&self) -> Value {
        serde_json::to_value(self).expect("every map of a cursor has text keys")
    }

    pub(super) fn write_ctx(&mut self, fields: Map<String, Value>) {
        self.unsent.extend(fields.keys().cloned());
        self.ctx.extend(fields);
    }

    /// Returns the context keys for the next report.
    pub(super) fn patch(&self) -> Map<String, Value> {
        self.unsent.iter().filter_map(|key| Some((key.clone(), self.ctx.get(key)?.clone()))).collect()
    }
}
