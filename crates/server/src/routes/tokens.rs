//! `/api/v1/tokens`: the tokens of a tenant and their roles. The value of a token is returned once, when it is created.

use super::shared::{BodyRefusals, Refusals, check_group, check_name, parse_time};
use crate::app::App;
use crate::auth::{Caller, Permission, Role, Token, User};
use crate::body::JsonBody;
use crate::host::now;
use crate::ids;
use crate::problem::{Problem, ProblemCode, Refused};
use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use windlass_store::{Applied, Entry, StoredToken, Tenant};
use windlass_views::time;

/// Maximum number of valid tokens of one tenant. All are in memory, and listed in one response.
const TOKENS_MAX: usize = 1_000;
/// Maximum length of the id of a person, in characters.
const PERSON_MAX: usize = 255;

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TokenView {
    /// `user_` and 32 hexadecimal digits; the actor in the audit log
    id: String,
    name: String,
    role: Role,
    /// Roles besides the built-in one, which approvers and policies of definitions name
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    roles: Vec<String>,
    /// The only group that a worker with this token may claim for
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    group: Option<String>,
    /// The person who holds it, if the person has another identity, too
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    person: Option<String>,
    tenant_id: String,
    created_at: String,
    created_by: String,
    expires_at: Option<String>,
    last_used_at: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MadeToken {
    id: String,
    /// The token itself; it cannot be read again
    token: String,
    name: String,
    role: Role,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    roles: Vec<String>,
    /// The only group that a worker with this token may claim for
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    group: Option<String>,
    /// The person who holds it, if the person has another identity, too
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    person: Option<String>,
    tenant_id: String,
    created_at: String,
    expires_at: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TokenList {
    tokens: Vec<TokenView>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct NewToken {
    #[schema(min_length = 1, max_length = 255)]
    name: String,
    role: Role,
    /// Roles besides the built-in one, which approvers and policies of definitions name
    #[serde(default)]
    #[schema(max_items = 50)]
    roles: Vec<String>,
    /// For the role `worker`: the only group that it may claim for; default: every group of the tenant
    #[schema(min_length = 1, max_length = 64)]
    group: Option<String>,
    /// The person who will hold it, if the person has another identity: the id of another token of the tenant, or `jwt:` and
    /// the subject of a JWT. Policies count both as one user. Default: a person of its own
    #[schema(min_length = 1, max_length = 255)]
    person: Option<String>,
    /// Default: the tenant of the caller
    tenant_id: Option<String>,
    /// Time at which the token expires; default: never
    #[schema(format = DateTime)]
    expires_at: Option<String>,
}

impl From<&User> for TokenView {
    fn from(user: &User) -> TokenView {
        let token = &user.token;
        TokenView {
            id: token.id.clone(),
            name: token.name.clone(),
            role: user.role,
            roles: token.roles.clone(),
            group: token.group.clone(),
            person: token.person.clone(),
            tenant_id: token.tenant.to_string(),
            created_at: time(token.created_at),
            created_by: token.created_by.clone(),
            expires_at: token.expires_at.map(time),
            last_used_at: user.last_used_at().map(time),
        }
    }
}

pub(crate) fn router() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(create_token, list_tokens)).routes(routes!(get_token, revoke_token))
}

/// Create a token
#[utoipa::path(post, path = "/api/v1/tokens", tag = "tokens", security(("bearer" = [])), request_body = NewToken,
    responses((status = 201, body = MadeToken),
        (status = 409, body = Refused, description = "The tenant has reached its maximum number of tokens"), Refusals, BodyRefusals))]
async fn create_token(
    State(app): State<Arc<App>>,
    caller: Caller,
    JsonBody(request): JsonBody<NewToken>,
) -> Result<(StatusCode, Json<MadeToken>), Problem> {
    caller.may(Permission::Administer)?;
    if !caller.role.reaches(request.role) {
        let message = format!(
            "the role `{}` may not create a token with the role `{}`",
            caller.role.name(),
            request.role.name()
        );
        return Err(Problem::forbidden(message));
    }
    let tenant = tenant_of(&app, &caller, request.tenant_id.as_deref())?;
    let usable = app.directory.count_tokens(&tenant, now());
    if usable >= TOKENS_MAX {
        let message =
            format!("the tenant has {usable} tokens, the maximum is {TOKENS_MAX}; revoke some first");
        return Err(Problem::new(ProblemCode::LimitExceeded, message));
    }
    let token = Token::random().map_err(Problem::internal)?;
    let stored = stored(&app, &caller, &tenant, &request, &token)?;
    let mut details = json!({ "name": stored.name, "role": stored.role, "roles": stored.roles, "expiresAt": stored.expires_at.map(time) });
    if let Some(group) = &stored.group {
        details["group"] = json!(group);
    }
    if let Some(person) = &stored.person {
        details["person"] = json!(person);
    }
    let audit = Caller { tenant, ..caller }.audit_entry("token.create", &stored.id, details);
    app.store_entries(vec![Entry::Token(Box::new(stored.clone())).audited(audit)]).await?;
    let made = MadeToken {
        id: stored.id.clone(),
        token: token.text().to_owned(),
        name: stored.name.clone(),
        role: request.role,
        roles: stored.roles.clone(),
        group: stored.group.clone(),
        person: stored.person.clone(),
        tenant_id: stored.tenant.to_string(),
        created_at: time(stored.created_at),
        expires_at: stored.expires_at.map(time),
    };
    app.directory.put_token(stored)?;
    Ok((StatusCode::CREATED, Json(made)))
}

/// Returns the tenant of a new token. Only operators see other tenants than their own.
fn tenant_of(app: &App, caller: &Caller, requested: Option<&str>) -> Result<Tenant, Problem> {
    let Some(requested) = requested else { return Ok(caller.tenant.clone()) };
    let tenant = Tenant::new(requested);
    let is_seen = tenant == caller.tenant || (caller.is_operator && app.directory.has(&tenant));
    is_seen.then_some(tenant).ok_or_else(|| Problem::not_found("tenant", requested))
}

fn stored(
    app: &App,
    caller: &Caller,
    tenant: &Tenant,
    request: &NewToken,
    token: &Token,
) -> Result<StoredToken, Problem> {
    let created_at = now();
    let expires_at = request.expires_at.as_deref().map(|text| parse_time("expiresAt", text)).transpose()?;
    if expires_at.is_some_and(|end| end <= created_at) {
        return Err(Problem::invalid("expiresAt", "must be in the future"));
    }
    Role::check_others(&request.roles).map_err(|why| Problem::invalid("roles", why))?;
    let id = ids::fresh("user_")?;
    Ok(StoredToken {
        name: check_name("name", &request.name)?,
        roles: request.roles.clone(),
        group: group(request)?,
        person: person(app, tenant, request)?,
        created_by: caller.id.clone(),
        expires_at,
        ..StoredToken::new(id, token.digest(), tenant.clone(), request.role.name(), created_at)
    })
}

/// Returns the person who will hold a token.
fn person(app: &App, tenant: &Tenant, request: &NewToken) -> Result<Option<String>, Problem> {
    let Some(named) = &request.person else { return Ok(None) };
    let is_subject = named.strip_prefix("jwt:").is_some_and(|subject| !subject.is_empty());
    let is_token = app.directory.user(tenant, named).is_some();
    if !(is_token || is_subject) || named.chars().count() > PERSON_MAX {
        let message = "must be the id of another token of the tenant, or `jwt:` and the subject of a JWT";
        return Err(Problem::invalid("person", message));
    }
    Ok(Some(app.directory.person(named)))
}

/// Returns the group of a worker's token.
fn group(request: &NewToken) -> Result<Option<String>, Problem> {
    match &request.group {
        None => Ok(None),
        Some(_) if request.role != Role::Worker => {
            Err(Problem::invalid("group", "only tokens with the role `worker` have a group"))
        }
        Some(group) => check_group("group", group).map(Some),
    }
}

/// List tokens
#[utoipa::path(get, path = "/api/v1/tokens", tag = "tokens", security(("bearer" = [])),
    responses((status = 200, body = TokenList), Refusals))]
async fn list_tokens(State(app): State<Arc<App>>, caller: Caller) -> Result<Json<TokenList>, Problem> {
    caller.may(Permission::Administer)?;
    let tokens = app.directory.users(&caller.tenant).iter().map(|user| TokenView::from(&**user)).collect();
    Ok(Json(TokenList { tokens }))
}

/// Get a token
#[utoipa::path(get, path = "/api/v1/tokens/{id}", tag = "tokens", security(("bearer" = [])),
    params(("id" = String, Path, description = "Id of the token")),
    responses((status = 200, body = TokenView), Refusals))]
async fn get_token(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<TokenView>, Problem> {
    caller.may(Permission::Administer)?;
    Ok(Json(TokenView::from(&*user(&app, &caller, &id)?)))
}

/// Revoke a token
///
/// The token is refused from this response on.
#[utoipa::path(delete, path = "/api/v1/tokens/{id}", tag = "tokens", security(("bearer" = [])),
    params(("id" = String, Path, description = "Id of the token")),
    responses((status = 204), Refusals))]
async fn revoke_token(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    caller.may(Permission::Administer)?;
    let user = user(&app, &caller, &id)?;
    if !caller.role.reaches(user.role) {
        let role = user.role.name();
        return Err(Problem::forbidden(format!("only an owner may revoke a token with the role `{role}`")));
    }
    let at = now();
    let audit = caller.audit_entry("token.revoke", &id, json!({ "name": user.token.name }));
    let revoked = match user.is_session() {
        true => user.deletion(),
        false => Entry::TokenRevoked { tenant: caller.tenant.clone(), id: id.clone(), at },
    };
    // They are refused in any case; nothing needs their rows.
    let sessions = app.directory.sessions_from(&user.token.digest);
    let entries = std::iter::once(revoked.audited(audit)).chain(sessions.iter().map(|user| user.deletion()));
    let applied = app.store_entries(entries.collect()).await?;
    if applied.first() != Some(&Applied::Done) {
        return Err(Problem::not_found("token", &id));
    }
    match user.is_session() {
        true => app.directory.remove_token(&user.token.digest),
        false => app.directory.put_token(StoredToken { revoked_at: Some(at), ..user.token.clone() })?,
    }
    sessions.iter().for_each(|user| app.directory.remove_token(&user.token.digest));
    Ok(StatusCode::NO_CONTENT)
}

fn user(app: &App, caller: &Caller, id: &str) -> Result<Arc<User>, Problem> {
    app.directory.user(&caller.tenant, id).ok_or_else(|| Problem::not_found("token", id))
}
