//! Lists of executions, newest first.

use super::TAG;
use super::list_filter::{ListFilter, TriggerName};
use crate::app::App;
use crate::auth::{Caller, Permission};
use crate::body::Params;
use crate::ids;
use crate::loaded::{metadata, quarantined};
use crate::problem::Problem;
use crate::routes::paging::{Paged, Pagination};
use crate::routes::shared;
use crate::routes::shared::Refusals;
use axum::Json;
use axum::extract::{Path, State};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::ToSchema;
use windlass_kernel::{ExecutionId, Outcome, Phase};
use windlass_store::{Catalog, ListedExecution, Query, Reader, Status, WorkflowId};
use windlass_views::{Metadata, Quarantined, execution_id, status, time, workflow_id};

pub(super) const LIST: Paged = Paged { name: "executions", usual: 20, most: 100 };

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(crate) struct WorkflowExecutionsQuery {
    #[param(inline)]
    status: Option<Wanted>,
    /// Only executions that were created after this time.
    #[param(format = DateTime)]
    since: Option<String>,
    /// Only executions that were created before this time.
    #[param(format = DateTime)]
    until: Option<String>,
    #[param(minimum = 1, maximum = 100)]
    limit: Option<usize>,
    cursor: Option<String>,
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(crate) struct ExecutionsQuery {
    #[param(inline)]
    status: Option<Wanted>,
    #[param(format = DateTime)]
    since: Option<String>,
    #[param(format = DateTime)]
    until: Option<String>,
    tag: Option<String>,
    correlation_id: Option<String>,
    parent_execution_id: Option<String>,
    workflow_id: Option<String>,
    /// Only executions of this dialect.
    pub(super) dialect: Option<String>,
    /// Only executions that were started this way.
    #[param(inline)]
    pub(super) trigger: Option<TriggerName>,
    /// Only executions with this text in the name of the workflow or in their id.
    #[param(max_length = 200)]
    pub(super) text: Option<String>,
    /// Only executions with a retry, or only those without one.
    pub(super) retried: Option<bool>,
    #[param(minimum = 1, maximum = 100)]
    limit: Option<usize>,
    cursor: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Wanted {
    Queued,
    Initializing,
    Running,
    Completed,
    Failed,
    PartialSuccess,
    Cancelled,
    Paused,
    /// All that have not ended.
    Open,
}

impl Wanted {
    const ALL: [(&'static str, Wanted); 9] = [
        ("queued", Wanted::Queued),
        ("initializing", Wanted::Initializing),
        ("running", Wanted::Running),
        ("paused", Wanted::Paused),
        ("completed", Wanted::Completed),
        ("failed", Wanted::Failed),
        ("partial_success", Wanted::PartialSuccess),
        ("cancelled", Wanted::Cancelled),
        ("open", Wanted::Open),
    ];

    /// Returns the names as the API has them.
    pub fn names() -> impl Iterator<Item = &'static str> {
        Wanted::ALL.into_iter().map(|(name, _)| name)
    }

    #[must_use]
    pub fn of(name: &str) -> Option<Wanted> {
        Wanted::ALL.into_iter().find(|(known, _)| *known == name).map(|(_, wanted)| wanted)
    }

    #[must_use]
    pub fn phases(self) -> Status {
        match self {
            Wanted::Open => Status::Open,
            Wanted::Queued => Status::Phase(Phase::Queued),
            Wanted::Initializing => Status::Phase(Phase::Starting),
            Wanted::Running => {
                Status::In(&[Phase::Running, Phase::Draining, Phase::Compensating, Phase::Finalizing])
            }
            Wanted::Paused => Status::Phase(Phase::Paused),
            Wanted::Completed => Status::Phase(Phase::Ended(Outcome::Completed)),
            Wanted::Failed => Status::Phase(Phase::Ended(Outcome::Failed)),
            Wanted::PartialSuccess => Status::Phase(Phase::Ended(Outcome::Partial)),
            Wanted::Cancelled => Status::Phase(Phase::Ended(Outcome::Cancelled)),
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Executions {
    pub(super) executions: Vec<Execution>,
    pub(super) pagination: Pagination,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Execution {
    execution_id: String,
    workflow_id: Option<String>,
    workflow_name: Option<String>,
    workflow_version: Option<u32>,
    dialect: Option<String>,
    status: String,
    /// Whether a user holds it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    held: bool,
    /// Set if it is in quarantine and does not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    quarantined: Option<Quarantined>,
    /// The newest retry of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    retried_by: Option<String>,
    #[schema(format = DateTime)]
    created_at: String,
    /// Time of the last change.
    #[schema(format = DateTime)]
    updated_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime, nullable = false)]
    completed_at: Option<String>,
    metadata: Metadata,
}

impl From<ListedExecution> for Execution {
    fn from(row: ListedExecution) -> Execution {
        Execution {
            execution_id: execution_id(row.execution),
            workflow_id: row.origin.workflow.map(|workflow| workflow_id(workflow.0)),
            workflow_name: row.name,
            workflow_version: row.version,
            dialect: row.dialect,
            status: status(row.phase).to_owned(),
            held: row.held,
            quarantined: row.quarantine.map(quarantined),
            retried_by: row.retried_by.map(execution_id),
            created_at: time(row.created_at),
            updated_at: time(row.at),
            completed_at: row.phase.is_ended().then(|| time(row.at)),
            metadata: metadata(&row.origin),
        }
    }
}

/// List the executions of a workflow
#[utoipa::path(get, path = "/api/v1/workflows/{workflowId}/executions", tag = TAG, security(("bearer" = [])),
    params(("workflowId" = String, Path), WorkflowExecutionsQuery),
    responses((status = 200, body = Executions), Refusals))]
pub(crate) async fn of_workflow(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    Params(asked): Params<WorkflowExecutionsQuery>,
) -> Result<Json<Executions>, Problem> {
    let workflow = ids::workflow(&id)?;
    let search = ExecutionsQuery {
        status: asked.status,
        since: asked.since,
        until: asked.until,
        limit: asked.limit,
        cursor: asked.cursor,
        ..ExecutionsQuery::default()
    };
    list(&app, &caller, &search, Some(workflow)).await
}

/// List executions, newest first
///
/// With `dialect`, `trigger`, `text` or `retried`, a page may have fewer entries than its limit and still have a cursor.
#[utoipa::path(get, path = "/api/v1/executions", tag = TAG, security(("bearer" = [])), params(ExecutionsQuery),
    responses((status = 200, body = Executions), Refusals))]
pub(crate) async fn search(
    State(app): State<Arc<App>>,
    caller: Caller,
    Params(asked): Params<ExecutionsQuery>,
) -> Result<Json<Executions>, Problem> {
    let workflow = asked.workflow_id.as_deref().map(ids::workflow).transpose()?;
    list(&app, &caller, &asked, workflow).await
}

async fn list(
    app: &App,
    caller: &Caller,
    asked: &ExecutionsQuery,
    workflow: Option<WorkflowId>,
) -> Result<Json<Executions>, Problem> {
    caller.may(Permission::View)?;
    let limit = LIST.limit(asked.limit)?;
    let list_filter = ListFilter::new(asked)?;
    let query = query(caller, asked, workflow, limit + 1)?;
    let tenant = caller.tenant.clone();
    let page = app
        .readers
        .of(&caller.tenant)
        .read(move |reader| {
            if let Some(id) = workflow
                && reader.workflow(&tenant, id)?.is_none()
            {
                return Err(Problem::not_found("workflow", &workflow_id(id.0)));
            }
            let own =
                |id| Ok::<_, Problem>(reader.load(id)?.is_some_and(|stored| stored.origin.tenant == tenant));
            if !query.before.map_or(Ok(true), own)? {
                return Err(Paged::refuses());
            }
            match list_filter {
                None => read_page(reader, &query, limit),
                Some(list_filter) => list_filter.read_page(reader, query, limit),
            }
        })
        .await?;
    Ok(Json(page))
}

fn read_page(reader: &mut impl Catalog, query: &Query, limit: usize) -> Result<Executions, Problem> {
    let mut found = reader.list(query)?;
    let pagination = LIST.cut(&mut found, limit, |last| last.execution);
    Ok(Executions { executions: found.into_iter().map(Execution::from).collect(), pagination })
}

fn query(
    caller: &Caller,
    asked: &ExecutionsQuery,
    workflow: Option<WorkflowId>,
    limit: usize,
) -> Result<Query, Problem> {
    let read = |text: &str| ExecutionId::try_from(text.to_owned()).ok();
    let parent = asked.parent_execution_id.as_deref().map(ids::execution).transpose();
    let parent =
        parent.map_err(|_| Problem::invalid("parentExecutionId", "is not the id of an execution"))?;
    Ok(Query {
        tenant: Some(caller.tenant.clone()),
        workflow,
        status: asked.status.map(Wanted::phases),
        since: asked.since.as_deref().map(|text| shared::parse_time("since", text)).transpose()?,
        until: asked.until.as_deref().map(|text| shared::parse_time("until", text)).transpose()?,
        tag: asked.tag.clone(),
        correlation: asked.correlation_id.clone(),
        parent,
        before: LIST.place(asked.cursor.as_deref(), read)?,
        limit,
    })
}
