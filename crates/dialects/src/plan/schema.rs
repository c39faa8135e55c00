//! The language as a JSON Schema, for editors. It refuses nothing that the parser accepts; the parser sees more, such as
//! references.

use super::language::{
    ACTION, ARGS, CLUSTER, FIELD, PLAN, ROOT, ROUTING, ROUTING_LITERAL, ROUTING_REF, STEP,
};
use crate::key_schema::{closed, reference};
use serde_json::{Value, json};

/// Returns the JSON Schema 2020-12 of plans.
pub(crate) fn schema() -> Value {
    let mut plan = closed(PLAN, plan);
    plan["required"] = json!(["steps"]);
    let mut step = closed(STEP, step);
    step["required"] = json!(["id", "action"]);
    let mut field = closed(FIELD, field);
    field["required"] = json!(["name"]);
    let mut document = closed(ROOT, |_| reference("plan"));
    document["required"] = json!(["spec"]);
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Plan",
        "description": "A Windlass plan: steps whose order follows from references to their outputs.",
        "if": { "required": ["spec"] },
        "then": { "$ref": "#/$defs/document" },
        "else": { "$ref": "#/$defs/plan" },
        "$defs": {
            "document": document,
            "plan": plan,
            "step": step,
            "field": field,
            "action": closed(ACTION, action),
            "args": closed(ARGS, |_| json!({ "type": ["object", "null"] })),
            "routing": closed(ROUTING, routing),
            "cluster": closed(CLUSTER, |_| json!({ "type": ["string", "null"] })),
            "variable": { "anyOf": [{ "type": "string" }, { "$ref": "#/$defs/input" }] },
            "input": { "type": "object", "properties": { "input": { "type": "string" } }, "required": ["input"], "additionalProperties": false },
        },
    })
}

fn plan(key: &str) -> Value {
    match key {
        "params" => fields(),
        "steps" => json!({ "type": "array", "minItems": 1, "items": { "$ref": "#/$defs/step" } }),
        "output" => json!({ "type": ["object", "null"], "additionalProperties": { "type": "string" } }),
        "cluster" => reference("cluster"),
        _ => text(),
    }
}

fn step(key: &str) -> Value {
    match key {
        "id" => json!({ "type": "string", "pattern": "^[A-Za-z0-9_][A-Za-z0-9_-]*$", "maxLength": 100 }),
        "action" => json!({ "anyOf": [{ "type": "string" }, { "$ref": "#/$defs/action" }] }),
        "args" => reference("args"),
        "condition" => json!({ "type": ["string", "boolean", "null"] }),
        "routingContext" => reference("routing"),
        _ => fields(),
    }
}

fn field(key: &str) -> Value {
    match key {
        "name" => json!({ "type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$", "maxLength": 100 }),
        "required" => json!({ "type": ["boolean", "null"] }),
        "schema" => json!({ "type": ["object", "string", "null"] }),
        "metadata" => json!({ "type": ["object", "null"], "additionalProperties": { "type": "string" } }),
        _ => json!({}),
    }
}

fn action(key: &str) -> Value {
    match key {
        "params" | "outputs" => fields(),
        "revision" => json!({ "type": ["integer", "string", "null"], "minimum": 1 }),
        "timeout" => {
            json!({ "anyOf": [{ "type": ["number", "string", "null"] }, { "$ref": "#/$defs/input" }] })
        }
        "image" => json!({ "anyOf": [{ "$ref": "#/$defs/variable" }, { "type": "null" }] }),
        "env" => {
            json!({ "type": ["object", "null"], "additionalProperties": { "$ref": "#/$defs/variable" } })
        }
        _ => text(),
    }
}

fn routing(key: &str) -> Value {
    let keys = if key == "ref" { ROUTING_REF } else { ROUTING_LITERAL };
    let mut target = closed(keys, |_| json!({ "type": "string" }));
    target["minProperties"] = json!(1);
    target["maxProperties"] = json!(1);
    json!({ "anyOf": [target, { "type": "null" }] })
}

fn fields() -> Value {
    json!({ "type": ["array", "null"], "items": { "$ref": "#/$defs/field" } })
}

fn text() -> Value {
    json!({ "type": ["string", "null"] })
}
