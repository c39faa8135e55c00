//! Pause, resume and trigger.

use super::{TAG, changed_meanwhile, find, queue_full, store_audited};
use crate::app::{App, unexpected_applied};
use crate::auth::{Caller, Permission};
use crate::body::JsonBody;
use crate::host::now;
use crate::ids;
use crate::problem::{Problem, Refused};
use crate::routes::shared::{BodyRefusals, Refusals};
use crate::scheduler::plan::plan_before_change;
use crate::scheduler::stored::{SpecColumn, instant, millis};
use axum::Json;
use axum::extract::{Path, State};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;
use utoipa::ToSchema;
use windlass_store::{Applied, NewRun, ScheduleRunId, ScheduleWrite, StoredSchedule};
use windlass_views::time;

/// Maximum length of a reason, in characters.
const REASON_MAX: usize = 2_000;

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PausedSchedule {
    id: String,
    #[schema(format = DateTime)]
    paused_at: Option<String>,
    enabled: bool,
    #[schema(format = DateTime)]
    next_run_at: Option<String>,
}

impl From<&StoredSchedule> for PausedSchedule {
    fn from(schedule: &StoredSchedule) -> PausedSchedule {
        PausedSchedule {
            id: ids::format_schedule(schedule.id),
            paused_at: schedule.paused_at.map(time),
            enabled: schedule.enabled,
            next_run_at: schedule.next_run_at.map(time),
        }
    }
}

/// Pause a schedule
///
/// No occurrence is planned until it is resumed. Waiting and active runs are not changed.
#[utoipa::path(post, path = "/api/v1/schedules/{id}/pause", tag = TAG, security(("bearer" = [])),
    params(("id" = String, Path, description = "Id of the schedule")),
    responses((status = 200, body = PausedSchedule), (status = 409, body = Refused), Refusals))]
pub(super) async fn pause_schedule(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<PausedSchedule>, Problem> {
    caller.may(Permission::Edit)?;
    let stored = find(&app, &caller, &id).await?;
    if !stored.enabled && stored.paused_at.is_some() {
        return Ok(Json(PausedSchedule::from(&stored)));
    }
    let stored = plan_before_change(&app, stored).await?;
    let at = now();
    let paused =
        StoredSchedule { enabled: false, paused_at: Some(at), next_run_at: None, updated_at: at, ..stored };
    switch(&app, &caller, paused, "schedule.pause").await
}

/// Resume a schedule
///
/// The misfire policy applies to occurrences in the time of the pause.
#[utoipa::path(post, path = "/api/v1/schedules/{id}/resume", tag = TAG, security(("bearer" = [])),
    params(("id" = String, Path, description = "Id of the schedule")),
    responses((status = 200, body = PausedSchedule), (status = 409, body = Refused), Refusals))]
pub(super) async fn resume_schedule(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<PausedSchedule>, Problem> {
    caller.may(Permission::Edit)?;
    let stored = find(&app, &caller, &id).await?;
    if stored.enabled {
        return Ok(Json(PausedSchedule::from(&stored)));
    }
    let spec = SpecColumn::read(&stored)?.spec(&stored)?;
    let at = now();
    let next = spec.timetable.next_after(instant(stored.paused_at.unwrap_or(at)));
    let resumed = StoredSchedule {
        enabled: true,
        paused_at: None,
        next_run_at: next.map(millis),
        updated_at: at,
        ..stored
    };
    switch(&app, &caller, resumed, "schedule.resume").await
}

async fn switch(
    app: &App,
    caller: &Caller,
    schedule: StoredSchedule,
    action: &str,
) -> Result<Json<PausedSchedule>, Problem> {
    let (answer, id) = (PausedSchedule::from(&schedule), ids::format_schedule(schedule.id));
    let write = ScheduleWrite::Change { schedule: Box::new(schedule), keeps_times: false };
    match store_audited(app, caller, write, (action, &id, json!({}))).await? {
        Applied::Done => Ok(Json(answer)),
        Applied::Conflict => Err(changed_meanwhile()),
        Applied::Duplicate => Err(Problem::not_found("schedule", &id)),
        other => Err(unexpected_applied(other)),
    }
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TriggerRequest {
    #[schema(min_length = 1, max_length = 2000)]
    reason: String,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TriggeredRun {
    run_id: String,
    schedule_id: String,
    /// `manual:` and the id of the run
    occurrence_key: String,
    /// Always `pending`
    status: String,
    #[schema(format = DateTime)]
    created_at: String,
}

/// Start a run now
///
/// A schedule that is paused can be triggered, too. The overlap policy applies.
#[utoipa::path(post, path = "/api/v1/schedules/{id}/trigger", tag = TAG, security(("bearer" = [])),
    params(("id" = String, Path, description = "Id of the schedule")), request_body = TriggerRequest,
    responses((status = 200, body = TriggeredRun), (status = 409, body = Refused, description = "Too many runs wait"),
        Refusals, BodyRefusals))]
pub(super) async fn trigger_schedule(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    JsonBody(request): JsonBody<TriggerRequest>,
) -> Result<Json<TriggeredRun>, Problem> {
    caller.may(Permission::Execute)?;
    let reason = request.reason.trim();
    if reason.is_empty() || reason.chars().count() > REASON_MAX {
        let message = format!("reason must be non-empty and have at most {REASON_MAX} characters");
        return Err(Problem::invalid("reason", message));
    }
    let stored = find(&app, &caller, &id).await?;
    let (number, at) = (ScheduleRunId(ids::fresh_number()?), now());
    let run_id = ids::format_run(number);
    let run = NewRun {
        id: number,
        occurrence_key: format!("manual:{run_id}"),
        nominal_time: at,
        due_time: at,
        skipped: None,
        note: Some(json!({ "reason": reason }).to_string()),
        requested_by: Some(caller.id.clone()),
    };
    let triggered = TriggeredRun {
        run_id: run_id.clone(),
        schedule_id: ids::format_schedule(stored.id),
        occurrence_key: run.occurrence_key.clone(),
        status: "pending".to_owned(),
        created_at: time(at),
    };
    let (tenant, run) = (caller.tenant.clone(), Box::new(run));
    let write = ScheduleWrite::Trigger { tenant, schedule: stored.id, run, at };
    let does =
        ("schedule.trigger", triggered.schedule_id.as_str(), json!({ "run": run_id, "reason": reason }));
    match store_audited(&app, &caller, write, does).await? {
        Applied::Done => Ok(Json(triggered)),
        Applied::QueueFull => Err(queue_full()),
        Applied::Duplicate => Err(Problem::not_found("schedule", &id)),
        other => Err(unexpected_applied(other)),
    }
}
