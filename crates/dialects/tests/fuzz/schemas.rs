//! Random JSON Schemas: every keyword that the bounds know, references into any direction, patterns of any shape.

use crate::random::Random;
use serde_json::{Map, Value, json};
use windlass_schemas::Schema;

const NAMES: [&str; 5] = ["a", "b", "x", "left", "$ref"];
const TYPES: [&str; 7] = ["null", "boolean", "integer", "number", "string", "array", "object"];
const PATTERNS: [&str; 9] =
    ["^a", "^(a+)+$", "(a|aa)*b", "[", "(?=a)b", r"(a)\1", "((a{50}){50}){50}", r"\d{1,9}$", "\\p{L}+"];
const FORMATS: [&str; 6] = ["email", "uri", "regex", "date-time", "ipv6", "unknown"];
const ONE: [&str; 10] = [
    "not",
    "if",
    "then",
    "else",
    "items",
    "contains",
    "additionalProperties",
    "propertyNames",
    "unevaluatedProperties",
    "unevaluatedItems",
];
const MANY: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];
const NAMED: [&str; 3] = ["properties", "patternProperties", "dependentSchemas"];

/// A schema with definitions that refer to each other.
pub fn schema(random: &mut Random) -> Value {
    let definitions = 1 + random.below(12);
    let mut schema = part(random, 4, definitions);
    let named = (0..definitions).map(|n| (format!("d{n}"), part(random, 3, definitions)));
    let named: Map<String, Value> = named.collect();
    if let Value::Object(fields) = &mut schema {
        fields.insert("$defs".to_owned(), Value::Object(named));
    }
    schema
}

/// Returns whether the schema is usable. A value is checked within its steps, for every schema and value.
pub fn survives(schema: &Value, value: &Value) -> bool {
    let Ok(schema) = Schema::new(schema) else { return false };
    if let Err(misfits) = schema.validate(value) {
        assert!(!misfits.is_empty());
        assert!(misfits.iter().all(|misfit| misfit.message.chars().count() <= 301));
    }
    // A chain of one key enters every recursion as deep as a body may.
    let deep = (0..60).fold(value.clone(), |inner, _| json!({ "x": inner, "a": [long_text()] }));
    let _ = schema.validate(&deep);
    true
}

fn long_text() -> Value {
    json!("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!")
}

fn part(random: &mut Random, depth: usize, definitions: usize) -> Value {
    if depth == 0 || random.below(8) == 0 {
        return match random.below(3) {
            0 => json!(true),
            1 => json!({ "type": random.one(&TYPES) }),
            _ => json!({ "$ref": reference(random, definitions) }),
        };
    }
    let mut fields = Map::new();
    for _ in 0..1 + random.below(3) {
        let (key, value) = keyword(random, depth, definitions);
        fields.insert(key.to_owned(), value);
    }
    Value::Object(fields)
}

fn keyword(random: &mut Random, depth: usize, definitions: usize) -> (&'static str, Value) {
    let parts = |random: &mut Random| -> Vec<Value> {
        (0..1 + random.below(3)).map(|_| part(random, depth - 1, definitions)).collect()
    };
    match random.below(12) {
        0 => ("$ref", json!(reference(random, definitions))),
        1 => ("type", json!(random.one(&TYPES))),
        2 => ("pattern", json!(random.one(&PATTERNS))),
        3 => ("format", json!(random.one(&FORMATS))),
        4 => ("enum", json!([1, "a", null, { "x": [] }])),
        5 => ("uniqueItems", json!(true)),
        6 | 7 => (random.one(&ONE), part(random, depth - 1, definitions)),
        8 | 9 => (random.one(&MANY), Value::Array(parts(random))),
        _ => {
            let key = random.one(&NAMED);
            let names = if key == "patternProperties" { &PATTERNS[..3] } else { &NAMES[..] };
            let parts = parts(random);
            let named = parts.into_iter().map(|part| (random.one(names).to_owned(), part));
            (key, Value::Object(named.collect()))
        }
    }
}

/// Usually one that leads somewhere, and mostly to a later definition: so not every schema has a cycle.
fn reference(random: &mut Random, definitions: usize) -> String {
    match random.below(20) {
        0 => "#".to_owned(),
        1 => "#/$defs/none".to_owned(),
        2 => "https://example.com/s.json".to_owned(),
        3 => "#/$defs/d0/allOf/0".to_owned(),
        _ => format!("#/$defs/d{}", random.below(definitions)),
    }
}
