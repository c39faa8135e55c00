//! Credentials of a request.

use super::config::Request;
use crate::failure::{invalid, shown};
use crate::tools::auth::Auth;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};
use serde_json::{Map, Value};
use windlass_protocol::Failure;

const TOKENS: [&str; 4] = ["token", "access_token", "bearer_token", "value"];
const KEYS: [&str; 4] = ["value", "api_key", "key", "token"];
const HEADERS: [&str; 4] = ["header", "header_name", "key_name", "name"];

/// Default header of an API key.
const KEY_HEADER: &str = "X-API-Key";

pub(super) fn apply(auth: &Auth, request: &mut Request) -> Result<(), Box<Failure>> {
    if let Auth::Text(token) = auth {
        return bearer(token, request);
    }
    match kind(auth).as_str() {
        "bearer" | "oauth2" | "token" => bearer(&needed(auth, &TOKENS, "token")?, request),
        "basic" => {
            let user = needed(auth, &["username", "user", "login"], "username")?;
            let password = auth.field(&["password", "pass"]).unwrap_or_default();
            let pair = BASE64_STANDARD.encode(format!("{user}:{password}"));
            put(request, AUTHORIZATION, &format!("Basic {pair}"))
        }
        "api_key" | "apikey" | "header" => api_key(auth, request),
        other => Err(invalid(format!(
            "`auth` of http has the type `{}`; it knows bearer, oauth2, basic and api_key",
            shown(other)
        ))),
    }
}

/// Returns the type; without one, it follows from the fields.
fn kind(auth: &Auth) -> String {
    let said = auth.field(&["type", "kind"]).map(|kind| kind.to_ascii_lowercase());
    said.unwrap_or_else(|| match auth {
        auth if auth.field(&["username", "user"]).is_some() => "basic".to_owned(),
        auth if auth.field(&["api_key", "header"]).is_some() => "api_key".to_owned(),
        _ => "bearer".to_owned(),
    })
}

fn bearer(token: &str, request: &mut Request) -> Result<(), Box<Failure>> {
    put(request, AUTHORIZATION, &format!("Bearer {token}"))
}

fn api_key(auth: &Auth, request: &mut Request) -> Result<(), Box<Failure>> {
    let key = needed(auth, &KEYS, "value")?;
    let name = auth.field(&HEADERS).unwrap_or_else(|| KEY_HEADER.to_owned());
    if auth.field(&["in", "location"]).is_some_and(|place| place == "query") {
        request.secret_param = Some(name.clone());
        return request.put_params(&Map::from_iter([(name, Value::String(key))]), "auth");
    }
    let header = HeaderName::from_bytes(name.as_bytes())
        .map_err(|_| invalid(format!("`auth` of http names the header `{}`, which is none", shown(&name))))?;
    put(request, header, &key)
}

fn needed(auth: &Auth, keys: &[&str], name: &str) -> Result<String, Box<Failure>> {
    auth.field(keys).ok_or_else(|| invalid(format!("`auth` of http has no `{name}`")))
}

/// Adds a header. A header of the task itself has precedence.
fn put(request: &mut Request, name: HeaderName, value: &str) -> Result<(), Box<Failure>> {
    let value = HeaderValue::from_str(value.trim());
    let mut value = value.map_err(|_| invalid("`auth` of http has characters that no header can have"))?;
    value.set_sensitive(true);
    request.secret.push(name.clone());
    request.headers.entry(name).or_insert(value);
    Ok(())
}
