//! The JSON column of a schedule: the author's document, and the data that the server needs to start its work.

use crate::problem::{Detail, Problem};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use windlass_kernel::Millis;
use windlass_schedule::{FieldProblem, ScheduleSpec};
use windlass_store::StoredSchedule;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct SpecColumn {
    /// The document with all its fields.
    pub document: Map<String, Value>,
    /// Name of the user who created the schedule or changed it last; its executions are started in this name.
    pub by: String,
}

impl SpecColumn {
    pub(crate) fn read(schedule: &StoredSchedule) -> Result<SpecColumn, Problem> {
        serde_json::from_str(&schedule.spec).map_err(Problem::internal)
    }

    pub(crate) fn write(&self) -> Result<String, Problem> {
        serde_json::to_string(self).map_err(Problem::internal)
    }

    /// Returns the schedule that the document describes. It was valid when it was stored.
    pub(crate) fn spec(&self, schedule: &StoredSchedule) -> Result<ScheduleSpec, Problem> {
        let document = Value::Object(self.document.clone());
        ScheduleSpec::parse(&document, instant(schedule.created_at))
            .map_err(|problems| refuse_fields(problems.into_iter()))
    }
}

/// Returns 400 with one detail per field.
pub(crate) fn refuse_fields(problems: impl Iterator<Item = FieldProblem>) -> Problem {
    let details: Vec<Detail> =
        problems.map(|FieldProblem { field, message }| Detail::new(field, message)).collect();
    let first = details.first().map(|detail| format!("`{}`: {}", detail.path, detail.message));
    Problem {
        details,
        ..Problem::bad_request(format!("the schedule is not valid: {}", first.unwrap_or_default()))
    }
}

pub(crate) fn instant(at: Millis) -> Timestamp {
    let last = if at.0 < 0 { Timestamp::MIN } else { Timestamp::MAX };
    Timestamp::from_millisecond(at.0).unwrap_or(last)
}

pub(crate) fn millis(at: Timestamp) -> Millis {
    Millis(at.as_millisecond())
}
