//! Alternative names in expressions, which are the same in all dialects.

use std::borrow::Cow;

use crate::Value;

/// Returns a field of a step's output; `data` is the output itself, unless it has a field of that name.
pub fn of_output<'v>(output: Cow<'v, Value>, key: Option<&str>) -> Option<Cow<'v, Value>> {
    match key {
        Some("data") if output.get("data").is_none() => Some(output),
        Some(key) => match output {
            Cow::Borrowed(output) => output.get(key).map(Cow::Borrowed),
            Cow::Owned(output) => output.get(key).cloned().map(Cow::Owned),
        },
        None => Some(output),
    }
}

/// Returns the field of an iteration that this name means.
#[must_use]
pub fn of_iteration(key: &str) -> &str {
    match key {
        "_index" | "loop_index" => "index",
        "_first" => "first",
        "_last" => "last",
        key => key,
    }
}
