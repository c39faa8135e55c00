//! What a call came to, as rules see it, and what the whole step hands on.

use super::CallResult;
use crate::failure;
use serde_json::{Map, Value, json};
use windlass_protocol::{Failure, Pipeline};

/// `{status: "ok", result}` or `{status: "error", error}`, with `meta` and what the tool tells beside it (`http`, …).
pub(super) fn told(called: &CallResult, attempt: u32) -> Value {
    let mut told = called.facts.clone();
    let (status, key, value) = match &called.outcome {
        Ok(result) => ("ok", "result", result.clone()),
        Err(failure) => ("error", "error", error(failure)),
    };
    told.insert("status".to_owned(), json!(status));
    told.insert(key.to_owned(), value);
    told.insert("meta".to_owned(), json!({ "attempt": attempt }));
    Value::Object(told)
}

fn error(failure: &Failure) -> Value {
    let mut error = json!({
        "kind": failure.class,
        "class": failure.class,
        "code": failure.code,
        "message": failure.message,
        "retryable": failure::is_retryable(failure),
    });
    if let Some(delay_ms) = failure.retry_after_ms {
        error["retry_after"] = json!(delay_ms as f64 / 1000.0);
    }
    if !failure.details.is_null() {
        error["details"] = failure.details.clone();
    }
    error
}

/// What stands under a task's label once control has moved on: its result, or how it failed.
pub(super) fn kept(called: CallResult) -> Value {
    match called.outcome {
        Ok(result) => result,
        Err(failure) => json!({ "status": "error", "error": error(&failure) }),
    }
}

/// The step's output.
///
/// With one task it is what the task came to. With several it is an object: the fields of the last result that
/// succeeded (a result that is no object stands under `result`), `status: "ok"` unless that result has a `status` of
/// its own, and `results` with what every task came to by its label. So `{{ step.field }}` and
/// `{{ step.results.label.field }}` can both be read.
pub(super) fn output(pipeline: &Pipeline, prev: &Value, results: &Map<String, Value>) -> Value {
    if let [task] = &pipeline.tasks[..] {
        return results.get(&task.label).cloned().unwrap_or_default();
    }
    if pipeline.tasks.is_empty() {
        return Value::Null;
    }
    let mut output = match prev {
        Value::Object(fields) => fields.clone(),
        other => Map::from_iter([("result".to_owned(), other.clone())]),
    };
    output.entry("status").or_insert_with(|| json!("ok"));
    output.insert("results".to_owned(), Value::Object(results.clone()));
    Value::Object(output)
}
