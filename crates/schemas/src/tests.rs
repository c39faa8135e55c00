use super::*;
use serde_json::json;

fn refused(schema: &Value, expected: &str) {
    let problem = Schema::new(schema).expect_err("the schema is refused");
    assert!(problem.message.contains(expected), "{problem:?}");
}

fn fits(schema: &Value, value: &Value) {
    let schema = Schema::new(schema).expect("the schema is usable");
    assert_eq!(schema.validate(value), Ok(()));
}

fn misfits(schema: &Value, value: &Value, expected: &str) {
    let found =
        Schema::new(schema).expect("the schema is usable").validate(value).expect_err("it does not fit");
    assert!(found.iter().any(|misfit| misfit.message.contains(expected)), "{found:?}");
}

/// Returns definitions `d0` to `dN`, each of which refers to the one before it in a form.
fn chain(levels: usize, form: impl Fn(Value) -> Value) -> Value {
    let link = |level: usize| match level {
        0 => json!({ "type": "object" }),
        _ => form(json!({ "$ref": format!("#/$defs/d{}", level - 1) })),
    };
    let definitions: Map = (0..=levels).map(|level| (format!("d{level}"), link(level))).collect();
    json!({ "$ref": format!("#/$defs/d{levels}"), "$defs": definitions })
}

type Map = serde_json::Map<String, Value>;

fn deep(levels: usize) -> Value {
    (0..levels).fold(json!({}), |inner, _| json!({ "x": inner }))
}

#[test]
fn references_that_double_at_every_level_are_refused() {
    for keyword in ["allOf", "anyOf", "oneOf"] {
        refused(&chain(20, |to| json!({ keyword: [to, to] })), "more than 5000 schemas");
        refused(&chain(45, |to| json!({ keyword: [to, to] })), "follow each other");
    }
    refused(&chain(20, |to| json!({ "if": to, "then": to, "else": to })), "more than 5000 schemas");
    refused(
        &chain(30, |to| json!({ "allOf": [to], "unevaluatedProperties": false })),
        "more than 5000 schemas",
    );
    refused(&chain(100, |to| json!({ "allOf": [to] })), "follow each other");
}

#[test]
fn a_schema_that_doubles_with_every_level_of_the_value_is_counted_with_the_value() {
    let part = json!({ "properties": { "x": { "$ref": "#/$defs/a" } } });
    let schema = json!({ "$ref": "#/$defs/a", "$defs": { "a": { "allOf": [part, part] } } });
    fits(&schema, &deep(8));
    misfits(&schema, &deep(60), "takes more than 200000 steps; simplify the schema near `/$defs/a");
}

#[test]
fn compiling_references_below_properties_is_linear() {
    let twice = |to: Value| json!({ "properties": { "x": to, "y": to } });
    fits(&chain(45, twice), &deep(40));
    let long = |to: Value| json!({ "properties": { "x": { "items": { "properties": { "x": to } } } } });
    fits(&chain(280, long), &json!({}));
}

#[test]
fn cycles_and_references_to_other_documents_are_refused() {
    refused(&json!({ "$ref": "#" }), "refers to itself");
    refused(&json!({ "$defs": { "a": { "allOf": [{ "$ref": "#/$defs/a" }] } } }), "refers to itself");
    refused(&json!({ "not": { "$ref": "#" } }), "refers to itself");
    refused(&json!({ "$ref": "https://example.com/s.json" }), "in another document");
    refused(&json!({ "$ref": "file:///etc/passwd" }), "in another document");
    refused(&json!({ "$ref": "#/$defs/none" }), "does not exist in this schema");
    refused(&json!({ "properties": { "a": { "$dynamicRef": "#a" } } }), "not supported");
    refused(
        &json!({ "properties": { "a": { "$id": "https://example.com/" } } }),
        "changes the meaning of references",
    );
    refused(&json!({ "type": 3 }), "is not valid under any of the schemas");
}

#[test]
fn recursion_that_enters_the_value_is_allowed() {
    let tree = json!({ "$id": "https://example.com/tree", "$anchor": "tree", "type": "object",
        "properties": { "id": { "type": "integer" }, "children": { "items": { "$ref": "#tree" } } } });
    fits(&tree, &json!({ "id": 1, "children": [{ "id": 2, "children": [] }, { "id": 3 }] }));
    misfits(&tree, &json!({ "children": [{ "id": "x" }] }), "is not of type \"integer\"");
    let any = json!({ "$defs": { "any": { "properties": { "left": { "$ref": "#/$defs/any" } },
        "patternProperties": { "^x": { "$ref": "#/$defs/any" } },
        "additionalProperties": { "$ref": "#/$defs/any" } } }, "$ref": "#/$defs/any" });
    fits(&any, &deep(100));
}

#[test]
fn size_depth_and_number_of_schemas_are_bounded() {
    refused(&json!({ "description": "x".repeat(BYTES_MAX) }), "bytes, more than");
    let nested = (0..40).fold(json!(true), |inner, _| json!({ "not": inner }));
    refused(&nested, "nested more than 32 deep");
    refused(&json!({ "allOf": vec![true; 5_000] }), "more than 2000 subschemas");
    let data = (0..200).fold(json!(1), |inner, _| json!([inner]));
    refused(&json!({ "const": data }), "nested more than");
}

#[test]
fn patterns_are_linear_and_small() {
    let backtracking = json!({ "type": "string", "pattern": "^(a+)+$" });
    misfits(&backtracking, &json!(format!("{}!", "a".repeat(50_000))), "does not match");
    assert!(Schema::new(&json!({ "pattern": "^(?=a)b" })).is_err(), "look-around needs backtracking");
    assert!(
        Schema::new(&json!({ "pattern": "((a{100}){100}){100}" })).is_err(),
        "the compiled pattern is too large"
    );
    let many = json!({ "allOf": vec![json!({ "pattern": "^(a|aa)+$" }); 1_000] });
    misfits(&many, &json!("a".repeat(100_000)), "more than 200000 steps");
}

#[test]
fn costly_keywords_are_charged_by_the_size_of_the_value() {
    let numbers: Vec<u32> = (0..1_000).collect();
    let unique = json!({ "allOf": vec![json!({ "uniqueItems": true }); 500] });
    misfits(&unique, &json!(numbers), "more than 200000 steps");
    let listed = json!({ "items": { "enum": numbers } });
    misfits(&listed, &json!(vec![7; 1_000]), "more than 200000 steps");
    fits(&listed, &json!(vec![7; 100]));
    let unevaluated = json!({ "allOf": [{ "anyOf": vec![json!({ "required": ["a"] }); 500] }],
        "unevaluatedProperties": true });
    let wide: Map = (0..500).map(|n| (format!("k{n}"), json!(n))).collect();
    misfits(&unevaluated, &Value::Object(wide), "more than 200000 steps");
}

#[test]
fn reports_are_few_and_short() {
    let schema = Schema::new(&json!({ "items": { "type": "integer" } })).unwrap();
    let found = schema.validate(&json!(vec!["x".repeat(10_000); 100])).expect_err("none fits");
    assert_eq!(found.len(), ERRORS_MAX);
    assert!(found.iter().all(|misfit| misfit.message.chars().count() <= 301), "{:?}", found[0]);
    assert_eq!(found[1].pointer, "/1");
}

#[test]
fn values_nested_too_deep_for_the_stack_are_refused() {
    let any = json!({ "additionalProperties": { "$ref": "#" } });
    misfits(&any, &deep(400), "inside each other");
}
