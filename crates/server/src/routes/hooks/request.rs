//! Conversion of a request to a hook into the inputs of an execution.

use crate::body::{media_type, parse};
use crate::problem::Problem;
use axum::http::{HeaderMap, Method};
use serde_json::{Map, Value, json};
use windlass_dialects::HOOK;

/// Parts of the names of headers that carry credentials. Values of such headers are kept nowhere: inputs are stored and
/// shown to everyone who may see the execution.
const CREDENTIALS: [&str; 10] =
    ["auth", "cookie", "token", "key", "secret", "password", "passwd", "credential", "session", "jwt"];

/// Headers that are no credentials, though their names have such a part: they identify a delivery or its author.
const PUBLIC: [&str; 3] = ["x-idempotency-key", "idempotency-key", "x-author"];

/// Parts of a request to a hook.
pub(crate) struct HookRequest<'r> {
    pub method: &'r Method,
    pub path: &'r str,
    pub query: Option<&'r str>,
    pub headers: &'r HeaderMap,
    pub body: &'r [u8],
}

impl HookRequest<'_> {
    /// Returns the body, or without one the query, and the request itself, so that a signature or the name of an event can
    /// be checked.
    pub(crate) fn inputs(&self) -> Result<Map<String, Value>, Problem> {
        let query = pairs(self.query.unwrap_or_default())?;
        let mut inputs = if self.body.is_empty() { query.clone() } else { self.parse_body()? };
        let request = json!({
            "method": self.method.as_str(),
            "path": self.path,
            "query": query,
            "headers": public_headers(self.headers),
            "body": String::from_utf8_lossy(self.body),
        });
        inputs.insert(HOOK.to_owned(), request);
        Ok(inputs)
    }

    /// Parses the body: an object or a form becomes the inputs, anything else the input `body`.
    fn parse_body(&self) -> Result<Map<String, Value>, Problem> {
        let text = || String::from_utf8_lossy(self.body).into_owned();
        let value = match media_type(self.headers).as_deref() {
            Some(kind) if kind.ends_with("json") => parse(self.body)?,
            Some("application/x-www-form-urlencoded") => Value::Object(pairs(&text())?),
            _ => Value::String(text()),
        };
        match value {
            Value::Object(inputs) => Ok(inputs),
            other => Ok(Map::from_iter([("body".to_owned(), other)])),
        }
    }
}

/// Parses `a=1&b=2`; a repeated name becomes an array.
fn pairs(text: &str) -> Result<Map<String, Value>, Problem> {
    let mut url = reqwest::Url::parse("http://hook/")
        .map_err(|error| Problem::bad_request(format!("the query cannot be parsed: {error}")))?;
    url.set_query(Some(text));
    let mut found: Map<String, Value> = Map::new();
    for (name, value) in url.query_pairs() {
        let value = Value::from(value.into_owned());
        match found.get_mut(&*name) {
            Some(Value::Array(all)) => all.push(value),
            Some(one) => *one = json!([one.take(), value]),
            None => drop(found.insert(name.into_owned(), value)),
        }
    }
    Ok(found)
}

/// Returns the headers without credentials.
fn public_headers(headers: &HeaderMap) -> Map<String, Value> {
    let mut kept: Map<String, Value> = Map::new();
    for name in headers.keys().filter(|name| !is_credential(name.as_str())) {
        let values = headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes()));
        kept.insert(name.as_str().to_owned(), json!(values.collect::<Vec<_>>().join(", ")));
    }
    kept
}

/// Reports whether a header carries a credential. A signature does not: it cannot be used with another body.
fn is_credential(name: &str) -> bool {
    !PUBLIC.contains(&name)
        && !name.contains("signature")
        && CREDENTIALS.iter().any(|credential| name.contains(credential))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_known_by_their_names_and_signatures_are_none() {
        for credential in [
            "authorization",
            "proxy-authorization",
            "cookie",
            "x-api-key",
            "api-key",
            "apikey",
            "x-gitlab-token",
            "x-auth-token",
            "x-csrf-token",
            "x-amz-security-token",
            "x-goog-iap-jwt-assertion",
            "x-telegram-bot-api-secret-token",
            "ocp-apim-subscription-key",
            "x-session-id",
        ] {
            assert!(is_credential(credential), "{credential}");
        }
        for kept in [
            "x-hub-signature-256",
            "stripe-signature",
            "webhook-signature",
            "x-signature-key-id",
            "x-github-event",
            "x-gitlab-event",
            "content-type",
            "user-agent",
            "idempotency-key",
        ] {
            assert!(!is_credential(kept), "{kept}");
        }
    }
}
