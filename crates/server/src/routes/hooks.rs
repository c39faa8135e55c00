//! `/hooks/{path}`: requests that start workflows, as their triggers ask for them.

use super::executions::key::{key, of_parts};
use super::executions::{Accepted, Begin, ExecutionOptions, begin};
use crate::app::App;
use crate::auth::{Caller, Permission, Role};
use crate::body::{collect, media_type, parse};
use crate::hooks::Claim;
use crate::problem::Problem;
use axum::Json;
use axum::extract::{Path, RawQuery, Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::routing::any;
use serde_json::{Map, Value};
use std::sync::Arc;
use utoipa_axum::router::OpenApiRouter;
use windlass_store::Catalog;

/// Who starts it when no token is asked for.
const BY: &str = "webhook";
const TRIGGER: &str = "webhook";

/// Paths have as many parts as their triggers say, which the OpenAPI document cannot tell; it leaves them out.
pub fn router() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().route("/hooks/{*path}", any(hook))
}

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
    let inputs = inputs(&parts.headers, &bytes, query.as_deref())?;
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
        None => Caller::at_home(claim.tenant.clone(), Role::Member, BY.to_owned()),
    };
    caller.may(Permission::Execute)?;
    Ok((claim, caller))
}

/// An object is the inputs; anything else is their `body`. Without a body the query is.
fn inputs(headers: &HeaderMap, body: &[u8], query: Option<&str>) -> Result<Map<String, Value>, Problem> {
    if body.is_empty() {
        let url = reqwest::Url::parse(&format!("http://hook/?{}", query.unwrap_or_default()));
        let url = url.map_err(|error| Problem::bad_request(format!("the query cannot be read: {error}")))?;
        let pairs =
            url.query_pairs().map(|(name, value)| (name.into_owned(), Value::from(value.into_owned())));
        return Ok(pairs.collect());
    }
    let is_json = media_type(headers).is_some_and(|kind| kind.ends_with("json"));
    let value = match is_json {
        true => parse(body)?,
        false => Value::String(String::from_utf8_lossy(body).into_owned()),
    };
    match value {
        Value::Object(inputs) => Ok(inputs),
        other => Ok(Map::from_iter([("body".to_owned(), other)])),
    }
}
