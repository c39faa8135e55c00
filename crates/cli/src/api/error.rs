//! Errors of the API, and requests without an answer.

use reqwest::Url;
use serde_json::Value;
use std::fmt;
use windlass_server::ProblemCode;

#[derive(Debug)]
pub enum ApiError {
    Unreachable(Unreachable),
    Refused(Refusal),
}

/// A request without an answer. It may or may not have taken effect.
#[derive(Debug)]
pub struct Unreachable {
    /// None for the process that holds the data folder.
    url: Option<String>,
    why: String,
    /// No connection was made, so the request had no effect.
    pub is_unsent: bool,
}

impl Unreachable {
    /// Describes an error by its innermost cause, which is the specific one: `Connection refused`.
    pub fn new(server: Option<&Url>, error: &reqwest::Error) -> Unreachable {
        let mut cause: &dyn std::error::Error = error;
        while let Some(inner) = cause.source() {
            cause = inner;
        }
        let url = server.map(|url| url.origin().ascii_serialization());
        Unreachable { url, why: cause.to_string(), is_unsent: error.is_connect() }
    }
}

/// An answer that is not a success.
#[derive(Debug)]
pub struct Refusal {
    pub status: u16,
    pub code: String,
    pub message: String,
    details: Vec<Detail>,
}

#[derive(Debug)]
struct Detail {
    place: String,
    message: String,
    hint: Option<String>,
}

impl Refusal {
    /// Reads a body of the form `{"error": {code, message, details}}`; a proxy in front of a server may send another.
    pub fn of(status: u16, body: &str) -> Refusal {
        let parsed: Value = serde_json::from_str(body).unwrap_or_default();
        let error = &parsed["error"];
        let text = |key: &str| error[key].as_str().map(str::to_owned);
        let details = error["details"].as_array().into_iter().flatten().map(Detail::of).collect();
        Refusal {
            status,
            code: text("code").unwrap_or_else(|| format!("HTTP {status}")),
            message: text("message").unwrap_or_else(|| "the answer is not from a Windlass server".to_owned()),
            details,
        }
    }

    /// Returns the refusal for a failure of the API in this process.
    pub fn internal(error: &anyhow::Error) -> Refusal {
        let (code, message) = (ProblemCode::Internal.name().to_owned(), format!("{error:#}"));
        Refusal { status: 500, code, message, details: Vec::new() }
    }

    /// Returns whether the request itself is wrong, so that a repeated one would also be refused.
    pub fn is_usage(&self) -> bool {
        matches!(self.status, 400 | 401 | 403 | 404 | 413 | 415 | 422)
    }

    /// Returns whether a repeated request may succeed: the server is stopping or overloaded.
    pub fn is_passing(&self) -> bool {
        matches!(self.status, 429 | 502..=504)
    }

    fn hint(&self) -> Option<&'static str> {
        match (self.status, self.code.as_str()) {
            (401, _) => Some(
                "set WINDLASS_TOKEN to the token, or name a file that contains it with --token-file; the owner's token is \
                 in the file owner.token of the server's data folder",
            ),
            (404, code) if code == ProblemCode::NotFound.name() => {
                Some("`windlass executions list` and `windlass workflows list` show the ids")
            }
            (404, _) => Some("is the URL that of a Windlass server?"),
            (429, _) => Some("retry in a moment"),
            _ => None,
        }
    }
}

impl Detail {
    fn of(detail: &Value) -> Detail {
        let text = |key: &str| detail[key].as_str().unwrap_or_default().to_owned();
        let place = match (detail["line"].as_u64(), detail["column"].as_u64()) {
            (Some(line), Some(column)) => format!("line {line}, column {column}"),
            _ => text("path"),
        };
        Detail { place, message: text("message"), hint: detail["hint"].as_str().map(str::to_owned) }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.code)?;
        for Detail { place, message, hint } in &self.details {
            if !self.message.ends_with(message.as_str()) {
                write!(f, "\n  {place}: {message}")?;
            }
            if let Some(hint) = hint {
                write!(f, "\n  hint: {hint}")?;
            }
        }
        match self.hint() {
            Some(hint) => write!(f, "\n  hint: {hint}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Unreachable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = &self.why;
        match &self.url {
            Some(url) => write!(
                f,
                "cannot reach the server at {url}: {why}\n  hint: `windlass serve` starts one; --url or WINDLASS_URL \
                 names another"
            ),
            None => write!(
                f,
                "cannot reach the process that holds the data folder: {why}\n  hint: retry the command"
            ),
        }
    }
}

impl ApiError {
    /// Returns whether a repeated request may succeed.
    pub fn is_passing(&self) -> bool {
        match self {
            ApiError::Unreachable(_) => true,
            ApiError::Refused(refusal) => refusal.is_passing(),
        }
    }

    /// Returns whether the object that the request names does not exist.
    pub fn is_missing(&self) -> bool {
        matches!(self, ApiError::Refused(refusal) if refusal.status == 404)
    }

    /// Returns whether the request itself is wrong.
    pub fn is_usage(&self) -> bool {
        matches!(self, ApiError::Refused(refusal) if refusal.is_usage())
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ApiError::Unreachable(unreachable) => unreachable.fmt(f),
            ApiError::Refused(refusal) => refusal.fmt(f),
        }
    }
}

impl std::error::Error for ApiError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_each_place_once_with_its_hint() {
        let body = r#"{"error": {"code": "INVALID_DEFINITION", "message": "the definition has errors: no step", "details": [
            {"path": "workflow", "message": "no step", "line": 3, "column": 5, "hint": "add one"},
            {"path": "workflow[1].next", "message": "nowhere"}]}}"#;
        let refusal = Refusal::of(400, body);
        assert!(refusal.is_usage());
        let expected = "the definition has errors: no step (INVALID_DEFINITION)\n  hint: add one\n  workflow[1].next: nowhere";
        assert_eq!(refusal.to_string(), expected);
    }

    #[test]
    fn the_answer_of_another_program_is_reported_by_its_status() {
        let refusal = Refusal::of(404, "<html>").to_string();
        assert!(refusal.starts_with("the answer is not from a Windlass server (HTTP 404)"), "{refusal}");
        assert!(refusal.contains("is the URL that of a Windlass server?"), "{refusal}");
        assert!(Refusal::of(503, "").is_passing() && !Refusal::of(503, "").is_usage());
    }
}
