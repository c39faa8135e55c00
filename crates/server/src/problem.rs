//! What went wrong with a request, as its sender is told: a stable code, a sentence, and the places in what was sent.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use std::fmt;
use utoipa::ToSchema;
use windlass_dialects::Diagnostic;
use windlass_store::StoreError;

/// After so many seconds it is worth asking again when the server has too much to do.
const BUSY_RETRY_SECONDS: u64 = 1;

/// The code of answers about an execution that is not worked on.
pub const QUARANTINED: &str = "EXECUTION_QUARANTINED";

#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    pub status: StatusCode,
    pub code: &'static str,
    pub message: String,
    pub details: Vec<Detail>,
    pub retry_after_seconds: Option<u64>,
}

/// One place in what was sent, and what is wrong there.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Detail {
    /// The field: `options.retryPolicy.maxRetries`; of a definition the place in the document.
    pub path: String,
    pub message: String,
    /// Of a definition: the line, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, nullable = false)]
    pub line: Option<usize>,
    /// Of a definition: the column in characters, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, nullable = false)]
    pub column: Option<usize>,
    /// Of a definition: the stable code of this kind of problem.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub code: Option<String>,
    /// How to repair it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub hint: Option<String>,
}

impl Detail {
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> Detail {
        Detail {
            path: path.into(),
            message: message.into(),
            line: None,
            column: None,
            code: None,
            hint: None,
        }
    }
}

impl From<&Diagnostic> for Detail {
    fn from(diagnostic: &Diagnostic) -> Detail {
        Detail {
            path: diagnostic.path.clone(),
            message: diagnostic.message.clone(),
            line: Some(diagnostic.line),
            column: Some(diagnostic.column),
            code: Some(diagnostic.code.to_string()),
            hint: diagnostic.hint.clone(),
        }
    }
}

/// The body of every answer that is not a success.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Refused {
    pub error: RefusedError,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct RefusedError {
    /// Stable: `VALIDATION_ERROR`, `RESOURCE_NOT_FOUND`, …
    pub code: String,
    pub message: String,
    pub details: Vec<Detail>,
}

impl Problem {
    pub fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Problem {
        Problem { status, code, message: message.into(), details: Vec::new(), retry_after_seconds: None }
    }

    #[must_use]
    pub fn at(mut self, path: impl Into<String>, message: impl Into<String>) -> Problem {
        self.details.push(Detail::new(path, message));
        self
    }

    #[must_use]
    pub fn retry_after(mut self, seconds: u64) -> Problem {
        self.retry_after_seconds = Some(seconds);
        self
    }

    /// 400: a field of what was sent is not as it must be.
    pub fn invalid(path: impl Into<String>, message: impl Into<String>) -> Problem {
        let message = message.into();
        Problem::bad_request(message.clone()).at(path, message)
    }

    /// 400 that no single field is to blame for.
    pub fn bad_request(message: impl Into<String>) -> Problem {
        Problem::new(StatusCode::BAD_REQUEST, "VALIDATION_ERROR", message)
    }

    /// 400: the definition has errors; each is a detail with its place in the text.
    pub fn definition<'d>(errors: impl Iterator<Item = &'d Diagnostic>) -> Problem {
        let details: Vec<Detail> = errors.map(Detail::from).collect();
        let first = details.first().map_or("it cannot be read", |detail| detail.message.as_str());
        let message = format!("the definition has errors: {first}");
        let mut problem = Problem::new(StatusCode::BAD_REQUEST, "INVALID_DEFINITION", message);
        problem.details = details;
        problem
    }

    /// 401.
    pub fn unauthenticated(message: impl Into<String>) -> Problem {
        Problem::new(StatusCode::UNAUTHORIZED, "AUTHENTICATION_FAILED", message)
    }

    /// 403.
    pub fn forbidden(message: impl Into<String>) -> Problem {
        Problem::new(StatusCode::FORBIDDEN, "PERMISSION_DENIED", message)
    }

    /// 404; the same whether it never was or is another tenant's.
    pub fn not_found(what: &str, id: &str) -> Problem {
        let shown: String = id.chars().take(100).collect();
        Problem::new(StatusCode::NOT_FOUND, "RESOURCE_NOT_FOUND", format!("there is no {what} `{shown}`"))
    }

    /// 409.
    pub fn conflict(message: impl Into<String>) -> Problem {
        Problem::new(StatusCode::CONFLICT, "CONFLICT", message)
    }

    /// 413.
    pub fn too_large(message: impl Into<String>) -> Problem {
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "PAYLOAD_TOO_LARGE", message)
    }

    /// 415.
    pub fn unsupported(message: impl Into<String>) -> Problem {
        Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UNSUPPORTED_MEDIA_TYPE", message)
    }

    /// 429.
    pub fn too_many(message: impl Into<String>, seconds: u64) -> Problem {
        Problem::new(StatusCode::TOO_MANY_REQUESTS, "RATE_LIMIT_EXCEEDED", message).retry_after(seconds)
    }

    /// 503: it was not done, and may be asked again.
    pub fn unavailable(message: impl Into<String>) -> Problem {
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "SERVICE_UNAVAILABLE", message)
            .retry_after(BUSY_RETRY_SECONDS)
    }

    /// 409: what is stored of one execution cannot be read. The others are not concerned.
    pub fn unreadable(reason: impl fmt::Display) -> Problem {
        tracing::error!(%reason, "an execution cannot be read");
        let message = format!(
            "what is stored of this execution cannot be read: {reason}. It is not worked on; an operator finds more \
             with `windlass admin check` and ends it with `windlass admin quarantine cancel`"
        );
        Problem::new(StatusCode::CONFLICT, QUARANTINED, message)
    }

    /// 500: our fault. The reason is for the log, not for the sender.
    pub fn internal(reason: impl fmt::Display) -> Problem {
        tracing::error!(%reason, "a request failed");
        let message = "something went wrong in the server; its log says what";
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL_ERROR", message)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for Problem {}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Problem {
        match error.unreadable() {
            Some(_) => Problem::unreadable(error),
            None => Problem::internal(error),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let Problem { status, code, message, details, retry_after_seconds } = self;
        let error = RefusedError { code: code.to_owned(), message, details };
        let mut response = (status, Json(Refused { error })).into_response();
        if let Some(seconds) = retry_after_seconds {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if matches!(status, StatusCode::PAYLOAD_TOO_LARGE | StatusCode::REQUEST_TIMEOUT) {
            // The rest of the body is not read, so nothing can follow it.
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}
