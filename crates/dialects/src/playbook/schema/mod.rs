//! The language as a JSON Schema, for editors, with descriptions and completions.
//!
//! Made of the same tables that the parser reads by. The schema refuses nothing that the parser accepts; the parser sees
//! more, such as names that lead nowhere.

mod parts;
mod tools;

use super::language::{Key, ROOT, tools};
use serde_json::{Map, Value, json};

/// Returns the JSON Schema 2020-12 of playbooks.
pub(crate) fn schema() -> Value {
    let mut schema = open(ROOT, &parts::root());
    let head = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Playbook",
        "description": "A Windlass playbook: steps with pipelines of tools, routed by tokens.",
        "required": ["workflow"],
    });
    merge(&mut schema, head);
    // Other versions of the language have data in `vars`; here it has other places.
    schema["properties"]["vars"] = json!(false);
    schema["$defs"] = parts::definitions();
    schema
}

/// The value under each key of a map, in any order. The tables and these lists must name the same keys.
type Values = Vec<(&'static str, Value)>;

/// Returns the schema of a map with these keys and no other.
fn closed(keys: &[Key], values: &Values) -> Value {
    let mut schema = open(keys, values);
    schema["additionalProperties"] = json!(false);
    schema
}

/// Returns the schema of a map that may have further keys.
fn open(keys: &[Key], values: &Values) -> Value {
    let property = |key: &Key| {
        let value = values.iter().find(|(name, _)| *name == key.name).map(|(_, value)| value.clone());
        (key.name.to_owned(), described(key, value.unwrap_or(json!(true))))
    };
    let properties: Map<String, Value> = keys.iter().map(property).collect();
    debug_assert!(
        values.iter().all(|(name, _)| properties.contains_key(*name)),
        "a value has a key that the language does not have"
    );
    json!({ "type": "object", "properties": properties })
}

fn described(key: &Key, value: Value) -> Value {
    let mut value = match value {
        Value::Object(_) => value,
        _ => json!({}),
    };
    value["description"] = json!(key.about);
    if let Some(instead) = key.instead {
        value["description"] = json!(format!("{}. Has no effect here: {instead}", key.about));
        value["deprecated"] = json!(true);
    }
    value
}

fn merge(under: &mut Value, over: Value) {
    if let (Value::Object(under), Value::Object(over)) = (under, over) {
        under.extend(over);
    }
}

fn refer(name: &str) -> Value {
    json!({ "$ref": format!("#/$defs/{name}") })
}

/// Returns the schema of a value or nothing: a key without a value counts as absent.
fn or_null(value: Value) -> Value {
    json!({ "anyOf": [value, { "type": "null" }] })
}

fn words<T>(words: &[(&str, T)]) -> Value {
    let names: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
    json!({ "enum": names })
}

fn kinds() -> Value {
    let names: Vec<&str> = tools().map(|tool| tool.kind).collect();
    // The known ones are for completion: bindings add others.
    json!({ "anyOf": [{ "enum": names }, { "type": "string" }] })
}
