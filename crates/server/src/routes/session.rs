//! `/api/v1/session`: the session of the web page. A browser exchanges a token, a JWT or the code of a link for a cookie.

use super::me::Me;
use super::shared::{BodyRefusals, Refusals};
use crate::app::App;
use crate::auth::{Caller, Credential, Permission, SESSION_PREFIX, Token, cookie};
use crate::body::JsonBody;
use crate::host::now;
use crate::ids;
use crate::page::{CODE_MINUTES, SignIn};
use crate::problem::Problem;
use axum::Json;
use axum::extract::State;
use axum::http::header::SET_COOKIE;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use windlass_store::{Audit, Entry, StoredToken};
use windlass_views::time;

/// Time that a session from a link lasts.
const SESSION_MS: u64 = 12 * 3_600_000;
/// Time that a browser keeps a token that does not expire.
const KEPT_MS: u64 = 30 * 24 * 3_600_000;
/// Name of the tokens that links create.
const SESSION_NAME: &str = "web page";

/// Exactly one of the fields.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewSession {
    /// The code of a sign-in link
    code: Option<String>,
    /// A token of this server, or a JWT
    token: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SignInLink {
    /// Path and fragment at this server; it works once
    path: String,
    expires_at: String,
}

pub(crate) fn router() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(sign_in, sign_out)).routes(routes!(create_link))
}

/// Sign a browser in
///
/// The response sets a cookie that scripts cannot read. It is accepted from pages of this server only.
#[utoipa::path(post, path = "/api/v1/session", tag = "session", request_body = NewSession,
    responses((status = 200, body = Me, headers(("Set-Cookie" = String, description = "The session"))),
        Refusals, BodyRefusals))]
async fn sign_in(
    State(app): State<Arc<App>>,
    JsonBody(request): JsonBody<NewSession>,
) -> Result<(HeaderMap, Json<Me>), Problem> {
    let token = match (request.code, request.token) {
        (Some(code), None) => redeem(&app, &code).await?,
        (None, Some(token)) => token.trim().to_owned(),
        _ => return Err(Problem::bad_request("the body must have either `code` or `token`")),
    };
    let caller = Caller::from_token(&app, &token).await?;
    let kept = caller.ends_at(&app).map_or(KEPT_MS, |end| end.since(now()));
    let seconds = i64::try_from(kept / 1_000).unwrap_or(i64::MAX);
    Ok((cookie_header(&app, Some(&token), seconds), Json(Me::of(&app, &caller))))
}

/// Uses up the code of a link, and returns the token of the new session.
async fn redeem(app: &App, code: &str) -> Result<String, Problem> {
    let wrong = || {
        Problem::unauthenticated("the link was used before or has expired; `windlass page` prints a new one")
    };
    let SignIn { tenant, role, roles, by, until } =
        app.sign_in_codes.redeem(code, now()).ok_or_else(wrong)?;
    let (token, at) = (Token::random().map_err(Problem::internal)?, now());
    let stored = StoredToken {
        id: ids::fresh(SESSION_PREFIX)?,
        tenant: tenant.clone(),
        name: SESSION_NAME.to_owned(),
        role: role.name().to_owned(),
        roles: roles.to_vec(),
        group: None,
        person: None,
        digest: token.digest(),
        created_by: by.clone(),
        created_at: at,
        expires_at: Some(until.map_or(at.plus(SESSION_MS), |until| until.min(at.plus(SESSION_MS)))),
        revoked_at: None,
        last_used_at: None,
    };
    let audit = Audit {
        tenant,
        at,
        actor: by,
        role: role.name().to_owned(),
        action: "session.create".to_owned(),
        target: stored.id.clone(),
        details: json!({}),
    };
    app.store_entries(vec![Entry::Token(Box::new(stored.clone())).audited(audit)]).await?;
    app.directory.put_token(stored)?;
    Ok(token.text().to_owned())
}

/// Sign the browser out
///
/// The token of a session that a link began is revoked.
#[utoipa::path(delete, path = "/api/v1/session", tag = "session", security(("bearer" = [])),
    responses((status = 204, headers(("Set-Cookie" = String, description = "Removes the session"))), Refusals))]
async fn sign_out(State(app): State<Arc<App>>, caller: Caller) -> Result<(StatusCode, HeaderMap), Problem> {
    if let Credential::Token(digest) = caller.credential
        && let Some(user) = app.directory.holder(&digest, now())
        && user.is_session()
    {
        let at = now();
        let (tenant, id) = (user.token.tenant.clone(), user.token.id.clone());
        let audit = caller.audit_entry("session.delete", &id, json!({}));
        app.store_entries(vec![Entry::TokenRevoked { tenant, id, at }.audited(audit)]).await?;
        app.directory.put_token(StoredToken { revoked_at: Some(at), ..user.token.clone() })?;
    }
    Ok((StatusCode::NO_CONTENT, cookie_header(&app, None, 0)))
}

/// Create a link that signs a browser in as the caller
#[utoipa::path(post, path = "/api/v1/session/link", tag = "session", security(("bearer" = [])),
    responses((status = 201, body = SignInLink), Refusals))]
async fn create_link(
    State(app): State<Arc<App>>,
    caller: Caller,
) -> Result<(StatusCode, Json<SignInLink>), Problem> {
    caller.may(Permission::View)?;
    let until = caller.ends_at(&app);
    let Caller { tenant, role, roles, id: by, .. } = caller;
    let sign_in = SignIn { tenant, role, roles, by, until };
    let path = sign_in_path(&app, sign_in)?;
    let expires_at = time(now().plus(CODE_MINUTES * 60_000));
    Ok((StatusCode::CREATED, Json(SignInLink { path, expires_at })))
}

/// The code is in the fragment, which browsers send to no server and no log.
pub(crate) fn sign_in_path(app: &App, sign_in: SignIn) -> Result<String, Problem> {
    let code = app.sign_in_codes.issue(sign_in, now()).map_err(Problem::internal)?;
    Ok(format!("/sign-in#{}", code.text()))
}

fn cookie_header(app: &App, token: Option<&str>, seconds: i64) -> HeaderMap {
    let value: HeaderValue = cookie::set(token, seconds, app.settings.tls.is_some());
    HeaderMap::from_iter([(SET_COOKIE, value)])
}
