//! `/api/v1/schedules`: times at which executions start by themselves.

mod backfill;
mod change;
mod control;
mod explain;

pub(crate) use change::check_room;

use super::paging::Paged;
use super::shared::{Refusals, tagged};
use crate::app::App;
use crate::auth::{Caller, Permission};
use crate::body::Params;
use crate::ids;
use crate::problem::{Problem, ProblemCode};
use crate::scheduler::stored::SpecColumn;
use axum::Json;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use windlass_store::{Applied, Entry, ScheduleQuery, ScheduleWrite, Schedules as _, StoredSchedule};
use windlass_views::{time, workflow_id};

pub(super) const TAG: &str = "schedules";
const LIST: Paged = Paged { name: "schedules", usual: 50, most: 200 };

pub(crate) fn router() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(change::create_schedule, list_schedules))
        .routes(routes!(
            get_schedule,
            change::replace_schedule,
            change::patch_schedule,
            change::delete_schedule
        ))
        .routes(routes!(control::pause_schedule))
        .routes(routes!(control::resume_schedule))
        .routes(routes!(control::trigger_schedule))
        .routes(routes!(explain::explain_schedule))
        .routes(routes!(backfill::backfill_schedule))
}

/// A schedule with everything that the server manages. Fields that are not set are null.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ScheduleView {
    /// `sch_` and 32 hexadecimal digits
    id: String,
    /// Number of changes by users, which is its ETag
    revision: u64,
    /// `name`, `enabled`, `timezone`, `schedule`, `target`, `policy`, `retry`, `start_at`, `end_at` and
    /// `dead_letter_webhook`
    #[serde(flatten)]
    #[schema(value_type = Object)]
    document: Map<String, Value>,
    /// The workflow whose trigger created the schedule
    workflow_id: Option<String>,
    #[schema(format = DateTime)]
    paused_at: Option<String>,
    #[schema(format = DateTime)]
    next_run_at: Option<String>,
    /// Time of the last run that succeeded
    #[schema(format = DateTime)]
    last_run_at: Option<String>,
    #[schema(format = DateTime)]
    created_at: String,
    #[schema(format = DateTime)]
    updated_at: String,
}

impl ScheduleView {
    pub(super) fn of(schedule: &StoredSchedule) -> Result<ScheduleView, Problem> {
        let mut document = SpecColumn::read(schedule)?.document;
        document.insert("enabled".to_owned(), schedule.enabled.into());
        Ok(ScheduleView {
            id: ids::format_schedule(schedule.id),
            revision: schedule.revision,
            document,
            workflow_id: schedule.workflow.map(|id| workflow_id(id.0)),
            paused_at: schedule.paused_at.map(time),
            next_run_at: schedule.next_run_at.map(time),
            last_run_at: schedule.last_run_at.map(time),
            created_at: time(schedule.created_at),
            updated_at: time(schedule.updated_at),
        })
    }

    /// Replaces policies and target by the kind of the target, as lists show it.
    fn summarised(mut self) -> ScheduleView {
        let kind = self.document.get("target").map(|target| target["kind"].clone()).unwrap_or_default();
        for field in ["target", "policy", "retry", "start_at", "end_at", "dead_letter_webhook"] {
            self.document.remove(field);
        }
        self.document.insert("target_kind".to_owned(), kind);
        self
    }
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ScheduleParams {
    enabled: Option<bool>,
    name: Option<String>,
    #[param(minimum = 1, maximum = 200)]
    limit: Option<usize>,
    cursor: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ScheduleList {
    /// Newest first, without target and policies
    items: Vec<ScheduleView>,
    /// Send as `cursor` to get the next page; null on the last page
    next_cursor: Option<String>,
}

/// List schedules
#[utoipa::path(get, path = "/api/v1/schedules", tag = TAG, security(("bearer" = [])), params(ScheduleParams),
    responses((status = 200, body = ScheduleList), Refusals))]
async fn list_schedules(
    State(app): State<Arc<App>>,
    caller: Caller,
    Params(params): Params<ScheduleParams>,
) -> Result<Json<ScheduleList>, Problem> {
    caller.may(Permission::View)?;
    let limit = LIST.limit(params.limit)?;
    let before = LIST.place(params.cursor.as_deref(), |text| ids::schedule(text).ok())?;
    let query = ScheduleQuery {
        tenant: caller.tenant.clone(),
        enabled: params.enabled,
        name: params.name,
        before,
        limit: limit + 1,
    };
    let mut found = app.readers.of(&caller.tenant).look(move |reader| reader.schedules(&query)).await?;
    let next_cursor = LIST.cut(&mut found, limit, |last| ids::format_schedule(last.id)).cursor;
    let items = found.iter().map(|schedule| Ok(ScheduleView::of(schedule)?.summarised()));
    Ok(Json(ScheduleList { items: items.collect::<Result<_, Problem>>()?, next_cursor }))
}

/// Get a schedule
#[utoipa::path(get, path = "/api/v1/schedules/{id}", tag = TAG, security(("bearer" = [])),
    params(("id" = String, Path, description = "Id of the schedule")),
    responses((status = 200, body = ScheduleView, headers(("ETag" = String, description = "Its revision"))), Refusals))]
async fn get_schedule(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<(HeaderMap, Json<ScheduleView>), Problem> {
    caller.may(Permission::View)?;
    let stored = find(&app, &caller, &id).await?;
    Ok((tagged(stored.revision), Json(ScheduleView::of(&stored)?)))
}

/// Returns a schedule of the caller's tenant.
pub(super) async fn find(app: &App, caller: &Caller, id: &str) -> Result<StoredSchedule, Problem> {
    let (tenant, number) = (caller.tenant.clone(), ids::schedule(id)?);
    let found = app.readers.of(&caller.tenant).look(move |reader| reader.schedule(&tenant, number)).await?;
    found.ok_or_else(|| Problem::not_found("schedule", id))
}

/// Writes a change that a caller requested, with its audit entry, and wakes the scheduler.
pub(super) async fn store_audited(
    app: &App,
    caller: &Caller,
    write: ScheduleWrite,
    (action, target, details): (&str, &str, Value),
) -> Result<Applied, Problem> {
    let audit = caller.audit_entry(action, target, details);
    let applied = app.store_entries(vec![Entry::Schedule(Box::new(write)).audited(audit)]).await?;
    app.schedule_bell.notify_one();
    applied.first().copied().ok_or_else(|| Problem::internal("a write was not answered"))
}

pub(super) fn queue_full() -> Problem {
    Problem::conflict("too many runs of the schedule wait; cancel some of them or wait until they have run")
}

pub(super) fn has_newer_revision() -> Problem {
    Problem::new(
        ProblemCode::PreconditionFailed,
        "the schedule was changed meanwhile; get it, and send the change again with its ETag",
    )
}

pub(super) fn changed_meanwhile() -> Problem {
    Problem::conflict("the schedule was changed meanwhile; get it and send the change again")
}
