//! The language as a JSON Schema, for editors. It refuses nothing that the parser accepts; the parser also checks
//! other rules, such as the order of the actions.

use super::language::{
    ACTION, COMPENSATION, COMPLETION_MODES, CONSTRAINT, POLICY, PORT_FAMILIES, RETRY, ROOT, TIERS,
};
use super::policy::KINDS;
use crate::adapters::section_schema;
use crate::key_schema::{closed, reference};
use serde_json::{Value, json};

/// Returns the JSON Schema 2020-12 of workflows of actions.
pub(crate) fn schema() -> Value {
    let mut schema = closed(ROOT, root);
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    schema["title"] = json!("Workflow of actions");
    schema["description"] =
        json!("A Windlass workflow of actions: operations with approvals, retries and compensation.");
    schema["required"] = json!(["schemaVersion", "workflowId", "name", "actions"]);
    let mut action = closed(ACTION, action);
    action["required"] = json!(["actionId", "order"]);
    action["anyOf"] = json!([{ "required": ["operation"] }, { "required": ["capability"] }]);
    let mut compensation = closed(COMPENSATION, compensation);
    compensation["required"] = json!(["compensationOperation"]);
    let mut constraint = closed(CONSTRAINT, constraint);
    constraint["required"] = json!(["kind"]);
    schema["$defs"] = json!({
        "action": action,
        "compensation": compensation,
        "constraint": constraint,
        "retryPolicy": closed(RETRY, retry),
        "policy": closed(POLICY, |_| json!({ "type": ["array", "null"], "items": { "$ref": "#/$defs/constraint" } })),
    });
    schema
}

fn root(key: &str) -> Value {
    match key {
        "schemaVersion" => json!({ "enum": [1, 2] }),
        "workflowId" => text(100),
        "name" => text(255),
        "workspaceId" => optional_text(255),
        "description" => json!({ "type": ["string", "null"] }),
        "version" => number(),
        "active" => json!({ "type": ["boolean", "null"] }),
        "executionTier" => words(TIERS.iter().map(|(word, _)| *word)),
        "timeoutMs" => number(),
        "inputs" => json!({ "type": ["object", "string", "null"] }),
        "policy" => reference("policy"),
        "adapters" => json!({ "anyOf": [section_schema(), { "type": "null" }] }),
        "actions" => json!({ "type": "array", "minItems": 1, "items": { "$ref": "#/$defs/action" } }),
        _ => json!({}),
    }
}

fn action(key: &str) -> Value {
    match key {
        "actionId" => json!({ "type": "string", "maxLength": 100, "pattern": "^[^:\\s]+$" }),
        "order" => json!({ "type": "integer", "minimum": 1 }),
        "portFamily" => words(PORT_FAMILIES.iter().map(|family| family.name)),
        "operation" | "capability" => json!({ "type": ["string", "null"], "pattern": ENTITY_VERB }),
        "description" | "inputSchemaRef" | "outputSchemaRef" => json!({ "type": ["string", "null"] }),
        "executionTierOverride" => words(TIERS.iter().map(|(word, _)| *word)),
        "input" => json!({ "type": ["object", "null"] }),
        "dependsOn" => {
            json!({ "type": ["array", "null"], "items": { "type": "string" }, "uniqueItems": true })
        }
        "retryPolicy" => reference("retryPolicy"),
        "timeoutMs" | "completionDeadlineMs" => number(),
        "completionMode" => words(COMPLETION_MODES.iter().map(|(word, _)| *word)),
        "sideEffecting" => json!({ "type": ["boolean", "null"] }),
        "compensation" => reference("compensation"),
        _ => json!({}),
    }
}

fn compensation(key: &str) -> Value {
    match key {
        "compensationOperation" => json!({ "type": "string", "pattern": ENTITY_VERB }),
        "compensationInput" => json!({ "type": ["object", "null"] }),
        "compensationInputSchema" => json!({ "type": ["object", "string", "null"] }),
        "timeoutMs" => number(),
        "retryPolicy" => reference("retryPolicy"),
        _ => json!({}),
    }
}

fn retry(key: &str) -> Value {
    match key {
        "maxAttempts" => json!({ "type": ["integer", "string", "null"], "minimum": 1, "maximum": 10 }),
        "retryableErrors" => json!({ "type": ["array", "null"], "items": { "type": "string" } }),
        _ => number(),
    }
}

fn constraint(key: &str) -> Value {
    match key {
        "kind" => json!({ "enum": KINDS }),
        "minimumApprovers" => number(),
        "dutyKeys" | "requiredRoles" => json!({ "type": ["array", "null"], "items": { "type": "string" } }),
        _ => json!({ "type": ["string", "null"] }),
    }
}

const ENTITY_VERB: &str = "^[^:\\s]+:[^:\\s]+$";

fn text(max: usize) -> Value {
    json!({ "type": "string", "minLength": 1, "maxLength": max })
}

fn optional_text(max: usize) -> Value {
    json!({ "type": ["string", "null"], "maxLength": max })
}

/// Returns the schema of a number: the parser reads a text of digits as one.
fn number() -> Value {
    json!({ "type": ["number", "string", "null"], "minimum": 0 })
}

fn words<'w>(words: impl Iterator<Item = &'w str>) -> Value {
    let words: Vec<Value> = words.map(Value::from).chain([Value::Null]).collect();
    json!({ "enum": words })
}
