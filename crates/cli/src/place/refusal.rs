//! What a server says when it does not do what it was asked, and what is said when there is none.

use serde_json::Value;
use std::fmt;

#[derive(Debug)]
pub enum ServerError {
    Unreachable(Unreachable),
    Refused(Refusal),
}

/// No answer came, so nobody knows whether the request was heard.
#[derive(Debug)]
pub struct Unreachable {
    pub url: String,
    pub why: String,
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
    /// Of a body of the form `{"error": {code, message, details}}`; whatever stands in front of a server may send
    /// another.
    pub fn of(status: u16, body: &str) -> Refusal {
        let parsed: Value = serde_json::from_str(body).unwrap_or_default();
        let error = &parsed["error"];
        let text = |key: &str| error[key].as_str().map(str::to_owned);
        let details = error["details"].as_array().into_iter().flatten().map(Detail::of).collect();
        Refusal {
            status,
            code: text("code").unwrap_or_else(|| format!("HTTP {status}")),
            message: text("message").unwrap_or_else(|| "the answer is not one of this program's".to_owned()),
            details,
        }
    }

    /// Of routes in this process, which could not answer.
    pub fn internal(error: &anyhow::Error) -> Refusal {
        let (code, message) = ("INTERNAL_ERROR".to_owned(), format!("{error:#}"));
        Refusal { status: 500, code, message, details: Vec::new() }
    }

    /// The request itself is wrong: sent again it would be refused again.
    pub fn is_usage(&self) -> bool {
        matches!(self.status, 400 | 401 | 403 | 404 | 413 | 415 | 422)
    }

    /// The server is being stopped or has too much to do; it may be asked again.
    pub fn is_passing(&self) -> bool {
        matches!(self.status, 429 | 502..=504)
    }

    fn hint(&self) -> Option<&'static str> {
        match (self.status, self.code.as_str()) {
            (401, _) => Some(
                "put the token into WINDLASS_TOKEN, or name a file that holds it with --token-file; the owner's is \
                 in the file owner.token of the server's data folder",
            ),
            (404, "RESOURCE_NOT_FOUND") => Some("the lists of the server show what there is"),
            (404, _) => Some("is the URL that of a Windlass server?"),
            (429, _) => Some("ask again in a moment"),
            _ => None,
        }
    }
}

impl Detail {
    fn of(told: &Value) -> Detail {
        let text = |key: &str| told[key].as_str().unwrap_or_default().to_owned();
        let place = match (told["line"].as_u64(), told["column"].as_u64()) {
            (Some(line), Some(column)) => format!("line {line}, column {column}"),
            _ => text("path"),
        };
        Detail { place, message: text("message"), hint: told["hint"].as_str().map(str::to_owned) }
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
        write!(
            f,
            "cannot reach the server at {}: {}\n  hint: `windlass serve` starts one; another is named with --url or \
             WINDLASS_URL",
            self.url, self.why
        )
    }
}

impl ServerError {
    /// It may go well the next time.
    pub fn is_passing(&self) -> bool {
        match self {
            ServerError::Unreachable(_) => true,
            ServerError::Refused(refusal) => refusal.is_passing(),
        }
    }

    /// What was asked for is not there.
    pub fn is_missing(&self) -> bool {
        matches!(self, ServerError::Refused(refusal) if refusal.status == 404)
    }

    /// What was asked is wrong, whoever is asked.
    pub fn is_usage(&self) -> bool {
        matches!(self, ServerError::Refused(refusal) if refusal.is_usage())
    }
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServerError::Unreachable(unreachable) => unreachable.fmt(f),
            ServerError::Refused(refusal) => refusal.fmt(f),
        }
    }
}

impl std::error::Error for ServerError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_tells_each_place_once_with_its_hint() {
        let body = r#"{"error": {"code": "INVALID_DEFINITION", "message": "the definition has errors: no step", "details": [
            {"path": "workflow", "message": "no step", "line": 3, "column": 5, "hint": "add one"},
            {"path": "workflow[1].next", "message": "nowhere"}]}}"#;
        let told = Refusal::of(400, body);
        assert!(told.is_usage());
        let expected = "the definition has errors: no step (INVALID_DEFINITION)\n  hint: add one\n  workflow[1].next: nowhere";
        assert_eq!(told.to_string(), expected);
    }

    #[test]
    fn what_another_program_answers_is_told_by_its_status() {
        let told = Refusal::of(404, "<html>").to_string();
        assert!(told.starts_with("the answer is not one of this program's (HTTP 404)"), "{told}");
        assert!(told.contains("is the URL that of a Windlass server?"), "{told}");
        assert!(Refusal::of(503, "").is_passing() && !Refusal::of(503, "").is_usage());
    }
}
