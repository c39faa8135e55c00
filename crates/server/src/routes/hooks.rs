//! `/hooks/{path}`: requests that start workflows, as their triggers ask for them.

use super::executions::key::{key, of_parts};
use super::executions::{Accepted, Begin, ExecutionOptions, begin};
use crate::app::App;
use crate::auth::{Caller, Pass, Permission, Role};
use crate::body::{collect, media_type, parse};
use crate::hooks::Claim;
use crate::problem::{Problem, Refused};
use crate::routes::shared::{BodyRefusals, Refusals};
use axum::Json;
use axum::extract::{Path, RawQuery, Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::routing::any;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use utoipa::OpenApi as _;
use utoipa_axum::router::OpenApiRouter;
use windlass_dialects::workflow::HOOK;
use windlass_store::Catalog;

/// Who starts it when no token is asked for.
const BY: &str = "webhook";
const TRIGGER: &str = "webhook";

/// Headers whose values are kept nowhere.
const PRIVATE: [&str; 4] = ["authorization", "proxy-authorization", "cookie", "x-api-key"];

#[derive(utoipa::OpenApi)]
#[openapi(paths(hook))]
struct Document;

/// Paths have as many parts, and methods, as their triggers say, which the OpenAPI document cannot tell.
pub fn router() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::with_openapi(Document::openapi()).route("/hooks/{*path}", any(hook))
}

/// Start the workflow whose trigger has this path
///
/// With the method that the trigger says. A JSON object is the inputs; anything else is their `body`; without a body the
/// query is. A token is needed unless the trigger says `requireAuth: false`.
#[utoipa::path(post, path = "/hooks/{path}", tag = "hooks", security((), ("bearer" = [])),
    params(("path" = String, Path, description = "As the trigger has it; it may have several parts"),
        ("X-Idempotency-Key" = Option<String>, Header, description = "The same key starts no second execution")),
    request_body(content = Option<Value>),
    responses((status = 202, body = Accepted, description = "It is queued"),
        (status = 405, body = Refused, description = "The trigger is for another method"),
        (status = 409, body = Refused, description = "The key was used for something else, or the workflow is not active"),
        Refusals, BodyRefusals))]
async fn hook(
    State(app): State<Arc<App>>,
    Path(path): Path<String>,
    method: Method,
    RawQuery(query): RawQuery,
    request: Request,
) -> Result<(StatusCode, Json<Accepted>), Problem> {
    let (parts, body) = request.into_parts();
    let claims = claims(&app, path.trim_matches('/')).await?;
    let (claim, caller) = claimed(&app, claims, &path, &method, &parts.headers).await?;
    let bytes = collect(body, &app).await?;
    let inputs = inputs(&Asked {
        method: &method,
        path: &path,
        query: query.as_deref(),
        headers: &parts.headers,
        body: &bytes,
    })?;
    let asked = ExecutionOptions::default().read(&caller.id, &app.settings.egress)?;
    let sent = [method.as_str(), path.trim_matches('/'), query.as_deref().unwrap_or_default()];
    let [method, path, query] = sent.map(str::as_bytes);
    let key = key(&parts.headers, || Ok(of_parts([method, path, query, &bytes])))?;
    let with = Begin { workflow: claim.workflow, inputs, trigger: TRIGGER, key };
    Ok(begin(&app, &caller, asked, with).await?.accepted(&app, &parts.headers))
}

/// Of workflows that are there.
async fn claims(app: &Arc<App>, path: &str) -> Result<Vec<Claim>, Problem> {
    let (state, path) = (app.clone(), path.to_owned());
    app.readers
        .look(move |reader| {
            let mut standing = Vec::new();
            for claim in state.hooks.claims(reader, &path)? {
                if reader.workflow(&claim.tenant, claim.workflow)?.is_some() {
                    standing.push(claim);
                }
            }
            Ok(standing)
        })
        .await
}

/// With a token, the caller's own; without one, the oldest that asks for none: nobody takes over another's path.
async fn claimed(
    app: &App,
    claims: Vec<Claim>,
    path: &str,
    method: &Method,
    headers: &HeaderMap,
) -> Result<(Claim, Caller), Problem> {
    let missing = || Problem::not_found("hook", path);
    let caller = match headers.contains_key(header::AUTHORIZATION) {
        true => Some(Caller::of_request(app, headers).await?),
        false => None,
    };
    let mine = |claim: &Claim| match &caller {
        Some(caller) => caller.tenant == claim.tenant,
        None => true,
    };
    let (known, mut claims): (bool, Vec<Claim>) = {
        let mine: Vec<Claim> = claims.into_iter().filter(mine).collect();
        (!mine.is_empty(), mine.into_iter().filter(|claim| claim.hook.method == method.as_str()).collect())
    };
    if claims.is_empty() && known {
        let message = "the hook is for another method";
        return Err(Problem::new(StatusCode::METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED", message));
    }
    if caller.is_none() && !claims.is_empty() && claims.iter().all(|claim| claim.hook.require_auth) {
        return Err(Problem::unauthenticated("this hook needs the header Authorization: Bearer TOKEN"));
    }
    claims.retain(|claim| caller.is_some() || !claim.hook.require_auth);
    let claim = claims.into_iter().next().ok_or_else(missing)?;
    let caller = match caller {
        Some(caller) => caller,
        None => Caller::at_home(claim.tenant.clone(), Role::Member, BY.to_owned(), Pass::Free),
    };
    caller.may(Permission::Execute)?;
    Ok((claim, caller))
}

/// What a request says.
struct Asked<'r> {
    method: &'r Method,
    path: &'r str,
    query: Option<&'r str>,
    headers: &'r HeaderMap,
    body: &'r [u8],
}

/// The body, or without one the query; and beside that the request itself, so that a signature or an event's name can be
/// looked at.
fn inputs(asked: &Asked<'_>) -> Result<Map<String, Value>, Problem> {
    let query = pairs(asked.query.unwrap_or_default())?;
    let mut inputs = if asked.body.is_empty() { query.clone() } else { sent(asked)? };
    let request = json!({
        "method": asked.method.as_str(),
        "path": asked.path.trim_matches('/'),
        "query": query,
        "headers": told(asked.headers),
        "body": String::from_utf8_lossy(asked.body),
    });
    inputs.insert(HOOK.to_owned(), request);
    Ok(inputs)
}

/// An object or a form is the inputs; anything else is their `body`.
fn sent(asked: &Asked<'_>) -> Result<Map<String, Value>, Problem> {
    let text = || String::from_utf8_lossy(asked.body).into_owned();
    let value = match media_type(asked.headers).as_deref() {
        Some(kind) if kind.ends_with("json") => parse(asked.body)?,
        Some("application/x-www-form-urlencoded") => Value::Object(pairs(&text())?),
        _ => Value::String(text()),
    };
    match value {
        Value::Object(inputs) => Ok(inputs),
        other => Ok(Map::from_iter([("body".to_owned(), other)])),
    }
}

/// `a=1&b=2`; what is there several times is a list.
fn pairs(text: &str) -> Result<Map<String, Value>, Problem> {
    let mut url = reqwest::Url::parse("http://hook/")
        .map_err(|error| Problem::bad_request(format!("the query cannot be read: {error}")))?;
    url.set_query(Some(text));
    let mut found: Map<String, Value> = Map::new();
    for (name, value) in url.query_pairs() {
        let value = Value::from(value.into_owned());
        match found.get_mut(&*name) {
            Some(Value::Array(all)) => all.push(value),
            Some(one) => *one = json!([one.take(), value]),
            None => drop(found.insert(name.into_owned(), value)),
        }
    }
    Ok(found)
}

/// Without those that say who asks.
fn told(headers: &HeaderMap) -> Map<String, Value> {
    let mut told: Map<String, Value> = Map::new();
    for name in headers.keys().filter(|name| !PRIVATE.contains(&name.as_str())) {
        let values = headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes()));
        told.insert(name.as_str().to_owned(), json!(values.collect::<Vec<_>>().join(", ")));
    }
    told
}
