//! Tools: one map, a list of named maps, or a list of `{label: {…}}`.

use super::{Values, described, kinds, open, refer};
use crate::playbook::language::{Key, TOOL, tools};
use serde_json::{Map, Value, json};
use windlass_protocol::ToolRow;

pub(super) fn tool() -> Value {
    json!({
        "anyOf": [
            one(),
            { "type": "array", "minItems": 1, "items": { "anyOf": [one(), labelled()] } },
        ],
    })
}

/// Schema of one tool. The tool itself checks the values of its own fields, which may also be under `spec`.
pub(super) fn one() -> Value {
    let mut schema = open(TOOL, &values());
    schema["required"] = json!(["kind"]);
    schema["allOf"] = tools().map(fields).collect();
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
        ("kind", kinds()),
        ("name", refer("name")),
        ("args", refer("fields")),
        ("input", refer("fields")),
        ("spec", json!({ "anyOf": [refer("tool_spec"), { "type": "null" }] })),
        ("retry", json!({ "anyOf": [refer("retry"), { "type": ["boolean", "integer", "null"] }] })),
    ]
}

/// Schema of a map of that kind.
fn fields(tool: &ToolRow) -> Value {
    let property = |field: &Key| (field.name.to_owned(), described(field, json!(true)));
    let properties: Map<String, Value> = tool.fields.iter().map(property).collect();
    let own = tool.all_fields().map(|field| field.name);
    let names: Vec<&str> = TOOL.iter().map(|key| key.name).chain(own).collect();
    let mut then =
        json!({ "description": tool.about, "properties": properties, "propertyNames": { "enum": names } });
    if !tool.needs.is_empty() {
        then["anyOf"] = tool.needs.iter().flat_map(|field| given(field)).collect();
    }
    json!({ "if": { "properties": { "kind": { "const": tool.kind } }, "required": ["kind"] }, "then": then })
}

/// The field, where fields are written or under `spec`.
fn given(field: &str) -> [Value; 2] {
    let nested =
        json!({ "properties": { "spec": { "type": "object", "required": [field] } }, "required": ["spec"] });
    [json!({ "required": [field] }), nested]
}
