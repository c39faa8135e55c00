//! `/hooks/{path}` and `/hooks/{tenant}/{path}`: requests that start workflows with a webhook trigger.

mod request;

use super::executions::key::{key, of_parts};
use super::executions::{Accepted, ExecutionOptions, Trigger, begin};
use crate::app::App;
use crate::auth::{Caller, Credential, Permission, Role};
use crate::body::collect;
use crate::hooks::address;
use crate::limits::RateKey;
use crate::problem::{Problem, ProblemCode, Refused};
use crate::routes::shared::{BodyRefusals, Refusals};
use axum::Json;
use axum::extract::{Path, RawQuery, Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::routing::any;
use request::HookRequest;
use serde_json::Value;
use std::sync::Arc;
use std::time::Instant;
use utoipa::OpenApi as _;
use utoipa_axum::router::OpenApiRouter;
use windlass_engine::Start;
use windlass_store::{HookReader as _, StoredHook, Tenant};

/// Actor of an execution that a request without a token starts.
const BY: &str = "webhook";

#[derive(utoipa::OpenApi)]
#[openapi(paths(hook))]
struct Document;

/// Triggers define the paths and methods, which the OpenAPI document cannot express.
pub(crate) fn router() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::with_openapi(Document::openapi()).route("/hooks/{*path}", any(hook))
}

/// Start the workflow whose trigger has this path
///
/// The trigger defines the method. A path belongs to a tenant: `/hooks/TENANT/PATH`; without a tenant, to the tenant of the
/// token, and without a token, to `default`. A JSON object in the body becomes the inputs, any other body the input `body`;
/// without a body, the query becomes the inputs. A token is required unless the trigger has `requireAuth: false`.
#[utoipa::path(post, path = "/hooks/{path}", tag = "hooks", security((), ("bearer" = [])),
    params(("path" = String, Path, description = "Path of the trigger, optionally after the id of the tenant; it may have several segments"),
        ("X-Idempotency-Key" = Option<String>, Header, description = "A repeated request with the same key starts no second execution")),
    request_body(content = Option<Value>),
    responses((status = 202, body = Accepted, description = "The execution is queued"),
        (status = 405, body = Refused, description = "The trigger has another method"),
        (status = 409, body = Refused, description = "The key was used with another request, or the workflow is not active"),
        Refusals, BodyRefusals))]
async fn hook(
    State(app): State<Arc<App>>,
    Path(full): Path<String>,
    method: Method,
    RawQuery(query): RawQuery,
    request: Request,
) -> Result<(StatusCode, Json<Accepted>), Problem> {
    let (parts, body) = request.into_parts();
    let (named, path) = address(&full);
    let (hook, caller) = find(&app, named, path, &method, &parts.headers).await?;
    let bytes = collect(body, &app).await?;
    let query = query.as_deref();
    let inputs =
        HookRequest { method: &method, path, query, headers: &parts.headers, body: &bytes }.inputs()?;
    let sent = [method.as_str(), path, query.unwrap_or_default()].map(str::as_bytes);
    let key = key(&parts.headers, || Ok(of_parts([sent[0], sent[1], sent[2], &bytes])))?;
    let origin = Trigger::Webhook.origin(&caller, hook.workflow, key);
    let (start, overrides) = ExecutionOptions::default().start(origin, &app.settings.egress)?;
    let start = Start { inputs: Value::Object(inputs), ..start };
    let begun = begin(&app, &caller, hook.workflow, start, &overrides).await?;
    Ok(begun.accepted(&app, &parts.headers))
}

/// Finds the hook in the tenant that the address names, else in the caller's tenant, else in `default`.
async fn find(
    app: &App,
    named: Option<Tenant>,
    path: &str,
    method: &Method,
    headers: &HeaderMap,
) -> Result<(StoredHook, Caller), Problem> {
    let missing = || Problem::not_found("hook", path);
    let caller = match headers.contains_key(header::AUTHORIZATION) {
        true => Some(Caller::from_request(app, headers).await?),
        false => None,
    };
    let own = caller.as_ref().map(|caller| caller.tenant.clone());
    let tenant = match (named, own) {
        (Some(named), Some(own)) if named != own => return Err(missing()),
        (Some(tenant), _) | (None, Some(tenant)) => tenant,
        (None, None) => Tenant::default(),
    };
    let hooks = hooks(app, &tenant, path).await?;
    let is_known = !hooks.is_empty();
    let hook = match hooks.into_iter().find(|hook| hook.claim.method == method.as_str()) {
        Some(hook) => hook,
        None if is_known => return Err(other_method()),
        None => return Err(missing()),
    };
    let caller = match caller {
        Some(caller) => caller,
        None => anonymous_caller(app, &tenant, &hook)?,
    };
    caller.may(Permission::Execute)?;
    Ok((hook, caller))
}

async fn hooks(app: &App, tenant: &Tenant, path: &str) -> Result<Vec<StoredHook>, Problem> {
    let (tenant, path) = (tenant.clone(), path.to_owned());
    app.readers.look(move |reader| reader.hooks(&tenant, &path)).await
}

fn other_method() -> Problem {
    let message = "the hook has another method; send the method of its trigger";
    Problem::new(ProblemCode::MethodNotAllowed, message)
}

/// Returns the caller of a request without a token. It has limits of its own, so that it cannot use up those of the tenant's
/// users.
fn anonymous_caller(app: &App, tenant: &Tenant, hook: &StoredHook) -> Result<Caller, Problem> {
    if hook.claim.require_auth {
        return Err(Problem::unauthenticated(
            "the hook requires a token; send the header Authorization: Bearer TOKEN",
        ));
    }
    let now = Instant::now();
    if let Some(rate) = app.directory.hook_rate(tenant, &app.settings) {
        app.rates.take(RateKey::Hook(tenant.clone(), hook.claim.path.clone()), rate, now)?;
    }
    if let Some(rate) = app.directory.rate(tenant, &app.settings) {
        app.rates.take(RateKey::Hooks(tenant.clone()), rate, now)?;
    }
    Ok(Caller::in_tenant(tenant.clone(), Role::Member, BY.to_owned(), Credential::Free))
}
