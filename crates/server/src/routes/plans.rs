//! `/api/v1/plans`: immutable graphs of steps. A plan is a workflow whose id follows from its content.

use super::paging::Paged;
use super::shared::{BodyRefusals, Refusals};
use super::workflows::{Text, register_plan};
use crate::app::App;
use crate::auth::{Caller, Permission};
use crate::body::Params;
use crate::database::DatabaseReader;
use crate::ids;
use crate::plans::DIALECT;
use crate::plans::documents::read_registered;
use crate::problem::{Detail, Problem};
use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use windlass_dialects::as_json;
use windlass_dialects::plan::PlanDocument;
use windlass_store::{Catalog as _, StoredDefinition, StoredWorkflow, WorkflowId, WorkflowQuery};
use windlass_views::time;

pub(crate) const TAG: &str = "plans";
const LIST: Paged = Paged { name: "plans", usual: 50, most: 200 };
/// Maximum number of executions of a plan that are counted.
const COUNTED_MAX: usize = 100_000;

/// A plan
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PlanView {
    /// `pl_` and 32 hexadecimal digits, which follow from the spec
    id: String,
    /// The plan with copies of its actions from the time of its creation
    #[schema(value_type = Object)]
    spec: Value,
    status: PlanStatus,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PlanStatus {
    #[schema(format = DateTime)]
    created_at: String,
    created_by: Option<String>,
    /// Number of stored executions, up to 100,000
    executions: usize,
    /// For each step, the steps that it depends on
    step_dependencies: BTreeMap<String, Vec<String>>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PlanList {
    /// Newest first
    items: Vec<PlanView>,
    /// Send as `cursor` to get the next page; null on the last page
    next_cursor: Option<String>,
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(crate) struct PlanParams {
    #[param(minimum = 1, maximum = 200)]
    limit: Option<usize>,
    cursor: Option<String>,
}

pub(crate) fn router() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(create_plan, list_plans)).routes(routes!(get_plan))
}

/// A stored plan with its document.
pub(crate) struct StoredPlan {
    pub workflow: StoredWorkflow,
    pub document: Arc<PlanDocument>,
}

/// Returns a plan of the tenant; None if there is none of that id.
pub(crate) async fn find_plan(
    app: &App,
    caller: &Caller,
    id: WorkflowId,
) -> Result<Option<StoredPlan>, Problem> {
    let current = app.definitions.current(&app.readers, &caller.tenant, id).await?;
    let Some(current) = current.filter(|current| current.definition.dialect == DIALECT) else {
        return Ok(None);
    };
    let document = app.plans.document(app, &current.definition).await?;
    Ok(Some(StoredPlan { workflow: current.workflow.clone(), document }))
}

async fn view(app: &App, caller: &Caller, plan: &StoredPlan) -> Result<PlanView, Problem> {
    let (tenant, id) = (caller.tenant.clone(), plan.workflow.id);
    let readers = app.readers.of(&caller.tenant);
    let executions = readers.look(move |reader| reader.count_executions(&tenant, id, COUNTED_MAX)).await?;
    Ok(PlanView {
        id: ids::format_plan(id),
        spec: plan.document.spec.clone(),
        status: PlanStatus {
            created_at: time(plan.workflow.created_at),
            created_by: plan.workflow.created_by.clone(),
            executions,
            step_dependencies: plan.document.step_dependencies.iter().cloned().collect(),
        },
    })
}

/// Create a plan
///
/// The body is `{spec}`, as YAML or JSON. Registered actions are copied into the plan with their revisions. An equal
/// spec has the same id, and the response is 200.
#[utoipa::path(post, path = "/api/v1/plans", tag = TAG, security(("bearer" = [])),
    request_body(content((Value = "application/json"), (Value = "application/yaml"), (Value = "text/yaml"), (String = "text/plain"))),
    responses((status = 201, body = PlanView), (status = 200, body = PlanView, description = "The plan exists"), Refusals,
        BodyRefusals))]
async fn create_plan(
    State(app): State<Arc<App>>,
    caller: Caller,
    Text(text): Text,
) -> Result<(StatusCode, Json<PlanView>), Problem> {
    caller.may(Permission::Edit)?;
    refuse_server_fields(&text)?;
    let read = read_registered(&app, &caller.tenant, text).await?;
    let document = read.map_err(|found| Problem::definition(found.iter().filter(|one| one.is_error())))?;
    let id = ids::plan(&document.id)?;
    let known = find_plan(&app, &caller, id).await?;
    let status = if known.is_some() { StatusCode::OK } else { StatusCode::CREATED };
    let plan = match known {
        Some(known) => known,
        None => {
            register_plan(&app, &caller, document.text(), id).await?;
            let stored = find_plan(&app, &caller, id).await?;
            stored.ok_or_else(|| Problem::internal("a plan is missing after its creation"))?
        }
    };
    Ok((status, Json(view(&app, &caller, &plan).await?)))
}

/// Refuses a request with fields that the server sets.
fn refuse_server_fields(text: &str) -> Result<(), Problem> {
    let given = as_json(text).unwrap_or_default();
    let details = server_fields(&given);
    match details.first() {
        Some(first) => {
            let message = format!("`{}`: {}", first.path, first.message);
            Err(Problem { details, ..Problem::bad_request(message) })
        }
        None => Ok(()),
    }
}

/// Returns the fields of a request that only the server sets.
pub(crate) fn server_fields(given: &Value) -> Vec<Detail> {
    let is_given = |field: &&str| given.get(*field).is_some();
    let detail = |field| Detail::new(field, "is set by the server; omit the field");
    ["id", "status"].into_iter().filter(is_given).map(detail).collect()
}

/// List plans
#[utoipa::path(get, path = "/api/v1/plans", tag = TAG, security(("bearer" = [])), params(PlanParams),
    responses((status = 200, body = PlanList), Refusals))]
async fn list_plans(
    State(app): State<Arc<App>>,
    caller: Caller,
    Params(params): Params<PlanParams>,
) -> Result<Json<PlanList>, Problem> {
    caller.may(Permission::View)?;
    let limit = LIST.limit(params.limit)?;
    let offset = LIST.place(params.cursor.as_deref(), |text| text.parse::<usize>().ok())?.unwrap_or(0);
    let query = WorkflowQuery {
        tenant: caller.tenant.clone(),
        status: None,
        search: None,
        dialect: Some(DIALECT.to_owned()),
        limit: limit + 1,
        offset,
    };
    let tenant = caller.tenant.clone();
    let look = move |reader: &mut DatabaseReader| {
        let found = reader.workflows(&query)?.into_iter().map(|workflow| {
            let version = reader.version(&tenant, workflow.id, None)?;
            Ok(version.map(|version| (workflow, version)))
        });
        found.collect::<Result<Vec<Option<(StoredWorkflow, StoredDefinition)>>, _>>()
    };
    let found = app.readers.of(&caller.tenant).look(look).await?;
    let mut found: Vec<_> = found.into_iter().flatten().collect();
    let next_cursor = LIST.cut(&mut found, limit, |_| offset + limit).cursor;
    let mut items = Vec::new();
    for (workflow, definition) in found {
        let document = app.plans.document(&app, &definition).await?;
        items.push(view(&app, &caller, &StoredPlan { workflow, document }).await?);
    }
    Ok(Json(PlanList { items, next_cursor }))
}

/// Get a plan
#[utoipa::path(get, path = "/api/v1/plans/{id}", tag = TAG, security(("bearer" = [])),
    params(("id" = String, Path, description = "Id of the plan")),
    responses((status = 200, body = PlanView), Refusals))]
async fn get_plan(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<PlanView>, Problem> {
    caller.may(Permission::View)?;
    let plan = find_plan(&app, &caller, ids::plan(&id)?).await?;
    let plan = plan.ok_or_else(|| Problem::not_found("plan", &id))?;
    view(&app, &caller, &plan).await.map(Json)
}
