//! `/api/v1/runs`: attempts at the occurrences of schedules.

use super::long_poll::{LongPoll, PolledAnswer};
use super::paging::Paged;
use super::schedules::{TAG, find, store_audited};
use super::shared::Refusals;
use crate::app::App;
use crate::auth::{Caller, Permission};
use crate::body::Params;
use crate::host::now;
use crate::ids;
use crate::problem::{Problem, Refused};
use crate::scheduler::cancel_execution;
use axum::Json;
use axum::extract::{Path, State};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use windlass_kernel::{Millis, any_of};
use windlass_schedule::RunStatus;
use windlass_store::{
    Applied, Receipt, RunQuery, ScheduleId, ScheduleRunId, ScheduleWrite, Schedules as _, StoredRun,
};
use windlass_views::{execution_id, time};

const LIST: Paged = Paged { name: "runs", usual: 50, most: 200 };
/// Bytes of a page's digest: enough that a collision is improbable.
const TAG_BYTES: usize = 16;
/// Minimum time between two reads of a page that a request waits for, so that a server with many changes is not occupied
/// with clients that wait.
const READ_EVERY: Duration = Duration::from_millis(100);

pub(crate) fn router() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(list_runs))
        .routes(routes!(list_runs_of_schedule))
        .routes(routes!(get_run))
        .routes(routes!(cancel_run))
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct RunParams {
    schedule_id: Option<String>,
    /// `pending`, `claimed`, `running`, `succeeded`, `failed`, `retry_scheduled`, `dead_lettered`, `cancelled` or `skipped`
    status: Option<String>,
    #[param(minimum = 1, maximum = 200)]
    limit: Option<usize>,
    cursor: Option<String>,
    /// `tag` of the same page at an earlier time
    seen: Option<String>,
    /// Milliseconds to wait until the page differs from the one that was `seen`
    #[param(minimum = 0, maximum = 30000)]
    wait_ms: Option<u64>,
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct RunsOfScheduleParams {
    status: Option<String>,
    #[param(minimum = 1, maximum = 200)]
    limit: Option<usize>,
    cursor: Option<String>,
    /// `tag` of the same page at an earlier time
    seen: Option<String>,
    /// Milliseconds to wait until the page differs from the one that was `seen`
    #[param(minimum = 0, maximum = 30000)]
    wait_ms: Option<u64>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RunSummary {
    /// `run_` and 32 hexadecimal digits
    id: String,
    schedule_id: String,
    occurrence_key: String,
    status: String,
    /// Counts from 1
    attempt: u32,
    #[schema(format = DateTime)]
    started_at: Option<String>,
    #[schema(format = DateTime)]
    finished_at: Option<String>,
    #[schema(format = DateTime)]
    created_at: String,
    #[schema(format = DateTime)]
    updated_at: String,
}

impl From<&StoredRun> for RunSummary {
    fn from(run: &StoredRun) -> RunSummary {
        RunSummary {
            id: ids::format_run(run.id),
            schedule_id: ids::format_schedule(run.schedule),
            occurrence_key: run.occurrence_key.clone(),
            status: run.status.name().to_owned(),
            attempt: run.attempt,
            started_at: run.started_at.map(time),
            finished_at: run.finished_at.map(time),
            created_at: time(run.created_at),
            updated_at: time(run.updated_at),
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RunView {
    #[serde(flatten)]
    summary: RunSummary,
    #[schema(format = DateTime)]
    nominal_time: String,
    #[schema(format = DateTime)]
    due_time: String,
    claimed_by_worker_id: Option<String>,
    #[schema(format = DateTime)]
    claim_expires_at: Option<String>,
    http_status_code: Option<u16>,
    exit_code: Option<i64>,
    /// The result; before it exists, the reason of a trigger
    #[schema(value_type = Option<Value>)]
    result_json: Value,
    /// Reason for which the run failed, was cancelled or never ran
    error_text: Option<String>,
    #[schema(format = DateTime)]
    retry_available_at: Option<String>,
    /// The execution that the run started
    execution_id: Option<String>,
    receipts: Vec<ReceiptView>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ReceiptView {
    /// `stdout`, `stderr`, `http_response` or `workflow_result`
    receipt_kind: String,
    content_type: String,
    /// Text of the comment, at most 64 KiB
    body: String,
    #[schema(format = DateTime)]
    created_at: String,
}

impl RunView {
    fn of(run: &StoredRun, receipts: Vec<(Receipt, Millis)>) -> RunView {
        let parse = |text: &String| serde_json::from_str(text).unwrap_or(Value::Null);
        let receipt = |(receipt, at): (Receipt, Millis)| ReceiptView {
            receipt_kind: receipt.receipt_kind,
            content_type: receipt.content_type,
            body: receipt.body,
            created_at: time(at),
        };
        RunView {
            summary: RunSummary::from(run),
            nominal_time: time(run.nominal_time),
            due_time: time(run.due_time),
            claimed_by_worker_id: run.claimed_by_worker_id.clone(),
            claim_expires_at: run.claim_expires_at.map(time),
            http_status_code: run.http_status_code,
            exit_code: run.exit_code,
            result_json: run.result_json.as_ref().map_or(Value::Null, parse),
            error_text: run.error_text.clone(),
            retry_available_at: run.retry_available_at.map(time),
            execution_id: run.execution.map(execution_id),
            receipts: receipts.into_iter().map(receipt).collect(),
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RunList {
    /// Newest first
    items: Vec<RunSummary>,
    /// Send as `cursor` to get the next page; null on the last page
    next_cursor: Option<String>,
    /// Digest of the items, if `wait_ms` was sent. Send it as `seen` to wait for a change of them
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    tag: Option<String>,
}

/// List runs
#[utoipa::path(get, path = "/api/v1/runs", tag = TAG, security(("bearer" = [])), params(RunParams),
    responses((status = 200, body = RunList), Refusals))]
async fn list_runs(
    State(app): State<Arc<App>>,
    caller: Caller,
    Params(params): Params<RunParams>,
) -> Result<Json<RunList>, Problem> {
    let wrong = |_| Problem::invalid("schedule_id", "is not the id of a schedule");
    let schedule = params.schedule_id.as_deref().map(ids::schedule).transpose().map_err(wrong)?;
    let RunParams { schedule_id: _, status, limit, cursor, seen, wait_ms } = params;
    list(&app, &caller, schedule, RunsOfScheduleParams { status, limit, cursor, seen, wait_ms }).await
}

/// List the runs of a schedule
#[utoipa::path(get, path = "/api/v1/schedules/{id}/runs", tag = TAG, security(("bearer" = [])),
    params(("id" = String, Path, description = "Id of the schedule"), RunsOfScheduleParams),
    responses((status = 200, body = RunList), Refusals))]
async fn list_runs_of_schedule(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    Params(params): Params<RunsOfScheduleParams>,
) -> Result<Json<RunList>, Problem> {
    caller.may(Permission::View)?;
    let schedule = find(&app, &caller, &id).await?.id;
    list(&app, &caller, Some(schedule), params).await
}

async fn list(
    app: &App,
    caller: &Caller,
    schedule: Option<ScheduleId>,
    params: RunsOfScheduleParams,
) -> Result<Json<RunList>, Problem> {
    caller.may(Permission::View)?;
    let limit = LIST.limit(params.limit)?;
    let before = LIST.place(params.cursor.as_deref(), |text| ids::schedule_run(text).ok())?;
    let status = params.status.as_deref().map(parse_status).transpose()?;
    let wait = LongPoll::of_parameter("wait_ms", params.wait_ms)?;
    let tenant = caller.tenant.clone();
    let query = RunQuery { tenant, schedule, status, before, limit: limit + 1 };
    if params.wait_ms.is_none() {
        return Ok(Json(read_page(app, query).await?));
    }
    let next_change = || {
        let (changed, next_read) = (app.run_bell.notified(), Instant::now() + READ_EVERY);
        async move {
            changed.await;
            sleep_until(next_read).await;
        }
    };
    let read = async || {
        let page = read_page(app, query.clone()).await?.with_tag()?;
        let has_news = page.tag != params.seen;
        Ok(PolledAnswer { answer: page, has_news })
    };
    wait.read_after(app, next_change, read).await.map(Json)
}

/// Reads a page by a query for one run more than it has.
async fn read_page(app: &App, query: RunQuery) -> Result<RunList, Problem> {
    let (tenant, limit) = (query.tenant.clone(), query.limit - 1);
    let mut found = app.readers.of(&tenant).look(move |reader| reader.schedule_runs(&query)).await?;
    let next_cursor = LIST.cut(&mut found, limit, |last| ids::format_run(last.id)).cursor;
    Ok(RunList { items: found.iter().map(RunSummary::from).collect(), next_cursor, tag: None })
}

impl RunList {
    fn with_tag(self) -> Result<RunList, Problem> {
        let json = serde_json::to_vec(&self.items).map_err(Problem::internal)?;
        let tag = URL_SAFE_NO_PAD.encode(&Sha256::digest(json)[..TAG_BYTES]);
        Ok(RunList { tag: Some(tag), ..self })
    }
}

fn parse_status(text: &str) -> Result<RunStatus, Problem> {
    RunStatus::of_name(text).ok_or_else(|| {
        let names: Vec<&str> = RunStatus::ALL.into_iter().map(RunStatus::name).collect();
        Problem::invalid("status", format!("must be one of {}", names.join(", ")))
    })
}

/// Get a run with its receipts
#[utoipa::path(get, path = "/api/v1/runs/{id}", tag = TAG, security(("bearer" = [])),
    params(("id" = String, Path, description = "Id of the run")),
    responses((status = 200, body = RunView), Refusals))]
async fn get_run(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<RunView>, Problem> {
    caller.may(Permission::View)?;
    view(&app, &caller, ids::schedule_run(&id)?).await
}

async fn view(app: &App, caller: &Caller, id: ScheduleRunId) -> Result<Json<RunView>, Problem> {
    let tenant = caller.tenant.clone();
    let readers = app.readers.of(&caller.tenant);
    let found = readers.look(move |reader| {
        let run = reader.schedule_run(&tenant, id)?;
        let receipts = if run.is_some() { reader.receipts(id)? } else { Vec::new() };
        Ok(run.map(|run| RunView::of(&run, receipts)))
    });
    found.await?.map(Json).ok_or_else(|| Problem::not_found("run", &ids::format_run(id)))
}

/// Cancel a run
///
/// A run that waits is cancelled at once, a running one with its execution. No retry follows.
#[utoipa::path(post, path = "/api/v1/runs/{id}/cancel", tag = TAG, security(("bearer" = [])),
    params(("id" = String, Path, description = "Id of the run")),
    responses((status = 200, body = RunView), (status = 409, body = Refused, description = "The run has ended"), Refusals))]
async fn cancel_run(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<RunView>, Problem> {
    caller.may(Permission::Execute)?;
    let (run, tenant) = (ids::schedule_run(&id)?, caller.tenant.clone());
    let reason = format!("cancelled by {}", caller.id);
    let write = ScheduleWrite::Cancel { tenant: tenant.clone(), run, reason: reason.clone(), at: now() };
    let run_id = ids::format_run(run);
    match store_audited(&app, &caller, write, ("run.cancel", &run_id, json!({}))).await? {
        Applied::Done => return view(&app, &caller, run).await,
        Applied::Duplicate => return Err(Problem::not_found("run", &id)),
        any_of![Applied: Committed Defined Accepted Conflict Fenced Taken QueueFull HookTaken] => {}
    }
    let found = app.readers.of(&caller.tenant).look(move |reader| reader.schedule_run(&tenant, run)).await?;
    match found {
        Some(active) if active.status == RunStatus::Running && active.execution.is_some() => {
            let audit = caller.audit_entry("run.cancel", &run_id, json!({}));
            cancel_execution(&app, &active, &reason, Some(Box::new(audit))).await;
            view(&app, &caller, run).await
        }
        Some(active) if !active.status.is_terminal() => {
            Err(Problem::conflict("the run is about to start; cancel it again in a moment"))
        }
        Some(ended) => Err(Problem::conflict(format!("the run has ended: it is {}", ended.status.name()))),
        None => Err(Problem::not_found("run", &id)),
    }
}
