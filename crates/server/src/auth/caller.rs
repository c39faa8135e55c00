//! The caller of a request.

use super::{Credential, Holder, Permission, Role, Token, cookie};
use crate::app::App;
use crate::audit::RequestCaller;
use crate::host::now;
use crate::limits::RateKey;
use crate::problem::Problem;
use axum::extract::FromRequestParts;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName};
use std::sync::Arc;
use std::time::Instant;
use windlass_store::Tenant;

pub(crate) const TENANT_HEADER: HeaderName = HeaderName::from_static("x-tenant-id");

/// Marker of requests from a process that can write to the data folder: this process, or a client of the socket in the
/// folder. Such a process could read the owner's token and the database, so it needs no token.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FolderOwner;

/// Actor name of the owner of the data folder, who also holds the token that the server created.
pub(crate) const OWNER: &str = "owner";

/// The sender of a request, and the tenant whose rows it reads and writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    pub tenant: Tenant,
    pub role: Role,
    /// Roles besides the built-in one, which approvers and policies of definitions name.
    pub roles: Arc<[String]>,
    /// The only group that the caller may work for; None: any group of the tenant.
    pub group: Option<String>,
    /// `user_…`, or `jwt:` and the subject of a JWT.
    pub id: String,
    /// Whether the caller is an owner or admin of the tenant `default`, who operates the server for all tenants.
    pub is_operator: bool,
    pub credential: Credential,
}

impl Caller {
    pub fn in_tenant(tenant: Tenant, role: Role, id: String, credential: Credential) -> Caller {
        let is_operator = tenant == Tenant::default() && role.may(Permission::Administer);
        Caller { tenant, role, roles: Arc::default(), group: None, id, is_operator, credential }
    }

    fn with_roles(self, roles: &[String]) -> Caller {
        Caller { roles: roles.into(), ..self }
    }

    /// Refuses with 403 unless the caller is an operator of the server.
    pub fn check_operator(&self) -> Result<(), Problem> {
        match self.is_operator {
            true => Ok(()),
            false => Err(Problem::forbidden("only owners and admins of the tenant `default` may do this")),
        }
    }

    /// Refuses with 403 unless the role of the caller has the permission.
    pub fn may(&self, permission: Permission) -> Result<(), Problem> {
        if self.role.may(permission) {
            return Ok(());
        }
        let (role, action) = (self.role.name(), permission.describe());
        Err(Problem::forbidden(format!("the role `{role}` may not {action}")))
    }

    /// Authenticates a token of this server or a JWT, without the word `Bearer`.
    pub async fn from_token(app: &App, text: &str) -> Result<Caller, Problem> {
        let wrong = || {
            Problem::unauthenticated(
                "the token is unknown, expired or revoked; create another one with `windlass tokens create`",
            )
        };
        if let Some(token) = Token::read(text) {
            let credential = Credential::Token(token.digest());
            let user = app.directory.holder(&token.digest(), now()).ok_or_else(wrong)?;
            let (tenant, id) = (user.token.tenant.clone(), user.id().to_owned());
            let caller = Caller::in_tenant(tenant, user.role, id, credential).with_roles(&user.token.roles);
            return Ok(Caller { group: user.token.group.clone(), ..caller });
        }
        let jwt = app.jwt.as_ref().ok_or_else(wrong)?;
        let Holder { subject, tenant, role, roles, until } =
            jwt.holder(text).await.map_err(Problem::unauthenticated)?;
        match app.directory.has(&tenant) {
            true => Ok(Caller::in_tenant(tenant, role, subject, Credential::Until(until)).with_roles(&roles)),
            false => Err(Problem::unauthenticated("the JWT is not accepted: its tenant does not exist")),
        }
    }

    /// Returns the owner of the data folder as a caller.
    pub(crate) fn folder_owner() -> Caller {
        Caller::in_tenant(Tenant::default(), Role::Owner, OWNER.to_owned(), Credential::Folder)
    }

    async fn from_headers(app: &App, headers: &HeaderMap) -> Result<Caller, Problem> {
        let missing =
            || Problem::unauthenticated("the token is missing; send the header Authorization: Bearer TOKEN");
        let value = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()).ok_or_else(missing)?;
        let (scheme, token) = value.split_once(' ').ok_or_else(missing)?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Err(missing());
        }
        Caller::from_token(app, token.trim()).await
    }

    pub async fn from_request(app: &App, headers: &HeaderMap) -> Result<Caller, Problem> {
        let caller = Caller::from_headers(app, headers).await?.act_for_tenant(app, headers)?;
        caller.take_rate(app)?;
        Ok(caller)
    }

    /// Authenticates a subscriber by the token in its message, with or without the word `Bearer`.
    pub async fn from_message(app: &App, token: &str, headers: &HeaderMap) -> Result<Caller, Problem> {
        let token = match token.split_once(' ') {
            Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => token,
            _ => token,
        };
        let caller = Caller::from_token(app, token.trim()).await?.act_for_tenant(app, headers)?;
        caller.take_rate(app)?;
        Ok(caller)
    }

    /// Applies the header `X-Tenant-ID`: an operator may act for another tenant.
    fn act_for_tenant(mut self, app: &App, headers: &HeaderMap) -> Result<Caller, Problem> {
        let Some(requested) = headers.get(TENANT_HEADER) else { return Ok(self) };
        let requested = requested.to_str().unwrap_or_default();
        if *requested == *self.tenant.0 {
            return Ok(self);
        }
        if !self.is_operator {
            let message =
                "only owners and admins of the tenant `default` may send X-Tenant-ID; omit the header";
            return Err(Problem::forbidden(message));
        }
        if requested.is_empty() {
            return Err(Problem::bad_request(
                "the header X-Tenant-ID is empty; name a tenant, or omit the header",
            ));
        }
        self.tenant = Tenant::new(requested);
        match app.directory.has(&self.tenant) {
            true => Ok(self),
            false => Err(Problem::not_found("tenant", requested)),
        }
    }

    /// Counts the request against the rate limit of the tenant, even if it is refused later. The owner of the folder has no
    /// limit.
    fn take_rate(&self, app: &App) -> Result<(), Problem> {
        if self.credential == Credential::Folder {
            return Ok(());
        }
        match app.directory.rate(&self.tenant, &app.settings) {
            Some(rate) => app.rates.take(RateKey::Requests(self.tenant.clone()), rate, Instant::now()),
            None => Ok(()),
        }
    }
}

impl FromRequestParts<Arc<App>> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        let caller = match parts.extensions.get::<FolderOwner>() {
            Some(FolderOwner) if !parts.headers.contains_key(AUTHORIZATION) => Caller::folder_owner(),
            _ => match cookie::token(&parts.method, &parts.headers) {
                Some(token) if !parts.headers.contains_key(AUTHORIZATION) => {
                    Caller::from_token(app, token).await?
                }
                _ => Caller::from_headers(app, &parts.headers).await?,
            },
        };
        RequestCaller::note(&parts.extensions, &caller);
        let caller = caller.act_for_tenant(app, &parts.headers)?;
        caller.take_rate(app)?;
        Ok(caller)
    }
}
