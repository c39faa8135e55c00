//! Lists of executions of plans, newest first.

use super::counts::count_steps;
use super::{PlanExecution, PlanExecutionSpec, TAG};
use crate::app::App;
use crate::auth::{Caller, Permission};
use crate::body::Params;
use crate::database::DatabaseReader;
use crate::ids;
use crate::plans::DIALECT;
use crate::problem::Problem;
use crate::routes::paging::Paged;
use crate::routes::shared::Refusals;
use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use utoipa::ToSchema;
use windlass_kernel::{ExecutionId, Outcome, Phase};
use windlass_store::{Catalog as _, ListedExecution, Query, Reader as _, Status, WorkflowId};
use windlass_views::{execution_id, time};

const LIST: Paged = Paged { name: "plan-executions", usual: 50, most: 500 };
/// Maximum number of executions of all dialects that one request reads. If those of plans are rare, a page is shorter
/// than requested.
const LOOKED_MAX: usize = 5_000;

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(crate) struct PlanExecutionParams {
    #[serde(rename = "planID")]
    #[param(rename = "planID")]
    plan_id: Option<String>,
    #[param(inline)]
    phase: Option<PlanPhase>,
    cursor: Option<String>,
    #[param(minimum = 1, maximum = 500)]
    page_size: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PlanPhase {
    Pending,
    Dispatching,
    Running,
    Finalizing,
    Completed,
    Failed,
    Cancelled,
}

impl PlanPhase {
    fn name(self) -> &'static str {
        match self {
            PlanPhase::Pending => "pending",
            PlanPhase::Dispatching => "dispatching",
            PlanPhase::Running => "running",
            PlanPhase::Finalizing => "finalizing",
            PlanPhase::Completed => "completed",
            PlanPhase::Failed => "failed",
            PlanPhase::Cancelled => "cancelled",
        }
    }

    fn of(phase: Phase) -> PlanPhase {
        match phase {
            Phase::Blank | Phase::Queued => PlanPhase::Pending,
            Phase::Starting => PlanPhase::Dispatching,
            Phase::Running | Phase::Paused | Phase::Draining | Phase::Compensating => PlanPhase::Running,
            Phase::Finalizing => PlanPhase::Finalizing,
            Phase::Ended(Outcome::Completed) => PlanPhase::Completed,
            Phase::Ended(Outcome::Failed | Outcome::Partial) => PlanPhase::Failed,
            Phase::Ended(Outcome::Cancelled) => PlanPhase::Cancelled,
        }
    }

    fn phases(self) -> Status {
        Status::In(match self {
            PlanPhase::Pending => &[Phase::Blank, Phase::Queued],
            PlanPhase::Dispatching => &[Phase::Starting],
            PlanPhase::Running => &[Phase::Running, Phase::Paused, Phase::Draining, Phase::Compensating],
            PlanPhase::Finalizing => &[Phase::Finalizing],
            PlanPhase::Completed => &[Phase::Ended(Outcome::Completed)],
            PlanPhase::Failed => &[Phase::Ended(Outcome::Failed), Phase::Ended(Outcome::Partial)],
            PlanPhase::Cancelled => &[Phase::Ended(Outcome::Cancelled)],
        })
    }
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PlanExecutionList {
    /// Executions with phase, times and `stepCounts`; `GET /api/v1/plan-executions/{id}` has the whole status
    items: Vec<PlanExecution>,
    /// Send as `cursor` to get the next page; null on the last page
    next_cursor: Option<String>,
}

fn item(row: &ListedExecution, counts: Option<Value>) -> PlanExecution {
    let runner = row.origin.options.runner.clone();
    let spec = PlanExecutionSpec {
        plan_id: row.origin.workflow.map(ids::format_plan),
        cluster: runner.as_ref().and_then(|runner| runner.cluster.clone()),
        runner: runner.map(|runner| runner.group),
        params: Map::new(),
        ..PlanExecutionSpec::default()
    };
    let mut status = json!({
        "phase": PlanPhase::of(row.phase).name(),
        "createdAt": time(row.created_at),
        "updatedAt": time(row.at),
    });
    if row.phase.is_ended() {
        status["completedAt"] = time(row.at).into();
    }
    if let Some(counts) = counts {
        status["stepCounts"] = counts;
    }
    PlanExecution { id: execution_id(row.execution), spec, status }
}

/// List executions of plans
///
/// A page may have fewer items than requested, or none; the list ends where `nextCursor` is null.
#[utoipa::path(get, path = "/api/v1/plan-executions", tag = TAG, security(("bearer" = [])), params(PlanExecutionParams),
    responses((status = 200, body = PlanExecutionList), Refusals))]
pub(super) async fn list_plan_executions(
    State(app): State<Arc<App>>,
    caller: Caller,
    Params(params): Params<PlanExecutionParams>,
) -> Result<Json<PlanExecutionList>, Problem> {
    caller.may(Permission::View)?;
    let size = LIST.limit(params.page_size).map_err(|problem| match problem.details.first() {
        Some(detail) => Problem::invalid("pageSize", detail.message.clone()),
        None => problem,
    })?;
    let read = |text: &str| ExecutionId::try_from(text.to_owned()).ok();
    let query = Query {
        tenant: Some(caller.tenant.clone()),
        workflow: params.plan_id.as_deref().map(ids::plan).transpose()?,
        status: params.phase.map(PlanPhase::phases),
        before: LIST.place(params.cursor.as_deref(), read)?,
        limit: size + 1,
        ..Query::default()
    };
    let (found, next) = app.readers.of(&caller.tenant).read(move |reader| page(reader, query, size)).await?;
    let next_cursor = LIST.next(next).cursor;
    let mut counts = count_steps(&app, &caller, found.iter().map(|row| row.execution)).await?;
    let items = found.iter().map(|row| item(row, counts.remove(&row.execution))).collect();
    Ok(Json(PlanExecutionList { items, next_cursor }))
}

/// Returns executions of plans, and the execution after which the next page begins.
fn page(
    reader: &mut DatabaseReader,
    mut query: Query,
    size: usize,
) -> Result<(Vec<ListedExecution>, Option<ExecutionId>), Problem> {
    let Some(tenant) = query.tenant.clone() else { return Err(Problem::internal("a list without a tenant")) };
    if let Some(id) = query.workflow
        && !is_plan(reader, &tenant, id)?
    {
        return Err(Problem::not_found("plan", &ids::format_plan(id)));
    }
    if let Some(before) = query.before
        && reader.load(before)?.is_none_or(|stored| stored.origin.tenant != tenant)
    {
        return Err(Paged::refuses());
    }
    let (mut found, mut looked) = (Vec::new(), 0);
    loop {
        let rows = reader.list(&query)?;
        let is_last = rows.len() < query.limit;
        for row in rows {
            looked += 1;
            if row.dialect.as_deref() == Some(DIALECT) {
                if found.len() == size {
                    return Ok((found.clone(), found.last().map(|last: &ListedExecution| last.execution)));
                }
                query.before = Some(row.execution);
                found.push(row);
            } else {
                query.before = Some(row.execution);
            }
        }
        if is_last {
            return Ok((found, None));
        }
        if looked >= LOOKED_MAX {
            return Ok((found, query.before));
        }
    }
}

fn is_plan(
    reader: &mut DatabaseReader,
    tenant: &windlass_store::Tenant,
    id: WorkflowId,
) -> Result<bool, Problem> {
    Ok(reader.workflow(tenant, id)?.is_some_and(|workflow| workflow.dialect == DIALECT))
}
