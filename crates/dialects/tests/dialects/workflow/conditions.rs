//! Evaluation of conditions.

use super::workflow;
use crate::compiled::net;
use serde_json::{Value, json};
use windlass_kernel::net::Work;

/// Result of a conditional for these inputs.
fn evaluated(config: &Value, inputs: &Value) -> Value {
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
    let result = evaluated(&json!({ "conditions": conditions }), &json!({ "v": variable }));
    assert_eq!(result["result"], result["conditions"]["q"]);
    assert_eq!(result["matched"] == "q", result["result"] == true);
    result["result"].as_bool().unwrap_or_else(|| panic!("{result}"))
}

/// Pairs of values, and the operators that hold for each.
const PAIRS: [(&str, &str, &str); 44] = [
    // Numbers and texts of numbers are numbers.
    ("10", "9", "ne gt gte nc"),
    (r#""10""#, "9", "ne gt gte nc"),
    ("10", r#""9""#, "ne gt gte nc"),
    (r#""10""#, r#""9""#, "ne gt gte nc"),
    (r#""9""#, r#""10""#, "ne lt lte nc"),
    ("9", r#""10""#, "ne lt lte nc"),
    ("10", "10", "eq gte lte nc"),
    (r#""10""#, "10", "eq gte lte co sw ew re"),
    ("10", r#""10""#, "eq gte lte nc"),
    (r#""10""#, r#""10""#, "eq gte lte co sw ew re"),
    (r#"" 10 ""#, "10", "eq gte lte co re"),
    ("9.5", "9", "ne gt gte nc"),
    (r#""9.50""#, r#""9.5""#, "eq gte lte co sw re"),
    (r#""1e1""#, "10", "eq gte lte nc"),
    ("-1", r#""-2""#, "ne gt gte nc"),
    // What JSON would not write is no number.
    (r#""007""#, r#""7""#, "ne lt lte co ew re"),
    (r#""007""#, "7", "ne co ew re"),
    (
        r#""12345678901234567890123456789012345678901""#,
        r#""12345678901234567890123456789012345678902""#,
        "ne lt lte nc",
    ),
    // A string that is not a number cannot be ordered with a number.
    (r#""abc""#, "9", "ne nc"),
    ("9", r#""abc""#, "ne nc"),
    (r#""abc""#, r#""9""#, "ne gt gte nc"),
    (r#""abc""#, r#""abd""#, "ne lt lte nc"),
    (r#""stern""#, r#""ste""#, "ne gt gte co sw re"),
    (r#""stern""#, r#""rn""#, "ne gt gte co ew re"),
    (r#""order-42""#, r#""^order-\\d+$""#, "ne gt gte nc re"),
    // Booleans are equal or not.
    ("true", "true", "eq nc"),
    (r#""true""#, "true", "eq co sw ew re"),
    ("true", r#""true""#, "eq nc"),
    (r#""false""#, "true", "ne nc"),
    ("true", "1", "ne nc"),
    ("true", r#""yes""#, "ne nc"),
    // Lists and maps hold what they hold, by its meaning.
    (r#"["a", "10"]"#, "10", "ne co"),
    ("[1, 10]", r#""10""#, "ne co"),
    ("[1, 10]", r#""1""#, "ne co"),
    (r#"["abc"]"#, r#""b""#, "ne nc"),
    (r#"{"k": 1}"#, r#""k""#, "ne co"),
    (r#"{"k": 1}"#, r#"{"k": 1}"#, "eq nc"),
    ("[1, [2]]", "[1, [2]]", "eq nc"),
    ("[]", r#""x""#, "ne nc em"),
    ("{}", r#""x""#, "ne nc em"),
    // What is missing or nothing.
    ("null", "1", "ne nc em"),
    ("null", r#""null""#, "ne nc em"),
    (r#""""#, r#""x""#, "ne lt lte nc em"),
    ("0", r#""x""#, "ne nc"),
];

#[test]
fn every_operator_compares_what_it_is_given() {
    let shorts = [
        ("equals", "eq"),
        ("not_equals", "ne"),
        ("greater_than", "gt"),
        ("less_than", "lt"),
        ("gte", "gte"),
        ("lte", "lte"),
        ("contains", "co"),
        ("not_contains", "nc"),
        ("starts_with", "sw"),
        ("ends_with", "ew"),
        ("is_empty", "em"),
        ("regex_match", "re"),
    ];
    let json =
        |text: &str| serde_json::from_str::<Value>(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    for (variable, value, expected) in PAIRS {
        let (variable, value) = (json(variable), json(value));
        let asked = |(operator, _): &&(&str, &str)| holds(operator, variable.clone(), value.clone());
        let holding: Vec<&str> = shorts.iter().filter(asked).map(|(_, short)| *short).collect();
        assert_eq!(holding.join(" "), expected, "{variable} and {value}");
        assert_ne!(
            holds("is_empty", variable.clone(), Value::Null),
            holds("is_not_empty", variable.clone(), Value::Null),
            "{variable}"
        );
    }
    assert!(
        holds("equals", json!("50% } {\n"), json!("50% } {\n")),
        "texts with signs of templates are texts"
    );
    assert!(holds("equals", json!(3), json!("{{ inputs.v }}")), "a value may be an expression");
    assert!(holds("equals", json!("3"), json!("{{ 1 + 2 }}")), "which is compared by its meaning, too");
    assert!(holds("equals", Value::Null, Value::Null), "nothing is nothing");
}

#[test]
fn what_is_missing_satisfies_nothing_but_its_emptiness() {
    let conditions = operators().map(
        |operator| json!({ "id": operator, "variable": "inputs.none", "operator": operator, "value": "x" }),
    );
    let result = evaluated(&json!({ "conditions": conditions.collect::<Vec<_>>() }), &json!({}));
    let holding: Vec<&String> = result["conditions"]
        .as_object()
        .expect("a map")
        .iter()
        .filter(|(_, is)| **is == true)
        .map(|(id, _)| id)
        .collect();
    assert_eq!(holding, ["not_equals", "not_contains", "is_empty"]);
}

fn operators() -> impl Iterator<Item = &'static str> {
    [
        "equals",
        "not_equals",
        "greater_than",
        "less_than",
        "gte",
        "lte",
        "contains",
        "not_contains",
        "starts_with",
        "ends_with",
        "is_empty",
        "is_not_empty",
        "regex_match",
    ]
    .into_iter()
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
    let check = |mode: &str, inputs: Value, expected: bool, branch: &str| {
        let result = evaluated(&config(mode), &inputs);
        let found = (&result["result"], &result["branch"]);
        assert_eq!(found, (&json!(expected), &json!(branch)), "{mode} {inputs}");
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
