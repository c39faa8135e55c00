//! Schedules of the triggers of a workflow. They are stored with its version.

use super::stored::{SpecColumn, instant, millis};
use crate::auth::Caller;
use crate::ids;
use crate::problem::Problem;
use serde_json::json;
use windlass_dialects::{Manifest, TriggerSchedule};
use windlass_kernel::Millis;
use windlass_schedule::{Cadence, ScheduleSpec};
use windlass_store::{ScheduleId, StoredSchedule};

/// Schedules of one definition.
const TRIGGERS_MAX: usize = 100;

/// Returns the schedules of a definition; 400 if a trigger has times that never occur.
pub(crate) fn schedules_of(
    manifest: &Manifest,
    workflow: &str,
    caller: &Caller,
    at: Millis,
) -> Result<Vec<StoredSchedule>, Problem> {
    if manifest.schedules.len() > TRIGGERS_MAX {
        let message = format!("a definition may have {TRIGGERS_MAX} triggers with a schedule at most");
        return Err(Problem::invalid("nodes", message));
    }
    manifest.schedules.iter().map(|trigger| schedule_of(trigger, workflow, caller, at)).collect()
}

fn schedule_of(
    trigger: &TriggerSchedule,
    workflow: &str,
    caller: &Caller,
    at: Millis,
) -> Result<StoredSchedule, Problem> {
    let TriggerSchedule { node, timezone, schedule } = trigger;
    let wrong = |field: &str, message: &str| {
        Problem::invalid("nodes", format!("`scheduleConfig` of trigger `{node}`: {field} {message}"))
    };
    let document = json!({
        "name": format!("trigger {node} of"),
        "timezone": timezone,
        "schedule": schedule,
        "target": { "kind": "workflow", "workflow_id": workflow },
    });
    let spec = ScheduleSpec::parse(&document, instant(at)).map_err(|problems| {
        let first = problems.into_iter().next();
        first.map_or_else(|| wrong("", "is not valid"), |first| wrong(&first.field, &first.message))
    })?;
    let first = match spec.first_after(instant(at)) {
        Ok(first) => Some(first),
        // A definition may be stored again after its only time.
        Err(_) if matches!(spec.timetable.cadence, Cadence::Once { .. }) => None,
        Err(problem) => return Err(wrong(&problem.field, &problem.message)),
    };
    let column = SpecColumn { document: spec.to_json(), by: caller.id.clone() };
    Ok(StoredSchedule {
        id: ScheduleId(ids::fresh_number()?),
        tenant: caller.tenant.clone(),
        name: spec.name.clone(),
        enabled: true,
        spec: column.write()?,
        policy: spec.policy,
        retry: spec.retry,
        revision: 1,
        paused_at: None,
        next_run_at: first.map(millis),
        last_run_at: None,
        definition: None,
        workflow: None,
        dead_letter_url: None,
        created_at: at,
        updated_at: at,
    })
}
