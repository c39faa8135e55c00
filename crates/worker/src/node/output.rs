//! The node contract: `{success, data, error {code, message, retryable}, metadata}`. A value without this form is the
//! data itself.

use super::Meter;
use super::meter::{API_CALLS, TOKENS_USED};
use crate::failure::shown;
use serde_json::Value;
use windlass_protocol::{Failure, codes};

const FIELDS: [&str; 4] = ["success", "data", "error", "metadata"];

/// Converts the output of a program to the node's data or failure. Its metadata is counted.
pub(crate) fn read_output(given: Value, meter: &Meter) -> Result<Value, Box<Failure>> {
    let Some(success) = is_contract(&given) else { return Ok(given) };
    let Value::Object(mut fields) = given else { return Ok(Value::Null) };
    for name in [TOKENS_USED, API_CALLS] {
        let used = fields.get("metadata").and_then(|metadata| metadata.get(name)).and_then(Value::as_u64);
        used.into_iter().for_each(|used| meter.add(name, used));
    }
    if success {
        return Ok(fields.remove("data").unwrap_or_default());
    }
    let error = fields.remove("error").unwrap_or_default();
    let mut failed = from_error(&error);
    if let Some(data) = fields.remove("data").filter(|data| !data.is_null()) {
        failed.details = serde_json::json!({ "data": data });
    }
    Err(failed)
}

fn is_contract(given: &Value) -> Option<bool> {
    let fields = given.as_object()?;
    let success = fields.get("success")?.as_bool()?;
    fields.keys().all(|key| FIELDS.contains(&key.as_str())).then_some(success)
}

/// Reads an error of the contract, which may be only a text.
pub(crate) fn from_error(error: &Value) -> Box<Failure> {
    let text = |key: &str| error.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let code = text("code").unwrap_or(codes::NODE_FAILED.name());
    let message =
        text("message").or_else(|| error.as_str()).unwrap_or("the node reported a failure without a message");
    let mut failed = Box::new(Failure::of_code(code, shown(message)));
    failed.retryable = error.get("retryable").and_then(Value::as_bool);
    failed
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(given: Value, expected: Value) {
        let read = match read_output(given.clone(), &Meter::default()) {
            Ok(data) => json!({ "data": data }),
            Err(failure) => {
                json!({ "class": failure.class, "code": failure.code, "message": failure.message,
                    "retryable": failure.retryable })
            }
        };
        assert_eq!(read, expected, "{given}");
    }

    #[test]
    fn wfl_23_a_value_of_the_contract_is_taken_apart_and_any_other_is_the_data() {
        check(json!({ "success": true, "data": [1] }), json!({ "data": [1] }));
        check(json!({ "success": true }), json!({ "data": null }));
        check(json!({ "success": true, "rows": 3 }), json!({ "data": { "success": true, "rows": 3 } }));
        check(json!({ "success": "yes" }), json!({ "data": { "success": "yes" } }));
        check(json!("text"), json!({ "data": "text" }));
    }

    #[test]
    fn wfl_23_wfl_24_a_failure_has_the_class_of_its_code_and_the_flag_of_the_node() {
        let failed = |error: Value| json!({ "success": false, "error": error });
        let failed_with = |class: &str, code: &str, message: &str, retryable: Value| json!({ "class": class, "code": code, "message": message, "retryable": retryable });
        for (code, class) in [
            ("NETWORK_TIMEOUT", "timeout"),
            ("RATE_LIMIT_EXCEEDED", "rate_limit"),
            ("SERVICE_UNAVAILABLE", "transient_5xx"),
            ("CONNECTION_RESET", "transport"),
            ("AI_MODEL_BUSY", "transient_5xx"),
            ("PROVIDER_ERROR", "transient_5xx"),
            ("VALIDATION_ERROR", "validation"),
            ("AUTHENTICATION_FAILED", "auth"),
            ("PERMISSION_DENIED", "policy"),
            ("RESOURCE_NOT_FOUND", "validation"),
            ("INVALID_CONFIGURATION", "validation"),
            ("MY_OWN", "unknown"),
        ] {
            check(
                failed(json!({ "code": code, "message": "m" })),
                failed_with(class, code, "m", Value::Null),
            );
        }
        let flagged = json!({ "code": "MY_OWN", "message": "m", "retryable": true });
        check(failed(flagged), failed_with("unknown", "MY_OWN", "m", json!(true)));
        check(failed(json!("just words")), failed_with("unknown", "NODE_FAILED", "just words", Value::Null));
        check(
            failed(Value::Null),
            failed_with(
                "unknown",
                "NODE_FAILED",
                "the node reported a failure without a message",
                Value::Null,
            ),
        );
    }

    #[test]
    fn wfl_23_what_a_node_says_it_used_is_counted() {
        let meter = Meter::default();
        let given = json!({ "success": true, "metadata": { "duration": 9, "tokensUsed": 5, "apiCalls": 2 } });
        read_output(given, &meter).unwrap();
        assert_eq!(json!(meter.take()), json!({ "tokensUsed": 5, "apiCalls": 2 }));
    }
}
