//! Length of a value's JSON, computed without writing it.

use serde_json::Value;

/// Returns the length of the value's JSON in bytes.
#[must_use]
pub fn json_bytes(value: &Value) -> usize {
    usize::MAX - spend(value, usize::MAX).unwrap_or(0)
}

/// Returns whether the JSON is longer than `bytes`; counting stops as soon as that is known.
pub(crate) fn exceeds(value: &Value, bytes: usize) -> bool {
    spend(value, bytes).is_none()
}

/// Returns the bytes that remain after the value; `None` if there are not enough.
fn spend(value: &Value, left: usize) -> Option<usize> {
    match value {
        Value::Null | Value::Bool(true) => left.checked_sub(4),
        Value::Bool(false) => left.checked_sub(5),
        Value::Number(number) => left.checked_sub(number.to_string().len()),
        Value::String(text) => spend_text(text, left),
        Value::Array(items) => {
            let left = left.checked_sub(2 + items.len().saturating_sub(1))?;
            items.iter().try_fold(left, |left, item| spend(item, left))
        }
        Value::Object(fields) => {
            let left = left.checked_sub(2 + fields.len().saturating_sub(1))?;
            fields
                .iter()
                .try_fold(left, |left, (key, value)| spend(value, spend_text(key, left)?.checked_sub(1)?))
        }
    }
}

fn spend_text(text: &str, left: usize) -> Option<usize> {
    let left = left.checked_sub(2 + text.len())?;
    text.bytes().try_fold(left, |left, byte| left.checked_sub(extra_bytes(byte)))
}

/// Returns the number of additional bytes that escaping a byte takes.
fn extra_bytes(byte: u8) -> usize {
    match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 1,
        0x00..=0x1f => 5,
        _ => 0,
    }
}
