//! Input and decisions of an agent: nodes that run, are skipped, wait for a person or give up.

use crate::executions::{finish, get, start, until};
use crate::model::{Asked, Model, Reply, calls, text};
use crate::rig::{Place, Server};
use serde_json::{Value, json};

fn place() -> Place {
    Place::new().variable("WINDLASS_EGRESS_ALLOW", "127.0.0.1")
}

/// An agent after a node, with one node to run.
fn define(server: &Server, model: &Model) -> String {
    let agent = json!({ "model": "m", "baseUrl": model.url, "userPromptTemplate": "Look" });
    let workflow = json!({ "name": "looks", "nodes": [
        { "id": "t", "type": "trigger" },
        { "id": "before", "type": "shell", "config": { "command": "echo earlier" } },
        { "id": "ai", "type": "ai_agent", "config": agent },
        { "id": "look", "type": "shell", "description": "Looks around", "config": { "command": "echo \"seen $(windlass-node input word)\"" } },
    ], "edges": [{ "source": "t", "target": "before" }, { "source": "before", "target": "ai" }, { "source": "ai", "target": "look" }] });
    server.define(&workflow.to_string())
}

/// Calls that first, and is done when it has heard what came of it.
fn first(name: &'static str, arguments: Value) -> Model {
    Model::start(move |_, asked: &Asked| -> Reply {
        if asked.results().is_empty() { calls(name, &arguments) } else { text("done") }
    })
}

fn entry(execution: &Value, node: &str) -> Value {
    let entries = execution["nodeExecutions"].as_array().unwrap();
    entries
        .iter()
        .find(|entry| entry["nodeId"] == node)
        .unwrap_or_else(|| panic!("{node}: {execution}"))
        .clone()
}

fn decided(server: &Server, id: &str) -> Vec<Value> {
    let events = get(server, id, "/events?limit=1000")["events"].clone();
    let all = events.as_array().unwrap().iter();
    all.filter(|event| event["event"] == "agent.decided").map(|event| event["data"].clone()).collect()
}

#[test]
fn wfl_21_an_agent_knows_the_workflow_around_it_and_sees_what_its_nodes_give() {
    let (place, model) = (place(), first("look", json!({ "word": "ships" })));
    let server = place.serve();
    let workflow = define(&server, &model);
    let answer = finish(&server, &workflow, json!({ "port": "Hamburg" }));
    assert_eq!(answer["status"], "completed", "{answer}");
    let asked = model.asked();
    let system = asked[0].body["messages"][0]["content"].as_str().unwrap().to_owned();
    let (_, context) = system.split_once("as JSON:\n").unwrap();
    let context: Value = serde_json::from_str(context).unwrap();
    let before = &answer["nodeResults"]["before"]["output"];
    for (field, value) in [
        ("workflowId", json!(workflow)),
        ("executionId", answer["executionId"].clone()),
        ("currentNodeId", json!("ai")),
    ] {
        assert_eq!(context[field], value, "{context}");
    }
    assert_eq!(context["nodeDescriptions"]["look"], "Looks around", "{context}");
    let edges = [("t", "before"), ("before", "ai"), ("ai", "look")];
    let edges = edges.map(|(source, target)| json!({ "source": source, "target": target }));
    assert_eq!(context["nodeConnections"], json!(edges));
    let history = context["executionHistory"].as_array().unwrap();
    let ran = json!({ "nodeId": "before", "status": "completed", "output": before });
    assert!(history.contains(&ran) && before["stdout"] == "earlier\n", "{context}");
    let available = &context["availableData"];
    assert_eq!((&available["before"], &available["workflowInputs"]), (before, &json!({ "port": "Hamburg" })));
    let seen = &answer["nodeResults"]["look"]["output"];
    assert_eq!(seen["stdout"], "seen ships\n");
    assert_eq!(asked[1].results(), [json!({ "status": "completed", "output": seen })]);
    assert_eq!(decided(&server, answer["executionId"].as_str().unwrap()).len(), 1);
}

#[test]
fn wfl_21_an_agent_leaves_a_node_out_with_a_reason() {
    let skip = json!({ "nodeId": "look", "reason": "it is dark" });
    let (place, model) = (place(), first("skip_node", skip));
    let server = place.serve();
    let answer = finish(&server, &define(&server, &model), json!({}));
    assert_eq!(answer["status"], "completed", "{answer}");
    let id = answer["executionId"].as_str().unwrap();
    assert_eq!(entry(&get(&server, id, ""), "look")["status"], "skipped");
    assert!(decided(&server, id)[0].to_string().contains("it is dark"));
    assert_eq!(model.asked()[1].results(), [json!({ "status": "done" })]);
}

#[test]
fn wfl_21_wfl_27_an_agent_pauses_with_a_reason_and_continues_when_a_person_resumes_it() {
    let (place, model) = (place(), first("pause_execution", json!({ "reason": "who pays?" })));
    let server = place.serve();
    let id = start(&server, &define(&server, &model), json!({}));
    until(&server, &id, "paused");
    assert!(decided(&server, &id)[0].to_string().contains("who pays?"));
    // Also when the server was killed meanwhile.
    drop(server);
    let server = place.serve();
    assert_eq!(get(&server, &id, "")["status"], "paused");
    let (status, answer) = server.post(&format!("/api/v1/executions/{id}/resume"), &json!({}));
    assert!(status.is_success(), "{answer}");
    let ended = until(&server, &id, "completed");
    assert_eq!(entry(&ended, "ai")["output"]["text"], "done");
    assert_eq!((model.asked().len(), decided(&server, &id).len()), (2, 1), "nothing was asked for twice");
}

#[test]
fn wfl_21_wfl_27_an_execution_that_an_agent_paused_can_be_cancelled() {
    let (place, model) = (place(), first("pause_execution", json!({ "reason": "who pays?" })));
    let server = place.serve();
    let id = start(&server, &define(&server, &model), json!({}));
    until(&server, &id, "paused");
    let (_, answer) = server.post(&format!("/api/v1/executions/{id}/cancel"), &json!({}));
    assert_eq!(
        (&answer["status"], &answer["completedNodes"]),
        (&json!("cancelled"), &json!(["t", "before"])),
        "{answer}"
    );
}

#[test]
fn wfl_21_an_agent_fails_the_execution() {
    let fail = json!({ "code": "NO_LIGHT", "message": "it is dark" });
    let (place, model) = (place(), first("fail_execution", fail));
    let server = place.serve();
    let answer = finish(&server, &define(&server, &model), json!({}));
    assert_eq!(answer["status"], "failed", "{answer}");
    let whole = get(&server, answer["executionId"].as_str().unwrap(), "");
    let error = &whole["errors"][0];
    assert_eq!((&error["code"], &error["message"]), (&json!("NO_LIGHT"), &json!("it is dark")), "{whole}");
    assert_eq!(model.asked().len(), 1, "there is no later request");
}
