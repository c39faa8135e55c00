//! Creation, changes and deletion of schedules.

use super::{ScheduleView, TAG, changed_meanwhile, find, has_newer_revision, store_audited};
use crate::app::{App, unexpected_applied};
use crate::auth::{Caller, Permission};
use crate::body::Params;
use crate::host::now;
use crate::ids;
use crate::problem::{Problem, Refused};
use crate::routes::executions::check_webhook_url;
use crate::routes::shared::{BodyRefusals, Refusals, parse_if_match, tagged};
use crate::routes::workflows::{Text, register_target};
use crate::scheduler::plan::plan_before_change;
use crate::scheduler::stored::{SpecColumn, instant, millis, refuse_fields};
use crate::scheduler::target;
use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use utoipa::ToSchema;
use windlass_dialects::as_json;
use windlass_kernel::Millis;
use windlass_schedule::{ScheduleSpec, Target};
use windlass_store::{
    Applied, Entry, Reader as _, ScheduleId, ScheduleQuery, ScheduleWrite, Schedules as _, StoredSchedule,
    Which, WorkflowId,
};
use windlass_views::workflow_id;

/// Maximum number of schedules of one tenant.
const SCHEDULES_MAX: usize = 20_000;

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ChangeParams {
    /// Only check the schedule, and respond with the resulting one
    #[serde(default)]
    dry_run: bool,
}

/// Create a schedule
///
/// JSON or YAML. Omitted fields have their defaults.
#[utoipa::path(post, path = "/api/v1/schedules", tag = TAG, security(("bearer" = [])), params(ChangeParams),
    request_body(content((Value = "application/json"), (Value = "application/yaml"), (Value = "text/yaml"), (String = "text/plain"))),
    responses((status = 201, body = ScheduleView), (status = 200, body = ScheduleView, description = "With `dry_run`"),
        (status = 409, body = Refused, description = "The name is taken"),
        Refusals, BodyRefusals))]
pub(super) async fn create_schedule(
    State(app): State<Arc<App>>,
    caller: Caller,
    Params(params): Params<ChangeParams>,
    Text(text): Text,
) -> Result<(StatusCode, Json<ScheduleView>), Problem> {
    caller.may(Permission::Edit)?;
    let at = now();
    let spec = parse(&read_document(&text)?, at)?;
    // An interval without an anchor begins at once.
    let first = spec
        .first_after(instant(Millis(at.0 - 1)))
        .map_err(|problem| refuse_fields([problem].into_iter()))?;
    check_target(&app, &caller, &spec).await?;
    check_room(&app, &caller).await?;
    if is_named(&app, &caller, &spec.name).await? {
        return Err(name_is_taken(&spec.name));
    }
    if params.dry_run {
        let schedule = new_schedule(&caller, &spec, None, (at, first))?;
        return Ok((StatusCode::OK, Json(ScheduleView::of(&schedule)?)));
    }
    let definition = register_definition(&app, &caller, &spec, None).await?;
    let schedule = new_schedule(&caller, &spec, definition, (at, first))?;
    let id = ids::format_schedule(schedule.id);
    let write = ScheduleWrite::Create(Box::new(schedule.clone()));
    match store_audited(&app, &caller, write, ("schedule.create", &id, json!({ "name": spec.name }))).await? {
        Applied::Done => Ok((StatusCode::CREATED, Json(ScheduleView::of(&schedule)?))),
        refused => {
            delete_definition(&app, &caller, schedule.definition).await?;
            Err(match refused {
                Applied::Taken => name_is_taken(&spec.name),
                other => unexpected_applied(other),
            })
        }
    }
}

fn new_schedule(
    caller: &Caller,
    spec: &ScheduleSpec,
    definition: Option<WorkflowId>,
    (at, first): (Millis, Timestamp),
) -> Result<StoredSchedule, Problem> {
    let column = SpecColumn { document: spec.to_json(), by: caller.id.clone() };
    Ok(StoredSchedule {
        id: ScheduleId(ids::fresh_number()?),
        tenant: caller.tenant.clone(),
        name: spec.name.clone(),
        enabled: spec.enabled,
        spec: column.write()?,
        policy: spec.policy,
        retry: spec.retry,
        revision: 1,
        paused_at: None,
        next_run_at: spec.enabled.then_some(millis(first)),
        last_run_at: None,
        definition,
        workflow: None,
        dead_letter_url: spec.dead_letter_webhook.clone(),
        created_at: at,
        updated_at: at,
    })
}

/// Refuses a schedule beyond the maximum of the tenant, or when its storage is used up.
pub(crate) async fn check_room(app: &App, caller: &Caller) -> Result<(), Problem> {
    app.storage.check(&caller.tenant)?;
    let tenant = caller.tenant.clone();
    let count = app.readers.of(&caller.tenant).look(move |reader| reader.count_schedules(&tenant)).await?;
    match count < SCHEDULES_MAX {
        true => Ok(()),
        false => Err(Problem::conflict(format!(
            "the tenant has {SCHEDULES_MAX} schedules, which is the limit; delete some of them"
        ))),
    }
}

/// Replace a schedule
#[utoipa::path(put, path = "/api/v1/schedules/{id}", tag = TAG, security(("bearer" = [])),
    params(("id" = String, Path, description = "Id of the schedule"),
        ("If-Match" = Option<String>, Header, description = "The ETag of the revision that the change was made from"), ChangeParams),
    request_body(content((Value = "application/json"), (Value = "application/yaml"), (Value = "text/yaml"), (String = "text/plain"))),
    responses((status = 200, body = ScheduleView, headers(("ETag" = String, description = "Its revision"))),
        (status = 409, body = Refused), (status = 412, body = Refused, description = "The schedule has another revision"),
        Refusals, BodyRefusals))]
pub(super) async fn replace_schedule(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    Params(params): Params<ChangeParams>,
    headers: HeaderMap,
    Text(text): Text,
) -> Result<(HeaderMap, Json<ScheduleView>), Problem> {
    caller.may(Permission::Edit)?;
    let stored = find(&app, &caller, &id).await?;
    check_revision(&stored, &headers)?;
    change(&app, &caller, stored, read_document(&text)?, params).await
}

/// Change some fields of a schedule
///
/// Objects are merged key by key; null clears a field.
#[utoipa::path(patch, path = "/api/v1/schedules/{id}", tag = TAG, security(("bearer" = [])),
    params(("id" = String, Path, description = "Id of the schedule"),
        ("If-Match" = Option<String>, Header, description = "The ETag of the revision that the change was made from"), ChangeParams),
    request_body(content((Value = "application/json"), (Value = "application/yaml"), (Value = "text/yaml"), (String = "text/plain"))),
    responses((status = 200, body = ScheduleView, headers(("ETag" = String, description = "Its revision"))),
        (status = 409, body = Refused), (status = 412, body = Refused, description = "The schedule has another revision"),
        Refusals, BodyRefusals))]
pub(super) async fn patch_schedule(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    Params(params): Params<ChangeParams>,
    headers: HeaderMap,
    Text(text): Text,
) -> Result<(HeaderMap, Json<ScheduleView>), Problem> {
    caller.may(Permission::Edit)?;
    let stored = find(&app, &caller, &id).await?;
    check_revision(&stored, &headers)?;
    let mut document = SpecColumn::read(&stored)?.document;
    document.insert("enabled".to_owned(), stored.enabled.into());
    let mut document = Value::Object(document);
    merge(&mut document, &read_document(&text)?);
    change(&app, &caller, stored, document, params).await
}

/// Refuses a change that was made from another revision than the stored one.
fn check_revision(stored: &StoredSchedule, headers: &HeaderMap) -> Result<(), Problem> {
    match parse_if_match::<u64>(headers, "schedule")? {
        Some(revision) if revision != stored.revision => Err(has_newer_revision()),
        Some(_) | None => Ok(()),
    }
}

/// Merges objects key by key. An object of another kind replaces the previous one, because their fields differ.
fn merge(into: &mut Value, changes: &Value) {
    let (Value::Object(fields), Value::Object(changes)) = (&mut *into, changes) else {
        *into = changes.clone();
        return;
    };
    let is_other_kind = changes.get("kind").is_some_and(|kind| fields.get("kind") != Some(kind));
    if is_other_kind {
        *fields = Map::new();
    }
    for (name, value) in changes {
        match (fields.get_mut(name), value) {
            (Some(known @ Value::Object(_)), Value::Object(_)) => merge(known, value),
            _ => drop(fields.insert(name.clone(), value.clone())),
        }
    }
}

async fn change(
    app: &Arc<App>,
    caller: &Caller,
    stored: StoredSchedule,
    document: Value,
    params: ChangeParams,
) -> Result<(HeaderMap, Json<ScheduleView>), Problem> {
    refuse_triggered(&stored)?;
    let before = SpecColumn::read(&stored)?;
    let old = before.spec(&stored)?;
    let spec = parse(&document, stored.created_at)?;
    check_target(app, caller, &spec).await?;
    // Occurrences until now follow the schedule as it was.
    let revision = stored.revision;
    let stored = if params.dry_run { stored } else { plan_before_change(app, stored).await? };
    if stored.revision != revision {
        return Err(changed_meanwhile());
    }
    let at = now();
    let is_same = spec.timetable == old.timetable;
    let (paused_at, from) = match (spec.enabled, stored.enabled) {
        (true, true) => (None, at),
        // As for a resume, the misfire policy applies to the time of the pause.
        (true, false) => (None, stored.paused_at.filter(|_| is_same).unwrap_or(at)),
        (false, true) => (Some(at), at),
        (false, false) => (stored.paused_at, at),
    };
    let first = spec.first_after(instant(from)).map_err(|problem| refuse_fields([problem].into_iter()))?;
    if spec.name != stored.name && is_named(app, caller, &spec.name).await? {
        return Err(name_is_taken(&spec.name));
    }
    let keeps_times = is_same && spec.enabled == stored.enabled;
    let before = stored.definition;
    let definition = match params.dry_run {
        true => before,
        false => register_definition(app, caller, &spec, Some((&old, before))).await?,
    };
    let column = SpecColumn { document: spec.to_json(), by: caller.id.clone() };
    let changed = StoredSchedule {
        name: spec.name.clone(),
        enabled: spec.enabled,
        spec: column.write()?,
        policy: spec.policy,
        retry: spec.retry,
        paused_at,
        next_run_at: if keeps_times { stored.next_run_at } else { spec.enabled.then_some(millis(first)) },
        definition,
        dead_letter_url: spec.dead_letter_webhook.clone(),
        updated_at: at,
        ..stored
    };
    if params.dry_run {
        return respond(&changed);
    }
    let (id, details) = (ids::format_schedule(changed.id), json!({ "name": spec.name }));
    let write = ScheduleWrite::Change { schedule: Box::new(changed), keeps_times };
    match store_audited(app, caller, write, ("schedule.change", &id, details)).await? {
        Applied::Done if definition == before => {}
        Applied::Done => delete_definition(app, caller, before).await?,
        refused => {
            delete_definition(app, caller, definition.filter(|_| definition != before)).await?;
            return Err(match refused {
                Applied::Taken => name_is_taken(&spec.name),
                Applied::Duplicate => Problem::not_found("schedule", &id),
                Applied::Conflict => changed_meanwhile(),
                other => unexpected_applied(other),
            });
        }
    }
    respond(&find(app, caller, &id).await?)
}

fn respond(schedule: &StoredSchedule) -> Result<(HeaderMap, Json<ScheduleView>), Problem> {
    Ok((tagged(schedule.revision), Json(ScheduleView::of(schedule)?)))
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DeletedSchedule {
    /// Always true
    deleted: bool,
    id: String,
}

/// Delete a schedule with its runs
#[utoipa::path(delete, path = "/api/v1/schedules/{id}", tag = TAG, security(("bearer" = [])),
    params(("id" = String, Path, description = "Id of the schedule")),
    responses((status = 200, body = DeletedSchedule), (status = 409, body = Refused, description = "A run is active"), Refusals))]
pub(super) async fn delete_schedule(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<DeletedSchedule>, Problem> {
    caller.may(Permission::Delete)?;
    let stored = find(&app, &caller, &id).await?;
    refuse_triggered(&stored)?;
    let id = ids::format_schedule(stored.id);
    let write = ScheduleWrite::Delete { tenant: caller.tenant.clone(), schedule: stored.id };
    let does = ("schedule.delete", id.as_str(), json!({ "name": stored.name }));
    match store_audited(&app, &caller, write, does).await? {
        Applied::Done => {}
        Applied::Conflict => {
            return Err(Problem::conflict("a run of the schedule is active; cancel it or wait for its end"));
        }
        Applied::Duplicate => return Err(Problem::not_found("schedule", &id)),
        other => return Err(unexpected_applied(other)),
    }
    delete_definition(&app, &caller, stored.definition).await?;
    Ok(Json(DeletedSchedule { deleted: true, id }))
}

fn read_document(text: &str) -> Result<Value, Problem> {
    as_json(text).ok_or_else(|| Problem::bad_request("the body is neither JSON nor YAML"))
}

fn parse(document: &Value, created_at: Millis) -> Result<ScheduleSpec, Problem> {
    ScheduleSpec::parse(document, instant(created_at)).map_err(|problems| refuse_fields(problems.into_iter()))
}

fn name_is_taken(name: &str) -> Problem {
    Problem::conflict(format!("another schedule has the name `{name}`; choose another name"))
        .at("name", "must be unique")
}

async fn is_named(app: &App, caller: &Caller, name: &str) -> Result<bool, Problem> {
    let (tenant, name) = (caller.tenant.clone(), Some(name.to_owned()));
    let query = ScheduleQuery { tenant, enabled: None, name, before: None, limit: 1 };
    let found = app.readers.of(&caller.tenant).look(move |reader| reader.schedules(&query)).await?;
    Ok(!found.is_empty())
}

/// Refuses to change a schedule of a trigger, which is changed with its workflow.
fn refuse_triggered(schedule: &StoredSchedule) -> Result<(), Problem> {
    let Some(workflow) = schedule.workflow else { return Ok(()) };
    Err(Problem::conflict(format!(
        "the schedule belongs to a trigger of workflow {}; change `scheduleConfig` there, or pause it",
        workflow_id(workflow.0)
    )))
}

/// Refuses a workflow that the tenant does not have, and addresses that cannot receive requests.
async fn check_target(app: &App, caller: &Caller, spec: &ScheduleSpec) -> Result<(), Problem> {
    if let Some(url) = &spec.dead_letter_webhook {
        check_webhook_url("dead_letter_webhook", url, &app.settings.egress)?;
    }
    let Target::Workflow { workflow_id, version, .. } = &spec.target else { return Ok(()) };
    let (tenant, which, version) = (caller.tenant.clone(), Which::of(workflow_id), *version);
    let readers = app.readers.of(&caller.tenant);
    let found = readers.look(move |reader| reader.find_definition(&tenant, &which, version)).await?;
    match found {
        Some(_) => Ok(()),
        None => Err(Problem::invalid("target.workflow_id", format!("there is no workflow `{workflow_id}`"))),
    }
}

/// Registers the definition of an http or shell target, unless it equals the previous one.
async fn register_definition(
    app: &Arc<App>,
    caller: &Caller,
    spec: &ScheduleSpec,
    before: Option<(&ScheduleSpec, Option<WorkflowId>)>,
) -> Result<Option<WorkflowId>, Problem> {
    let Some(definition) = target::definition(spec) else { return Ok(None) };
    if let Some((old, known @ Some(_))) = before
        && target::definition(old).as_ref() == Some(&definition)
    {
        return Ok(known);
    }
    register_target(app, caller, definition.to_string()).await.map(Some)
}

async fn delete_definition(app: &App, caller: &Caller, workflow: Option<WorkflowId>) -> Result<(), Problem> {
    let Some(workflow) = workflow else { return Ok(()) };
    let entry = Entry::WorkflowDeleted { tenant: caller.tenant.clone(), workflow, at: now() };
    app.store_entries(vec![entry]).await?;
    app.definitions.forget(&caller.tenant, workflow);
    Ok(())
}
