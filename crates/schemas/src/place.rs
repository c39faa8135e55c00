//! Positions in a schema: JSON pointers and local references.

use serde_json::Value;

/// Appends a step to a JSON pointer.
pub(crate) fn join(pointer: &str, step: &str) -> String {
    format!("{pointer}/{}", step.replace('~', "~0").replace('/', "~1"))
}

/// Target of a local reference.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Pointer(String),
    Anchor(String),
}

/// Returns the target of `#`, `#/$defs/a` or `#name`; `None` for a reference to another document.
pub(crate) fn parse_reference(reference: &str) -> Option<Target> {
    let fragment = decode_percent(reference.strip_prefix('#')?)?;
    Some(match fragment.is_empty() || fragment.starts_with('/') {
        true => Target::Pointer(canonical_pointer(&fragment)),
        false => Target::Anchor(fragment),
    })
}

/// Returns the pointer with a unique spelling for each step.
fn canonical_pointer(pointer: &str) -> String {
    let steps = pointer.split('/').skip(1).map(|step| step.replace("~1", "/").replace("~0", "~"));
    steps.fold(String::new(), |whole, step| join(&whole, &step))
}

/// Decodes percent-encoding.
fn decode_percent(fragment: &str) -> Option<String> {
    let (mut bytes, mut rest) = (Vec::with_capacity(fragment.len()), fragment.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        match (first, after) {
            (b'%', [high, low, after @ ..]) => {
                let digits = [*high, *low];
                let digits = std::str::from_utf8(&digits).ok()?;
                bytes.push(u8::from_str_radix(digits, 16).ok()?);
                rest = after;
            }
            (b'%', _) => return None,
            (byte, after) => {
                bytes.push(*byte);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).ok()
}

/// Returns the number of values in a JSON value, including itself, and its nesting.
pub(crate) fn measure(value: &Value) -> (u64, usize) {
    let parts: Box<dyn Iterator<Item = &Value>> = match value {
        Value::Array(items) => Box::new(items.iter()),
        Value::Object(entries) => Box::new(entries.values()),
        _ => return (1, 1),
    };
    let (count, depth) =
        parts.map(measure).fold((1, 0), |(count, depth), (more, deeper)| (count + more, depth.max(deeper)));
    (count, depth + 1)
}
