//! The body of a request for an execution. All wrong fields are found, also those of a wrong type.

use crate::problem::Detail;
use crate::routes::plans::server_fields;
use serde_json::{Map, Value, json};

const SPEC_FIELDS: [&str; 5] = ["planID", "cluster", "runner", "params", "secrets"];

/// Removes the fields of a body that cannot be read, and returns what is wrong with them.
pub(super) fn take_wrong_fields(body: &mut Value) -> Vec<Detail> {
    let mut wrong = server_fields(body);
    let Value::Object(fields) = body else {
        wrong.push(Detail::new("", expected("an object", body)));
        *body = json!({ "spec": {} });
        return wrong;
    };
    fields.retain(|field, _| {
        let is_known = field == "spec";
        if !is_known && !wrong.iter().any(|detail| detail.path == *field) {
            wrong.push(Detail::new(field.clone(), "is not a field of the request; it has `spec`"));
        }
        is_known
    });
    match fields.get_mut("spec") {
        Some(Value::Object(spec)) => check_spec(spec, &mut wrong),
        given => {
            let message = given.map_or("is required".to_owned(), |given| expected("an object", given));
            wrong.push(Detail::new("spec", message));
            fields.insert("spec".to_owned(), json!({}));
        }
    }
    wrong
}

fn check_spec(spec: &mut Map<String, Value>, wrong: &mut Vec<Detail>) {
    spec.retain(|field, value| {
        let message = match (field.as_str(), &*value) {
            ("planID" | "cluster" | "runner", Value::Null | Value::String(_)) => return true,
            ("planID" | "cluster" | "runner", value) => expected("a text", value),
            ("params" | "secrets", Value::Object(_)) => return true,
            ("params" | "secrets", value) => expected("an object", value),
            _ => format!("is not a field of `spec`; it has {}", SPEC_FIELDS.join(", ")),
        };
        wrong.push(Detail::new(format!("spec.{field}"), message));
        false
    });
    if let Some(Value::Object(secrets)) = spec.get_mut("secrets") {
        secrets.retain(|param, secret| {
            if !secret.is_string() {
                let message = expected("the name of a secret", secret);
                wrong.push(Detail::new(format!("spec.secrets.{param}"), message));
            }
            secret.is_string()
        });
    }
}

/// Adds details of fields that are not reported yet, neither themselves nor as a part of another one.
pub(super) fn add_unreported(wrong: &mut Vec<Detail>, mut found: Vec<Detail>) {
    found.retain(|detail| {
        let rest = |of: &str| detail.path.strip_prefix(of);
        let is_within = |of: &str| rest(of).is_some_and(|rest| of.is_empty() || rest.starts_with('.'));
        !wrong.iter().any(|known| known.path == detail.path || is_within(&known.path))
    });
    wrong.extend(found);
}

fn expected(wanted: &str, found: &Value) -> String {
    let found = match found {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    };
    format!("must be {wanted}, not {found}")
}
