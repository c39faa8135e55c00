//! A caller who may start a workflow, and wants to get past its approval.

use crate::rig::{read_answer, until};
use crate::stage::Stage;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

const MODES: [&str; 3] = ["fail_fast", "continue_on_error", "collect_errors"];

fn member(stage: &Stage) -> String {
    let (status, made) = stage.server.post("/api/v1/tokens", &json!({ "name": "m", "role": "member" }));
    assert_eq!(status, StatusCode::CREATED, "{made}");
    made["token"].as_str().unwrap().to_owned()
}

/// A workflow that asks before it ships, on a plain edge.
fn asks(name: &str, settings: &Value, approval: &Value) -> String {
    json!({ "name": name, "settings": settings, "nodes": [
        { "id": "t", "type": "trigger" },
        { "id": "good", "type": "delay", "config": { "duration": 0 } },
        { "id": "ask", "type": "approval", "config": approval },
        { "id": "ship", "type": "delay", "config": { "duration": 0 } } ],
        "edges": [{ "id": "1", "source": "t", "target": "good" }, { "id": "2", "source": "good", "target": "ask" },
            { "id": "3", "source": "ask", "target": "ship" }] })
    .to_string()
}

fn start(stage: &Stage, token: &str, workflow: &str, options: &Value) -> (StatusCode, Value) {
    let body = json!({ "options": options });
    stage.send(token, Method::POST, &format!("/api/v1/workflows/{workflow}/execute"), &body)
}

fn started(stage: &Stage, token: &str, workflow: &str, options: &Value) -> String {
    let (status, started) = start(stage, token, workflow, options);
    assert_eq!(status, StatusCode::ACCEPTED, "{started}");
    started["executionId"].as_str().unwrap().to_owned()
}

/// The execution, when it has one of these states.
fn when(stage: &Stage, id: &str, states: &[&str]) -> Value {
    until(&format!("{id} is {states:?}"), || {
        let (_, now) = read_answer(stage.server.get(&format!("/api/v1/executions/{id}")));
        states.iter().any(|state| now["status"] == *state).then_some(now)
    })
}

fn reject(stage: &Stage, id: &str) {
    when(stage, id, &["paused"]);
    let path = format!("/api/v1/executions/{id}/actions/ask/complete");
    let (status, answer) = stage.server.post(&path, &json!({ "outcome": "Failed" }));
    assert_eq!(status, StatusCode::OK, "{answer}");
}

fn node<'e>(ended: &'e Value, node: &str) -> &'e Value {
    let entries = ended["nodeExecutions"].as_array().unwrap();
    &entries.iter().find(|entry| entry["nodeId"] == node).unwrap_or_else(|| panic!("{ended}"))["status"]
}

const ENDS: [&str; 3] = ["failed", "partial_success", "completed"];

#[test]
fn a_rejection_takes_no_plain_edge_in_any_mode_of_the_caller() {
    let stage = Stage::new();
    let token = member(&stage);
    let workflow = stage.server.define(&asks("release", &json!({}), &json!({})));
    for mode in MODES {
        let id = started(&stage, &token, &workflow, &json!({ "failureMode": mode }));
        reject(&stage, &id);
        let ended = when(&stage, &id, &ENDS);
        assert_ne!(node(&ended, "ship"), "completed", "{mode}: {ended}");
        assert_ne!(ended["status"], "completed", "{mode}");
    }
}

#[test]
fn an_approval_without_an_answer_takes_no_plain_edge_either() {
    let stage = Stage::new();
    let token = member(&stage);
    let workflow = stage.server.define(&asks("release", &json!({}), &json!({ "timeout": "100ms" })));
    for mode in MODES {
        let id = started(&stage, &token, &workflow, &json!({ "failureMode": mode }));
        let ended = when(&stage, &id, &ENDS);
        assert_ne!(node(&ended, "ship"), "completed", "{mode}: {ended}");
    }
}

#[test]
fn a_rejection_in_a_sub_workflow_does_not_pass_in_the_one_that_started_it() {
    let stage = Stage::new();
    let token = member(&stage);
    stage.server.define(&asks("release", &json!({}), &json!({})));
    let parent = json!({ "name": "parent", "nodes": [
        { "id": "t", "type": "trigger" },
        { "id": "sub", "type": "workflow", "config": { "workflowName": "release" } },
        { "id": "ship", "type": "delay", "config": { "duration": 0 } } ],
        "edges": [{ "id": "1", "source": "t", "target": "sub" }, { "id": "2", "source": "sub", "target": "ship" }] });
    let workflow = stage.server.define(&parent.to_string());
    let id = started(&stage, &token, &workflow, &json!({ "failureMode": "collect_errors" }));
    let child = until("the sub-workflow asks", || {
        let (_, listed) = read_answer(stage.server.get("/api/v1/executions?status=paused"));
        let found = listed["executions"].as_array()?.iter().find(|one| one["executionId"] != id.as_str())?;
        Some(found["executionId"].as_str()?.to_owned())
    });
    reject(&stage, &child);
    let ended = when(&stage, &id, &ENDS);
    assert_ne!(node(&ended, "ship"), "completed", "{ended}");
}

#[test]
fn a_member_cannot_weaken_the_failure_mode_that_the_workflow_sets() {
    let stage = Stage::new();
    let token = member(&stage);
    let plain = |name: &str, settings: Value| {
        json!({ "name": name, "settings": settings, "nodes": [{ "id": "t", "type": "trigger" }] }).to_string()
    };
    for (place, own) in MODES.iter().enumerate() {
        let workflow = stage.server.define(&plain(own, json!({ "failureMode": own })));
        for (asked_place, asked) in MODES.iter().enumerate() {
            let (status, answer) = start(&stage, &token, &workflow, &json!({ "failureMode": asked }));
            let expected = if asked_place > place { StatusCode::FORBIDDEN } else { StatusCode::ACCEPTED };
            assert_eq!(status, expected, "{own} {asked}: {answer}");
            let dry = start(&stage, &token, &workflow, &json!({ "failureMode": asked, "dryRun": true })).0;
            assert_eq!(dry == StatusCode::FORBIDDEN, expected == StatusCode::FORBIDDEN, "{own} {asked}");
            let owner = stage.server.token();
            assert_eq!(
                start(&stage, owner, &workflow, &json!({ "failureMode": asked })).0,
                StatusCode::ACCEPTED
            );
        }
    }
    let silent = stage.server.define(&plain("silent", json!({})));
    assert_eq!(
        start(&stage, &token, &silent, &json!({ "failureMode": "collect_errors" })).0,
        StatusCode::ACCEPTED
    );
}

#[test]
fn an_approval_is_not_used_for_inputs_that_it_was_not_given_for() {
    let stage = Stage::new();
    let token = member(&stage);
    let workflow = stage.server.define(&asks("pay", &json!({}), &json!({ "message": "Pay?" })));
    let id = started(&stage, &token, &workflow, &json!({}));
    reject(&stage, &id);
    when(&stage, &id, &ENDS);
    let path = format!("/api/v1/executions/{id}/retry");
    let (status, refused) =
        stage.send(&token, Method::POST, &path, &json!({ "fromNode": "ship", "inputs": { "x": 9 } }));
    assert_eq!(status, StatusCode::FORBIDDEN, "{refused}");
    let (status, again) = stage.send(&token, Method::POST, &path, &json!({}));
    assert_eq!(status, StatusCode::ACCEPTED, "{again}");
}
