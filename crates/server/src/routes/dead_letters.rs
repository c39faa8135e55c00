//! `/api/v1/dead-letters`: occurrences of schedules whose last attempt failed.

use super::paging::Paged;
use super::schedules::{TAG, queue_full, store_audited};
use super::shared::Refusals;
use crate::app::{App, unexpected_applied};
use crate::auth::{Caller, Permission};
use crate::body::Params;
use crate::host::now;
use crate::ids;
use crate::problem::{Problem, Refused};
use axum::Json;
use axum::extract::{Path, State};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use windlass_store::{
    Applied, DeadLetterQuery, NewRun, ScheduleRunId, ScheduleWrite, Schedules as _, StoredDeadLetter,
};
use windlass_views::time;

const LIST: Paged = Paged { name: "dead-letters", usual: 50, most: 200 };

pub(crate) fn router() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(list_dead_letters))
        .routes(routes!(get_dead_letter))
        .routes(routes!(redrive_dead_letter))
        .routes(routes!(discard_dead_letter))
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct DeadLetterParams {
    schedule_id: Option<String>,
    #[param(minimum = 1, maximum = 200)]
    limit: Option<usize>,
    cursor: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DeadLetterView {
    /// `dlq_` and 32 hexadecimal digits
    id: String,
    /// The attempt that failed last
    run_id: String,
    schedule_id: String,
    occurrence_key: String,
    reason: String,
    #[schema(value_type = Option<Value>)]
    payload_json: Value,
    #[schema(format = DateTime)]
    created_at: String,
    #[schema(format = DateTime)]
    resolved_at: Option<String>,
    /// `redriven` or `discarded`
    resolution: Option<String>,
}

impl From<StoredDeadLetter> for DeadLetterView {
    fn from(letter: StoredDeadLetter) -> DeadLetterView {
        let payload = letter.payload_json.and_then(|text| serde_json::from_str(&text).ok());
        DeadLetterView {
            id: ids::format_dead_letter(letter.id),
            run_id: ids::format_run(letter.run),
            schedule_id: ids::format_schedule(letter.schedule),
            occurrence_key: letter.occurrence_key,
            reason: letter.reason,
            payload_json: payload.unwrap_or(Value::Null),
            created_at: time(letter.created_at),
            resolved_at: letter.resolved_at.map(time),
            resolution: letter.resolution,
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DeadLetterList {
    /// Newest first
    items: Vec<DeadLetterView>,
    /// Send as `cursor` to get the next page; null on the last page
    next_cursor: Option<String>,
}

/// List dead letters
#[utoipa::path(get, path = "/api/v1/dead-letters", tag = TAG, security(("bearer" = [])), params(DeadLetterParams),
    responses((status = 200, body = DeadLetterList), Refusals))]
async fn list_dead_letters(
    State(app): State<Arc<App>>,
    caller: Caller,
    Params(params): Params<DeadLetterParams>,
) -> Result<Json<DeadLetterList>, Problem> {
    caller.may(Permission::View)?;
    let limit = LIST.limit(params.limit)?;
    let before = LIST.place(params.cursor.as_deref(), |text| ids::dead_letter(text).ok())?;
    let wrong = |_| Problem::invalid("schedule_id", "is not the id of a schedule");
    let schedule = params.schedule_id.as_deref().map(ids::schedule).transpose().map_err(wrong)?;
    let query = DeadLetterQuery { tenant: caller.tenant.clone(), schedule, before, limit: limit + 1 };
    let mut found = app.readers.of(&caller.tenant).look(move |reader| reader.dead_letters(&query)).await?;
    let next_cursor = LIST.cut(&mut found, limit, |last| ids::format_dead_letter(last.id)).cursor;
    Ok(Json(DeadLetterList { items: found.into_iter().map(DeadLetterView::from).collect(), next_cursor }))
}

/// Get a dead letter
#[utoipa::path(get, path = "/api/v1/dead-letters/{id}", tag = TAG, security(("bearer" = [])),
    params(("id" = String, Path, description = "Id of the dead letter")),
    responses((status = 200, body = DeadLetterView), Refusals))]
async fn get_dead_letter(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<DeadLetterView>, Problem> {
    caller.may(Permission::View)?;
    find(&app, &caller, &id).await.map(|letter| Json(letter.into()))
}

async fn find(app: &App, caller: &Caller, id: &str) -> Result<StoredDeadLetter, Problem> {
    let (tenant, number) = (caller.tenant.clone(), ids::dead_letter(id)?);
    let found =
        app.readers.of(&caller.tenant).look(move |reader| reader.dead_letter(&tenant, number)).await?;
    found.ok_or_else(|| Problem::not_found("dead letter", id))
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Redriven {
    run_id: String,
}

/// Run the occurrence again
///
/// A new run begins with its first attempt. The overlap policy applies. The dead letter stays, as redriven.
#[utoipa::path(post, path = "/api/v1/dead-letters/{id}/redrive", tag = TAG, security(("bearer" = [])),
    params(("id" = String, Path, description = "Id of the dead letter")),
    responses((status = 200, body = Redriven),
        (status = 409, body = Refused, description = "It was resolved before, or too many runs of its schedule wait"),
        Refusals))]
async fn redrive_dead_letter(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Redriven>, Problem> {
    caller.may(Permission::Execute)?;
    let letter = find(&app, &caller, &id).await?;
    let (number, at) = (ScheduleRunId(ids::fresh_number()?), now());
    let run_id = ids::format_run(number);
    let run = NewRun {
        id: number,
        occurrence_key: format!("manual:{run_id}"),
        nominal_time: at,
        due_time: at,
        skipped: None,
        note: Some(json!({ "redriven": letter.occurrence_key }).to_string()),
        requested_by: Some(caller.id.clone()),
    };
    resolve(&app, &caller, &letter, Some(Box::new(run))).await?;
    Ok(Json(Redriven { run_id }))
}

/// Mark a dead letter as resolved without another run
#[utoipa::path(post, path = "/api/v1/dead-letters/{id}/discard", tag = TAG, security(("bearer" = [])),
    params(("id" = String, Path, description = "Id of the dead letter")),
    responses((status = 200, body = DeadLetterView), (status = 409, body = Refused, description = "It was resolved before"), Refusals))]
async fn discard_dead_letter(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<DeadLetterView>, Problem> {
    caller.may(Permission::Execute)?;
    let letter = find(&app, &caller, &id).await?;
    resolve(&app, &caller, &letter, None).await?;
    find(&app, &caller, &id).await.map(|letter| Json(letter.into()))
}

async fn resolve(
    app: &App,
    caller: &Caller,
    letter: &StoredDeadLetter,
    redriven: Option<Box<NewRun>>,
) -> Result<(), Problem> {
    let action = if redriven.is_some() { "dead_letter.redrive" } else { "dead_letter.discard" };
    let id = ids::format_dead_letter(letter.id);
    let write =
        ScheduleWrite::Resolve { tenant: caller.tenant.clone(), letter: letter.id, redriven, at: now() };
    match store_audited(app, caller, write, (action, &id, json!({}))).await? {
        Applied::Done => Ok(()),
        Applied::Conflict => {
            Err(Problem::conflict("the dead letter was already redriven or discarded; see its `resolution`"))
        }
        Applied::QueueFull => Err(queue_full()),
        Applied::Duplicate => Err(Problem::not_found("dead letter", &id)),
        other => Err(unexpected_applied(other)),
    }
}
