//! Explanations of the next runs of a schedule, and of past occurrences.

use super::{TAG, find};
use crate::app::App;
use crate::auth::{Caller, Permission};
use crate::body::Params;
use crate::host::now;
use crate::ids;
use crate::problem::Problem;
use crate::routes::paging::Paged;
use crate::routes::shared::Refusals;
use crate::scheduler::stored::{SpecColumn, instant, millis};
use axum::Json;
use axum::extract::{Path, State};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::ToSchema;
use windlass_kernel::Millis;
use windlass_schedule::{Cadence, RunStatus, ScheduleSpec, occurrence_key, spread_due_time};
use windlass_store::{ChainQuery, Schedules as _, StoredRun, StoredSchedule};
use windlass_views::time;

const NEXT_MAX: usize = 100;
const PAST: Paged = Paged { name: "occurrences", usual: 20, most: 100 };

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
    /// `past_cursor` of the page before
    cursor: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Explanation {
    next: Vec<NextOccurrence>,
    /// Newest first
    past: Vec<PastOccurrence>,
    /// Send as `cursor` to get older past occurrences; null if there are none
    past_cursor: Option<String>,
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
/// The response explains the times of the next runs, and why each past occurrence ran, was skipped or failed.
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
    let (next, past) = (params.next.unwrap_or(5), params.past.unwrap_or(PAST.usual));
    if next > NEXT_MAX || past > PAST.most {
        let message = format!("must be a number from 0 to {NEXT_MAX}");
        return Err(Problem::invalid(if next > NEXT_MAX { "next" } else { "past" }, message));
    }
    let schedule = find(&app, &caller, &id).await?;
    let spec = SpecColumn::read(&schedule)?.spec(&schedule)?;
    let before = PAST.place(params.cursor.as_deref(), parse_place)?;
    let query = ChainQuery { schedule: schedule.id, before, limit: past + 1 };
    let runs = app.readers.of(&caller.tenant).look(move |reader| reader.chains(&query)).await?;
    let is_same = |one: &StoredRun, other: &StoredRun| one.occurrence_key == other.occurrence_key;
    let mut chains: Vec<&[StoredRun]> = runs.chunk_by(is_same).collect();
    let past_cursor = PAST.cut(&mut chains, past, |chain| format_place(chain)).cursor;
    Ok(Json(Explanation {
        next: next_occurrences(&schedule, &spec, next),
        past: chains.iter().filter_map(|chain| past_occurrence(&schedule, chain)).collect(),
        past_cursor,
    }))
}

fn format_place(chain: &[StoredRun]) -> String {
    chain.first().map(|run| format!("{}:{}", run.nominal_time.0, run.occurrence_key)).unwrap_or_default()
}

fn parse_place(text: &str) -> Option<(Millis, String)> {
    let (at, key) = text.split_once(':')?;
    Some((Millis(at.parse().ok()?), key.to_owned()))
}

fn next_occurrences(schedule: &StoredSchedule, spec: &ScheduleSpec, count: usize) -> Vec<NextOccurrence> {
    let Some(first) = schedule.next_run_at.map(instant) else { return Vec::new() };
    let late = first < instant(now());
    let later = spec.timetable.occurrences(first);
    let times = std::iter::once(first).chain(later).take(count);
    let reason = |at: Timestamp| {
        let mut reason = describe(spec, at);
        if late && at == first {
            reason.push_str("; it is late, and the misfire policy decides about it");
        }
        let key = occurrence_key(&ids::format_schedule(schedule.id), at);
        let due = spread_due_time(&key, at, spec.policy.jitter_seconds);
        if due != at {
            reason.push_str(&format!("; its jitter lets it start at {}", time(millis(due))));
        }
        reason
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

/// Explains an occurrence by the attempts at it, the first one first.
fn past_occurrence(schedule: &StoredSchedule, chain: &[StoredRun]) -> Option<PastOccurrence> {
    let last = chain.last()?;
    Some(PastOccurrence {
        occurrence_key: last.occurrence_key.clone(),
        nominal_time: time(last.nominal_time),
        status: last.status.name().to_owned(),
        reason: explain_chain(schedule, chain, last),
        run_ids: chain.iter().map(|run| ids::format_run(run.id)).collect(),
    })
}

/// Explains the newest attempt, with an earlier failed one and the person who started it.
fn explain_chain(schedule: &StoredSchedule, chain: &[StoredRun], last: &StoredRun) -> String {
    let mut reason = explain_run(schedule, last);
    let before =
        chain.iter().rev().nth(1).and_then(|run| run.error_text.as_deref().map(|error| (run.attempt, error)));
    if let Some((attempt, error)) = before {
        reason.push_str(&format!("; attempt {attempt} had failed: {error}"));
    }
    if last.occurrence_key.starts_with("manual:") {
        reason.push_str("; it was started by a person");
    }
    reason
}

fn explain_run(schedule: &StoredSchedule, run: &StoredRun) -> String {
    let error = run.error_text.as_deref().unwrap_or("no reason was recorded");
    let attempt = run.attempt;
    match run.status {
        RunStatus::Pending if run.due_time > now() => {
            format!("it starts at {}, within the jitter of the schedule", time(run.due_time))
        }
        RunStatus::Pending => {
            let overlap = schedule.policy.overlap.name();
            format!("it is due and waits: the policy `{overlap}` lets no further run begin now")
        }
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
