//! Requests to the API: of a server over HTTP, or of the routes in this process over a folder that nobody holds.

use super::refusal::{Refusal, ServerError, Unreachable};
use crate::embedded::Embedded;
use crate::exit::Usage;
use reqwest::{Method, Url};
use serde_json::Value;
use std::fmt;
use std::rc::Rc;
use std::time::Duration;
use windlass_secrets::Zeroizing;
use windlass_server::Local;

/// A server that does not take a connection for so long is not there.
const CONNECT_MAX: Duration = Duration::from_secs(10);
/// Longer than a server takes for anything but a wait that was asked for.
const ANSWER_MAX: Duration = Duration::from_secs(60);
const JSON: &str = "application/json";
const YAML: &str = "application/yaml";

pub struct Client {
    way: Way,
    base: Url,
    /// As it was given, for messages.
    url: String,
    flag: String,
}

enum Way {
    Http { http: reqwest::blocking::Client, token: Option<Zeroizing<String>> },
    Here(Box<Local>),
}

/// One request; nothing of it is read before it is sent.
#[derive(Debug)]
pub struct Asked {
    method: Method,
    url: Url,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
}

impl Asked {
    #[must_use]
    pub fn with(mut self, name: &'static str, value: String) -> Asked {
        self.headers.push((name, value));
        self
    }

    #[must_use]
    pub fn query(mut self, pairs: &[(&str, &str)]) -> Asked {
        if !pairs.is_empty() {
            self.url.query_pairs_mut().extend_pairs(pairs);
        }
        self
    }

    #[must_use]
    pub fn json(mut self, body: &Value) -> Asked {
        self.body = body.to_string().into_bytes();
        self.with("content-type", JSON.to_owned())
    }

    /// A definition as it was written; JSON is YAML, too.
    #[must_use]
    pub fn definition(mut self, text: &str) -> Asked {
        self.body = text.as_bytes().to_vec();
        self.with("content-type", YAML.to_owned())
    }
}

impl Client {
    pub fn of_server(url: &str, token: Option<Zeroizing<String>>, flag: String) -> anyhow::Result<Client> {
        let url = url.trim_end_matches('/').to_owned();
        let base = base(&url)?;
        // A redirect would take the token elsewhere.
        let http = reqwest::blocking::Client::builder()
            .connect_timeout(CONNECT_MAX)
            .timeout(ANSWER_MAX)
            .redirect(reqwest::redirect::Policy::none())
            .build()?;
        Ok(Client { way: Way::Http { http, token }, base, url, flag })
    }

    pub fn in_process(local: Local, flag: String) -> anyhow::Result<Client> {
        let url = "http://localhost".to_owned();
        Ok(Client { way: Way::Here(Box::new(local)), base: base(&url)?, url, flag })
    }

    /// The engine in this process, which goes on without the routes; none if it is a server's.
    pub fn into_embedded(client: Rc<Client>) -> Option<Embedded> {
        match Rc::into_inner(client)?.way {
            Way::Here(local) => Some(local.into_embedded()),
            Way::Http { .. } => None,
        }
    }

    /// Ends what it started; a server goes on.
    pub fn stop(client: Rc<Client>) -> anyhow::Result<()> {
        Client::into_embedded(client).map_or(Ok(()), Embedded::stop)
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// What a command has to add to mean this server.
    pub fn flag(&self) -> &str {
        &self.flag
    }

    pub fn get(&self, path: &[&str], query: &[(&str, &str)]) -> Result<Value, ServerError> {
        self.json(self.asked(Method::GET, path).query(query))
    }

    pub fn send(&self, method: Method, path: &[&str], body: &Value) -> Result<Value, ServerError> {
        self.json(self.asked(method, path).json(body))
    }

    /// Of a route under `/api/v1`; what stands in the parts of the path cannot leave them.
    pub fn asked(&self, method: Method, path: &[&str]) -> Asked {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(["api", "v1"]).extend(path);
        }
        Asked { method, url, headers: Vec::new(), body: Vec::new() }
    }

    pub fn json(&self, asked: Asked) -> Result<Value, ServerError> {
        let text = self.text(asked)?;
        serde_json::from_str(&text).map_err(|_| ServerError::Refused(Refusal::of(200, &text)))
    }

    pub fn text(&self, asked: Asked) -> Result<String, ServerError> {
        let (status, text) = match &self.way {
            Way::Http { http, token } => {
                let token = token.as_ref().map(|token| token.as_str());
                over_http(http, token, asked).map_err(|error| self.unreachable(&error))?
            }
            Way::Here(local) => {
                let Asked { method, url, headers, body } = asked;
                let answer = local.ask(method, url.as_str(), &headers, body);
                answer.map_err(|error| ServerError::Refused(Refusal::internal(&error)))?
            }
        };
        match (200..300).contains(&status) {
            true => Ok(text),
            false => Err(ServerError::Refused(Refusal::of(status, &text))),
        }
    }

    /// The innermost cause is the one that says something: `Connection refused`.
    fn unreachable(&self, error: &reqwest::Error) -> ServerError {
        let mut cause: &dyn std::error::Error = error;
        while let Some(inner) = cause.source() {
            cause = inner;
        }
        let why = cause.to_string();
        ServerError::Unreachable(Unreachable { url: self.url.clone(), why })
    }
}

fn over_http(
    http: &reqwest::blocking::Client,
    token: Option<&str>,
    asked: Asked,
) -> Result<(u16, String), reqwest::Error> {
    let mut request = http.request(asked.method, asked.url).body(asked.body);
    for (name, value) in asked.headers {
        request = request.header(name, value);
    }
    if let Some(token) = token {
        request = request.bearer_auth(token);
    }
    let response = request.send()?;
    Ok((response.status().as_u16(), response.text()?))
}

fn base(url: &str) -> Result<Url, Usage> {
    let wrong = |why: &str| {
        Usage::new(format!("`{url}` is not the URL of a server: {why}"))
            .hint("give the scheme and the address, as in http://127.0.0.1:7070")
    };
    let base = Url::parse(url).map_err(|error| wrong(&error.to_string()))?;
    match base.scheme() {
        "http" | "https" if base.has_host() => Ok(base),
        _ => Err(wrong("http:// or https:// is expected")),
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("url", &self.url).finish_non_exhaustive()
    }
}
