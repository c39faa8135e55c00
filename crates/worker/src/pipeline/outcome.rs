//! The outcome of a call for rules, and the output of the whole step.

use super::CallResult;
use super::cursor::Cursor;
use super::large_values::{LargeValues, RenderError};
use crate::failure::{failure, shown};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use windlass_artifact::{Source, key};
use windlass_protocol::{ChildEnd, ErrorClass, Failure, FailureSite, Pipeline, codes};

/// Converts a result with `status: "error"` to an error, whatever the tool.
pub(super) fn judged(called: CallResult) -> CallResult {
    let CallResult { outcome, facts } = called;
    let outcome = outcome
        .and_then(|result| if result["status"] == "error" { Err(failure_of(result)) } else { Ok(result) });
    CallResult { outcome, facts }
}

fn failure_of(result: Value) -> Box<Failure> {
    let error = &result["error"];
    let words = [&error["message"], error, &result["message"]].into_iter().find_map(Value::as_str);
    let words = words.filter(|words| !words.is_empty());
    let message = words.map_or_else(|| "the result has the status `error`".to_owned(), shown);
    let code = [&error["code"], &result["code"]].into_iter().find_map(Value::as_str);
    let code = code.unwrap_or(codes::TASK_ERROR.name());
    let mut failed = Box::new(Failure::of_class(ErrorClass::Unknown, code, message));
    failed.retryable = error["retryable"].as_bool();
    failed.details = result;
    failed
}

/// Returns `{status: "ok", result}` or `{status: "error", error}`, with `meta` and the facts of the tool (`http`, …).
pub(super) fn describe(called: &CallResult, site: FailureSite<'_>, tool: &str, attempt: u32) -> Value {
    let mut described = called.facts.clone();
    let (status, key, value) = match &called.outcome {
        Ok(result) => ("ok", "result", result.clone()),
        Err(failure) => ("error", "error", error(failure, site, tool, &called.facts)),
    };
    described.insert("status".to_owned(), json!(status));
    described.insert(key.to_owned(), value);
    described.insert("meta".to_owned(), json!({ "attempt": attempt }));
    Value::Object(described)
}

/// Facts of the tool that explain an error: their path, and their name in the error.
const EVIDENCE: [(&str, &str, &str); 3] = [
    ("http", "status", "http_status"),
    ("pg", "code", "pg_code"),
    ("py", "exception_type", "exception_type"),
];

/// Returns the error for all other readers, with the facts of the tool about it.
fn error(failure: &Failure, site: FailureSite<'_>, tool: &str, facts: &Map<String, Value>) -> Value {
    let mut error = failure.describe(Some(site)).to_json();
    error["source"] = json!(tool);
    for (fact, key, name) in EVIDENCE {
        if let Some(value) = facts.get(fact).and_then(|fact| fact.get(key)) {
            error[name] = value.clone();
        }
    }
    if let Some(delay_ms) = failure.retry_after_ms {
        error["retry_after"] = json!(delay_ms as f64 / 1000.0);
    }
    error
}

/// Returns the value of a task under its label after its completion: its result, or its failure.
pub(super) fn task_value(called: CallResult, site: FailureSite<'_>, tool: &str) -> Value {
    match called.outcome {
        Ok(result) => result,
        Err(failure) => json!({ "status": "error", "error": error(&failure, site, tool, &called.facts) }),
    }
}

/// Returns the output of the step, and whether the runner built its parts.
///
/// With one task it is the outcome of the task. With several it is an object: the fields of the last successful result
/// (a result that is not an object is under `result`), `status: "ok"` unless that result has a `status` of its own, and
/// `results` with the outcome of every task by its label. So `{{ step.field }}` and `{{ step.results.label.field }}`
/// can both be read.
pub(super) fn output(
    pipeline: &Pipeline,
    cursor: &Cursor,
    large_values: &LargeValues,
) -> Result<(Value, Source), RenderError> {
    if let [task] = &pipeline.tasks[..] {
        return Ok((cursor.results.get(&task.label).cloned().unwrap_or_default(), Source::Own));
    }
    if pipeline.tasks.is_empty() {
        return Ok((Value::Null, Source::Own));
    }
    let whole =
        |value: &Value| large_values.resolve(Cow::Borrowed(value)).map_or(Value::Null, Cow::into_owned);
    let results: Map<String, Value> =
        cursor.results.iter().map(|(label, result)| (label.clone(), whole(result))).collect();
    let mut output = match whole(&cursor.prev) {
        Value::Object(fields) => fields,
        other => Map::from_iter([("result".to_owned(), other)]),
    };
    output.entry("status").or_insert_with(|| json!("ok"));
    output.insert("results".to_owned(), Value::Object(results));
    let source = if key(&cursor.prev).is_some() { Source::Outside } else { Source::Own };
    large_values.settled(Ok((Value::Object(output), source)))
}

/// Returns the definition of the other execution, and its inputs.
pub(super) fn child(config: &Map<String, Value>) -> (Value, Value) {
    let kept = |key: &&str| Some(((*key).to_owned(), config.get(*key)?.clone()));
    let definition = ["path", "catalog_id", "version"].iter().filter_map(kept).collect();
    let given = ["args", "input", "payload"].iter().find_map(|key| config.get(*key)?.as_object());
    (Value::Object(definition), Value::Object(given.cloned().unwrap_or_default()))
}

/// Converts the end of another execution to the outcome of a call. An execution that may be partial by its own policy
/// has succeeded.
pub(super) fn of_child(end: ChildEnd) -> CallResult {
    let facts = json!({ "playbook": { "execution_id": end.execution, "status": end.status } });
    let outcome = match end.failure {
        None if end.status != "cancelled" => Ok(end.output),
        None => Err(failure(codes::CANCELLED, "the sub-execution was cancelled")),
        Some(failure) => Err(Box::new(failure)),
    };
    CallResult { outcome, facts: facts.as_object().cloned().unwrap_or_default() }
}
