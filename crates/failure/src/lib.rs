//! Failures of work: one taxonomy for the kernel, the workers and all dialects.

pub mod codes;

pub use codes::FailureCode;

use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorClass {
    Timeout,
    RateLimit,
    #[serde(rename = "transient_5xx")]
    Transient5xx,
    Transport,
    Validation,
    Policy,
    Auth,
    Conflict,
    /// Includes classes of workers of another version whose name is not known here.
    #[serde(other)]
    Unknown,
}

impl ErrorClass {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ErrorClass::Timeout => "timeout",
            ErrorClass::RateLimit => "rate_limit",
            ErrorClass::Transient5xx => "transient_5xx",
            ErrorClass::Transport => "transport",
            ErrorClass::Validation => "validation",
            ErrorClass::Policy => "policy",
            ErrorClass::Auth => "auth",
            ErrorClass::Conflict => "conflict",
            ErrorClass::Unknown => "unknown",
        }
    }

    /// Returns the class of a code that the program of a step, a person or a definition chose: that of the reserved
    /// code, or `Unknown` for any other text.
    #[must_use]
    pub fn of_code(code: &str) -> ErrorClass {
        FailureCode::find_reserved(code).map_or(ErrorClass::Unknown, FailureCode::class)
    }

    /// Returns whether the class alone decides about a retry; `None` leaves it to the policy and the error's own
    /// flag.
    #[must_use]
    pub fn retryable(self) -> Option<bool> {
        match self {
            ErrorClass::Timeout
            | ErrorClass::RateLimit
            | ErrorClass::Transient5xx
            | ErrorClass::Transport => Some(true),
            ErrorClass::Validation | ErrorClass::Policy | ErrorClass::Auth | ErrorClass::Conflict => {
                Some(false)
            }
            ErrorClass::Unknown => None,
        }
    }
}

/// Reason why an attempt, a step or an execution failed.
#[derive(Debug, Clone, PartialEq, Hash, Serialize, Deserialize)]
pub struct Failure {
    pub class: ErrorClass,
    pub code: String,
    pub message: String,
    /// The reporter's own flag, which decides only if class and policy leave a retry open.
    #[serde(default)]
    pub retryable: Option<bool>,
    #[serde(default)]
    pub retry_after_ms: Option<u64>,
    #[serde(default)]
    pub details: Value,
    /// Stores encode failures as arrays: a field that is omitted or added has to be the last one.
    #[serde(default, skip_serializing_if = "FailureFacts::is_empty")]
    pub facts: FailureFacts,
}

/// Facts about the call that failed, as far as its reporter knows them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FailureFacts {
    /// Status of the HTTP response that was the failure.
    #[serde(default)]
    pub http_status: Option<u16>,
    /// Number of the try that failed, from 1.
    #[serde(default)]
    pub attempt: Option<u32>,
    /// The step that failed, for the failure of an execution.
    #[serde(default)]
    pub step: Option<String>,
}

impl FailureFacts {
    fn is_empty(&self) -> bool {
        *self == FailureFacts::default()
    }
}

/// The step whose failure is described, and the attempt that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FailureSite<'s> {
    pub node_id: &'s str,
    pub node_name: &'s str,
    /// Number of the attempt, from 1, unless the failure has its own.
    pub attempt: u32,
}

/// A failure as users see it, with the same fields in expressions, API responses, streams and webhooks.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PublicError<'f> {
    pub code: &'f str,
    pub class: ErrorClass,
    /// Same value as `class`.
    pub kind: ErrorClass,
    pub message: &'f str,
    pub retryable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_id: Option<&'f str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_name: Option<&'f str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    #[serde(skip_serializing_if = "Value::is_null")]
    pub details: &'f Value,
}

impl Failure {
    #[must_use]
    pub fn new(code: FailureCode, message: impl Into<String>) -> Failure {
        Failure::of_class(code.class(), code.name(), message)
    }

    /// Creates a failure with a code that the program of a step or a definition chose.
    #[must_use]
    pub fn of_code(code: &str, message: impl Into<String>) -> Failure {
        Failure::of_class(ErrorClass::of_code(code), code, message)
    }

    /// Creates a failure with a chosen code whose class is known otherwise.
    #[must_use]
    pub fn of_class(class: ErrorClass, code: &str, message: impl Into<String>) -> Failure {
        Failure {
            class,
            code: code.into(),
            message: message.into(),
            retryable: None,
            retry_after_ms: None,
            details: Value::Null,
            facts: FailureFacts::default(),
        }
    }

    #[must_use]
    pub fn has_code(&self, code: FailureCode) -> bool {
        self.code == code.name()
    }

    /// Returns the failure of an execution that ends because this step failed.
    #[must_use]
    pub fn of_step(mut self, step: &str, attempt: u32) -> Failure {
        self.facts.step = Some(step.to_owned());
        self.facts.attempt.get_or_insert(attempt);
        self
    }

    /// Returns whether another attempt may succeed: by the class, or by the reporter's flag if the class leaves it
    /// open.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        self.class.retryable().or(self.retryable).unwrap_or(false)
    }

    /// Describes the failure for users. `site` is `None` for a failure of the whole execution.
    #[must_use]
    pub fn describe<'f>(&'f self, site: Option<FailureSite<'f>>) -> PublicError<'f> {
        PublicError {
            code: &self.code,
            class: self.class,
            kind: self.class,
            message: &self.message,
            retryable: self.is_retryable(),
            http_status: self.facts.http_status,
            retry_after_ms: self.retry_after_ms,
            node_id: site.map(|site| site.node_id),
            node_name: site.map(|site| site.node_name),
            attempt: self.facts.attempt.or(site.map(|site| site.attempt)),
            details: &self.details,
        }
    }
}

impl PublicError<'_> {
    #[must_use]
    pub fn to_json(&self) -> Value {
        // Keys are strings and the details are JSON already, so this cannot fail.
        serde_json::to_value(self).unwrap_or_default()
    }
}
