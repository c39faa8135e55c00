//! Durations as people write them.

use serde_json::Value;

/// Maximum duration: a year.
pub const DURATION_MAX_MS: u64 = 365 * 24 * 60 * 60 * 1_000;

/// Form of a duration, for hints.
pub const DURATION_FORM: &str =
    "write seconds as a number, or \"500ms\", \"30s\", \"2m\", \"1h\"; at most 365 days";

/// Reads `30`, `"30s"`, `"500ms"`, `"2m"`, `"1h"` or `"1d"`; a bare number is seconds.
#[must_use]
pub fn duration_ms(value: &Value) -> Option<u64> {
    let found = match value {
        Value::Number(number) => number.as_f64().map(|seconds| seconds * 1_000.0),
        Value::String(text) => scaled(text.trim()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    };
    found.filter(|ms| (0.0..=DURATION_MAX_MS as f64).contains(ms)).map(|ms| ms as u64)
}

/// Reads a duration of at least a millisecond.
#[must_use]
pub fn timeout_ms(value: &Value) -> Option<u64> {
    duration_ms(value).filter(|ms| *ms > 0)
}

fn scaled(text: &str) -> Option<f64> {
    let units = [
        ("ms", 1.0),
        ("s", 1_000.0),
        ("m", 60_000.0),
        ("h", 3_600_000.0),
        ("d", 86_400_000.0),
        ("", 1_000.0),
    ];
    units
        .iter()
        .find_map(|(unit, ms)| text.strip_suffix(unit)?.trim_end().parse::<f64>().ok().map(|n| n * ms))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn durations_have_a_unit_or_are_seconds() {
        for (value, ms) in [
            (json!(1.5), 1_500),
            (json!("500ms"), 500),
            (json!(" 2 m\n"), 120_000),
            (json!("7"), 7_000),
            (json!("1d"), 86_400_000),
        ] {
            assert_eq!(duration_ms(&value), Some(ms), "{value}");
        }
        for value in
            [json!("soon"), json!(-1), json!("366d"), json!("nan"), json!(null), json!(["1s"]), json!("")]
        {
            assert_eq!(duration_ms(&value), None, "{value}");
        }
        assert_eq!((duration_ms(&json!(0)), timeout_ms(&json!("0s"))), (Some(0), None));
    }
}
