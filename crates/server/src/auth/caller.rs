//! Who asks.

use super::{Permission, Role, Token};
use crate::app::App;
use crate::host::now;
use crate::problem::Problem;
use crate::tenant::Tenant;
use axum::extract::FromRequestParts;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName};
use std::sync::Arc;

pub const TENANT_HEADER: HeaderName = HeaderName::from_static("x-tenant-id");

/// The one who sent a request, and the tenant whose rows it reads and writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    pub tenant: Tenant,
    pub role: Role,
    /// `user_…`, or the subject of a JWT.
    pub id: String,
}

impl Caller {
    /// What the role does not have is a 403.
    pub fn may(&self, permission: Permission) -> Result<(), Problem> {
        if self.role.may(permission) {
            return Ok(());
        }
        let (role, told) = (self.role.name(), permission.told());
        Err(Problem::forbidden(format!("the role `{role}` may not {told}")))
    }

    /// From a bearer token as it stands after the word `Bearer`.
    pub fn of_token(app: &App, text: &str) -> Result<Caller, Problem> {
        let wrong = || Problem::unauthenticated("the token is not known, or is not valid any more");
        let token = Token::read(text).ok_or_else(wrong)?;
        let known = app.directory.holder(&token.digest(), now()).ok_or_else(wrong)?;
        Ok(Caller { tenant: known.tenant.clone(), role: known.role, id: known.id.clone() })
    }

    fn of_headers(app: &App, headers: &HeaderMap) -> Result<Caller, Problem> {
        let missing = || Problem::unauthenticated("send the header Authorization: Bearer TOKEN");
        let value = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()).ok_or_else(missing)?;
        let (scheme, token) = value.split_once(' ').ok_or_else(missing)?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Err(missing());
        }
        Caller::of_token(app, token.trim())
    }

    /// Administrators of the tenant `default` run the server: they may act for another tenant.
    fn acting_for(mut self, headers: &HeaderMap) -> Result<Caller, Problem> {
        let Some(asked) = headers.get(TENANT_HEADER) else { return Ok(self) };
        let asked = asked.to_str().unwrap_or_default();
        if *asked == *self.tenant.0 {
            return Ok(self);
        }
        if self.tenant != Tenant::default() || !self.role.may(Permission::Administer) {
            let message = "X-Tenant-ID is for owners and admins of the tenant `default`; leave it out";
            return Err(Problem::forbidden(message));
        }
        self.tenant = Tenant::new(asked);
        Ok(self)
    }
}

impl FromRequestParts<Arc<App>> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        Caller::of_headers(app, &parts.headers)?.acting_for(&parts.headers)
    }
}
