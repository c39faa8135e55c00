use crate::Value;

/// Words that a rendered guard may leave behind and that mean no.
const FALSE_WORDS: [&str; 6] = ["false", "0", "no", "none", "null", "off"];

/// Guards' truth: null, false, zero, empty text, list and object are false, and so is text that says so.
pub fn is_true(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(yes) => *yes,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => {
            let word = text.trim();
            !text.is_empty() && !FALSE_WORDS.iter().any(|no| word.eq_ignore_ascii_case(no))
        }
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
    }
}
