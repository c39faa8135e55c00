//! Work on its way to a worker, and the messages about it: reports, checkpoints, progress and log lines.
//!
//! Each of them names its offer by a [`Unit`]. A message under a fence that is no longer open changes nothing and is
//! answered with [`crate::Verdict::Stale`].

use crate::resource::NoRoom;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;
use windlass_failure::Failure;

/// Time after which a lease that is not renewed is lost.
pub const LEASE_TTL_MS: u64 = 30_000;

/// Time between TERM and KILL for the programs of a step that is stopped.
pub const STOP_GRACE_MS: u64 = 5_000;

/// One offer of one step-run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Unit {
    #[serde(with = "hex")]
    pub execution: u128,
    pub run: u64,
    pub fence: u64,
}

impl Unit {
    /// Number that a unit has in place of a step-run if it is a whole execution.
    pub const WHOLE: u64 = u64::MAX >> 1;

    /// Returns whether the unit is a whole execution, which its worker holds while the steps run there as units of their
    /// own. Such work has no spec. The worker's first checkpoint says that the steps can begin, and it stops when the
    /// execution has ended.
    #[must_use]
    pub fn is_whole(self) -> bool {
        self.run == Unit::WHOLE
    }

    /// Returns whether this unit is the whole execution that the other one is a step of.
    #[must_use]
    pub fn is_whole_of(self, step: Unit) -> bool {
        let same = self.execution == step.execution && self.generation() == step.generation();
        same && self.is_whole() && !step.is_whole()
    }

    /// Returns the generation of the execution, which rises with every restart.
    #[must_use]
    pub fn generation(self) -> u32 {
        u32::try_from(self.fence >> 32).unwrap_or(u32::MAX)
    }
}

/// Returns the key that the calls of a step-run carry, the same on every try, attempt and worker. `name` is
/// [`crate::Pipeline::idempotency`]: a definition with such a name determines the key, else the number of the step-run does.
#[must_use]
pub fn idempotency_key(unit: Unit, name: Option<&str>) -> String {
    match name {
        Some(name) => format!("exec_{:032x}:{name}", unit.execution),
        None => format!("{:032x}:{}", unit.execution, unit.run),
    }
}

/// Registration of a worker process; it has a new one each time it registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SessionId(pub u64);

/// One attempt of a step-run, with everything its templates may read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Work {
    pub unit: Unit,
    pub step: String,
    /// Iteration numbers from the outermost loop inwards.
    pub path: Vec<u32>,
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// Number of workers that were lost after they had begun with this step.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub losses: u32,
    /// The step's own description of the work; a [`crate::Pipeline`] for playbooks.
    pub spec: Arc<Value>,
    pub scope: Scope,
    /// State that an earlier lease of this attempt stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Arc<Value>>,
    /// Time limit of the whole attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Tenant of the execution.
    #[serde(default)]
    pub tenant: String,
    /// The id of its workflow: 32 hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<String>,
    /// Whether debug lines are stored.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub debug: bool,
    /// Time at which this attempt was decided, in milliseconds since 1970, if the work reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_ms: Option<i64>,
    /// Storage that the tenant lacked at the dispatch. A tenant over its quota has its work failed at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_room: Option<NoRoom>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// Values as of the dispatch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
pub struct Scope {
    pub workload: Arc<Value>,
    pub ctx: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Arc<Value>>,
    /// The arguments are the summary for a final step: the outputs in its `results` may be references.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub summary: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iter: Option<Iter>,
    /// Iterations of the enclosing loops that the work names, by step, innermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub around: Vec<(String, Iter)>,
    /// Results of the earlier steps that the work names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<(String, Arc<Value>)>,
    /// Steps that the work names and that have no result. Their names are undefined, even if a caller sends values for
    /// them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub absent: Vec<String>,
}

/// The iteration the work belongs to; `name` is the loop's iterator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Iter {
    pub name: String,
    pub item: Value,
    pub index: u32,
    /// Number of iterations, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    pub unit: Unit,
    pub outcome: Outcome,
    /// Context keys to set.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub patch: Map<String, Value>,
    /// Counts of the work: `tokensUsed`, `apiCalls`, …
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

/// One try of a task. A report carries those of tasks that failed at least once, in `metadata` under [`TaskTry::KEY`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskTry {
    pub task: String,
    /// Number of the try, from 1, again after each success.
    #[serde(rename = "try")]
    pub number: u32,
    /// Error of the try; None if it succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
    /// Times of the call, if its worker measured them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<TryTimes>,
}

/// Begin and end of a try by the clock of its worker, in milliseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TryTimes {
    pub started_ms: i64,
    pub ended_ms: i64,
}

impl TaskTry {
    pub const KEY: &str = "tries";
    /// Maximum number of tries in a report, the first ones; the count of all is in [`TaskTry::COUNT`].
    pub const MAX: usize = 20;
    pub const COUNT: &str = "retries";
    /// Maximum length of the message of an error, in characters; `details` are left out.
    pub const MESSAGE_MAX: usize = 500;
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Done {
        output: Value,
    },
    Failed(Failure),
    /// The work was asked to stop and has stopped.
    Stopped,
    /// The work waits longer than it may hold a slot, and continues at the cursor.
    Later {
        delay_ms: u64,
        cursor: Value,
    },
    /// The work waits for another execution without a slot, and continues at the cursor with its result.
    Child {
        definition: Value,
        inputs: Value,
        cursor: Value,
    },
}

/// Cursor of work that waited for another execution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Returned {
    pub child: ChildEnd,
    /// Cursor that the work left.
    pub then: Value,
}

/// Result of another execution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChildEnd {
    pub execution: String,
    /// `completed`, `partial`, `failed` or `cancelled`.
    pub status: String,
    #[serde(default)]
    pub output: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
}

/// State of a pipeline (R14), stored with the lease.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Checkpoint {
    pub unit: Unit,
    /// Number that rises with every checkpoint of a unit, so that a late copy of an earlier one changes nothing.
    pub number: u64,
    pub cursor: Arc<Value>,
}

/// Progress that the work reports about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    pub unit: Unit,
    pub step: String,
    /// Percentage from 0 to 100.
    pub percentage: u8,
}

/// Lines of one stream, in the order they were written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Log {
    pub unit: Unit,
    pub step: String,
    pub attempt: u32,
    pub lines: Vec<Line>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// Milliseconds since the Unix epoch.
    pub at: i64,
    pub stream: Stream,
    pub text: String,
    /// Level that the writer of the line set; otherwise it follows from the stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<Level>,
    /// Further data from its writer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Arc<Value>>,
}

impl Line {
    /// Returns the last line of a truncated log, with the reason.
    #[must_use]
    pub fn end_of_log(at: i64, why: &str) -> Line {
        let text = format!("what follows is not kept: {why}");
        Line { at, stream: Stream::Worker, text, level: Some(Level::Warn), data: None }
    }

    /// Returns its level. A program's error stream need not hold errors, and remarks of the worker are details.
    #[must_use]
    pub fn level(&self) -> Level {
        self.level.unwrap_or(match self.stream {
            Stream::Out => Level::Info,
            Stream::Err => Level::Warn,
            Stream::Worker => Level::Debug,
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    Debug,
    Info,
    Warn,
    Error,
}

impl Level {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Level::Debug => "debug",
            Level::Info => "info",
            Level::Warn => "warn",
            Level::Error => "error",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    Out,
    Err,
    /// Lines of the worker itself (a task began, a retry follows), or of a node's logger.
    Worker,
}

/// Maximum nesting of values that come from outside. JSON parsers commonly stop at 128, and a journal, a cursor and an
/// answer each wrap a value in a few objects of their own.
pub const VALUE_DEPTH_MAX: usize = 100;

/// Message for a value that is nested too deep.
pub const TOO_DEEP: &str = "a value is nested more than 100 deep, which is the limit: return a flatter one";

/// Returns whether a value is nested deeper than the limit.
#[must_use]
pub fn is_too_deep(value: &Value) -> bool {
    exceeds(value, VALUE_DEPTH_MAX)
}

fn exceeds(value: &Value, left: usize) -> bool {
    match value {
        Value::Array(items) => left == 0 || items.iter().any(|item| exceeds(item, left - 1)),
        Value::Object(fields) => left == 0 || fields.values().any(|field| exceeds(field, left - 1)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

mod hex {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(id: &u128, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format!("{id:032x}"))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u128, D::Error> {
        let text = String::deserialize(deserializer)?;
        u128::from_str_radix(&text, 16).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn nested(depth: usize) -> Value {
        (0..depth).fold(
            json!(1),
            |inner, level| if level % 2 == 0 { json!([inner]) } else { json!({ "a": inner }) },
        )
    }

    #[test]
    fn a_value_may_be_as_deep_as_the_limit_and_no_deeper() {
        assert!(!is_too_deep(&nested(0)) && !is_too_deep(&nested(VALUE_DEPTH_MAX)));
        assert!(is_too_deep(&nested(VALUE_DEPTH_MAX + 1)));
        assert!(TOO_DEEP.contains(&VALUE_DEPTH_MAX.to_string()));
    }
}
