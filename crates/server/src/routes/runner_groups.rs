//! `/api/v1/runner-groups`: the groups of workers of a tenant, and the units that wait for them.

use super::shared::{BodyRefusals, Refusals, check_group};
use crate::app::App;
use crate::auth::{Caller, Permission};
use crate::body::JsonBody;
use crate::host::now;
use crate::problem::{Problem, ProblemCode, Refused};
use crate::remote::GROUPS_MAX;
use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use windlass_engine::GroupLoad;
use windlass_store::{Applied, Entry, RunnerGroup};
use windlass_views::time;

const TAG: &str = "workers";

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RunnerGroupView {
    name: String,
    /// Only workers of this cluster may claim; null: all may
    cluster: Option<String>,
    /// Units that wait for a worker
    waiting: usize,
    /// Units that workers hold
    claimed: usize,
    /// Workers with a session
    workers: usize,
    created_at: String,
    updated_at: String,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RunnerGroupList {
    groups: Vec<RunnerGroupView>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RunnerGroupSettings {
    /// Only workers of this cluster may claim; default: all may
    #[schema(min_length = 1, max_length = 64)]
    cluster: Option<String>,
}

pub(crate) fn router() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(list_runner_groups)).routes(routes!(
        put_runner_group,
        get_runner_group,
        delete_runner_group
    ))
}

fn view(group: RunnerGroup, load: Option<&GroupLoad>) -> RunnerGroupView {
    RunnerGroupView {
        name: group.name,
        cluster: group.cluster,
        waiting: load.map_or(0, |load| load.waiting),
        claimed: load.map_or(0, |load| load.claimed),
        workers: load.map_or(0, |load| load.workers),
        created_at: time(group.created_at),
        updated_at: time(group.updated_at),
    }
}

/// Returns the groups of the tenant, and those that units wait for and that no worker has claimed for yet.
async fn views(app: &App, caller: &Caller) -> Result<Vec<RunnerGroupView>, Problem> {
    let loads = app.remote.loads(Some(caller.tenant.clone())).await?;
    let mut loads: BTreeMap<String, GroupLoad> =
        loads.into_iter().map(|load| (load.name.clone(), load)).collect();
    let known = app.remote.groups.of(&caller.tenant).into_iter();
    let mut views: Vec<_> = known
        .map(|group| {
            let load = loads.remove(&group.name);
            view(group, load.as_ref())
        })
        .collect();
    let (tenant, at) = (&caller.tenant, now());
    views.extend(loads.into_values().map(|load| {
        let name = load.name.clone();
        let group =
            RunnerGroup { tenant: tenant.clone(), name, cluster: None, created_at: at, updated_at: at };
        view(group, Some(&load))
    }));
    views.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(views)
}

/// List the groups of workers
#[utoipa::path(get, path = "/api/v1/runner-groups", tag = TAG, security(("bearer" = [])),
    responses((status = 200, body = RunnerGroupList), Refusals))]
async fn list_runner_groups(
    State(app): State<Arc<App>>,
    caller: Caller,
) -> Result<Json<RunnerGroupList>, Problem> {
    caller.may(Permission::View)?;
    Ok(Json(RunnerGroupList { groups: views(&app, &caller).await? }))
}

/// Get a group of workers
#[utoipa::path(get, path = "/api/v1/runner-groups/{name}", tag = TAG, security(("bearer" = [])),
    params(("name" = String, Path, description = "Name of the group")),
    responses((status = 200, body = RunnerGroupView), Refusals))]
async fn get_runner_group(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<Json<RunnerGroupView>, Problem> {
    caller.may(Permission::View)?;
    let found = views(&app, &caller).await?.into_iter().find(|group| group.name == name);
    found.map(Json).ok_or_else(|| Problem::not_found("runner group", &name))
}

/// Create a group of workers, or change its cluster
///
/// A worker of another cluster gets nothing new from now on.
#[utoipa::path(put, path = "/api/v1/runner-groups/{name}", tag = TAG, security(("bearer" = [])),
    params(("name" = String, Path, description = "Name of the group")), request_body = RunnerGroupSettings,
    responses((status = 200, body = RunnerGroupView),
        (status = 409, body = Refused, description = "The tenant has reached its maximum number of groups"),
        Refusals, BodyRefusals))]
async fn put_runner_group(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
    JsonBody(settings): JsonBody<RunnerGroupSettings>,
) -> Result<Json<RunnerGroupView>, Problem> {
    caller.may(Permission::Administer)?;
    let name = check_group("name", &name)?;
    let cluster = settings.cluster.as_deref().map(|cluster| check_group("cluster", cluster)).transpose()?;
    let changing = app.remote.groups.change().await;
    let known = app.remote.groups.get(&caller.tenant, &name);
    if known.is_none() && app.remote.groups.of(&caller.tenant).len() >= GROUPS_MAX {
        let message = format!("the tenant has {GROUPS_MAX} groups, which is the maximum; delete some first");
        return Err(Problem::new(ProblemCode::LimitExceeded, message));
    }
    let updated_at = now();
    let created_at = known.map_or(updated_at, |known| known.created_at);
    let group =
        RunnerGroup { tenant: caller.tenant.clone(), name: name.clone(), cluster, created_at, updated_at };
    let audit = caller.audit_entry("runner-group.put", &name, json!({ "cluster": group.cluster }));
    app.store_entries(vec![Entry::RunnerGroup(Box::new(group.clone())).audited(audit)]).await?;
    app.remote.restrict(&group).await?;
    app.remote.groups.put(group);
    drop(changing);
    get_runner_group(State(app), caller, Path(name)).await
}

/// Delete a group of workers
///
/// Its restriction is removed; a worker that claims for it creates it again.
#[utoipa::path(delete, path = "/api/v1/runner-groups/{name}", tag = TAG, security(("bearer" = [])),
    params(("name" = String, Path, description = "Name of the group")),
    responses((status = 204), Refusals))]
async fn delete_runner_group(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<StatusCode, Problem> {
    caller.may(Permission::Administer)?;
    let _changing = app.remote.groups.change().await;
    let deleted = Entry::RunnerGroupDeleted { tenant: caller.tenant.clone(), name: name.clone() };
    let audit = caller.audit_entry("runner-group.delete", &name, json!({}));
    let applied = app.store_entries(vec![deleted.audited(audit)]).await?;
    if applied.first() != Some(&Applied::Done) {
        return Err(Problem::not_found("runner group", &name));
    }
    if let Some(group) = app.remote.groups.remove(&caller.tenant, &name) {
        app.remote.restrict(&RunnerGroup { cluster: None, ..group }).await?;
    }
    Ok(StatusCode::NO_CONTENT)
}
