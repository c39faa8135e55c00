//! Runs of occurrences in the past.

use super::{TAG, find, queue_full, store_audited};
use crate::app::{App, unexpected_applied};
use crate::auth::{Caller, Permission};
use crate::body::JsonBody;
use crate::host::now;
use crate::ids;
use crate::problem::{Problem, Refused};
use crate::routes::shared::{BodyRefusals, Refusals};
use crate::scheduler::stored::{SpecColumn, instant, millis};
use axum::Json;
use axum::extract::{Path, State};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use utoipa::ToSchema;
use windlass_schedule::{ScheduleSpec, occurrence_key};
use windlass_store::rules::is_backfilled;
use windlass_store::{
    Applied, NewRun, ScheduleRunId, ScheduleWrite, Schedules as _, StoredRun, StoredSchedule,
};
use windlass_views::time;

/// Maximum number of occurrences of one backfill, and of its time span.
const OCCURRENCES_MAX: usize = 1_000;
/// Maximum number of runs that are read to find the occurrences that have one: attempts count, too.
const RUNS_MAX: usize = 20_000;

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BackfillRequest {
    /// The first nominal time
    #[schema(format = DateTime)]
    from: String,
    /// The last nominal time; not in the future
    #[schema(format = DateTime)]
    to: String,
    /// Respond with the runs that would be created, and create none
    #[serde(default)]
    dry_run: bool,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Backfilled {
    /// Nominal times without a run, or whose run was skipped; the earliest first
    occurrences: Vec<String>,
    /// Number of created runs; 0 with `dry_run`
    created: usize,
}

/// Run the occurrences of a past time
///
/// Occurrences that ran, run or wait are left out; skipped ones run. The overlap policy applies.
#[utoipa::path(post, path = "/api/v1/schedules/{id}/backfill", tag = TAG, security(("bearer" = [])),
    params(("id" = String, Path, description = "Id of the schedule")), request_body = BackfillRequest,
    responses((status = 200, body = Backfilled), (status = 409, body = Refused, description = "Too many runs wait"),
        Refusals, BodyRefusals))]
pub(super) async fn backfill_schedule(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    JsonBody(request): JsonBody<BackfillRequest>,
) -> Result<Json<Backfilled>, Problem> {
    caller.may(Permission::Execute)?;
    let schedule = find(&app, &caller, &id).await?;
    let spec = SpecColumn::read(&schedule)?.spec(&schedule)?;
    let nominal = nominal_times(&spec, &request)?;
    let missing = find_missing(&app, &caller, &schedule, nominal).await?;
    let occurrences: Vec<String> = missing.iter().map(|missing| time(millis(missing.nominal))).collect();
    if request.dry_run || missing.is_empty() {
        return Ok(Json(Backfilled { occurrences, created: 0 }));
    }
    let runs =
        missing.iter().map(|missing| new_run(&schedule, &caller, missing)).collect::<Result<Vec<_>, _>>()?;
    let created = runs.len();
    let tenant = caller.tenant.clone();
    let write = ScheduleWrite::Backfill { tenant, schedule: schedule.id, runs, at: now() };
    let id = ids::format_schedule(schedule.id);
    let details = json!({ "from": request.from, "to": request.to, "runs": created });
    match store_audited(&app, &caller, write, ("schedule.backfill", &id, details)).await? {
        Applied::Done => Ok(Json(Backfilled { occurrences, created })),
        Applied::QueueFull => Err(queue_full()),
        Applied::Duplicate => Err(Problem::not_found("schedule", &id)),
        other => Err(unexpected_applied(other)),
    }
}

/// An occurrence that a backfill runs.
struct MissingOccurrence {
    nominal: Timestamp,
    /// The key of the occurrence belongs to a run that was skipped.
    was_skipped: bool,
}

fn nominal_times(spec: &ScheduleSpec, request: &BackfillRequest) -> Result<Vec<Timestamp>, Problem> {
    let parse = |field: &'static str, text: &str| {
        let wrong = |_| Problem::invalid(field, "must be a time as in 2030-01-31T00:00:00Z");
        text.parse::<Timestamp>().map_err(wrong)
    };
    let (from, to) = (parse("from", &request.from)?, parse("to", &request.to)?);
    if to < from {
        return Err(Problem::invalid("to", "must not be before from"));
    }
    if to > instant(now()) {
        return Err(Problem::invalid("to", "must not be in the future"));
    }
    let before = from.checked_sub(SignedDuration::from_nanos(1)).unwrap_or(from);
    let times = spec.timetable.occurrences(before).take_while(|nominal| *nominal <= to);
    let times: Vec<Timestamp> = times.take(OCCURRENCES_MAX + 1).collect();
    match times.len() > OCCURRENCES_MAX {
        true => Err(Problem::invalid(
            "to",
            format!("the time has more than {OCCURRENCES_MAX} occurrences; backfill a part of it first"),
        )),
        false => Ok(times),
    }
}

async fn find_missing(
    app: &App,
    caller: &Caller,
    schedule: &StoredSchedule,
    nominal: Vec<Timestamp>,
) -> Result<Vec<MissingOccurrence>, Problem> {
    let (Some(first), Some(last)) = (nominal.first(), nominal.last()) else { return Ok(Vec::new()) };
    let (id, window) = (schedule.id, (millis(*first), millis(*last)));
    let readers = app.readers.of(&caller.tenant);
    let runs = readers.look(move |reader| reader.nominal_runs(id, window, RUNS_MAX)).await?;
    if runs.len() == RUNS_MAX {
        return Err(Problem::invalid("to", "the time has too many runs; backfill a part of it first"));
    }
    let mut known = BTreeMap::<_, Vec<&StoredRun>>::new();
    runs.iter().for_each(|run| known.entry(run.nominal_time).or_default().push(run));
    let missing = nominal.into_iter().filter_map(|nominal| match known.get(&millis(nominal)) {
        None => Some(MissingOccurrence { nominal, was_skipped: false }),
        Some(runs) => is_backfilled(runs.iter().map(|run| run.status))
            .then_some(MissingOccurrence { nominal, was_skipped: true }),
    });
    Ok(missing.collect())
}

fn new_run(
    schedule: &StoredSchedule,
    caller: &Caller,
    missing: &MissingOccurrence,
) -> Result<NewRun, Problem> {
    let id = ScheduleRunId(ids::fresh_number()?);
    let key = occurrence_key(&ids::format_schedule(schedule.id), missing.nominal);
    let nominal_time = millis(missing.nominal);
    Ok(NewRun {
        id,
        occurrence_key: if missing.was_skipped {
            format!("manual:{}", ids::format_run(id))
        } else {
            key.clone()
        },
        nominal_time,
        due_time: nominal_time,
        skipped: None,
        note: Some(json!({ "backfill": key }).to_string()),
        requested_by: Some(caller.id.clone()),
    })
}
