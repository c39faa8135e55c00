//! Conditions, asked of values.

use super::workflow;
use crate::told::net;
use serde_json::{Value, json};
use windlass_kernel::net::Work;

/// What a conditional gives for these inputs.
fn told(config: &Value, inputs: &Value) -> Value {
    let net = net(&workflow(&[&format!("c: conditional {config}")], &[]));
    let Work::Pure { output: Some(output), .. } = &net.spec().steps[0].work else {
        panic!("it needs no worker")
    };
    let scope = json!({ "inputs": inputs }).as_object().cloned().expect("a map");
    output.render(&scope).unwrap_or_else(|error| panic!("{error}: {:?}", output.source()))
}

fn holds(operator: &str, variable: Value, value: Value) -> bool {
    let conditions =
        json!([{ "id": "q", "variable": "{{ inputs.v }}", "operator": operator, "value": value }]);
    let told = told(&json!({ "conditions": conditions }), &json!({ "v": variable }));
    assert_eq!(told["result"], told["conditions"]["q"]);
    assert_eq!(told["matched"] == "q", told["result"] == true);
    told["result"].as_bool().unwrap_or_else(|| panic!("{told}"))
}

#[test]
fn every_operator_compares_what_it_is_given() {
    let cases = [
        ("equals", json!(5), json!(5), true),
        ("equals", json!(5), json!("5"), true),
        ("equals", json!("5"), json!("5"), true),
        ("equals", json!("x"), json!("5"), false),
        ("equals", json!(true), json!("true"), true),
        ("equals", json!(null), json!("5"), false),
        ("equals", json!({ "a": [1] }), json!({ "a": [1] }), true),
        ("not_equals", json!("a"), json!("b"), true),
        ("not_equals", json!(5), json!("5"), false),
        ("greater_than", json!(11), json!("10"), true),
        ("greater_than", json!(9), json!("10"), false),
        ("greater_than", json!(9.5), json!(9), true),
        ("greater_than", json!(null), json!(1), false),
        ("less_than", json!(9), json!(10), true),
        ("less_than", json!("abc"), json!("abd"), true),
        ("gte", json!(10), json!("10"), true),
        ("lte", json!(10), json!(9), false),
        ("contains", json!("stern"), json!("ter"), true),
        ("contains", json!(["a", "b"]), json!("b"), true),
        ("contains", json!([1, 2]), json!("2"), true),
        ("contains", json!({ "k": 1 }), json!("k"), true),
        ("contains", json!(null), json!("k"), false),
        ("not_contains", json!(["a"]), json!("b"), true),
        ("starts_with", json!("bow"), json!("bo"), true),
        ("starts_with", json!(7), json!("7"), false),
        ("ends_with", json!("bow"), json!("ow"), true),
        ("is_empty", json!(""), json!(null), true),
        ("is_empty", json!([]), json!(null), true),
        ("is_empty", json!(null), json!(null), true),
        ("is_empty", json!(0), json!(null), false),
        ("is_not_empty", json!([1]), json!(null), true),
        ("is_not_empty", json!({}), json!(null), false),
        ("regex_match", json!("order-42"), json!("^order-\\d+$"), true),
        ("regex_match", json!("order-x"), json!("^order-\\d+$"), false),
        ("regex_match", json!(42), json!("4"), false),
    ];
    for (operator, variable, value, expected) in cases {
        assert_eq!(
            holds(operator, variable.clone(), value.clone()),
            expected,
            "{variable} {operator} {value}"
        );
    }
    assert!(
        holds("equals", json!("50% } {\n"), json!("50% } {\n")),
        "texts with signs of templates are texts"
    );
    assert!(holds("equals", json!(3), json!("{{ inputs.v }}")), "a value may be an expression");
}

#[test]
fn modes_join_conditions_and_the_first_that_holds_is_the_branch() {
    let config = |mode: &str| {
        json!({
            "conditions": [
                { "id": "a", "variable": "inputs.a", "operator": "equals", "value": true },
                { "id": "b", "variable": "inputs.b", "operator": "equals", "value": true, "logicGate": "OR" },
                { "id": "c", "variable": "inputs.c", "operator": "equals", "value": true, "logicGate": "AND" },
            ],
            "evaluationMode": mode, "defaultBranch": "none of them",
        })
    };
    let check = |mode: &str, inputs: Value, result: bool, branch: &str| {
        let told = told(&config(mode), &inputs);
        assert_eq!((&told["result"], &told["branch"]), (&json!(result), &json!(branch)), "{mode} {inputs}");
    };
    check("all", json!({ "a": true, "b": true, "c": true }), true, "a");
    check("all", json!({ "b": true, "c": true }), false, "b");
    check("any", json!({ "c": true }), true, "c");
    check("any", json!({}), false, "none of them");
    // (a or b) and c
    check("custom", json!({ "a": true }), false, "a");
    check("custom", json!({ "b": true, "c": true }), true, "b");
    check("custom", json!({ "c": true }), false, "c");
}
