//! What a call came to, as rules see it, and what the whole step hands on.

use super::CallResult;
use crate::failure::{self, failure, shown};
use serde_json::{Map, Value, json};
use windlass_protocol::{Failure, Pipeline};

/// A result that itself says `status: "error"` is an error, whichever tool it comes from.
pub(super) fn judged(called: CallResult) -> CallResult {
    let CallResult { outcome, facts } = called;
    let outcome =
        outcome.and_then(|result| if result["status"] == "error" { Err(said(result)) } else { Ok(result) });
    CallResult { outcome, facts }
}

fn said(result: Value) -> Box<Failure> {
    let error = &result["error"];
    let words = [&error["message"], error, &result["message"]].into_iter().find_map(Value::as_str);
    let words = words.filter(|words| !words.is_empty());
    let message = words.map_or_else(|| "the result has the status `error`".to_owned(), shown);
    let code = [&error["code"], &result["code"]].into_iter().find_map(Value::as_str);
    let mut failed = failure("unknown", code.unwrap_or("TASK_ERROR"), message);
    failed.retryable = error["retryable"].as_bool();
    failed.details = result;
    failed
}

/// `{status: "ok", result}` or `{status: "error", error}`, with `meta` and what the tool tells beside it (`http`, …).
pub(super) fn told(called: &CallResult, tool: &str, attempt: u32) -> Value {
    let mut told = called.facts.clone();
    let (status, key, value) = match &called.outcome {
        Ok(result) => ("ok", "result", result.clone()),
        Err(failure) => ("error", "error", error(failure, tool, &called.facts)),
    };
    told.insert("status".to_owned(), json!(status));
    told.insert(key.to_owned(), value);
    told.insert("meta".to_owned(), json!({ "attempt": attempt }));
    Value::Object(told)
}

/// Facts of the tool that say more about an error: where they stand, and their name in the error.
const EVIDENCE: [(&str, &str, &str); 3] = [
    ("http", "status", "http_status"),
    ("pg", "code", "pg_code"),
    ("py", "exception_type", "exception_type"),
];

fn error(failure: &Failure, tool: &str, facts: &Map<String, Value>) -> Value {
    let mut error = json!({
        "kind": failure::kind(failure),
        "class": failure.class,
        "code": failure.code,
        "message": failure.message,
        "retryable": failure::is_retryable(failure),
        "source": tool,
    });
    for (fact, key, name) in EVIDENCE {
        if let Some(value) = facts.get(fact).and_then(|fact| fact.get(key)) {
            error[name] = value.clone();
        }
    }
    if let Some(delay_ms) = failure.retry_after_ms {
        error["retry_after"] = json!(delay_ms as f64 / 1000.0);
    }
    if !failure.details.is_null() {
        error["details"] = failure.details.clone();
    }
    error
}

/// What stands under a task's label once control has moved on: its result, or how it failed.
pub(super) fn kept(called: CallResult, tool: &str) -> Value {
    match called.outcome {
        Ok(result) => result,
        Err(failure) => json!({ "status": "error", "error": error(&failure, tool, &called.facts) }),
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
