//! A schema as a graph of the subschemas that apply to the same value and to parts of it; JSON pointers and references,
//! which name its nodes.

use regex::Regex;
use serde_json::Value;
use std::collections::BTreeMap;

/// Index of a node.
pub(crate) type NodeId = usize;

#[derive(Debug)]
pub(crate) struct Graph {
    /// Nodes of the graph; the first is the root.
    pub(crate) nodes: Vec<Node>,
}

/// One subschema.
#[derive(Debug, Default)]
pub(crate) struct Node {
    /// JSON pointer of the subschema.
    pub(crate) pointer: String,
    /// Subschemas and targets of references that apply to the same value.
    pub(crate) in_place: Vec<NodeId>,
    /// Schemas of entries by name.
    pub(crate) properties: BTreeMap<String, NodeId>,
    pub(crate) patterns: Vec<(Covers, NodeId)>,
    /// Schemas of entries that neither a name nor a pattern covers.
    pub(crate) additional: Vec<NodeId>,
    /// Schemas of names of entries.
    pub(crate) names: Vec<NodeId>,
    /// Schemas of items by position.
    pub(crate) prefix: Vec<NodeId>,
    /// Schemas of items after the prefix.
    pub(crate) items: Vec<NodeId>,
    /// Schemas that every item is compared with.
    pub(crate) contains: Vec<NodeId>,
    /// Number of JSON values in `enum` and `const`.
    pub(crate) listed: u64,
    /// Number of keywords that read the whole text of a string.
    pub(crate) reads_text: u64,
    pub(crate) is_unique: bool,
    /// True for `unevaluatedProperties` and `unevaluatedItems`, which evaluate the schemas in place again for every
    /// entry or item.
    pub(crate) is_unevaluated: bool,
}

/// Set of names that a pattern covers.
#[derive(Debug)]
pub(crate) enum Covers {
    Matching(Box<Regex>),
    /// The syntax of the pattern is known only to the validator, so it may match anything.
    Anything,
}

impl Covers {
    pub(crate) fn covers(&self, name: &str) -> bool {
        match self {
            Covers::Matching(pattern) => pattern.is_match(name),
            Covers::Anything => true,
        }
    }
}

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
