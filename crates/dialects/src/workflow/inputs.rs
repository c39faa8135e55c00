//! The inputs of a workflow: what its trigger says of them, and whether those of a start fit.

use super::config::{given, schema_of};
use super::hooks::HOOK;
use super::language::{Kind, NodeKind};
use crate::document::Node;
use serde_json::{Map, Value};

/// A problem with the inputs of a start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputProblem {
    /// `inputs.url`, `inputs.list[2]`.
    pub path: String,
    pub message: String,
}

/// Problems that are told of one start.
const TOLD_MAX: usize = 20;

/// Of the first trigger that has one.
pub(super) fn schema(root: &Node) -> Option<Value> {
    let nodes = root.get("nodes").map(Node::items).unwrap_or_default();
    nodes.iter().find_map(|node| {
        let data = given(node, "data").filter(|data| data.is_map());
        let get = |key: &str| data.and_then(|data| given(data, key)).or_else(|| given(node, key));
        let kind = get("nodeType").or_else(|| given(node, "type"))?.text()?;
        NodeKind::of(kind).filter(|kind| kind.kind == Kind::Trigger)?;
        schema_of(given(given(get("config")?, "manualConfig")?, "inputPayload")?)
    })
}

/// Defaults that the schema gives to inputs.
pub(super) fn defaults(schema: Option<&Value>) -> Map<String, Value> {
    let properties = schema.and_then(|schema| schema.get("properties")?.as_object());
    let default =
        |(name, property): (&String, &Value)| Some((name.clone(), property.get("default")?.clone()));
    properties.into_iter().flatten().filter_map(default).collect()
}

/// What is wrong with the inputs; nothing when they fit. A schema that is none was told with the definition.
#[must_use]
pub fn check_inputs(schema: &Value, inputs: &Value) -> Vec<InputProblem> {
    let Ok(validator) = jsonschema::validator_for(schema) else { return Vec::new() };
    let inputs = &without_request(schema, inputs);
    let told = validator.iter_errors(inputs).take(TOLD_MAX).map(|error| InputProblem {
        path: path(&error.instance_path().to_string()),
        message: error.to_string(),
    });
    told.collect()
}

/// The same by the text of a definition, for starts that no person asks for. Cheap where it says nothing of its inputs.
#[must_use]
pub fn check_inputs_of(source: &str, inputs: &Value) -> Vec<InputProblem> {
    // A name may be written with escapes.
    if !source.contains("inputPayload") && !source.contains('\\') {
        return Vec::new();
    }
    let schema = crate::compile(source).inputs_schema;
    schema.map(|schema| check_inputs(&schema, inputs)).unwrap_or_default()
}

/// A schema speaks of what is sent, not of what a hook tells of the request beside it.
fn without_request(schema: &Value, inputs: &Value) -> Value {
    let mut inputs = inputs.clone();
    let named = schema.pointer("/properties").is_some_and(|properties| properties.get(HOOK).is_some());
    if let Some(fields) = inputs.as_object_mut().filter(|_| !named) {
        fields.shift_remove(HOOK);
    }
    inputs
}

/// A JSON pointer as people write it.
fn path(pointer: &str) -> String {
    let mut path = "inputs".to_owned();
    for part in pointer.split('/').skip(1) {
        let part = part.replace("~1", "/").replace("~0", "~");
        if part.chars().all(|c| c.is_ascii_digit()) {
            path.push_str(&format!("[{part}]"));
        } else {
            path.push('.');
            path.push_str(&part);
        }
    }
    path
}
