//! `/api/v1/session`: the session of the web page. A browser exchanges a token, a JWT or the code of a link for a cookie.

use super::me::Me;
use super::shared::{BodyRefusals, Refusals};
use crate::app::App;
use crate::auth::{Caller, Credential, Permission, SESSION_PREFIX, Token, User, cookie};
use crate::body::JsonBody;
use crate::host::now;
use crate::ids;
use crate::page::CODE_MINUTES;
use crate::problem::Problem;
use axum::Json;
use axum::extract::State;
use axum::http::header::SET_COOKIE;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use windlass_store::{Entry, StoredToken};
use windlass_views::time;

/// Time that a session from a link lasts.
const SESSION_MS: u64 = 12 * 3_600_000;
/// Time that a browser keeps a token that does not expire.
const KEPT_MS: u64 = 30 * 24 * 3_600_000;
/// Name of the tokens that links create.
const SESSION_NAME: &str = "web page";
/// Maximum number of sessions of a user in one tenant, for the browsers of a person. All are in memory.
const SESSIONS_MAX: usize = 10;
/// Maximum number of ended sessions deleted at once, so that other writes do not wait.
const ENDED_PAGE: usize = 1_000;

/// Exactly one of the fields.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewSession {
    /// The code of a sign-in link
    code: Option<String>,
    /// A token of this server, or a JWT
    token: Option<String>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SignInCode {
    /// The code of a sign-in link
    code: String,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SignInPreview {
    /// The user whom the link signs in
    link: Me,
    /// The user of the request; null without a session
    current: Option<Me>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SignInLink {
    /// Path and fragment at this server; it works once
    path: String,
    expires_at: String,
}

pub(crate) fn router() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(sign_in, sign_out))
        .routes(routes!(create_link))
        .routes(routes!(preview_link))
}

/// Sign a browser in
///
/// The response sets a cookie that scripts cannot read. It is accepted from pages of this server only.
#[utoipa::path(post, path = "/api/v1/session", tag = "session", request_body = NewSession,
    responses((status = 200, body = Me, headers(("Set-Cookie" = String, description = "The session"))),
        Refusals, BodyRefusals))]
async fn sign_in(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    JsonBody(request): JsonBody<NewSession>,
) -> Result<(HeaderMap, Json<Me>), Problem> {
    let token = match (request.code, request.token) {
        (Some(code), None) => redeem(&app, &code).await?,
        (None, Some(token)) => token.trim().to_owned(),
        _ => return Err(Problem::bad_request("the body must have either `code` or `token`")),
    };
    let caller = Caller::from_token(&app, &token).await?;
    if !caller.role.may(Permission::View) {
        let role = caller.role.name();
        return Err(Problem::forbidden(format!(
            "the role `{role}` may not read what the page shows; sign in with a token of another role"
        )));
    }
    let kept = caller.ends_at(&app).map_or(KEPT_MS, |end| end.since(now()));
    let seconds = i64::try_from(kept / 1_000).unwrap_or(i64::MAX);
    Ok((cookie_header(&app, &headers, Some(&token), seconds), Json(Me::of(&app, &caller))))
}

fn unknown_code() -> Problem {
    Problem::unauthenticated("the link was used before or has expired; `windlass page` prints a new one")
}

/// Preview a sign-in link
///
/// Returns the user whom the link signs in and the user who is signed in, so that a page can ask before it replaces a session.
/// The link stays unused.
#[utoipa::path(post, path = "/api/v1/session/preview", tag = "session", request_body = SignInCode,
    responses((status = 200, body = SignInPreview), Refusals, BodyRefusals))]
async fn preview_link(
    State(app): State<Arc<App>>,
    caller: Result<Caller, Problem>,
    JsonBody(request): JsonBody<SignInCode>,
) -> Result<Json<SignInPreview>, Problem> {
    let of_link = app.sign_in_codes.look_up(&request.code, now()).ok_or_else(unknown_code)?;
    of_link.check_credential(&app)?;
    let current = match caller {
        Ok(caller) => Some(Me::of(&app, &caller)),
        // A session that has ended, or whose user may do nothing, is not worth a question.
        Err(problem) if [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN].contains(&problem.status()) => None,
        Err(problem) => return Err(problem),
    };
    Ok(Json(SignInPreview { link: Me::of(&app, &of_link), current }))
}

/// Uses up the code of a link, and returns the token of the new session.
async fn redeem(app: &App, code: &str) -> Result<String, Problem> {
    let caller = app.sign_in_codes.redeem(code, now()).ok_or_else(unknown_code)?;
    // The credential may have been revoked after it asked for the link.
    caller.check_credential(app)?;
    let token = Token::random().map_err(Problem::internal)?;
    let stored = session(app, &caller, &token)?;
    let created = caller.audit_entry("session.create", &stored.id, json!({}));
    let ended = ended_by_another(app, &caller);
    let mut entries = vec![Entry::Token(Box::new(stored.clone())).audited(created)];
    entries.extend(ended.iter().map(|old| {
        let details = json!({ "reason": format!("the user has {SESSIONS_MAX} newer sessions") });
        old.deletion().audited(caller.audit_entry("session.delete", &old.token.id, details))
    }));
    app.store_entries(entries).await?;
    app.directory.put_token(stored)?;
    ended.iter().for_each(|old| app.directory.remove_token(&old.token.digest));
    Ok(token.text().to_owned())
}

fn session(app: &App, caller: &Caller, token: &Token) -> Result<StoredToken, Problem> {
    let at = now();
    let end = at.plus(SESSION_MS);
    let issuer = match caller.credential {
        Credential::Token(digest) => Some(app.directory.issuer(&digest)),
        Credential::Until(_) | Credential::Free | Credential::Folder => None,
    };
    let id = ids::fresh(SESSION_PREFIX)?;
    Ok(StoredToken {
        name: SESSION_NAME.to_owned(),
        roles: caller.roles.to_vec(),
        issuer,
        created_by: caller.id.clone(),
        expires_at: Some(caller.ends_at(app).map_or(end, |until| until.min(end))),
        ..StoredToken::new(id, token.digest(), caller.tenant.clone(), caller.role.name(), at)
    })
}

/// Returns the oldest sessions of a user, which end to make room for another one.
fn ended_by_another(app: &App, caller: &Caller) -> Vec<Arc<User>> {
    let mut sessions = app.directory.sessions(&caller.tenant, &caller.id);
    sessions.truncate((sessions.len() + 1).saturating_sub(SESSIONS_MAX));
    sessions
}

/// Deletes sessions that have ended from the store and the memory, a page of them.
pub(crate) async fn delete_ended_sessions(app: &App) {
    let ended = app.directory.ended_sessions(now(), ENDED_PAGE);
    if ended.is_empty() {
        return;
    }
    match app.store_entries(ended.iter().map(|user| user.deletion()).collect()).await {
        Ok(_) => ended.iter().for_each(|user| app.directory.remove_token(&user.token.digest)),
        Err(problem) => tracing::warn!(%problem, "cannot delete sessions that have ended"),
    }
}

/// Sign the browser out
///
/// A session that a link began ends. The response removes the cookie of the page even if its session has ended before.
#[utoipa::path(delete, path = "/api/v1/session", tag = "session", security(("bearer" = [])),
    responses((status = 204, headers(("Set-Cookie" = String, description = "Removes the session"))), Refusals))]
async fn sign_out(
    State(app): State<Arc<App>>,
    method: Method,
    headers: HeaderMap,
    caller: Result<Caller, Problem>,
) -> Result<(StatusCode, HeaderMap), (HeaderMap, Problem)> {
    let has_ended = |problem: &Problem| problem.status() == StatusCode::UNAUTHORIZED;
    let caller = caller.map_err(|problem| {
        let is_removed = has_ended(&problem) && cookie::token(&method, &headers).is_some();
        (if is_removed { cookie_header(&app, &headers, None, 0) } else { HeaderMap::new() }, problem)
    })?;
    end_session(&app, &caller).await.map_err(|problem| (HeaderMap::new(), problem))?;
    Ok((StatusCode::NO_CONTENT, cookie_header(&app, &headers, None, 0)))
}

/// Ends the session that the caller signs out of, if a link began it.
async fn end_session(app: &App, caller: &Caller) -> Result<(), Problem> {
    if let Credential::Token(digest) = caller.credential
        && let Some(user) = app.directory.holder(&digest, now())
        && user.is_session()
    {
        let audit = caller.audit_entry("session.delete", &user.token.id, json!({}));
        app.store_entries(vec![user.deletion().audited(audit)]).await?;
        app.directory.remove_token(&digest);
    }
    Ok(())
}

/// Create a link that signs a browser in as the caller
#[utoipa::path(post, path = "/api/v1/session/link", tag = "session", security(("bearer" = [])),
    responses((status = 201, body = SignInLink), Refusals))]
async fn create_link(
    State(app): State<Arc<App>>,
    caller: Caller,
) -> Result<(StatusCode, Json<SignInLink>), Problem> {
    caller.may(Permission::View)?;
    let path = sign_in_path(&app, caller)?;
    let expires_at = time(now().plus(CODE_MINUTES * 60_000));
    Ok((StatusCode::CREATED, Json(SignInLink { path, expires_at })))
}

/// Returns a sign-in path. The code is in the fragment, which browsers send to no server and no log.
pub(crate) fn sign_in_path(app: &App, caller: Caller) -> Result<String, Problem> {
    let code = app.sign_in_codes.issue(caller, now()).map_err(Problem::internal)?;
    Ok(format!("/sign-in#{}", code.text()))
}

fn cookie_header(app: &App, request: &HeaderMap, token: Option<&str>, seconds: i64) -> HeaderMap {
    let value: HeaderValue = cookie::set(request, token, seconds, app.settings.tls.is_some());
    HeaderMap::from_iter([(SET_COOKIE, value)])
}
