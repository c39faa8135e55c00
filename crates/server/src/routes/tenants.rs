//! `/api/v1/tenants`: tenants, their limits and their usage.

use super::shared::{BodyRefusals, Refusals, check_name};
use crate::app::App;
use crate::auth::{Caller, Permission};
use crate::body::JsonBody;
use crate::host::{limits, now};
use crate::ids;
use crate::problem::Problem;
use crate::storage::Storage;
use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::json;
use std::sync::Arc;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use windlass_engine::Request;
use windlass_store::{Audit, Entry, StoredTenant, Tenant, TenantLimits, each_tenant_limit};
use windlass_views::time;

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TenantView {
    /// `default`, or `tnt_` and 32 hexadecimal digits
    id: String,
    name: String,
    limits: LimitsView,
    /// Whether definitions of the tenant may run programs on the host of the server
    programs: Programs,
    usage: UsageView,
    created_at: String,
    updated_at: String,
}

macro_rules! limit_types {
    ($($field:ident: $number:ty, $max:tt, $about:literal;)*) => {
        /// Limits of a tenant; null: the server's setting applies, 0: no limit
        #[derive(Debug, Serialize, ToSchema)]
        #[serde(rename_all = "camelCase")]
        pub(crate) struct LimitsView {
            $(#[doc = $about] $field: Option<$number>,)*
        }

        impl From<TenantLimits> for LimitsView {
            fn from(limits: TenantLimits) -> LimitsView {
                LimitsView { $($field: limits.$field),* }
            }
        }

        /// Changes of a tenant. Absent fields are not changed; null restores the server's setting.
        #[derive(Debug, Deserialize, ToSchema)]
        #[serde(deny_unknown_fields, rename_all = "camelCase")]
        pub(crate) struct TenantChange {
            #[serde(default, deserialize_with = "present")]
            #[schema(value_type = String, nullable = false, min_length = 1, max_length = 255)]
            name: Option<String>,
            $(
                #[serde(default, deserialize_with = "present")]
                #[schema(value_type = Option<$number>, minimum = 0, maximum = $max)]
                $field: Option<Option<$number>>,
            )*
            #[serde(default, deserialize_with = "present")]
            #[schema(value_type = Programs, nullable = false)]
            programs: Option<Programs>,
        }

        impl TenantChange {
            fn apply_limits(&self, limits: &mut TenantLimits) -> Result<(), Problem> {
                $(if let Some(limit) = self.$field {
                    if limit.is_some_and(|limit| limit > $max) {
                        return Err(Problem::invalid(&camel_case(stringify!($field)), format!("must be at most {}", $max)));
                    }
                    limits.$field = limit;
                })*
                Ok(())
            }
        }
    };
}
each_tenant_limit!(limit_types);

/// Returns the name that a field has in JSON.
fn camel_case(field: &str) -> String {
    let mut words = field.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |name, word| name + &word[..1].to_uppercase() + &word[1..])
}

/// Storage used by a tenant, in bytes
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct UsageView {
    total: u64,
    /// Maximum of the total; null: no limit
    limit: Option<u64>,
    /// Journals of executions
    journal: u64,
    logs: u64,
    /// Large values
    artifacts: u64,
    /// Versions of workflows
    definitions: u64,
    memories: u64,
}

/// Whether definitions may run programs, as the user of the server
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Programs {
    Allowed,
    Denied,
}

impl From<bool> for Programs {
    fn from(allowed: bool) -> Programs {
        if allowed { Programs::Allowed } else { Programs::Denied }
    }
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TenantList {
    tenants: Vec<TenantView>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct NewTenant {
    #[schema(min_length = 1, max_length = 255)]
    name: String,
    /// Default: `denied`
    programs: Option<Programs>,
}

/// Distinguishes a field that is null from an absent one.
fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(field: D) -> Result<Option<T>, D::Error> {
    T::deserialize(field).map(Some)
}

impl UsageView {
    fn of(storage: &Storage, tenant: &Tenant) -> UsageView {
        let used = storage.used(tenant);
        let bytes = |count: i64| count.max(0).unsigned_abs();
        UsageView {
            total: used.total(),
            limit: storage.limit(tenant),
            journal: bytes(used.journal),
            logs: bytes(used.logs),
            artifacts: bytes(used.artifacts),
            definitions: bytes(used.definitions),
            memories: bytes(used.memories),
        }
    }
}

impl TenantView {
    fn of(app: &App, stored: StoredTenant) -> TenantView {
        TenantView {
            usage: UsageView::of(&app.storage, &stored.id),
            id: stored.id.to_string(),
            name: stored.name,
            limits: stored.limits.into(),
            programs: stored.programs.into(),
            created_at: time(stored.created_at),
            updated_at: time(stored.updated_at),
        }
    }
}

pub(crate) fn router() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(create_tenant, list_tenants))
        .routes(routes!(get_tenant, change_tenant))
}

/// Create a tenant
///
/// Requires the role owner or admin in the tenant `default`.
#[utoipa::path(post, path = "/api/v1/tenants", tag = "tenants", security(("bearer" = [])), request_body = NewTenant,
    responses((status = 201, body = TenantView), Refusals, BodyRefusals))]
async fn create_tenant(
    State(app): State<Arc<App>>,
    caller: Caller,
    JsonBody(request): JsonBody<NewTenant>,
) -> Result<(StatusCode, Json<TenantView>), Problem> {
    caller.check_operator()?;
    let (name, at) = (check_name("name", &request.name)?, now());
    let id = Tenant::new(&ids::fresh("tnt_")?);
    let (limits, programs) = (TenantLimits::default(), request.programs == Some(Programs::Allowed));
    let tenant = StoredTenant { id, name, limits, programs, created_at: at, updated_at: at };
    let details = json!({ "name": tenant.name, "programs": Programs::from(programs) });
    let audit = caller.audit_entry("tenant.create", &tenant.id.0, details);
    app.store_entries(vec![Entry::Tenant(Box::new(tenant.clone())).audited(audit)]).await?;
    app.directory.put_tenant(tenant.clone());
    app.rights.update_tenant(&tenant);
    app.storage.update_tenant(&tenant);
    send_limits(&app).await?;
    Ok((StatusCode::CREATED, Json(TenantView::of(&app, tenant))))
}

/// List tenants
///
/// Owners and admins of the tenant `default` see all tenants, others their own.
#[utoipa::path(get, path = "/api/v1/tenants", tag = "tenants", security(("bearer" = [])),
    responses((status = 200, body = TenantList), Refusals))]
async fn list_tenants(State(app): State<Arc<App>>, caller: Caller) -> Result<Json<TenantList>, Problem> {
    caller.may(Permission::Administer)?;
    let seen = |tenant: &StoredTenant| caller.is_operator || tenant.id == caller.tenant;
    let tenants = app.directory.tenants().into_iter().filter(seen);
    let tenants = tenants.map(|tenant| TenantView::of(&app, tenant)).collect();
    Ok(Json(TenantList { tenants }))
}

/// Get a tenant
#[utoipa::path(get, path = "/api/v1/tenants/{id}", tag = "tenants", security(("bearer" = [])),
    params(("id" = String, Path, description = "Id of the tenant")),
    responses((status = 200, body = TenantView), Refusals))]
async fn get_tenant(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<TenantView>, Problem> {
    caller.may(Permission::Administer)?;
    Ok(Json(TenantView::of(&app, find_visible(&app, &caller, &id)?)))
}

/// Change the name and the limits of a tenant
///
/// Requires the role owner or admin in the tenant `default`.
#[utoipa::path(patch, path = "/api/v1/tenants/{id}", tag = "tenants", security(("bearer" = [])),
    params(("id" = String, Path, description = "Id of the tenant")), request_body = TenantChange,
    responses((status = 200, body = TenantView), Refusals, BodyRefusals))]
async fn change_tenant(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    JsonBody(request): JsonBody<TenantChange>,
) -> Result<Json<TenantView>, Problem> {
    let mut tenant = find_visible(&app, &caller, &id)?;
    caller.check_operator()?;
    if let Some(name) = &request.name {
        tenant.name = check_name("name", name)?;
    }
    request.apply_limits(&mut tenant.limits)?;
    tenant.programs = request.programs.map_or(tenant.programs, |programs| programs == Programs::Allowed);
    tenant.updated_at = now();
    let mut details = json!(LimitsView::from(tenant.limits));
    details["name"] = json!(tenant.name);
    details["programs"] = json!(Programs::from(tenant.programs));
    let audit = caller.audit_entry("tenant.change", &tenant.id.0, details);
    // The tenant sees in its own log what the operator of the server changed of its rights.
    let own = Audit { tenant: tenant.id.clone(), ..audit.clone() };
    let mut entries = vec![Entry::Tenant(Box::new(tenant.clone())).audited(audit)];
    if tenant.id != caller.tenant {
        entries.push(Entry::Audit(Box::new(own)));
    }
    app.store_entries(entries).await?;
    app.directory.put_tenant(tenant.clone());
    app.rights.update_tenant(&tenant);
    app.storage.update_tenant(&tenant);
    send_limits(&app).await?;
    Ok(Json(TenantView::of(&app, tenant)))
}

/// Sends the limits of all tenants to the engine. A fair share depends on the number of tenants.
async fn send_limits(app: &App) -> Result<(), Problem> {
    let limits = limits(app.settings.shares(), &app.directory.tenants());
    app.ask(Request::Limit(limits)).await.map(drop)
}

/// Returns a tenant that the caller may see; for any other, the response is the same as for an unknown one.
fn find_visible(app: &App, caller: &Caller, id: &str) -> Result<StoredTenant, Problem> {
    let tenant = Tenant::new(id);
    let stored = app.directory.tenant(&tenant).filter(|_| caller.is_operator || tenant == caller.tenant);
    stored.ok_or_else(|| Problem::not_found("tenant", id))
}
