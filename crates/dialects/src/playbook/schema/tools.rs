//! Tools: one map, a list of named maps, or a list of `{label: {…}}`.

use super::{Values, kinds, open, refer};
use crate::playbook::language::{TOOL, TOOLS, Tool};
use serde_json::{Value, json};

pub(super) fn tool() -> Value {
    json!({
        "anyOf": [
            one(),
            { "type": "array", "minItems": 1, "items": { "anyOf": [one(), labelled()] } },
        ],
    })
}

/// A tool alone. What a field of its own may hold is the tool's affair, and fields may stand under `spec`.
pub(super) fn one() -> Value {
    let mut schema = open(TOOL, &values());
    schema["required"] = json!(["kind"]);
    schema["allOf"] = TOOLS.iter().filter(|tool| !tool.needs.is_empty()).map(needs).collect();
    schema
}

fn labelled() -> Value {
    json!({
        "type": "object",
        "minProperties": 1,
        "maxProperties": 1,
        "not": { "required": ["kind"] },
        "additionalProperties": one(),
    })
}

fn values() -> Values {
    vec![
        ("kind", kinds(&TOOLS)),
        ("name", refer("name")),
        ("args", refer("fields")),
        ("input", refer("fields")),
        ("spec", json!({ "anyOf": [refer("tool_spec"), { "type": "null" }] })),
    ]
}

fn needs(tool: &Tool) -> Value {
    let one_of: Vec<Value> = tool
        .needs
        .iter()
        .flat_map(|field| {
            let nested = json!({ "properties": { "spec": { "type": "object", "required": [field] } }, "required": ["spec"] });
            [json!({ "required": [field] }), nested]
        })
        .collect();
    let properties: Value =
        Value::Object(tool.needs.iter().map(|field| ((*field).to_owned(), json!(true))).collect());
    json!({
        "if": { "properties": { "kind": { "const": tool.kind } }, "required": ["kind"] },
        "then": { "description": tool.about, "properties": properties, "anyOf": one_of },
    })
}
