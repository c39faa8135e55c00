//! `/api/v1/clusters`: locations of the workers of plans.

use super::paging::Paged;
use super::shared::{BodyRefusals, Refusals, check_group};
use crate::app::App;
use crate::auth::{Caller, Permission};
use crate::body::{OptionalJsonBody, Params};
use crate::host::now;
use crate::problem::{Problem, Refused};
use crate::routing::targets::{LOCAL_CLUSTER, TargetNoun, TargetParams};
use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use windlass_store::{RoutingTarget, TargetKind};
use windlass_views::time;

const TAG: &str = "routing";
pub(crate) const CLUSTERS: TargetNoun = TargetNoun {
    kind: TargetKind::Cluster,
    noun: "cluster",
    audited: "cluster",
    list: Paged { name: "clusters", usual: 50, most: 200 },
};

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ClusterView {
    name: String,
    /// Whether a plan whose affinity is a pattern may choose it
    ready: bool,
    /// Null for `local`, which every tenant has
    #[schema(format = DateTime)]
    created_at: Option<String>,
    #[schema(format = DateTime)]
    updated_at: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ClusterList {
    /// Ordered by name; `local` is on the first page
    items: Vec<ClusterView>,
    /// Send as `cursor` to get the next page; null on the last page
    next_cursor: Option<String>,
}

#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClusterState {
    /// Whether a plan whose affinity is a pattern may choose it; default: true
    ready: Option<bool>,
}

impl From<RoutingTarget> for ClusterView {
    fn from(cluster: RoutingTarget) -> ClusterView {
        ClusterView {
            name: cluster.name,
            ready: cluster.ready,
            created_at: Some(time(cluster.created_at)),
            updated_at: Some(time(cluster.updated_at)),
        }
    }
}

fn local() -> ClusterView {
    ClusterView { name: LOCAL_CLUSTER.to_owned(), ready: true, created_at: None, updated_at: None }
}

pub(crate) fn router() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(list_clusters)).routes(routes!(
        put_cluster,
        get_cluster,
        delete_cluster
    ))
}

/// List clusters
#[utoipa::path(get, path = "/api/v1/clusters", tag = TAG, security(("bearer" = [])), params(TargetParams),
    responses((status = 200, body = ClusterList), Refusals))]
async fn list_clusters(
    State(app): State<Arc<App>>,
    caller: Caller,
    params: Params<TargetParams>,
) -> Result<Json<ClusterList>, Problem> {
    let is_first = params.0.is_first();
    let (found, next_cursor) = CLUSTERS.page(&app, &caller, params).await?;
    let mut items: Vec<ClusterView> = found.into_iter().map(ClusterView::from).collect();
    if is_first {
        items.insert(0, local());
    }
    Ok(Json(ClusterList { items, next_cursor }))
}

/// Get a cluster
#[utoipa::path(get, path = "/api/v1/clusters/{name}", tag = TAG, security(("bearer" = [])),
    params(("name" = String, Path, description = "Name of the cluster")),
    responses((status = 200, body = ClusterView), Refusals))]
async fn get_cluster(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<Json<ClusterView>, Problem> {
    caller.may(Permission::View)?;
    if name == LOCAL_CLUSTER {
        return Ok(Json(local()));
    }
    let found = CLUSTERS.find(&app, &caller.tenant, &name).await?;
    found.map(|cluster| Json(cluster.into())).ok_or_else(|| Problem::not_found("cluster", &name))
}

/// Register a cluster
#[utoipa::path(put, path = "/api/v1/clusters/{name}", tag = TAG, security(("bearer" = [])),
    params(("name" = String, Path, description = "Name of the cluster")),
    request_body(content = Option<ClusterState>),
    responses((status = 200, body = ClusterView),
        (status = 409, body = Refused, description = "The tenant has reached its maximum number of clusters"),
        Refusals, BodyRefusals))]
async fn put_cluster(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
    OptionalJsonBody(state): OptionalJsonBody<ClusterState>,
) -> Result<Json<ClusterView>, Problem> {
    caller.may(Permission::Edit)?;
    let name = check_group("name", &name)?;
    if name == LOCAL_CLUSTER {
        return match state.ready {
            None | Some(true) => Ok(Json(local())),
            Some(false) => Err(Problem::conflict(
                "the cluster `local` is always ready; use another cluster to make steps wait",
            )),
        };
    }
    let at = now();
    let cluster = RoutingTarget {
        tenant: caller.tenant.clone(),
        kind: TargetKind::Cluster,
        name,
        cluster: None,
        routing_key: None,
        ready: state.ready.unwrap_or(true),
        ready_url: None,
        reason: None,
        polled_at: None,
        created_at: at,
        updated_at: at,
    };
    CLUSTERS.put(&app, &caller, cluster).await.map(|stored| Json(stored.into()))
}

/// Delete a cluster
///
/// Executions that were created for it still run there.
#[utoipa::path(delete, path = "/api/v1/clusters/{name}", tag = TAG, security(("bearer" = [])),
    params(("name" = String, Path, description = "Name of the cluster")),
    responses((status = 204), (status = 409, body = Refused, description = "It is `local`"), Refusals))]
async fn delete_cluster(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<StatusCode, Problem> {
    caller.may(Permission::Delete)?;
    match name == LOCAL_CLUSTER {
        true => {
            Err(Problem::conflict("every tenant has the cluster `local`; only other clusters can be deleted"))
        }
        false => CLUSTERS.delete(&app, &caller, &name).await,
    }
}
