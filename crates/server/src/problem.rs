//! Errors of requests: a stable code, a message, and the places in the request that are wrong.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use std::fmt;
use utoipa::ToSchema;
use windlass_dialects::Diagnostic;
use windlass_store::StoreError;

/// Seconds after which a request to a busy server may be repeated.
const BUSY_RETRY_SECONDS: u64 = 1;

/// Defines the codes of errors: their status, and their line in docs/server.md.
macro_rules! problem_codes {
    ($($variant:ident $code:literal $status:ident $meaning:literal,)*) => {
        /// The stable code of an error.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum ProblemCode {
            $($variant,)*
        }

        impl ProblemCode {
            pub const ALL: &[ProblemCode] = &[$(ProblemCode::$variant,)*];

            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(ProblemCode::$variant => $code,)*
                }
            }

            #[must_use]
            pub fn status(self) -> StatusCode {
                match self {
                    $(ProblemCode::$variant => StatusCode::$status,)*
                }
            }

            /// Returns the meaning of the code, for the documentation.
            #[must_use]
            pub fn meaning(self) -> &'static str {
                match self {
                    $(ProblemCode::$variant => $meaning,)*
                }
            }
        }
    };
}

problem_codes! {
    Validation "VALIDATION_ERROR" BAD_REQUEST "the request, or a field of it, is not valid",
    InvalidDefinition "INVALID_DEFINITION" BAD_REQUEST "the definition has errors; each is a detail with line and column",
    Unauthenticated "AUTHENTICATION_FAILED" UNAUTHORIZED "the token is missing, or no longer valid",
    Forbidden "PERMISSION_DENIED" FORBIDDEN "the role of the token may not do this",
    PolicyViolation "POLICY_VIOLATION" FORBIDDEN "a separation-of-duties constraint refuses the answer; the detail names it",
    NotFound "RESOURCE_NOT_FOUND" NOT_FOUND "the resource does not exist, or belongs to another tenant",
    MethodNotAllowed "METHOD_NOT_ALLOWED" METHOD_NOT_ALLOWED "the route does not have this method",
    RequestTimeout "REQUEST_TIMEOUT" REQUEST_TIMEOUT "the body of the request did not arrive in time",
    Conflict "CONFLICT" CONFLICT "the state of the resource does not allow this",
    ExecutionEnded "EXECUTION_ENDED" CONFLICT "the execution has ended",
    Quarantined "EXECUTION_QUARANTINED" CONFLICT "the execution is quarantined: it is not run until an operator releases it",
    WorkflowNotActive "WORKFLOW_NOT_ACTIVE" CONFLICT "only an active workflow can be started",
    DefinitionInvalid "DEFINITION_INVALID" CONFLICT "the stored definition is not valid for this release; register it anew",
    IdempotencyKeyReused "IDEMPOTENCY_KEY_REUSED" CONFLICT "the idempotency key was used with another request",
    LimitExceeded "LIMIT_EXCEEDED" CONFLICT "the tenant has reached its maximum number of these",
    PreconditionFailed "PRECONDITION_FAILED" PRECONDITION_FAILED "the workflow or the schedule was changed since the one in `If-Match`",
    PayloadTooLarge "PAYLOAD_TOO_LARGE" PAYLOAD_TOO_LARGE "the request is larger than the limit",
    UnsupportedMediaType "UNSUPPORTED_MEDIA_TYPE" UNSUPPORTED_MEDIA_TYPE "the content type is not JSON or YAML",
    UpgradeRequired "UPGRADE_REQUIRED" UPGRADE_REQUIRED "the route is a WebSocket",
    RateLimited "RATE_LIMIT_EXCEEDED" TOO_MANY_REQUESTS "a limit of the tenant is reached; retry after `Retry-After` seconds",
    Internal "INTERNAL_ERROR" INTERNAL_SERVER_ERROR "a defect of the server; its log has the reason",
    Unavailable "SERVICE_UNAVAILABLE" SERVICE_UNAVAILABLE "the server starts, stops or is overloaded; retry after `Retry-After` seconds",
    DiskFull "DISK_FULL" SERVICE_UNAVAILABLE "the disk has less than its reserve free; nothing new is started or stored",
    QuotaExceeded "QUOTA_EXCEEDED" INSUFFICIENT_STORAGE "the tenant uses all of its storage",
}

#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    pub code: ProblemCode,
    pub message: String,
    pub details: Vec<Detail>,
    pub retry_after_seconds: Option<u64>,
}

/// One place in the request, and what is wrong there.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Detail {
    /// The field, as in `options.retryPolicy.maxRetries`; in a definition the place in the document.
    pub path: String,
    pub message: String,
    /// The line in a definition, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, nullable = false)]
    pub line: Option<usize>,
    /// The column in a definition, in characters, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, nullable = false)]
    pub column: Option<usize>,
    /// The stable code of a problem in a definition.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub code: Option<String>,
    /// Step that repairs the problem.
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

/// The body of every error response.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Refused {
    pub error: RefusedError,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct RefusedError {
    /// Stable: `VALIDATION_ERROR`, `RESOURCE_NOT_FOUND`, …
    pub code: String,
    pub message: String,
    pub details: Vec<Detail>,
}

impl Problem {
    pub fn new(code: ProblemCode, message: impl Into<String>) -> Problem {
        Problem { code, message: message.into(), details: Vec::new(), retry_after_seconds: None }
    }

    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.code.status()
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

    /// Returns the error for an invalid field of the request. The message names the field, its detail need not.
    pub fn invalid(path: impl Into<String>, message: impl Into<String>) -> Problem {
        let (path, message) = (path.into(), message.into());
        let whole = if path.is_empty() { message.clone() } else { format!("`{path}`: {message}") };
        Problem::bad_request(whole).at(path, message)
    }

    /// Returns the error for an invalid request where no single field is the reason.
    pub fn bad_request(message: impl Into<String>) -> Problem {
        Problem::new(ProblemCode::Validation, message)
    }

    /// Returns the error for a definition with errors; each is a detail with its place in the text.
    pub fn definition<'d>(errors: impl Iterator<Item = &'d Diagnostic>) -> Problem {
        let details: Vec<Detail> = errors.map(Detail::from).collect();
        let first = details.first().map_or("it cannot be read", |detail| detail.message.as_str());
        let message = format!("the definition has errors: {first}");
        let mut problem = Problem::new(ProblemCode::InvalidDefinition, message);
        problem.details = details;
        problem
    }

    pub fn unauthenticated(message: impl Into<String>) -> Problem {
        Problem::new(ProblemCode::Unauthenticated, message)
    }

    pub fn forbidden(message: impl Into<String>) -> Problem {
        Problem::new(ProblemCode::Forbidden, message)
    }

    /// Returns the error for an answer of a person that a constraint of the policy refuses.
    pub fn policy_violation(constraint: &str, message: &str) -> Problem {
        let problem = Problem::new(ProblemCode::PolicyViolation, format!("{constraint}: {message}"));
        let detail = Detail { code: Some(constraint.to_owned()), ..Detail::new("actorUserId", message) };
        Problem { details: vec![detail], ..problem }
    }

    /// Returns the error for a resource that does not exist. It is the same for a resource of another tenant.
    pub fn not_found(what: &str, id: &str) -> Problem {
        let shown: String = id.chars().take(100).collect();
        Problem::new(ProblemCode::NotFound, format!("there is no {what} `{shown}`"))
    }

    pub fn conflict(message: impl Into<String>) -> Problem {
        Problem::new(ProblemCode::Conflict, message)
    }

    pub fn too_large(message: impl Into<String>) -> Problem {
        Problem::new(ProblemCode::PayloadTooLarge, message)
    }

    pub fn unsupported(message: impl Into<String>) -> Problem {
        Problem::new(ProblemCode::UnsupportedMediaType, message)
    }

    pub fn too_many(message: impl Into<String>, seconds: u64) -> Problem {
        Problem::new(ProblemCode::RateLimited, message).retry_after(seconds)
    }

    /// Returns the error for a request that had no effect and may be repeated.
    pub fn unavailable(message: impl Into<String>) -> Problem {
        Problem::new(ProblemCode::Unavailable, message).retry_after(BUSY_RETRY_SECONDS)
    }

    /// Returns the error for unreadable data of one execution; other executions are not affected.
    pub fn unreadable(reason: impl fmt::Display) -> Problem {
        tracing::error!(%reason, "an execution cannot be read");
        let message = format!(
            "the stored data of this execution cannot be read: {reason}. It is not run; an operator can examine it \
             with `windlass admin check` and end it with `windlass admin quarantine cancel`"
        );
        Problem::new(ProblemCode::Quarantined, message)
    }

    /// Returns the error for a defect of the server. The reason is logged and not sent to the client.
    pub fn internal(reason: impl fmt::Display) -> Problem {
        tracing::error!(%reason, "a request failed");
        let message = "an internal error occurred; the log of the server has the reason";
        Problem::new(ProblemCode::Internal, message)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code.name(), self.message)
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
        let Problem { code, message, details, retry_after_seconds } = self;
        let status = code.status();
        let error = RefusedError { code: code.name().to_owned(), message, details };
        let mut response = (status, Json(Refused { error })).into_response();
        if let Some(seconds) = retry_after_seconds {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if matches!(status, StatusCode::PAYLOAD_TOO_LARGE | StatusCode::REQUEST_TIMEOUT) {
            // The rest of the body is not read, so no other request can follow on the connection.
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}
