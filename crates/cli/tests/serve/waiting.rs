//! Executions that wait for people: callers that wait for them are answered, and the API shows the reason of the wait.

use crate::executions::{TWO, finish, get, start, until, until_node, waits_for};
use crate::model::{Model, calls, text};
use crate::rig::{Place, Server, read_answer};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

const ASKS: &str = r#"{
  "name": "release",
  "nodes": [
    { "id": "t", "type": "trigger", "config": {} },
    { "id": "ask", "type": "approval", "name": "Ask Ann", "config": {
        "message": "Ship {{ inputs.what }}?", "approvers": ["developer", "user_nobody"], "timeout": "2h" } }
  ],
  "edges": [ { "source": "t", "target": "ask" } ]
}"#;

#[test]
fn wfl_04_a_synchronous_start_is_answered_when_a_user_pauses_it() {
    let place = Place::new();
    let server = place.serve();
    let file = place.data().join("go");
    let workflow = server.define(&waits_for(&file));
    std::thread::scope(|threads| {
        let request = server.request(Method::POST, &format!("/api/v1/workflows/{workflow}/execute"));
        let request = request.json(&json!({ "options": { "async": false } }));
        let waiting = threads.spawn(move || read_answer(request.send().unwrap()).1);
        let listed = crate::rig::until("it is there", || {
            let listed = read_answer(server.get("/api/v1/executions")).1;
            listed["executions"][0]["executionId"].as_str().map(str::to_owned)
        });
        until_node(&server, &listed, "wait", "running");
        let path = format!("/api/v1/executions/{listed}");
        let (status, paused) = server.post(&format!("{path}/pause"), &json!({ "reason": "lunch" }));
        assert_eq!((status, &paused["status"]), (StatusCode::OK, &json!("paused")));
        let answered = waiting.join().unwrap();
        assert_eq!((&answered["executionId"], &answered["status"]), (&json!(listed), &json!("paused")));
        for place in ["", "/status"] {
            let waits = &get(&server, &listed, place)["waitingFor"];
            let (kind, reason) = (&waits[0]["kind"], &waits[0]["reason"]);
            assert_eq!((kind, reason), (&json!("pause"), &json!("lunch")), "{waits}");
            assert!(
                waits[0]["by"].is_string() && waits[0]["since"].is_string() && waits[1].is_null(),
                "{waits}"
            );
        }
        std::fs::write(&file, "").unwrap();
        assert_eq!(server.post(&format!("{path}/resume"), &json!({})).0, StatusCode::OK);
        let ended = until(&server, &listed, "completed");
        assert!(ended.get("waitingFor").is_none(), "{ended}");
    });
}

#[test]
fn wfl_04_a_synchronous_start_is_answered_when_an_agent_pauses_it() {
    let place = Place::new().variable("WINDLASS_EGRESS_ALLOW", "127.0.0.1");
    let server = place.serve();
    let model = Model::start(|_, asked| match asked.results().is_empty() {
        true => calls("pause_execution", &json!({ "reason": "are you sure?" })),
        false => text("sure"),
    });
    let agent = json!({ "model": "m", "baseUrl": model.url, "userPromptTemplate": "Do it" });
    let workflow = json!({ "name": "asks", "nodes": [
        { "id": "t", "type": "trigger", "config": {} },
        { "id": "ai", "type": "ai_agent", "config": agent },
        { "id": "note", "type": "shell", "description": "Notes", "config": { "command": "true" } },
    ], "edges": [{ "source": "t", "target": "ai" }, { "source": "ai", "target": "note" }] });
    let answered = finish(&server, &server.define(&workflow.to_string()), json!({}));
    let id = answered["executionId"].as_str().unwrap();
    assert_eq!(answered["status"], "paused");
    let waits = &get(&server, id, "/status")["waitingFor"][0];
    assert_eq!(
        (&waits["kind"], &waits["reason"], &waits["by"]),
        (&json!("pause"), &json!("are you sure?"), &json!("agent:ai"))
    );
    assert_eq!(server.post(&format!("/api/v1/executions/{id}/resume"), &json!({})).0, StatusCode::OK);
    until(&server, id, "completed");
}

#[test]
fn an_approval_is_shown_with_its_question_and_answered_by_those_it_names() {
    let place = Place::new();
    let server = place.serve();
    let workflow = server.define(ASKS);
    let asked = finish(&server, &workflow, json!({ "what": "v2" }));
    let id = asked["executionId"].as_str().unwrap();
    let waits = get(&server, id, "")["waitingFor"][0].clone();
    assert_eq!(
        (&waits["kind"], &waits["nodeId"], &waits["nodeName"]),
        (&json!("approval"), &json!("ask"), &json!("Ask Ann"))
    );
    assert_eq!(
        (&waits["message"], &waits["approvers"]),
        (&json!("Ship v2?"), &json!(["developer", "user_nobody"]))
    );
    assert!(waits["since"].as_str() < waits["deadline"].as_str(), "{waits}");
    assert_eq!(get(&server, id, "/status")["waitingFor"][0], waits);
    let token = |role: &str| {
        let (_, made) = server.post("/api/v1/tokens", &json!({ "name": role, "role": role }));
        made["token"].as_str().unwrap().to_owned()
    };
    let answer = |id: &str, token: &str| -> (u16, Value) {
        let path = format!("/api/v1/executions/{id}/actions/ask/complete");
        let request = server.bare(Method::POST, &path).bearer_auth(token);
        let (status, said) = read_answer(request.json(&json!({ "outcome": "Succeeded" })).send().unwrap());
        (status.as_u16(), said)
    };
    let (status, refused) = answer(id, &token("member"));
    assert_eq!((status, &refused["error"]["code"]), (403, &json!("PERMISSION_DENIED")), "{refused}");
    assert_eq!(get(&server, id, "/status")["status"], "paused");
    assert_eq!(answer(id, &token("developer")).0, 200);
    until(&server, id, "completed");
    let second = finish(&server, &workflow, json!({ "what": "v3" }));
    assert_eq!(
        answer(second["executionId"].as_str().unwrap(), server.token()).0,
        200,
        "the owner always may"
    );
}

#[test]
fn an_approval_whose_question_is_very_long_is_still_answered_by_those_it_names() {
    let place = Place::new();
    let server = place.serve();
    let asked = finish(&server, &server.define(ASKS), json!({ "what": "x".repeat(100_000) }));
    let id = asked["executionId"].as_str().unwrap();
    let (_, made) = server.post("/api/v1/tokens", &json!({ "name": "m", "role": "member" }));
    let path = format!("/api/v1/executions/{id}/actions/ask/complete");
    let request = server.bare(Method::POST, &path).bearer_auth(made["token"].as_str().unwrap());
    assert_eq!(
        request.json(&json!({ "outcome": "Succeeded" })).send().unwrap().status(),
        StatusCode::FORBIDDEN
    );
}

#[test]
fn only_an_active_workflow_is_started() {
    let place = Place::new();
    let server = place.serve();
    let trigger = json!({ "webhookConfig": { "path": "drafted", "method": "POST", "requireAuth": false }, "triggerMode": "webhook" });
    let with = |status: &str| {
        let nodes = json!([{ "id": "t", "type": "trigger", "config": trigger }]);
        json!({ "name": "w", "status": status, "nodes": nodes, "edges": [] }).to_string()
    };
    for status in ["draft", "paused", "archived"] {
        let id = server.define(&with(status));
        let path = format!("/api/v1/workflows/{id}");
        assert_eq!(read_answer(server.get(&path)).1["status"], status);
        for start in [format!("{path}/execute"), "/hooks/drafted".to_owned()] {
            let (code, refused) = server.post(&start, &json!({}));
            assert_eq!(
                (code.as_u16(), &refused["error"]["code"]),
                (409, &json!("WORKFLOW_NOT_ACTIVE")),
                "{status} {start}"
            );
        }
        let changed = |to: &str| {
            server.request(Method::PATCH, &path).json(&json!({ "status": to })).send().unwrap().status()
        };
        assert_eq!(changed("active"), StatusCode::OK);
        start(&server, &id, json!({}));
        assert_eq!(changed("draft"), StatusCode::OK);
        assert_eq!(server.post(&format!("{path}/execute"), &json!({})).0, StatusCode::CONFLICT);
        let request = server.request(Method::PUT, &path).header("Content-Type", "application/json");
        assert_eq!(request.body(with("active")).send().unwrap().status(), StatusCode::OK);
        start(&server, &id, json!({}));
        assert_eq!(server.request(Method::DELETE, &path).send().unwrap().status(), StatusCode::NO_CONTENT);
    }
}

/// The only slot is held by another execution.
#[test]
fn an_execution_whose_first_work_finds_no_slot_is_queued_and_its_timeout_does_not_run() {
    let place = Place::new().variable("WINDLASS_SLOTS", "1");
    let file = place.data().join("go");
    let server = place.serve();
    let first = start(&server, &server.define(&waits_for(&file)), json!({}));
    until_node(&server, &first, "wait", "running");
    let workflow = server.define(TWO);
    let second = start(&server, &workflow, json!({}));
    let waits = get(&server, &second, "");
    assert_eq!((&waits["status"], waits.get("startedAt")), (&json!("queued"), None), "{waits}");
    // Its timeout counts from its start.
    let events = get(&server, &second, "/events");
    let names: Vec<&str> =
        events["events"].as_array().unwrap().iter().filter_map(|event| event["event"].as_str()).collect();
    assert_eq!(names, ["execution.created"]);
    let queued = |server: &Server| {
        let listed = read_answer(server.get("/api/v1/executions?status=queued")).1;
        let ids = listed["executions"].as_array().unwrap().iter().map(|row| row["executionId"].clone());
        ids.collect::<Vec<_>>()
    };
    assert_eq!(queued(&server), [json!(second)]);
    // After a restart the first continues and takes the slot again, before or after the second.
    drop(server);
    let server = place.serve();
    std::fs::write(&file, "").unwrap();
    let ended = until(&server, &second, "completed");
    assert!(ended["startedAt"].as_str() > ended["createdAt"].as_str(), "{ended}");
    until(&server, &first, "completed");
    assert_eq!(queued(&server), Vec::<Value>::new());
}
