//! `/api/v1/tokens`: users of a tenant and what they may do. A token is shown once, when it is made.

use super::shared::{BodyRefusals, Refusals, check_name, parse_time};
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

/// Tokens of one tenant that can be used. Each is in memory, and listed in one answer.
const TOKENS_MAX: usize = 1_000;

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenView {
    /// `user_` and 32 hexadecimal digits: who does what with it
    id: String,
    name: String,
    role: Role,
    tenant_id: String,
    created_at: String,
    created_by: String,
    expires_at: Option<String>,
    last_used_at: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MadeToken {
    id: String,
    /// The token itself, shown only now
    token: String,
    name: String,
    role: Role,
    tenant_id: String,
    created_at: String,
    expires_at: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct TokenList {
    tokens: Vec<TokenView>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct NewToken {
    #[schema(min_length = 1, max_length = 255)]
    name: String,
    role: Role,
    /// The caller's own tenant if it is left out
    tenant_id: Option<String>,
    /// When it stops working; never if it is left out
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
            tenant_id: token.tenant.to_string(),
            created_at: time(token.created_at),
            created_by: token.created_by.clone(),
            expires_at: token.expires_at.map(time),
            last_used_at: user.last_used_at().map(time),
        }
    }
}

pub fn router() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(create_token, list_tokens)).routes(routes!(get_token, revoke_token))
}

/// Create a token
#[utoipa::path(post, path = "/api/v1/tokens", tag = "tokens", security(("bearer" = [])), request_body = NewToken,
    responses((status = 201, body = MadeToken),
        (status = 409, body = Refused, description = "The tenant has as many tokens as it may have"), Refusals, BodyRefusals))]
async fn create_token(
    State(app): State<Arc<App>>,
    caller: Caller,
    JsonBody(asked): JsonBody<NewToken>,
) -> Result<(StatusCode, Json<MadeToken>), Problem> {
    caller.may(Permission::Administer)?;
    if !caller.role.reaches(asked.role) {
        let message = format!(
            "the role `{}` may not make a token of the role `{}`",
            caller.role.name(),
            asked.role.name()
        );
        return Err(Problem::forbidden(message));
    }
    let tenant = tenant_of(&app, &caller, asked.tenant_id.as_deref())?;
    let usable = app.directory.users(&tenant).iter().filter(|user| user.is_valid(now())).count();
    if usable >= TOKENS_MAX {
        let message =
            format!("the tenant has {usable} tokens, and {TOKENS_MAX} are allowed; revoke some first");
        return Err(Problem::new(ProblemCode::LimitExceeded, message));
    }
    let token = Token::random().map_err(Problem::internal)?;
    let stored = stored(&caller, &tenant, &asked, &token)?;
    let details =
        json!({ "name": stored.name, "role": stored.role, "expiresAt": stored.expires_at.map(time) });
    let audit = Caller { tenant, ..caller }.audit_entry("token.create", &stored.id, details);
    app.store_entries(vec![Entry::Token(Box::new(stored.clone())).audited(audit)]).await?;
    let made = MadeToken {
        id: stored.id.clone(),
        token: token.text().to_owned(),
        name: stored.name.clone(),
        role: asked.role,
        tenant_id: stored.tenant.to_string(),
        created_at: time(stored.created_at),
        expires_at: stored.expires_at.map(time),
    };
    app.directory.put_token(stored)?;
    Ok((StatusCode::CREATED, Json(made)))
}

/// Only whoever runs the server makes tokens of other tenants; for all others those are not there.
fn tenant_of(app: &App, caller: &Caller, asked: Option<&str>) -> Result<Tenant, Problem> {
    let Some(asked) = asked else { return Ok(caller.tenant.clone()) };
    let tenant = Tenant::new(asked);
    let is_seen = tenant == caller.tenant || (caller.is_operator && app.directory.has(&tenant));
    is_seen.then_some(tenant).ok_or_else(|| Problem::not_found("tenant", asked))
}

fn stored(caller: &Caller, tenant: &Tenant, asked: &NewToken, token: &Token) -> Result<StoredToken, Problem> {
    let created_at = now();
    let expires_at = asked.expires_at.as_deref().map(|text| parse_time("expiresAt", text)).transpose()?;
    if expires_at.is_some_and(|end| end <= created_at) {
        return Err(Problem::invalid("expiresAt", "it must be in the future"));
    }
    Ok(StoredToken {
        id: ids::fresh("user_")?,
        tenant: tenant.clone(),
        name: check_name("name", &asked.name)?,
        role: asked.role.name().to_owned(),
        digest: token.digest(),
        created_by: caller.id.clone(),
        created_at,
        expires_at,
        revoked_at: None,
        last_used_at: None,
    })
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
    params(("id" = String, Path, description = "The token's id")),
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
/// It opens nothing any more, from this answer on.
#[utoipa::path(delete, path = "/api/v1/tokens/{id}", tag = "tokens", security(("bearer" = [])),
    params(("id" = String, Path, description = "The token's id")),
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
        return Err(Problem::forbidden(format!("a token of the role `{role}` is revoked by an owner only")));
    }
    let at = now();
    let revoked = Entry::TokenRevoked { tenant: caller.tenant.clone(), id: id.clone(), at };
    let audit = caller.audit_entry("token.revoke", &id, json!({ "name": user.token.name }));
    let applied = app.store_entries(vec![revoked.audited(audit)]).await?;
    if applied.first() != Some(&Applied::Done) {
        return Err(Problem::not_found("token", &id));
    }
    app.directory.put_token(StoredToken { revoked_at: Some(at), ..user.token.clone() })?;
    Ok(StatusCode::NO_CONTENT)
}

fn user(app: &App, caller: &Caller, id: &str) -> Result<Arc<User>, Problem> {
    app.directory.user(&caller.tenant, id).ok_or_else(|| Problem::not_found("token", id))
}
