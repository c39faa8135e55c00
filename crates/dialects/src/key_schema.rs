//! Parts of a JSON Schema that are made from the keys of a language.

use crate::read::Key;
use serde_json::{Map, Value, json};

/// Returns the schema of a map with these keys and no other. A key without a value counts as absent.
pub(crate) fn closed(keys: &[Key], value: fn(&str) -> Value) -> Value {
    let property = |key: &Key| {
        let mut schema = value(key.name);
        schema["description"] = json!(key.about);
        (key.name.to_owned(), schema)
    };
    let properties: Map<String, Value> = keys.iter().map(property).collect();
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
}

/// Returns the schema of a value that fits a definition of the schema, or is null.
pub(crate) fn reference(name: &str) -> Value {
    json!({ "anyOf": [{ "$ref": format!("#/$defs/{name}") }, { "type": "null" }] })
}
