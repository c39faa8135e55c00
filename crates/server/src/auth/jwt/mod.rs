//! JWTs of an identity provider: subject, tenant and role of a caller.

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

/// Maximum clock difference between two machines.
const LEEWAY_SECONDS: u64 = 30;
/// Maximum length of a JWT.
const TOKEN_MAX: usize = 8 * 1024;
/// Minimum length of a secret for HS256; a shorter one could be guessed.
const SECRET_MIN: usize = 32;
/// Maximum length of a subject, which becomes an actor in the audit log.
const SUBJECT_MAX: usize = 100;

#[derive(Debug)]
pub struct Jwt {
    keys: Keys,
    issuer: String,
    audience: String,
}

/// The claims of a JWT about its holder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// `jwt:` and the subject.
    pub subject: String,
    pub tenant: Tenant,
    pub role: Role,
    /// The claim `roles`: roles besides the built-in one.
    pub roles: Vec<String>,
    /// Time at which the JWT expires, with the leeway.
    pub until: Millis,
}

/// Claims that are read after time, issuer and audience were checked.
#[derive(Debug, Deserialize)]
struct Claims {
    sub: String,
    tenant: String,
    role: Role,
    #[serde(default)]
    roles: Vec<String>,
    exp: u64,
}

impl Jwt {
    /// Loads the keys. Returns None if no key is set; then no JWT is accepted.
    pub async fn of(settings: &JwtSettings) -> anyhow::Result<Option<Jwt>> {
        let JwtSettings { secret, public_key, jwks, issuer, audience } = settings;
        let has_key = secret.is_some() || public_key.is_some() || jwks.is_some();
        let (issuer, audience) = match (issuer, audience) {
            (Some(issuer), Some(audience)) => (issuer.clone(), audience.clone()),
            _ if !has_key => return Ok(None),
            _ => bail!(
                "a key for JWTs is set, but not both jwt-issuer and jwt-audience; set them, because other services may trust the same key"
            ),
        };
        if secret.as_ref().is_some_and(|secret| secret.len() < SECRET_MIN) {
            bail!("jwt-secret is shorter than {SECRET_MIN} bytes and could be guessed; set a longer one");
        }
        let keys = Keys::load(secret.as_ref(), public_key.as_deref(), jwks.as_deref()).await?;
        Ok(Some(Jwt { keys, issuer, audience }))
    }

    /// Returns the holder of a JWT, or the reason why it is not accepted.
    pub async fn holder(&self, token: &str) -> Result<Holder, String> {
        if token.len() > TOKEN_MAX {
            return Err(format!("the token is longer than {TOKEN_MAX} bytes"));
        }
        let header = decode_header(token).map_err(|_| "the token is unknown".to_owned())?;
        if is_critical(token) {
            return Err(
                "the JWT is not accepted: its header has `crit` with extensions that are not supported"
                    .to_owned(),
            );
        }
        let candidates = self.keys.of(header.kid.as_deref(), header.alg).await;
        let mut why = "it is signed with an unknown key".to_owned();
        for key in candidates {
            match decode::<Claims>(token, &key, &self.validation(header.alg)) {
                Ok(decoded) => return holder(decoded.claims),
                Err(error) => why = error.to_string(),
            }
        }
        Err(format!("the JWT is not accepted: {why}"))
    }

    /// Returns the checks of a JWT. The algorithm is that of the key; all claims that can be required are required.
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
/// such a token must be refused. A header that cannot be parsed is refused, too.
fn is_critical(token: &str) -> bool {
    let header = token.split('.').next().unwrap_or_default();
    let bytes = URL_SAFE_NO_PAD.decode(header).unwrap_or_default();
    let fields = serde_json::from_slice::<serde_json::Map<String, serde_json::Value>>(&bytes);
    fields.map_or(true, |fields| fields.contains_key("crit"))
}

/// Prefix of subjects in actor names. No id of a token and no name of the server itself begins with it.
const SUBJECT_PREFIX: &str = "jwt:";

fn holder(claims: Claims) -> Result<Holder, String> {
    let Claims { sub, tenant, role, roles, exp } = claims;
    Role::check_others(&roles).map_err(|why| format!("the JWT is not accepted: its claim `roles` {why}"))?;
    if sub.is_empty() || sub.chars().count() > SUBJECT_MAX {
        return Err(format!(
            "the JWT is not accepted: its subject is empty or longer than {SUBJECT_MAX} characters"
        ));
    }
    let until = i64::try_from(exp.saturating_add(LEEWAY_SECONDS).saturating_mul(1_000)).unwrap_or(i64::MAX);
    let subject = format!("{SUBJECT_PREFIX}{sub}");
    Ok(Holder { subject, tenant: Tenant::new(&tenant), role, roles, until: Millis(until) })
}

#[cfg(test)]
mod https;
#[cfg(test)]
mod tests;
