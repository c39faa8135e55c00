//! Loops in loops, and workflows in workflows.

use crate::executions::{finish, get};
use crate::rig::{Place, Server};
use serde_json::{Value, json};

fn shell(id: &str, command: &str) -> Value {
    json!({ "id": id, "type": "shell", "config": { "command": command } })
}

fn each(id: &str, items: &str, name: Option<&str>) -> Value {
    let mut config = json!({ "loopType": "for_each", "dataSource": items, "parallelExecution": true });
    if let Some(name) = name {
        config["iteratorVariable"] = json!(name);
    }
    json!({ "id": id, "type": "loop", "config": config })
}

fn edge(source: &str, target: &str, handle: Option<&str>) -> Value {
    json!({ "source": source, "target": target, "sourceHandle": handle })
}

/// Runs a workflow; returns the results of the innermost node, row by row.
fn ran(server: &Server, name: &str, nodes: Value, edges: Value) -> Value {
    let workflow = server.define(&json!({ "name": name, "nodes": nodes, "edges": edges }).to_string());
    let rows = json!([{ "name": "a", "cells": [1, 2] }, { "name": "b", "cells": [3] }]);
    let answer = finish(server, &workflow, json!({ "rows": rows, "row": "an input" }));
    assert_eq!(answer["status"], "completed", "{answer}");
    let whole = get(server, answer["executionId"].as_str().unwrap(), "");
    let entries = whole["nodeExecutions"].as_array().unwrap();
    let outer = entries.iter().find(|entry| entry["nodeId"] == "rows").unwrap();
    let cell = |cell: &Value| cell["stdout"].clone();
    let row = |row: &Value| -> Value { row["results"].as_array().unwrap().iter().map(cell).collect() };
    outer["output"]["results"].as_array().unwrap_or_else(|| panic!("{whole}")).iter().map(row).collect()
}

#[test]
fn the_body_of_an_inner_loop_sees_the_items_of_all_loops_around_it() {
    let place = Place::new();
    let server = place.serve();
    let edges = || {
        json!([
            edge("rows", "cells", Some("body")),
            edge("cells", "big", Some("body")),
            edge("big", "say", Some("true")),
            edge("big", "say", Some("false")),
        ])
    };
    // By their names: the innermost of a name is meant, and a loop hides an input.
    let nodes = json!([
        each("rows", "{{ inputs.rows }}", Some("row")),
        each("cells", "{{ row.cells }}", Some("cell")),
        { "id": "big", "type": "conditional", "config": { "conditions": [
            { "id": "b", "variable": "row.name", "operator": "equals", "value": "b" }] } },
        shell("say", "printf '%s' {{ row.name }}{{ cell }}{{ big.result }}"),
    ]);
    assert_eq!(ran(&server, "named", nodes, edges()), json!([["a1false", "a2false"], ["b3true"]]));
    // By the loops, where both call it the same.
    let condition =
        json!({ "id": "b", "variable": "nodes.rows.item.name", "operator": "equals", "value": "b" });
    let nodes = json!([
        each("rows", "{{ inputs.rows }}", None),
        each("cells", "{{ item.cells }}", None),
        { "id": "big", "type": "conditional", "config": { "conditions": [condition] } },
        shell("say", "printf '%s' {{ nodes.rows.item.name }}{{ nodes.rows.index }}{{ nodes[\"cells\"].index }}{{ item }}{{ big.result }}{{ nodes.rows.last }}"),
    ]);
    assert_eq!(
        ran(&server, "alike", nodes, edges()),
        json!([["a001falsefalse", "a012falsefalse"], ["b103truetrue"]])
    );
}

#[test]
fn inputs_of_a_sub_workflow_are_checked_before_it_begins() {
    let place = Place::new();
    let server = place.serve();
    let payload = json!({ "type": "object", "required": ["n"],
        "properties": { "n": { "type": "integer" }, "unit": { "type": "string", "default": "kg" } } });
    let child = json!({ "name": "Weigh", "nodes": [
        { "id": "start", "type": "trigger", "config": { "manualConfig": { "inputPayload": payload } } },
        shell("say", "printf '%s' {{ inputs.n }}{{ inputs.unit }}"),
    ], "edges": [edge("start", "say", None)] });
    let child = server.define(&child.to_string());
    let started = |inputs: Value| {
        let config = json!({ "workflowName": "Weigh", "inputs": inputs });
        let nodes = json!([{ "id": "sub", "type": "workflow", "config": config }]);
        let parent = server.define(&json!({ "name": "Parent", "nodes": nodes, "edges": [] }).to_string());
        let answer = finish(&server, &parent, json!({}));
        get(&server, answer["executionId"].as_str().unwrap(), "")["nodeExecutions"][0].clone()
    };
    for (inputs, words) in [
        (json!({ "n": "three" }), "inputs.n: \"three\" is not of type \"integer\""),
        (json!({ "unit": "g" }), "inputs: \"n\" is a required property"),
        (json!({ "n": 1, "unit": 7 }), "inputs.unit: 7 is not of type \"string\""),
    ] {
        let node = started(inputs);
        assert_eq!(
            (&node["status"], &node["error"]["code"]),
            (&json!("failed"), &json!("VALIDATION_ERROR")),
            "{node}"
        );
        let message = node["error"]["message"].as_str().unwrap();
        assert!(message.contains("do not fit `Weigh`") && message.contains(words), "{message}");
        assert_eq!(node["retryCount"].as_u64().unwrap_or(0), 0, "{node}");
    }
    let listed = |id: &str| {
        let (_, answer) = crate::rig::read_answer(server.get(&format!("/api/v1/workflows/{id}/executions")));
        answer["executions"].as_array().unwrap().len()
    };
    assert_eq!(listed(&child), 0, "none was begun");
    let node = started(json!({ "n": 3 }));
    assert_eq!(node["output"]["stdout"], "3kg", "{node}");
    assert_eq!(listed(&child), 1);
}
