//! Failures that the worker itself reports.

use crate::excerpt;
use serde_json::{Value, json};
use windlass_protocol::{Failure, FailureCode, codes};

/// Maximum bytes of a source text in a message.
const SHOWN_MAX: usize = 200;

pub(crate) fn failure(code: FailureCode, message: impl Into<String>) -> Box<Failure> {
    Box::new(Failure::new(code, message))
}

/// Returns the failure of a configuration that can never work.
pub(crate) fn invalid(message: impl Into<String>) -> Box<Failure> {
    failure(codes::INVALID_CONFIGURATION, message)
}

/// Returns the failure of an expression. `place` names the part of the definition that has it.
pub(crate) fn expression(place: &str, source: &Value, error: &dyn std::fmt::Display) -> Box<Failure> {
    let source = source.as_str().map_or_else(|| source.to_string(), str::to_owned);
    let message = format!("{place} cannot be evaluated: {error}, in `{}`", shown(&source));
    failure(codes::EXPRESSION_ERROR, message)
}

pub(crate) fn timeout(what: &str, limit_ms: u64) -> Box<Failure> {
    let message = format!("{what} took longer than its timeout of {limit_ms} ms and was stopped");
    failure(codes::NETWORK_TIMEOUT, message)
}

/// Returns the failure of a call that was stopped. It is not reported: the unit has ended or has another worker, or
/// the call failed because of its time limit.
pub(crate) fn stopped(what: &str) -> Box<Failure> {
    failure(codes::STOPPED, format!("{what} was stopped"))
}

/// Adds the label of the task to the details.
pub(crate) fn in_task(mut failure: Box<Failure>, label: &str) -> Box<Failure> {
    match &mut failure.details {
        Value::Object(details) => {
            details.insert("task".to_owned(), json!(label));
        }
        details @ Value::Null => *details = json!({ "task": label }),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {}
    }
    failure
}

/// Returns the beginning of a text, for a message. It is cut when the message is reported: see [`excerpt`].
pub(crate) fn shown(text: &str) -> String {
    excerpt::head(text, SHOWN_MAX)
}
