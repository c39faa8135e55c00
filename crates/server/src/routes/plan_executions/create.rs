//! New executions of plans. All problems of a request are reported at once.

use super::request::{add_unreported, take_wrong_fields};
use super::{PlanExecution, PlanExecutionSpec, TAG, load};
use crate::app::App;
use crate::auth::{Caller, Permission};
use crate::body::{collect, describe_json_error, is_json, parse_blocking};
use crate::ids;
use crate::plans::placement::PlacementRequest;
use crate::problem::{Detail, Problem, Refused};
use crate::routes::executions::key::{key, of_json};
use crate::routes::executions::{ExecutionOptions, Trigger, begin_version};
use crate::routes::plans::{StoredPlan, find_plan};
use crate::routes::shared::{BodyRefusals, Refusals};
use crate::versions::Version;
use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use utoipa::ToSchema;
use windlass_dialects::SECRETS;
use windlass_engine::Start;
use windlass_store::{Runner, WorkflowId};
use windlass_views::execution_id;

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewPlanExecution {
    spec: PlanExecutionSpec,
}

/// Execute a plan
///
/// The cluster and the runner group may be omitted if the plan determines them. Secrets are bound by name; their values
/// are read when a worker takes the execution.
#[utoipa::path(post, path = "/api/v1/plan-executions", tag = TAG, security(("bearer" = [])),
    params(("X-Idempotency-Key" = Option<String>, Header, description = "A repeated request with the same key starts no second execution")),
    request_body = NewPlanExecution,
    responses((status = 201, body = PlanExecution),
        (status = 409, body = Refused, description = "The key was used with another request"), Refusals, BodyRefusals))]
pub(super) async fn create_plan_execution(
    State(app): State<Arc<App>>,
    caller: Caller,
    request: Request,
) -> Result<(StatusCode, Json<PlanExecution>), Problem> {
    caller.may(Permission::Execute)?;
    let (parts, body) = request.into_parts();
    is_json(&parts.headers)?;
    let bytes = collect(body, &app).await?;
    let mut body: Value = parse_blocking(&app, bytes.clone()).await?;
    let wrong = take_wrong_fields(&mut body);
    let NewPlanExecution { spec } = serde_json::from_value(body)
        .map_err(|error| Problem::invalid("spec", describe_json_error(&error)))?;
    let (workflow, runner) = check(&app, &caller, &spec, wrong).await?;
    let key = key(&parts.headers, || of_json(&bytes))?;
    let mut origin = Trigger::of(&caller).origin(&caller, workflow, key);
    origin.options.runner = Some(runner);
    let (start, overrides) = ExecutionOptions::default().start(origin, &app.settings.egress)?;
    let start = Start { inputs: Value::Object(inputs(&spec)), ..start };
    let begun = begin_version(&app, &caller, (workflow, None), start, &overrides).await?;
    let created = load(&app, &caller, &execution_id(begun.id)).await?;
    Ok((StatusCode::CREATED, Json(created)))
}

/// Returns the inputs of the execution: parameters, and the names of secrets.
fn inputs(spec: &PlanExecutionSpec) -> Map<String, Value> {
    let mut inputs = spec.params.clone();
    if !spec.secrets.is_empty() {
        inputs.insert(SECRETS.to_owned(), json!(spec.secrets));
    }
    inputs
}

/// Returns the plan that a request names, or what is wrong with the name.
async fn named_plan(
    app: &App,
    caller: &Caller,
    spec: &PlanExecutionSpec,
) -> Result<Result<(WorkflowId, StoredPlan), Detail>, Problem> {
    let Some(text) = spec.plan_id.as_deref().filter(|text| !text.is_empty()) else {
        return Ok(Err(Detail::new("spec.planID", "is required")));
    };
    let found = match ids::plan(text) {
        Ok(id) => find_plan(app, caller, id).await?.map(|plan| (id, plan)),
        Err(_) => None,
    };
    Ok(found.ok_or_else(|| Detail::new("spec.planID", Problem::not_found("plan", text).message)))
}

/// Checks the fields that could be read, and returns the plan and the placement of the execution. `wrong` are the others.
async fn check(
    app: &Arc<App>,
    caller: &Caller,
    spec: &PlanExecutionSpec,
    mut wrong: Vec<Detail>,
) -> Result<(WorkflowId, Runner), Problem> {
    let (workflow, plan) = match named_plan(app, caller, spec).await? {
        Ok(named) => named,
        Err(detail) => {
            add_unreported(&mut wrong, vec![detail]);
            add_unreported(&mut wrong, missing_secrets(app, caller, spec).await?);
            return Err(refusal(wrong));
        }
    };
    let mut found = undeclared(&plan, spec);
    found.extend(misfits(app, caller, &plan, spec).await?);
    found.extend(missing_secrets(app, caller, spec).await?);
    let request = PlacementRequest {
        plan: &plan.document,
        cluster: spec.cluster.as_deref(),
        runner: spec.runner.as_deref(),
        params: &spec.params,
    };
    let group = request.runner(app, &caller.tenant, &mut found);
    let cluster = request.cluster(app, &caller.tenant, &mut found).await?;
    add_unreported(&mut wrong, found);
    match group {
        Some(group) if wrong.is_empty() => Ok((workflow, Runner { group, cluster })),
        _ => Err(refusal(wrong)),
    }
}

fn refusal(wrong: Vec<Detail>) -> Problem {
    let message = wrong.first().map(|first| format!("`{}`: {}", first.path, first.message));
    Problem { details: wrong, ..Problem::bad_request(message.unwrap_or_default()) }
}

/// Returns names that the plan does not declare.
fn undeclared(plan: &StoredPlan, spec: &PlanExecutionSpec) -> Vec<Detail> {
    let declared: BTreeSet<&str> = plan.document.params.iter().map(|param| param.name.as_str()).collect();
    let detail = |field: &str, name: &String| {
        (!declared.contains(name.as_str())).then(|| {
            let names: Vec<&str> = declared.iter().copied().collect();
            let known = if names.is_empty() {
                "it has none".to_owned()
            } else {
                format!("it has {}", names.join(", "))
            };
            Detail::new(
                format!("spec.{field}.{name}"),
                format!("the plan has no parameter `{name}`; {known}"),
            )
        })
    };
    let params = spec.params.keys().filter_map(|name| detail("params", name));
    params.chain(spec.secrets.keys().filter_map(|name| detail("secrets", name))).collect()
}

/// Returns values that violate their schema, and parameters that are not bound or bound twice.
async fn misfits(
    app: &Arc<App>,
    caller: &Caller,
    plan: &StoredPlan,
    spec: &PlanExecutionSpec,
) -> Result<Vec<Detail>, Problem> {
    let declared: BTreeSet<&str> = plan.document.params.iter().map(|param| param.name.as_str()).collect();
    let mut known = spec.clone();
    known.params.retain(|name, _| declared.contains(name.as_str()));
    known.secrets.retain(|name, _| declared.contains(name.as_str()));
    let current = app.definitions.current(&app.readers, &caller.tenant, plan.workflow.id).await?;
    let Some(current) = current else { return Ok(Vec::new()) };
    let version: Arc<Version> = app.versions.version(app, &current.definition).await?;
    let found = version.check_inputs(app, &caller.tenant, &inputs(&known)).await?;
    Ok(found.into_iter().map(|detail| Detail { path: place(&detail.path), ..detail }).collect())
}

/// Returns the path of an input in the request.
fn place(path: &str) -> String {
    let of_secret = path.strip_prefix("inputs.").and_then(|path| path.strip_prefix(SECRETS));
    match (of_secret, path.strip_prefix("inputs")) {
        (Some(rest), _) => format!("spec.secrets{rest}"),
        (None, Some(rest)) => format!("spec.params{rest}"),
        (None, None) => path.to_owned(),
    }
}

async fn missing_secrets(
    app: &App,
    caller: &Caller,
    spec: &PlanExecutionSpec,
) -> Result<Vec<Detail>, Problem> {
    if spec.secrets.is_empty() {
        return Ok(Vec::new());
    }
    let (vault, tenant) = (app.secrets.clone(), caller.tenant.clone());
    let listed = app.run_blocking(move || vault.with(|vault| vault.list(&tenant))).await??;
    let stored: BTreeSet<&str> = listed.iter().map(|secret| secret.name.as_str()).collect();
    let missing = spec.secrets.iter().filter(|(_, secret)| !stored.contains(secret.as_str()));
    let details = missing.map(|(param, secret)| {
        let message = format!("there is no secret `{secret}`; store it with `windlass secrets set {secret}`");
        Detail::new(format!("spec.secrets.{param}"), message)
    });
    Ok(details.collect())
}
