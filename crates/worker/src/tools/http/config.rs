//! Fields of an http task.

use super::auth;
use super::mapping::Mapping;
use crate::failure::{invalid, shown};
use crate::tools::ToolContext;
use crate::tools::auth::Auth;
use crate::tools::fields::{Fields, plain, seconds};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Url};
use serde_json::{Map, Value};
use std::time::Duration;
use windlass_protocol::{Failure, Tool};

/// Default maximum of an answer, which is held in memory and stored with the execution.
const RESPONSE_MAX: u64 = 32 * 1024 * 1024;
/// Maximum that a definition may set: a few answers of this size use up the memory of a tenant.
pub(super) const RESPONSE_MAX_MOST: u64 = 64 * 1024 * 1024;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

#[derive(Debug, Clone)]
pub(super) struct Request {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) body: Option<Vec<u8>>,
    /// Names of further headers with credentials.
    pub(super) secret: Vec<HeaderName>,
    /// Name of the parameter with credentials.
    pub(super) secret_param: Option<String>,
    pub(super) limits: Limits,
    pub(super) follows: bool,
    pub(super) response_max: u64,
    /// An answer with any status is a result, not only one with a status of success.
    pub(super) any_status: bool,
    pub(super) mapping: Option<Mapping>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Limits {
    pub(super) total: Option<Duration>,
    pub(super) connect: Option<Duration>,
    pub(super) read: Option<Duration>,
}

impl Limits {
    pub(super) fn is_empty(&self) -> bool {
        *self == Limits::default()
    }

    /// Returns the time until the first piece of an answer: the connection and one read.
    pub(super) fn first_answer(&self) -> Option<Duration> {
        self.read.map(|read| read.saturating_add(self.connect.unwrap_or_default()))
    }
}

impl Request {
    pub(super) async fn read(
        config: &Map<String, Value>,
        cx: &ToolContext,
        key: &str,
    ) -> Result<Request, Box<Failure>> {
        let fields = Fields::of(Tool::Http, config)?;
        let mut request = Request {
            method: method(fields)?,
            url: url(fields)?,
            headers: headers(fields)?,
            body: None,
            secret: Vec::new(),
            secret_param: None,
            limits: limits(fields)?,
            follows: fields.flag("follow_redirects")?.unwrap_or(true),
            response_max: response_max(fields)?,
            any_status: fields.flag("any_status")?.unwrap_or(false),
            mapping: fields
                .given("response_mapping")
                .map(|given| Mapping::read(given, mapping_field(cx)))
                .transpose()?,
        };
        request.put_content(fields)?;
        if let Some(auth) = fields.given("auth") {
            auth::apply(&Auth::read(auth, cx).await?, &mut request)?;
        }
        if cx.has_own_key || !request.method.is_safe() {
            let key = HeaderValue::from_bytes(key.as_bytes())
                .map_err(|_| invalid("the idempotency key has characters that no header can have"))?;
            match cx.has_own_key {
                true => drop(request.headers.insert(IDEMPOTENCY_KEY, key)),
                false => drop(request.headers.entry(IDEMPOTENCY_KEY).or_insert(key)),
            }
        }
        Ok(request)
    }

    /// Returns the URL for messages: the query and the user may be secret.
    pub(super) fn describe(&self) -> String {
        format!("{} {}", self.method, place(&self.url))
    }

    /// Returns the URL for results, without credentials.
    pub(super) fn shown_url(&self) -> String {
        let mut url = self.url.clone();
        // Only URLs without a host refuse this, and those are refused before.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        if let Some(secret) = &self.secret_param {
            let masked =
                |name: &str, value: &str| if name == secret { "***".to_owned() } else { value.to_owned() };
            let pairs: Vec<(String, String)> = self
                .url
                .query_pairs()
                .map(|(name, value)| (name.to_string(), masked(&name, &value)))
                .collect();
            url.query_pairs_mut().clear().extend_pairs(pairs);
        }
        url.into()
    }

    pub(super) fn put_params(&mut self, params: &Map<String, Value>, key: &str) -> Result<(), Box<Failure>> {
        let pairs = pairs(params, key)?;
        if !pairs.is_empty() {
            self.url.query_pairs_mut().extend_pairs(pairs);
        }
        Ok(())
    }

    fn put_content(&mut self, fields: Fields<'_>) -> Result<(), Box<Failure>> {
        if let Some(params) = fields.map("params")? {
            self.put_params(params, "params")?;
        }
        match fields.one_of(&["body", "payload", "json", "form", "data"])? {
            None => Ok(()),
            Some(("json", value)) => self.put_body(value.to_string().into_bytes(), "application/json"),
            Some(("form", Value::Object(form))) => self.put_form(form),
            Some(("form", other)) => Err(fields.is_not("form", "a map", other)),
            Some(("data", Value::Object(data))) if is_in_parts(data) => self.put_data(fields, data),
            Some((_, value)) => self.put_value(value),
        }
    }

    fn put_data(&mut self, fields: Fields<'_>, data: &Map<String, Value>) -> Result<(), Box<Failure>> {
        match data.get("query") {
            None | Some(Value::Null) => {}
            Some(Value::Object(query)) => self.put_params(query, "data.query")?,
            Some(other) => return Err(fields.is_not("data.query", "a map", other)),
        }
        match data.get("body") {
            None | Some(Value::Null) => Ok(()),
            Some(body) => self.put_value(body),
        }
    }

    fn put_value(&mut self, value: &Value) -> Result<(), Box<Failure>> {
        match value {
            Value::String(text) => self.put_body(text.clone().into_bytes(), "text/plain; charset=utf-8"),
            other => self.put_body(other.to_string().into_bytes(), "application/json"),
        }
    }

    fn put_form(&mut self, form: &Map<String, Value>) -> Result<(), Box<Failure>> {
        // A dummy URL, which encodes the pairs as forms do.
        let mut scratch = self.url.clone();
        scratch.set_query(None);
        scratch.query_pairs_mut().extend_pairs(pairs(form, "form")?);
        let body = scratch.query().unwrap_or_default().to_owned().into_bytes();
        self.put_body(body, "application/x-www-form-urlencoded")
    }

    fn put_body(&mut self, body: Vec<u8>, kind: &'static str) -> Result<(), Box<Failure>> {
        self.headers.entry(CONTENT_TYPE).or_insert(HeaderValue::from_static(kind));
        self.body = Some(body);
        Ok(())
    }
}

/// Returns the name of the field. Nodes of workflows have the document's name for it.
fn mapping_field(cx: &ToolContext) -> &'static str {
    if cx.node.is_some() { "responseMapping" } else { "response_mapping" }
}

/// Returns a URL without parts that may be secret.
pub(super) fn place(url: &Url) -> String {
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    shown(&format!("{}://{}{port}{}", url.scheme(), url.host_str().unwrap_or_default(), url.path()))
}

fn is_in_parts(data: &Map<String, Value>) -> bool {
    !data.is_empty() && data.keys().all(|key| key == "query" || key == "body")
}

fn method(fields: Fields<'_>) -> Result<Method, Box<Failure>> {
    let Some(text) = fields.text("method")? else { return Ok(Method::GET) };
    Method::from_bytes(text.trim().to_ascii_uppercase().as_bytes())
        .map_err(|_| invalid(format!("`method` of http is a word like GET, not `{}`", shown(&text))))
}

fn url(fields: Fields<'_>) -> Result<Url, Box<Failure>> {
    let Some((key, given)) = fields.one_of(&["url", "endpoint"])? else {
        return Err(invalid("http needs `url`, an address with http:// or https://"));
    };
    let Value::String(text) = given else { return Err(fields.is_not(key, "a text", given)) };
    let url = Url::parse(text.trim())
        .map_err(|error| invalid(format!("`{key}` of http is not a URL ({error}): `{}`", shown(text))))?;
    if !["http", "https"].contains(&url.scheme()) || !url.has_host() {
        return Err(invalid(format!(
            "`{key}` of http begins with http:// or https://, not `{}:`",
            url.scheme()
        )));
    }
    Ok(url)
}

/// Builds a header. Messages do not contain its value, which may be secret.
fn headers(fields: Fields<'_>) -> Result<HeaderMap, Box<Failure>> {
    let mut headers = HeaderMap::new();
    let given = fields.map("headers")?.into_iter().flatten().filter(|(_, value)| !value.is_null());
    for (name, value) in given {
        let bad = |what: &str| invalid(format!("the header `{}` of http {what}", shown(name)));
        let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad("has a name that is none"))?;
        if value.is_array() || value.is_object() {
            return Err(bad("is a text, not a list or a map"));
        }
        let value = HeaderValue::from_str(plain(value).trim());
        headers.insert(key, value.map_err(|_| bad("has characters that no header can have"))?);
    }
    Ok(headers)
}

fn pairs(params: &Map<String, Value>, key: &str) -> Result<Vec<(String, String)>, Box<Failure>> {
    let mut pairs = Vec::new();
    for (name, value) in params {
        let values = value.as_array().map_or_else(|| std::slice::from_ref(value), Vec::as_slice);
        for value in values.iter().filter(|value| !value.is_null()) {
            if value.is_array() || value.is_object() {
                let name = shown(name);
                return Err(invalid(format!("`{key}.{name}` of http is a text, a number or a list of them")));
            }
            pairs.push((name.clone(), plain(value)));
        }
    }
    Ok(pairs)
}

fn limits(fields: Fields<'_>) -> Result<Limits, Box<Failure>> {
    let Some(given) = fields.given("timeout") else { return Ok(Limits::default()) };
    let wrong = || fields.is_not("timeout", "a number of seconds above 0, or {connect, read} of them", given);
    let Value::Object(parts) = given else {
        return Ok(Limits { total: Some(seconds(given).ok_or_else(wrong)?), ..Limits::default() });
    };
    let mut limits = Limits::default();
    for (part, value) in parts {
        let limit = Some(seconds(value).ok_or_else(wrong)?);
        match part.as_str() {
            "connect" => limits.connect = limit,
            "read" => limits.read = limit,
            "total" => limits.total = limit,
            _ => return Err(wrong()),
        }
    }
    Ok(limits)
}

fn response_max(fields: Fields<'_>) -> Result<u64, Box<Failure>> {
    let Some(given) = fields.given("max_response_bytes") else { return Ok(RESPONSE_MAX) };
    let number = given.as_u64().or_else(|| given.as_str()?.trim().parse().ok());
    let number = number.ok_or_else(|| fields.is_not("max_response_bytes", "a number of bytes", given))?;
    Ok(number.min(RESPONSE_MAX_MOST))
}
