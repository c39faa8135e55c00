//! Why the next run is when it is, and what became of past occurrences.

use super::{TAG, find};
use crate::app::App;
use crate::auth::{Caller, Permission};
use crate::body::Params;
use crate::host::now;
use crate::ids;
use crate::problem::Problem;
use crate::routes::shared::Refusals;
use crate::scheduler::stored::{SpecColumn, instant, millis};
use axum::Json;
use axum::extract::{Path, State};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::ToSchema;
use windlass_schedule::{Cadence, RunStatus, ScheduleSpec};
use windlass_store::{RunQuery, Schedules as _, StoredRun, StoredSchedule};
use windlass_views::time;

const NEXT_MAX: usize = 100;
const PAST_MAX: usize = 100;
/// Runs that are read for each past occurrence: most have one attempt.
const RUNS_EACH: usize = 5;

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ExplainParams {
    /// Number of future occurrences; 5 by default
    #[param(maximum = 100)]
    next: Option<usize>,
    /// Number of past occurrences; 20 by default
    #[param(maximum = 100)]
    past: Option<usize>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Explanation {
    next: Vec<NextOccurrence>,
    /// Newest first
    past: Vec<PastOccurrence>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NextOccurrence {
    #[schema(format = DateTime)]
    nominal_time: String,
    reason: String,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PastOccurrence {
    occurrence_key: String,
    #[schema(format = DateTime)]
    nominal_time: String,
    /// Status of the newest attempt
    status: String,
    reason: String,
    /// All attempts, the first one first
    run_ids: Vec<String>,
}

/// Explain a schedule
///
/// The answer says why the next runs are when they are, and why each past occurrence ran, was skipped or failed.
#[utoipa::path(get, path = "/api/v1/schedules/{id}/explain", tag = TAG, security(("bearer" = [])),
    params(("id" = String, Path, description = "Id of the schedule"), ExplainParams),
    responses((status = 200, body = Explanation), Refusals))]
pub(super) async fn explain_schedule(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    Params(params): Params<ExplainParams>,
) -> Result<Json<Explanation>, Problem> {
    caller.may(Permission::View)?;
    let (next, past) = (params.next.unwrap_or(5), params.past.unwrap_or(20));
    if next > NEXT_MAX || past > PAST_MAX {
        let message = format!("must be a number from 0 to {NEXT_MAX}");
        return Err(Problem::invalid(if next > NEXT_MAX { "next" } else { "past" }, message));
    }
    let schedule = find(&app, &caller, &id).await?;
    let spec = SpecColumn::read(&schedule)?.spec(&schedule)?;
    let query = RunQuery {
        tenant: caller.tenant.clone(),
        schedule: Some(schedule.id),
        status: None,
        before: None,
        limit: past * RUNS_EACH,
    };
    let runs = app.readers.of(&caller.tenant).look(move |reader| reader.schedule_runs(&query)).await?;
    Ok(Json(Explanation {
        next: next_occurrences(&schedule, &spec, next),
        past: past_occurrences(runs, past),
    }))
}

fn next_occurrences(schedule: &StoredSchedule, spec: &ScheduleSpec, count: usize) -> Vec<NextOccurrence> {
    let Some(first) = schedule.next_run_at.map(instant) else { return Vec::new() };
    let late = first < instant(now());
    let later = spec.timetable.occurrences(first);
    let times = std::iter::once(first).chain(later).take(count);
    let reason = |at: Timestamp| match late && at == first {
        true => format!("{}; it is late, and the misfire policy decides about it", describe(spec, at)),
        false => describe(spec, at),
    };
    times.map(|at| NextOccurrence { nominal_time: time(millis(at)), reason: reason(at) }).collect()
}

fn describe(spec: &ScheduleSpec, at: Timestamp) -> String {
    let local = spec.timetable.zone.format(at);
    match &spec.timetable.cadence {
        Cadence::Cron(_) => {
            let zone = spec.timetable.zone.name();
            format!("`{}` matches {local} in {zone}", spec.expression().unwrap_or_default())
        }
        Cadence::Interval { every_seconds, anchor } => {
            format!("every {every_seconds} s from {}", time(millis(*anchor)))
        }
        Cadence::Once { .. } => "the only occurrence".to_owned(),
    }
}

/// Groups runs by occurrence, the newest first.
fn past_occurrences(runs: Vec<StoredRun>, count: usize) -> Vec<PastOccurrence> {
    let mut chains: Vec<Vec<StoredRun>> = Vec::new();
    for run in runs {
        match chains.iter_mut().find(|chain| chain[0].occurrence_key == run.occurrence_key) {
            Some(chain) => chain.push(run),
            None => chains.push(vec![run]),
        }
    }
    let explain = |mut chain: Vec<StoredRun>| {
        chain.sort_by_key(|run| run.attempt);
        let last = chain.last()?.clone();
        Some(PastOccurrence {
            nominal_time: time(last.nominal_time),
            status: last.status.name().to_owned(),
            reason: explain_run(&last),
            run_ids: chain.iter().map(|run| ids::format_run(run.id)).collect(),
            occurrence_key: last.occurrence_key,
        })
    };
    chains.into_iter().take(count).filter_map(explain).collect()
}

fn explain_run(run: &StoredRun) -> String {
    let error = run.error_text.as_deref().unwrap_or("no reason was recorded");
    let attempt = run.attempt;
    match run.status {
        RunStatus::Pending => "it is due and waits for a free place under the overlap policy".to_owned(),
        RunStatus::Claimed => "it is about to start".to_owned(),
        RunStatus::Running => format!("attempt {attempt} is running"),
        RunStatus::Succeeded => format!("attempt {attempt} succeeded"),
        RunStatus::Failed => format!("attempt {attempt} failed: {error}"),
        RunStatus::RetryScheduled => {
            let at = run.retry_available_at.map(time).unwrap_or_default();
            format!("attempt {} failed; attempt {attempt} follows at {at}", attempt.saturating_sub(1))
        }
        RunStatus::DeadLettered => format!("attempt {attempt} was the last one and failed: {error}"),
        RunStatus::Cancelled | RunStatus::Skipped => error.to_owned(),
    }
}
