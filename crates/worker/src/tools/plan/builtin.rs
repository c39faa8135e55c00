//! Built-in actions that need no program: requests over HTTP, and checks.

use super::super::{ToolContext, http};
use super::inputs::{InputValue, ResolvedInput, text_of};
use crate::failure::failure;
use crate::halt::Halt;
use crate::pipeline::Call;
use serde_json::{Map, Value, json};
use windlass_expr::{BoundName, Expr, ValueKind, literal, translate_condition};
use windlass_protocol::{Failure, codes};

/// Headers of requests and answers that are not captured.
const HIDDEN: [&str; 5] = ["authorization", "cookie", "proxy-authorization", "set-cookie", "authentication"];

/// Inputs of `check` that are not variables of its expression.
const OF_CHECK: [&str; 2] = ["expression", "name"];

/// Sends a request. Any answer is a result, with every status; a request without an answer has failed.
pub(super) async fn request_http(
    inputs: &[ResolvedInput],
    call: &Call,
    cx: &ToolContext,
    halt: Halt,
) -> Result<Map<String, Value>, Box<Failure>> {
    let values = by_name(inputs);
    let value = |name: &str| values.get(name).cloned().unwrap_or_default();
    let mut config = Map::new();
    for name in ["method", "url", "headers", "body"] {
        config.extend(values.get(name).map(|value| (name.to_owned(), value.clone())));
    }
    config.insert("any_status".to_owned(), Value::Bool(true));
    let request = Call {
        label: "request-http".to_owned(),
        kind: "http".to_owned(),
        config,
        args: Value::Null,
        timeout_ms: call.timeout_ms,
        try_number: call.try_number,
        number: 0,
        memo: None,
    };
    let mut answer = http::run(&request, cx, halt).await.outcome?;
    let (status, headers, body) =
        (answer["status_code"].take(), answer["headers"].take(), answer["data"].take());
    let (sent, headers) = (shown(value("headers")), shown(headers));
    let capture = json!({
        "request": { "method": value("method"), "url": value("url"), "headers": sent, "body": value("body") },
        "response": { "statusCode": status, "headers": headers, "body": body },
    });
    let outputs = [("status", status), ("headers", headers), ("body", body), ("capture", capture)];
    Ok(outputs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

fn shown(headers: Value) -> Value {
    match headers {
        Value::Object(fields) => fields
            .into_iter()
            .filter(|(name, _)| !HIDDEN.contains(&name.to_ascii_lowercase().as_str()))
            .collect(),
        _ => json!({}),
    }
}

/// Evaluates an expression over the other inputs. A check that is false is a result, and not a failure.
pub(super) fn check(inputs: &[ResolvedInput]) -> Result<Map<String, Value>, Box<Failure>> {
    let values = by_name(inputs);
    let text = |name: &str| text_of(inputs, name).unwrap_or_default();
    let (source, name) = (text("expression"), text("name"));
    let read: Map<String, Value> =
        values.into_iter().filter(|(name, _)| !OF_CHECK.contains(&name.as_str())).collect();
    let bind = |name: &str| match read.contains_key(name) {
        true => {
            let source = format!("inputs[{}]", literal(&json!(name)));
            Ok(BoundName { source, kind: ValueKind::Unknown })
        }
        false => Err(format!("there is no input `{name}`")),
    };
    let refused = |why: String| failure(codes::EXPRESSION_ERROR, format!("bad expression `{source}`: {why}"));
    let translated = translate_condition(&source, &bind).map_err(|error| refused(error.to_string()))?;
    let expr = Expr::compile(&translated.source).map_err(|error| refused(error.to_string()))?;
    let scope = Map::from_iter([("inputs".to_owned(), Value::Object(read.clone()))]);
    let holds = expr.truthy(&scope).map_err(|error| refused(error.to_string()))?;
    let mut result = json!({ "check": name });
    if !holds {
        let message = format!("expression \"{source}\" evaluated to false");
        result["error"] = json!({ "message": message, "attrs": read });
    }
    Ok(Map::from_iter([("result".to_owned(), result)]))
}

/// Returns the values of all inputs by name.
fn by_name(inputs: &[ResolvedInput]) -> Map<String, Value> {
    let value = |input: &ResolvedInput| match &input.value {
        InputValue::Inline(value) => Some((input.name.clone(), value.clone())),
        InputValue::Artifact(_) => None,
    };
    inputs.iter().filter_map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(expression: &str) -> Result<Value, String> {
        let input = |name: &str, value: Value| ResolvedInput {
            name: name.to_owned(),
            is_json: true,
            is_secret: false,
            value: InputValue::Inline(value),
        };
        let inputs = [
            input("expression", json!(expression)),
            input("name", json!("status")),
            input("code", json!(503)),
        ];
        check(&inputs).map(|mut outputs| outputs["result"].take()).map_err(|failure| failure.message)
    }

    #[test]
    fn a_check_that_is_false_is_a_result_and_a_bad_one_is_a_failure() {
        assert_eq!(checked("code >= 500"), Ok(json!({ "check": "status" })));
        let failed = checked("code < 500").expect("a result");
        assert_eq!(failed["error"]["message"], "expression \"code < 500\" evaluated to false");
        assert_eq!(failed["error"]["attrs"], json!({ "code": 503 }));
        assert!(checked("nope == 1").expect_err("a failure").contains("there is no input `nope`"));
        assert!(checked("code").expect_err("a failure").contains("true or false"));
        let message = checked("code > '100'").expect_err("a failure");
        assert!(message.contains("not a number and a text: declare a schema"), "{message}");
    }
}
