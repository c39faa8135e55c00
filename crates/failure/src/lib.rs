//! Failures of work: one taxonomy for the kernel, the workers and all dialects.

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

    /// Returns the class of a documented code, or `Unknown` for any other.
    #[must_use]
    pub fn of_code(code: &str) -> ErrorClass {
        match code {
            "NETWORK_TIMEOUT" => ErrorClass::Timeout,
            "RATE_LIMIT_EXCEEDED" => ErrorClass::RateLimit,
            "SERVICE_UNAVAILABLE" | "AI_MODEL_BUSY" | "PROVIDER_ERROR" => ErrorClass::Transient5xx,
            "CONNECTION_RESET" | "WORKER_LOST" => ErrorClass::Transport,
            "VALIDATION_ERROR" | "INVALID_CONFIGURATION" | "RESOURCE_NOT_FOUND" => ErrorClass::Validation,
            "PERMISSION_DENIED" => ErrorClass::Policy,
            "AUTHENTICATION_FAILED" => ErrorClass::Auth,
            _ => ErrorClass::Unknown,
        }
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
}

impl Failure {
    /// Creates a failure whose class is derived from its code.
    #[must_use]
    pub fn of_code(code: &str, message: impl Into<String>) -> Failure {
        Failure::new(ErrorClass::of_code(code), code, message)
    }

    #[must_use]
    pub fn new(class: ErrorClass, code: &str, message: impl Into<String>) -> Failure {
        Failure {
            class,
            code: code.into(),
            message: message.into(),
            retryable: None,
            retry_after_ms: None,
            details: Value::Null,
        }
    }
}

/// Codes of failures that the kernel itself reports.
pub mod codes {
    pub const ATTEMPT_TIMEOUT: &str = "NETWORK_TIMEOUT";
    pub const EXECUTION_TIMEOUT: &str = "EXECUTION_TIMEOUT";
    pub const ROUTING_TIMEOUT: &str = "ROUTING_TIMEOUT";
    pub const GATE_TIMEOUT: &str = "GATE_TIMEOUT";
    pub const MANUAL_TIMEOUT: &str = "MANUAL_TIMEOUT";
    pub const REFERENCE: &str = "REFERENCE_NOT_AVAILABLE";
    pub const EXPRESSION: &str = "EXPRESSION_ERROR";
    pub const LIMIT: &str = "LIMIT_EXCEEDED";
    pub const WORKER_LOST: &str = "WORKER_LOST";
    pub const CANCELLED: &str = "CANCELLED";
    pub const REJECTED: &str = "REJECTED";
    pub const NO_NEXT: &str = "NO_NEXT";
    pub const CONTEXT_CONFLICT: &str = "CONTEXT_CONFLICT";
    pub const CONTEXT_TOO_LARGE: &str = "CONTEXT_TOO_LARGE";
    pub const ITERATION_FAILED: &str = "ITERATION_FAILED";
    pub const CHILD_FAILED: &str = "CHILD_FAILED";
    pub const UPLOAD_FAILED: &str = "UPLOAD_FAILED";
}
