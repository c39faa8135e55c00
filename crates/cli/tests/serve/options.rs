//! Options and inputs of a start over HTTP.

use crate::executions::{start, until};
use crate::rig::{Place, Server};
use serde_json::{Value, json};

/// Registers a workflow with a trigger `t`.
fn define(server: &Server, name: &str, nodes: &[Value], edges: &[Value]) -> String {
    let nodes = [&[json!({ "id": "t", "type": "trigger", "config": {} })], nodes].concat();
    server.define(&json!({ "name": name, "nodes": nodes, "edges": edges }).to_string())
}

#[test]
fn wfl_15_a_starts_retry_policy_holds_for_nodes_without_their_own() {
    let place = Place::new().variable("WINDLASS_EGRESS_ALLOW", "127.0.0.1");
    let server = place.serve();
    let edges = [json!({ "source": "t", "target": "x" })];
    let node = json!({ "id": "x", "type": "http_api", "config": { "url": "http://127.0.0.1:1/" } });
    let id = define(&server, "tries", &[node], &edges);
    let policy = json!({ "maxRetries": 2, "initialDelayMs": 1, "maxDelayMs": 2, "backoffStrategy": "fixed" });
    let execution = start(&server, &id, json!({ "retryPolicy": policy }));
    let failed = until(&server, &execution, "failed");
    let entries = failed["nodeExecutions"].as_array().unwrap();
    let x = entries.iter().find(|entry| entry["nodeId"] == "x").unwrap();
    assert_eq!(x["retryCount"], 2, "{failed}");
    let none = start(&server, &id, json!({ "retryPolicy": { "maxRetries": 0 } }));
    let failed = until(&server, &none, "failed");
    assert_eq!(failed["nodeExecutions"].as_array().unwrap().last().unwrap()["retryCount"], 0);
}

#[test]
fn wfl_25_wfl_36_a_starts_failure_mode_decides_the_end() {
    let place = Place::new();
    let server = place.serve();
    let nodes = [
        json!({ "id": "bad", "type": "shell", "config": { "command": "exit 1", "retryPolicy": { "maxRetries": 0 } } }),
        json!({ "id": "good", "type": "shell", "config": { "command": "sleep 0.3" } }),
    ];
    let edges = [json!({ "source": "t", "target": "bad" }), json!({ "source": "t", "target": "good" })];
    let id = define(&server, "modes", &nodes, &edges);
    let ended = |mode: &str, status: &str| {
        until(&server, &start(&server, &id, json!({ "failureMode": mode })), status)
    };
    ended("fail_fast", "failed");
    ended("continue_on_error", "partial_success");
    ended("collect_errors", "partial_success");
}

#[test]
fn inputs_are_checked_against_the_triggers_schema() {
    let place = Place::new();
    let server = place.serve();
    let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] });
    let trigger =
        json!({ "id": "t", "type": "trigger", "config": { "manualConfig": { "inputPayload": schema } } });
    let id = server.define(&json!({ "name": "checked", "nodes": [trigger], "edges": [] }).to_string());
    let path = format!("/api/v1/workflows/{id}/execute");
    let (status, body) = server.post(&path, &json!({ "inputs": { "n": "one" } }));
    assert_eq!((status.as_u16(), &body["error"]["details"][0]["path"]), (400, &json!("inputs.n")), "{body}");
    let (status, body) = server.post(&path, &json!({ "inputs": {}, "options": { "dryRun": true } }));
    assert_eq!((status.as_u16(), &body["valid"]), (200, &json!(false)), "{body}");
    assert_eq!(server.post(&path, &json!({ "inputs": { "n": 1 } })).0, 202);
}
