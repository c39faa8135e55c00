//! `/api/v1/plan-executions`: executions of plans in the terms of plans, `{id, spec, status}`.

mod counts;
mod create;
mod list;
mod live;
mod logs;
mod outputs;
pub(super) mod ranged;
mod request;

use super::executions::view_execution;
use super::shared::Refusals;
use crate::app::App;
use crate::auth::{Caller, Permission};
use crate::ids;
use crate::loaded::LoadedExecution;
use crate::plans::DIALECT;
use crate::problem::{Problem, Refused};
use axum::Json;
use axum::extract::{Path, State};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use windlass_engine::{EngineAnswer, Request};
use windlass_kernel::{Cancel, Input};
use windlass_views::{Sources, execution_id, response};

const TAG: &str = super::plans::TAG;

pub(crate) fn router() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(create::create_plan_execution, list::list_plan_executions))
        .routes(routes!(get_plan_execution))
        .routes(routes!(cancel_plan_execution))
        .routes(routes!(outputs::get_plan_output))
        .routes(routes!(outputs::get_step_output))
        .routes(routes!(logs::get_step_log))
        .routes(routes!(live::follow_plan_logs))
}

/// An execution of a plan
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct PlanExecution {
    /// `exec_` and 32 hexadecimal digits
    id: String,
    spec: PlanExecutionSpec,
    /// `phase`, `runnerHost`, `createdAt`, `updatedAt`, `completedAt`, `stepCounts`, `inputs`, `steps`, `outputs` and `error`
    #[schema(value_type = Object)]
    status: Value,
}

/// Parameters of the request that created an execution of a plan. Secrets are shown by name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct PlanExecutionSpec {
    #[serde(rename = "planID", skip_serializing_if = "Option::is_none")]
    pub plan_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runner: Option<String>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schema(value_type = Object)]
    pub params: Map<String, Value>,
    /// Parameters and the names of stored secrets
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub secrets: BTreeMap<String, String>,
}

impl PlanExecution {
    /// Returns None for executions of other dialects.
    fn of(loaded: &LoadedExecution<'_>) -> Option<PlanExecution> {
        PlanExecution::with_sources(loaded, loaded.sources)
    }

    fn with_sources(loaded: &LoadedExecution<'_>, sources: Sources<'_>) -> Option<PlanExecution> {
        let mut shown = response(&loaded.facts, loaded.net, loaded.history, sources);
        if shown.dialect != Some(DIALECT) {
            return None;
        }
        let origin = &loaded.stored.origin;
        let runner = origin.options.runner.clone();
        // The view has the form of this response, without its placement.
        let mut take = |of: &str| shown.view.get_mut(of).map(Value::take).unwrap_or_default();
        let (mut bound, status) = (take("spec"), take("status"));
        let mut take = |of: &str| bound.get_mut(of).map(Value::take).unwrap_or_default();
        let spec = PlanExecutionSpec {
            plan_id: origin.workflow.map(ids::format_plan),
            cluster: runner.as_ref().and_then(|runner| runner.cluster.clone()),
            runner: runner.map(|runner| runner.group),
            params: serde_json::from_value(take("params")).unwrap_or_default(),
            secrets: serde_json::from_value(take("secrets")).unwrap_or_default(),
        };
        Some(PlanExecution { id: execution_id(loaded.facts.execution), spec, status })
    }
}

/// Reads an execution of a plan of the caller's tenant.
pub(super) async fn load(app: &App, caller: &Caller, id: &str) -> Result<PlanExecution, Problem> {
    let found = view_execution(app, caller, id, PlanExecution::of).await?;
    found.ok_or_else(|| Problem::not_found("plan execution", id))
}

/// Get an execution of a plan
#[utoipa::path(get, path = "/api/v1/plan-executions/{id}", tag = TAG, security(("bearer" = [])),
    params(("id" = String, Path, description = "Id of the execution")),
    responses((status = 200, body = PlanExecution), Refusals))]
async fn get_plan_execution(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<PlanExecution>, Problem> {
    app.answers.admit(&caller.tenant).await?;
    load(&app, &caller, &id).await.map(Json)
}

/// Cancel an execution of a plan
#[utoipa::path(put, path = "/api/v1/plan-executions/{id}/cancel", tag = TAG, security(("bearer" = [])),
    params(("id" = String, Path, description = "Id of the execution")),
    responses((status = 200, body = PlanExecution), (status = 409, body = Refused, description = "It has ended"), Refusals))]
async fn cancel_plan_execution(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<PlanExecution>, Problem> {
    caller.may(Permission::Execute)?;
    load(&app, &caller, &id).await?;
    let execution = ids::execution(&id)?;
    let cancel = Cancel { by: caller.id.clone(), reason: String::new(), force: false, compensate: false };
    let audit = caller.audit_entry("execution.cancel", &execution_id(execution), json!({}));
    let request = Request::Give { execution, input: Input::Cancel(cancel), audit: Some(Box::new(audit)) };
    match app.ask(request).await? {
        EngineAnswer::Accepted => {}
        EngineAnswer::Refused(refusal) => return Err(refusal.into()),
        other => return Err(crate::app::unexpected_answer(&other)),
    }
    load(&app, &caller, &id).await.map(Json)
}
