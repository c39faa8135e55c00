//! How deep values may be nested.

use serde_json::Value;

/// Lists and objects inside each other, in values that come from outside. Readers of JSON commonly stop at 128, and a
/// journal, a cursor and an answer each put a value into a few objects of their own.
pub const VALUE_DEPTH_MAX: usize = 100;

/// What is wrong with a deeper value.
pub const TOO_DEEP: &str = "a value is nested more than 100 deep, which is the limit: return a flatter one";

/// The code of the failure of a step with such a value.
pub const TOO_DEEP_CODE: &str = "VALUE_TOO_DEEP";

/// Whether a value is nested deeper than it may be.
#[must_use]
pub fn is_too_deep(value: &Value) -> bool {
    exceeds(value, VALUE_DEPTH_MAX)
}

fn exceeds(value: &Value, left: usize) -> bool {
    match value {
        Value::Array(items) => left == 0 || items.iter().any(|item| exceeds(item, left - 1)),
        Value::Object(fields) => left == 0 || fields.values().any(|field| exceeds(field, left - 1)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn nested(depth: usize) -> Value {
        (0..depth).fold(
            json!(1),
            |inner, level| if level % 2 == 0 { json!([inner]) } else { json!({ "a": inner }) },
        )
    }

    #[test]
    fn a_value_may_be_as_deep_as_the_limit_and_no_deeper() {
        assert!(!is_too_deep(&nested(0)) && !is_too_deep(&nested(VALUE_DEPTH_MAX)));
        assert!(is_too_deep(&nested(VALUE_DEPTH_MAX + 1)));
        assert!(TOO_DEEP.contains(&VALUE_DEPTH_MAX.to_string()));
    }
}
