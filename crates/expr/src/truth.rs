use crate::Value;

/// Words that a rendered guard may evaluate to and that mean false.
const FALSE_WORDS: [&str; 6] = ["false", "0", "no", "none", "null", "off"];

/// Returns whether a value is true for a guard: null, false, zero, and empty text, lists and objects are false, and
/// so are some words.
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
