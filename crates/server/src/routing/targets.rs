//! Clusters, sandboxes and route groups of a tenant, for their routes.

use crate::app::{App, unexpected_applied};
use crate::auth::{Caller, Permission};
use crate::body::Params;
use crate::database::DatabaseReader;
use crate::host::now;
use crate::problem::{Problem, ProblemCode};
use crate::routes::paging::Paged;
use crate::routes::shared::check_group;
use axum::Json;
use axum::http::StatusCode;
use reqwest::Url;
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;
use windlass_store::{
    Applied, Entry, Registry as _, RegistryWrite, RoutingTarget, TARGETS_MAX, TargetKind, Tenant,
};
use windlass_views::time;

/// Cluster that every tenant has: plans run without any registration.
pub(crate) const LOCAL_CLUSTER: &str = "local";
/// Maximum length of a URL that is polled.
const URL_MAX: usize = 2_048;
const ROUTING_KEY_MAX: usize = 256;

/// A sandbox or a route group.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RoutingTargetView {
    name: String,
    /// Cluster of the target, if it is known
    cluster: Option<String>,
    /// Value of `SIGNADOT_ROUTING_KEY` in steps
    routing_key: Option<String>,
    ready: bool,
    /// Polled while steps wait
    ready_url: Option<String>,
    /// Reason for which the last poll did not find it ready
    reason: Option<String>,
    #[schema(format = DateTime)]
    polled_at: Option<String>,
    #[schema(format = DateTime)]
    created_at: String,
    #[schema(format = DateTime)]
    updated_at: String,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RoutingTargetList {
    /// Ordered by name
    items: Vec<RoutingTargetView>,
    /// Send as `cursor` to get the next page; null on the last page
    next_cursor: Option<String>,
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct TargetParams {
    #[param(minimum = 1, maximum = 200)]
    limit: Option<usize>,
    cursor: Option<String>,
}

impl TargetParams {
    pub(crate) fn is_first(&self) -> bool {
        self.cursor.is_none()
    }
}

/// The state of a sandbox or a route group, as its owner reports it.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct RoutingTargetState {
    #[schema(min_length = 1, max_length = 64)]
    cluster: Option<String>,
    /// Whether steps may start; default: false
    ready: Option<bool>,
    /// Default: the existing key; a random key for a new target
    #[schema(min_length = 1, max_length = 256)]
    routing_key: Option<String>,
    /// Polled while steps wait: a response 2xx means ready, unless its JSON has `ready: false`
    #[schema(max_length = 2048)]
    ready_url: Option<String>,
}

impl From<RoutingTarget> for RoutingTargetView {
    fn from(target: RoutingTarget) -> RoutingTargetView {
        RoutingTargetView {
            name: target.name,
            cluster: target.cluster,
            routing_key: target.routing_key,
            ready: target.ready,
            ready_url: target.ready_url,
            reason: target.reason,
            polled_at: target.polled_at.map(time),
            created_at: time(target.created_at),
            updated_at: time(target.updated_at),
        }
    }
}

/// One kind of target in the API.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TargetNoun {
    pub kind: TargetKind,
    /// Name in messages.
    pub noun: &'static str,
    /// Action in the audit log: `sandbox.put`.
    pub audited: &'static str,
    pub list: Paged,
}

impl TargetNoun {
    pub(crate) async fn find(
        self,
        app: &App,
        tenant: &Tenant,
        name: &str,
    ) -> Result<Option<RoutingTarget>, Problem> {
        let (of, name) = (tenant.clone(), name.to_owned());
        app.readers.of(tenant).look(move |reader| reader.target(&of, self.kind, &name)).await
    }

    pub(crate) async fn page(
        self,
        app: &App,
        caller: &Caller,
        Params(params): Params<TargetParams>,
    ) -> Result<(Vec<RoutingTarget>, Option<String>), Problem> {
        caller.may(Permission::View)?;
        let limit = self.list.limit(params.limit)?;
        let after = self.list.place(params.cursor.as_deref(), |name| Some(name.to_owned()))?;
        let tenant = caller.tenant.clone();
        let look = move |reader: &mut DatabaseReader| {
            reader.targets(&tenant, self.kind, after.as_deref(), limit + 1)
        };
        let mut found = app.readers.of(&caller.tenant).look(look).await?;
        let next = self.list.cut(&mut found, limit, |last| last.name.clone()).cursor;
        Ok((found, next))
    }

    pub(crate) async fn list(
        self,
        app: &App,
        caller: &Caller,
        params: Params<TargetParams>,
    ) -> Result<Json<RoutingTargetList>, Problem> {
        let (found, next_cursor) = self.page(app, caller, params).await?;
        let items = found.into_iter().map(RoutingTargetView::from).collect();
        Ok(Json(RoutingTargetList { items, next_cursor }))
    }

    pub(crate) async fn get(
        self,
        app: &App,
        caller: &Caller,
        name: &str,
    ) -> Result<Json<RoutingTargetView>, Problem> {
        caller.may(Permission::View)?;
        let found = self.find(app, &caller.tenant, name).await?;
        found.map(|target| Json(target.into())).ok_or_else(|| Problem::not_found(self.noun, name))
    }

    pub(crate) async fn put_state(
        self,
        app: &App,
        caller: &Caller,
        name: &str,
        state: RoutingTargetState,
    ) -> Result<Json<RoutingTargetView>, Problem> {
        caller.may(Permission::Edit)?;
        let name = check_group("name", name)?;
        let target = state.checked(app, caller, self.kind, name)?;
        self.put(app, caller, target).await.map(|stored| Json(stored.into()))
    }

    /// Stores a target, and returns it as it is stored.
    pub(crate) async fn put(
        self,
        app: &App,
        caller: &Caller,
        mut target: RoutingTarget,
    ) -> Result<RoutingTarget, Problem> {
        let known = self.find(app, &caller.tenant, &target.name).await?;
        let needs_key = self.kind != TargetKind::Cluster && target.routing_key.is_none();
        if needs_key && known.is_none_or(|known| known.routing_key.is_none()) {
            target.routing_key = Some(fresh_routing_key()?);
        }
        let name = target.name.clone();
        let details = json!({ "ready": target.ready, "cluster": target.cluster });
        let audit = caller.audit_entry(&format!("{}.put", self.audited), &name, details);
        let write = RegistryWrite::PutTarget(Box::new(target));
        match write_one(app, Entry::Registry(Box::new(write)).audited(audit)).await? {
            Applied::Done => {}
            Applied::Conflict => {
                let message =
                    format!("the tenant has {TARGETS_MAX} of these, which is the maximum; delete some first");
                return Err(Problem::new(ProblemCode::LimitExceeded, message));
            }
            other => return Err(unexpected_applied(other)),
        }
        app.routing_bell.notify_one();
        let stored = self.find(app, &caller.tenant, &name).await?;
        stored.ok_or_else(|| Problem::not_found(self.noun, &name))
    }

    pub(crate) async fn delete(self, app: &App, caller: &Caller, name: &str) -> Result<StatusCode, Problem> {
        caller.may(Permission::Delete)?;
        let (tenant, kind) = (caller.tenant.clone(), self.kind);
        let write = RegistryWrite::DeleteTarget { tenant, kind, name: name.to_owned() };
        let audit = caller.audit_entry(&format!("{}.delete", self.audited), name, json!({}));
        match write_one(app, Entry::Registry(Box::new(write)).audited(audit)).await? {
            Applied::Done => Ok(StatusCode::NO_CONTENT),
            Applied::Duplicate => Err(Problem::not_found(self.noun, name)),
            other => Err(unexpected_applied(other)),
        }
    }
}

impl RoutingTargetState {
    fn checked(
        self,
        app: &App,
        caller: &Caller,
        kind: TargetKind,
        name: String,
    ) -> Result<RoutingTarget, Problem> {
        let cluster = self.cluster.as_deref().map(|cluster| check_group("cluster", cluster)).transpose()?;
        let routing_key = self.routing_key.map(check_routing_key).transpose()?;
        if let Some(url) = &self.ready_url {
            check_url(app, url).map_err(|wrong| Problem::invalid("readyUrl", wrong))?;
        }
        let at = now();
        Ok(RoutingTarget {
            tenant: caller.tenant.clone(),
            kind,
            name,
            cluster,
            routing_key,
            ready: self.ready.unwrap_or(false),
            ready_url: self.ready_url,
            reason: None,
            polled_at: None,
            created_at: at,
            updated_at: at,
        })
    }
}

/// Checks a routing key: it is the value of an environment variable and of HTTP headers.
fn check_routing_key(key: String) -> Result<String, Problem> {
    match is_routing_key(&key) {
        true => Ok(key),
        false => {
            let message = format!("must have 1 to {ROUTING_KEY_MAX} visible ASCII characters");
            Err(Problem::invalid("routingKey", message))
        }
    }
}

pub(super) fn is_routing_key(key: &str) -> bool {
    (1..=ROUTING_KEY_MAX).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic())
}

fn check_url(app: &App, url: &str) -> Result<(), String> {
    if url.len() > URL_MAX {
        return Err(format!("must have at most {URL_MAX} bytes"));
    }
    let parsed = Url::parse(url).map_err(|error| format!("is not a URL: {error}"))?;
    if !matches!(parsed.scheme(), "http" | "https") {
        return Err("must be an http or https URL".to_owned());
    }
    let host = parsed.host_str().unwrap_or_default();
    app.settings.egress.check_host(host).map_err(|refused| refused.to_string())
}

/// Returns a random key for a target without one: 80 bits.
fn fresh_routing_key() -> Result<String, Problem> {
    let mut random = [0; 10];
    getrandom::fill(&mut random).map_err(|error| Problem::internal(format!("no random bytes: {error}")))?;
    Ok(random.iter().map(|byte| format!("{byte:02x}")).collect())
}

pub(crate) async fn write_one(app: &App, entry: Entry) -> Result<Applied, Problem> {
    let applied = app.store_entries(vec![entry]).await?;
    applied.first().copied().ok_or_else(|| Problem::internal("a write was not answered"))
}
