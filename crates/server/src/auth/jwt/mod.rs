//! JWTs of an identity provider: who sent a request, for which tenant, in which role.

mod keys;

use super::Role;
use crate::settings::JwtSettings;
use anyhow::bail;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, Validation, decode, decode_header};
use keys::Keys;
use serde::Deserialize;
use windlass_kernel::Millis;
use windlass_store::Tenant;

/// Clocks of two machines may differ by so much.
const LEEWAY_SECONDS: u64 = 30;
/// A longer one is not read.
const TOKEN_MAX: usize = 8 * 1024;
/// HS256 with less could be guessed.
const SECRET_MIN: usize = 32;
/// The longest subject: it becomes who did what.
const SUBJECT_MAX: usize = 100;

#[derive(Debug)]
pub struct Jwt {
    keys: Keys,
    issuer: String,
    audience: String,
}

/// What a JWT says about its holder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// `jwt:` and the subject.
    pub subject: String,
    pub tenant: Tenant,
    pub role: Role,
    /// Beyond it, it is not accepted any more.
    pub until: Millis,
}

/// Time, issuer and audience are checked before this is read.
#[derive(Debug, Deserialize)]
struct Claims {
    sub: String,
    tenant: String,
    role: Role,
    exp: u64,
}

impl Jwt {
    /// None when no key is given: then no JWT is accepted.
    pub async fn of(settings: &JwtSettings) -> anyhow::Result<Option<Jwt>> {
        let JwtSettings { secret, public_key, jwks, issuer, audience } = settings;
        let has_key = secret.is_some() || public_key.is_some() || jwks.is_some();
        let (issuer, audience) = match (issuer, audience) {
            (Some(issuer), Some(audience)) => (issuer.clone(), audience.clone()),
            _ if !has_key => return Ok(None),
            _ => bail!(
                "a key for JWTs is given, so jwt-issuer and jwt-audience are needed: others may trust the same key"
            ),
        };
        if secret.as_ref().is_some_and(|secret| secret.len() < SECRET_MIN) {
            bail!("jwt-secret is shorter than {SECRET_MIN} bytes and could be guessed");
        }
        let keys = Keys::load(secret.as_ref(), public_key.as_deref(), jwks.as_deref()).await?;
        Ok(Some(Jwt { keys, issuer, audience }))
    }

    /// Whoever holds it; `Err` says why it is not accepted.
    pub async fn holder(&self, token: &str) -> Result<Holder, String> {
        if token.len() > TOKEN_MAX {
            return Err(format!("the token is longer than {TOKEN_MAX} bytes"));
        }
        let header = decode_header(token).map_err(|_| "the token is not known".to_owned())?;
        if is_critical(token) {
            return Err(
                "the JWT is not accepted: its header has `crit`, which asks for extensions that are not \
                        known here"
                    .to_owned(),
            );
        }
        let candidates = self.keys.of(header.kid.as_deref(), header.alg).await;
        let mut why = "it is signed with a key that is not known here".to_owned();
        for key in candidates {
            match decode::<Claims>(token, &key, &self.validation(header.alg)) {
                Ok(decoded) => return holder(decoded.claims),
                Err(error) => why = error.to_string(),
            }
        }
        Err(format!("the JWT is not accepted: {why}"))
    }

    /// The algorithm is one that the key is for; everything that can be required is.
    fn validation(&self, algorithm: Algorithm) -> Validation {
        let mut validation = Validation::new(algorithm);
        validation.leeway = LEEWAY_SECONDS;
        validation.validate_nbf = true;
        validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        validation.set_issuer(&[&self.issuer]);
        validation.set_audience(&[&self.audience]);
        validation
    }
}

/// Reports whether the header names extensions that must be understood (RFC 7515, 4.1.11). None are understood here, so
/// such a token must be refused. What cannot be read is not understood, either.
fn is_critical(token: &str) -> bool {
    let header = token.split('.').next().unwrap_or_default();
    let bytes = URL_SAFE_NO_PAD.decode(header).unwrap_or_default();
    let fields = serde_json::from_slice::<serde_json::Map<String, serde_json::Value>>(&bytes);
    fields.map_or(true, |fields| fields.contains_key("crit"))
}

/// Whoever did what is written under this name. No role, no id of a token and no name of the server itself begins so.
const SUBJECT_PREFIX: &str = "jwt:";

fn holder(claims: Claims) -> Result<Holder, String> {
    let Claims { sub, tenant, role, exp } = claims;
    if sub.is_empty() || sub.chars().count() > SUBJECT_MAX {
        return Err(format!(
            "the JWT is not accepted: its subject is empty or longer than {SUBJECT_MAX} characters"
        ));
    }
    let until = i64::try_from(exp.saturating_add(LEEWAY_SECONDS).saturating_mul(1_000)).unwrap_or(i64::MAX);
    let subject = format!("{SUBJECT_PREFIX}{sub}");
    Ok(Holder { subject, tenant: Tenant::new(&tenant), role, until: Millis(until) })
}

#[cfg(test)]
mod https;
#[cfg(test)]
mod tests;
