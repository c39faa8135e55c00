//! The language as JSON Schemas: one for a whole document, one for the configuration of each type of node.

use super::language::{
    BACKOFFS, EDGE, FAILURE_MODES, Field, NODE, NODE_TYPES, NodeKind, RETRY, ROOT, SETTINGS, STATUSES, Shape,
};
use crate::read::Key;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// A type of node, for editors.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NodeType {
    pub name: &'static str,
    pub category: &'static str,
    pub description: &'static str,
    /// JSON Schema (2020-12) of its `config`.
    pub schema: Value,
    /// Ways out of it, by `sourceHandle`.
    pub handles: Vec<NodeHandle>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NodeHandle {
    pub name: &'static str,
    pub description: &'static str,
}

const DRAFT: &str = "https://json-schema.org/draft/2020-12/schema";

/// Schemas of all types of nodes.
#[must_use]
pub fn node_types() -> Vec<NodeType> {
    NODE_TYPES.iter().map(node_type).collect()
}

fn node_type(kind: &NodeKind) -> NodeType {
    let handles = kind.handles.iter();
    let mut schema = object(kind.fields);
    if let Value::Object(schema) = &mut schema {
        schema.insert("$schema".to_owned(), json!(DRAFT));
        schema.insert("title".to_owned(), json!(kind.name));
        schema.insert("description".to_owned(), json!(kind.about));
    }
    for key in NODE.iter().filter(|key| ["retryPolicy", "retry", "timeoutMs"].contains(&key.name)) {
        schema["properties"][key.name] = described(common(key.name), key.about);
    }
    NodeType {
        name: kind.name,
        category: kind.category,
        description: kind.about,
        schema,
        handles: handles.map(|handle| NodeHandle { name: handle.name, description: handle.about }).collect(),
    }
}

/// Returns the JSON Schema 2020-12 of workflows.
pub(crate) fn schema() -> Value {
    let mut schema = open(ROOT, |key| match key {
        "name" => json!({ "type": "string", "maxLength": 255 }),
        "id" => json!({ "type": "string", "maxLength": 100 }),
        "description" => json!({ "type": ["string", "null"] }),
        "nodes" => json!({ "type": "array", "minItems": 1, "items": { "$ref": "#/$defs/node" } }),
        "edges" => json!({ "type": ["array", "null"], "items": { "$ref": "#/$defs/edge" } }),
        "settings" => json!({ "$ref": "#/$defs/settings" }),
        "status" => json!({ "enum": STATUSES.map(|(word, _)| word) }),
        _ => json!({}),
    });
    schema["$schema"] = json!(DRAFT);
    schema["title"] = json!("Workflow");
    schema["description"] = json!("A Windlass workflow: nodes and edges.");
    schema["required"] = json!(["nodes"]);
    schema["$defs"] = json!({ "node": node(), "data": data(), "edge": edge(), "settings": settings(), "retry": retry_schema() });
    schema
}

fn node() -> Value {
    let mut node = open(NODE, node_value);
    node["required"] = json!(["id"]);
    // Chosen by type, in both shapes of a node.
    let rules: Vec<Value> = NODE_TYPES.iter().flat_map(by_type).collect();
    node["allOf"] = Value::Array(rules);
    node
}

fn by_type(kind: &NodeKind) -> Vec<Value> {
    let names: Vec<&str> = std::iter::once(kind.name).chain(kind.also.iter().copied()).collect();
    let mut config = object(kind.fields);
    for key in ["retryPolicy", "retry", "timeoutMs"] {
        config["properties"][key] = common(key);
    }
    // Required fields are left to the compiler, which also refuses an empty string.
    if let Value::Object(config) = &mut config {
        config.remove("required");
    }
    let flat = json!({
        "if": { "properties": { "type": { "enum": names } }, "required": ["type", "config"], "not": { "anyOf": [{ "required": ["data"] }, { "required": ["nodeType"] }] } },
        "then": { "properties": { "config": config } },
    });
    let drawn = json!({
        "if": { "properties": { "data": { "properties": { "nodeType": { "enum": names } }, "required": ["nodeType", "config"] } }, "required": ["data"] },
        "then": { "properties": { "data": { "properties": { "config": config } } } },
    });
    vec![flat, drawn]
}

fn node_value(key: &str) -> Value {
    match key {
        "id" => json!({ "type": "string", "minLength": 1, "maxLength": 100 }),
        "type" | "nodeType" => {
            json!({ "type": "string", "examples": NODE_TYPES.iter().map(|kind| kind.name).collect::<Vec<_>>() })
        }
        "name" | "label" => json!({ "type": ["string", "null"], "maxLength": 255 }),
        "description" => json!({ "type": ["string", "null"] }),
        "config" | "parameters" => json!({ "type": ["object", "null"] }),
        "data" => json!({ "$ref": "#/$defs/data" }),
        key => common(key),
    }
}

fn data() -> Value {
    let keys: Vec<Key> =
        NODE.iter().filter(|key| !["id", "data", "position"].contains(&key.name)).copied().collect();
    let mut data = open(&keys, node_value);
    data["type"] = json!(["object", "null"]);
    data
}

fn common(key: &str) -> Value {
    match key {
        "retryPolicy" | "retry" => retry_schema(),
        "timeoutMs" => json!({ "type": ["number", "null"], "minimum": 1 }),
        _ => json!({}),
    }
}

fn edge() -> Value {
    let mut edge = open(EDGE, |key| match key {
        "source" | "target" => json!({ "type": "string", "minLength": 1 }),
        _ => json!({ "type": ["string", "null"] }),
    });
    edge["required"] = json!(["source", "target"]);
    edge
}

fn settings() -> Value {
    let mut settings = open(SETTINGS, |key| match key {
        "failureMode" => json!({ "enum": FAILURE_MODES.map(|(word, _)| word) }),
        "timeout" => json!({ "type": "number", "minimum": 1 }),
        "maxParallel" => json!({ "type": "integer", "minimum": 1, "maximum": 100_000 }),
        _ => retry_schema(),
    });
    settings["additionalProperties"] = json!(false);
    settings
}

/// Returns the schema of a retry policy, wherever one is written.
#[must_use]
pub fn retry_schema() -> Value {
    let mut retry = open(RETRY, |key| match key {
        "backoffStrategy" => json!({ "type": "string", "enum": BACKOFFS.map(|(word, _)| word) }),
        "retryableErrors" => json!({ "type": "array", "items": { "type": "string" } }),
        _ => json!({ "type": "number", "minimum": 0 }),
    });
    retry["additionalProperties"] = json!(false);
    retry
}

fn open(keys: &[Key], value: impl Fn(&str) -> Value) -> Value {
    let property = |key: &Key| (key.name.to_owned(), described(value(key.name), key.about));
    json!({ "type": "object", "properties": keys.iter().map(property).collect::<Map<_, _>>() })
}

fn described(mut schema: Value, about: &str) -> Value {
    schema["description"] = json!(about);
    schema
}

fn object(fields: &[Field]) -> Value {
    let property = |field: &Field| (field.name.to_owned(), described(shape(field.shape), field.about));
    let needed: Vec<&str> = fields.iter().filter(|field| field.needed).map(|field| field.name).collect();
    let mut schema = json!({
        "type": "object",
        "properties": fields.iter().map(property).collect::<Map<_, _>>(),
        "additionalProperties": false,
    });
    if !needed.is_empty() {
        schema["required"] = json!(needed);
    }
    schema
}

fn shape(shape: Shape) -> Value {
    match shape {
        Shape::Any => json!({}),
        Shape::Text | Shape::Code => json!({ "type": "string" }),
        Shape::Expression => json!({ "type": ["string", "boolean"] }),
        Shape::Values => json!({ "type": ["array", "string", "number"] }),
        Shape::Whole(from, to) => json!({ "type": ["integer", "string"], "minimum": from, "maximum": to }),
        Shape::Number(from, to) => json!({ "type": ["number", "string"], "minimum": from, "maximum": to }),
        Shape::Flag => json!({ "type": "boolean" }),
        Shape::Duration => json!({ "type": ["number", "string"], "examples": [30, "500ms", "2m"] }),
        Shape::Choice(words) => json!({ "enum": words }),
        Shape::Pairs => json!({ "anyOf": [
            { "type": "object" },
            { "type": "array", "items": { "type": "object", "properties": { "key": { "type": "string" }, "value": {} } } },
        ] }),
        Shape::Map => json!({ "type": "object" }),
        Shape::Texts => json!({ "type": "array", "items": { "type": "string" } }),
        Shape::Variables => json!({ "type": ["array", "object"] }),
        Shape::Secret | Shape::Schema => json!({ "type": ["string", "object"] }),
        Shape::Object(fields) => object(fields),
        Shape::Items(fields) => json!({ "type": "array", "items": object(fields) }),
    }
}
