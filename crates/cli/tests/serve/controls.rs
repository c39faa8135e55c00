//! Executions under control: cancelled, retried, paused, resumed, patched, approved.

use crate::executions::{FAILS, TWO, finish, get, start, until, until_node, waits_for};
use crate::rig::{self, Place, Server, is_gone, process_of, read_answer};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

const GATE: &str = "
metadata: {name: gate}
workflow:
- step: g
  spec: {policy: {admit: {rules: [{when: '{{ ctx.go }}', then: {allow: true}}]}}}
";
const APPROVAL: &str = r#"{
  "name": "release",
  "nodes": [
    { "id": "t", "type": "trigger", "name": "Start", "config": {} },
    { "id": "ask", "type": "approval", "name": "Ask Ann", "config": {} },
    { "id": "ship", "type": "shell", "name": "Ship", "config": { "command": "echo shipped" } }
  ],
  "edges": [ { "source": "t", "target": "ask" }, { "source": "ask", "target": "ship" } ]
}"#;

fn act(server: &Server, id: &str, rest: &str, body: Value) -> (u16, Value) {
    let (status, answer) = server.post(&format!("/api/v1/executions/{id}{rest}"), &body);
    (status.as_u16(), answer)
}

#[test]
fn wfl_09_a_cancel_says_what_had_completed_and_what_had_not() {
    let place = Place::new();
    let server = place.serve();
    let id = start(&server, &server.define(&waits_for(&place.data().join("never"))), json!({}));
    until_node(&server, &id, "wait", "running");
    let (status, answer) = act(&server, &id, "/cancel", json!({ "reason": "enough", "force": false }));
    assert_eq!(status, 200, "{answer}");
    let fields: Vec<&String> = answer.as_object().unwrap().keys().collect();
    let expected =
        ["executionId", "status", "cancelledAt", "cancelledBy", "reason", "completedNodes", "cancelledNodes"];
    assert_eq!(fields, expected);
    assert_eq!((&answer["status"], &answer["reason"]), (&json!("cancelled"), &json!("enough")));
    assert_eq!(answer["completedNodes"], json!(["first"]));
    assert_eq!(answer["cancelledNodes"], json!(["wait", "last"]));
    let ended = get(&server, &id, "");
    assert_eq!((&ended["status"], &ended["completedAt"]), (&json!("cancelled"), &answer["cancelledAt"]));
    assert_eq!(ended["metadata"]["triggeredBy"], answer["cancelledBy"]);
    let (status, again) = act(&server, &id, "/cancel", json!({}));
    assert_eq!((status, &again["error"]["code"]), (409, &json!("EXECUTION_ENDED")));
    let (status, bad) = act(&server, &id, "/cancel", json!({ "why": "x" }));
    assert_eq!((status, &bad["error"]["details"][0]["path"]), (400, &json!("why")));
}

#[test]
fn wfl_09_a_cancel_needs_no_body() {
    let place = Place::new();
    let server = place.serve();
    let far = json!({ "scheduledAt": "2999-01-01T00:00:00Z" });
    let id = start(&server, &server.define(TWO), far);
    let (status, answer) =
        read_answer(server.request(Method::POST, &format!("/api/v1/executions/{id}/cancel")).send().unwrap());
    assert_eq!((status, &answer["status"]), (StatusCode::OK, &json!("cancelled")), "{answer}");
    assert_eq!(answer["cancelledNodes"], json!(["a", "b"]));
}

#[test]
fn wfl_09_a_forced_cancel_leaves_a_process_no_time() {
    let place = Place::new();
    let server = place.serve();
    for force in [false, true] {
        let (pid, heard) = (format!("pid-{force}"), format!("heard-{force}"));
        let command = format!(
            "trap \"echo > {}; exit\" TERM; echo $$ > {}; while true; do sleep 0.02; done",
            place.path(&heard).display(),
            place.path(&pid).display()
        );
        let node = json!({ "id": "x", "type": "shell", "config": { "command": command } });
        let workflow = server.define(&json!({ "name": "stubborn", "nodes": [node] }).to_string());
        let id = start(&server, &workflow, json!({}));
        let process = process_of(&place, &pid);
        let (status, answer) = act(&server, &id, "/cancel", json!({ "force": force }));
        assert_eq!((status, &answer["status"]), (200, &json!("cancelled")));
        rig::until("the process is gone", || is_gone(process).then_some(()));
        assert_eq!(place.path(&heard).exists(), !force, "who is forced hears nothing");
    }
}

/// A workflow whose nodes write down that they run; `bad` fails while there is no file `fixed`.
fn counted(place: &Place, mode: &str) -> String {
    let ran = place.path("ran").display().to_string();
    let shell = |id: &str, more: &str| {
        let command = format!("echo {id} >> {ran}; {more}");
        json!({ "id": id, "type": "shell", "config": { "command": command } })
    };
    let edge = |source: &str, target: &str| json!({ "source": source, "target": target });
    let fails = format!("test -e {}", place.path("fixed").display());
    json!({ "name": "counted", "settings": { "failureMode": mode },
        "nodes": [{ "id": "t", "type": "trigger" }, shell("a", "echo {{ inputs.n }}"), shell("b", "true"), shell("other", "true"), shell("bad", &fails)],
        "edges": [edge("t", "a"), edge("a", "b"), edge("t", "other"), edge("b", "bad"), edge("other", "bad")] })
    .to_string()
}

/// Returns the steps that ran since the last call, in any order.
fn ran(place: &Place) -> Vec<String> {
    let mut lines = place.lines("ran");
    let _ = std::fs::remove_file(place.path("ran"));
    lines.sort();
    lines
}

#[test]
fn wfl_10_wfl_26_what_is_done_again_is_the_node_and_all_that_follows_it_on_the_same_version() {
    let place = Place::new();
    let server = place.serve();
    for (mode, end) in [("fail_fast", "failed"), ("collect_errors", "partial_success")] {
        let workflow = server.define(&counted(&place, mode));
        let first = finish(&server, &workflow, json!({ "n": 1 }));
        let id = first["executionId"].as_str().unwrap();
        assert_eq!((&first["status"], ran(&place).len()), (&json!(end), 4));
        let newer = server.request(Method::PUT, &format!("/api/v1/workflows/{workflow}"));
        let newer = newer.header("Content-Type", "application/yaml").body(TWO);
        assert!(newer.send().unwrap().status().is_success());
        std::fs::write(place.path("fixed"), "").unwrap();

        let again = |body: Value| {
            let (status, answer) = act(&server, id, "/retry", body);
            assert_eq!(status, 202, "{answer}");
            let ended = until(&server, answer["executionId"].as_str().unwrap(), "completed");
            assert_eq!((&ended["workflowId"], &ended["workflowVersion"]), (&json!(workflow), &json!(1)));
            assert_eq!(ended["metadata"]["parentExecutionId"], json!(id));
            let output = |node: &str| {
                let entries = ended["nodeExecutions"].as_array().unwrap();
                entries.iter().find(|entry| entry["nodeId"] == node).unwrap()["output"]["stdout"].clone()
            };
            (ran(&place), output("a"))
        };
        let kept = json!("1\n");
        assert_eq!(again(json!({})), (vec!["bad".to_owned()], kept.clone()), "{mode}");
        assert_eq!(again(json!({ "fromNode": "bad" })), (vec!["bad".to_owned()], kept.clone()));
        assert_eq!(again(json!({ "fromNode": "b" })), (vec!["b".to_owned(), "bad".to_owned()], kept));
        let all = ["a", "b", "bad"].map(str::to_owned).to_vec();
        assert_eq!(again(json!({ "fromNode": "a", "inputs": { "n": 2 } })), (all, json!("2\n")));
        assert_eq!(get(&server, id, "")["status"], end, "what failed stays so");
        std::fs::remove_file(place.path("fixed")).unwrap();
    }
}

#[test]
fn wfl_10_what_has_not_ended_is_not_done_again() {
    let place = Place::new();
    let server = place.serve();
    let id = start(&server, &server.define(APPROVAL), json!({}));
    let (status, answer) = act(&server, &id, "/retry", json!({}));
    assert_eq!((status, &answer["error"]["code"]), (409, &json!("CONFLICT")), "{answer}");
}

#[test]
fn wfl_10_wfl_26_a_failed_execution_is_done_again_as_a_new_one() {
    let place = Place::new();
    let server = place.serve();
    let file = place.data().join("fixed");
    let text = format!(
        "metadata: {{name: mends}}\nworkflow:\n- {{step: a, tool: {{kind: shell, command: 'echo ran'}}, next: b}}\n\
         - {{step: b, tool: {{kind: shell, command: 'test -e {}'}}}}\n",
        file.display()
    );
    let workflow = server.define(&text);
    let id = finish(&server, &workflow, json!({ "n": 1 }))["executionId"].as_str().unwrap().to_owned();
    assert_eq!(get(&server, &id, "")["status"], "failed");
    std::fs::write(&file, "").unwrap();
    let (status, answer) = act(&server, &id, "/retry", json!({}));
    assert_eq!(status, 202, "{answer}");
    assert_eq!((&answer["parentExecutionId"], &answer["status"]), (&json!(id), &json!("queued")));
    let new = answer["executionId"].as_str().unwrap();
    let ended = until(&server, new, "completed");
    assert_eq!((&ended["inputs"], &ended["metadata"]["retryOf"]), (&json!({ "n": 1 }), &json!(id)));
    assert_eq!(get(&server, &id, "")["status"], "failed", "the failed one stays so");
    let logs = get(&server, new, "/logs?level=info");
    let printed = logs["logs"].as_array().unwrap().iter().filter(|line| line["data"]["stream"] == "stdout");
    assert_eq!(printed.count(), 0, "`a` was not run again");

    let (status, answer) = act(&server, &id, "/retry", json!({ "fromNode": "a", "inputs": { "m": 2 } }));
    assert_eq!((status, &answer["retryFromNode"]), (202, &json!("a")), "{answer}");
    let ended = until(&server, answer["executionId"].as_str().unwrap(), "completed");
    assert_eq!(ended["inputs"], json!({ "n": 1, "m": 2 }));

    let (status, answer) = act(&server, new, "/retry", json!({}));
    assert_eq!(status, 409, "a completed one is not retried: {answer}");
    let (status, answer) = act(&server, &id, "/retry", json!({ "fromNode": "z" }));
    assert_eq!((status, &answer["error"]["details"][0]["path"]), (400, &json!("fromNode")));
    let (status, _) = act(&server, &id, "/retry", json!({ "firing": 1 }));
    assert_eq!(status, 400);
}

#[test]
fn wfl_27_a_user_pauses_and_resumes() {
    let place = Place::new();
    let server = place.serve();
    let file = place.data().join("go");
    let id = start(&server, &server.define(&waits_for(&file)), json!({}));
    until_node(&server, &id, "wait", "running");
    let (status, answer) = act(&server, &id, "/pause", json!({ "reason": "lunch" }));
    assert_eq!((status, &answer["status"]), (200, &json!("paused")), "{answer}");
    std::fs::write(&file, "").unwrap();
    // What runs ends; nothing new begins.
    assert_eq!(until_node(&server, &id, "wait", "completed")["status"], "paused");
    assert_eq!(act(&server, &id, "/resume", json!({})).0, 200);
    until(&server, &id, "completed");
    let (status, answer) = act(&server, &id, "/resume", json!({}));
    assert_eq!((status, &answer["error"]["code"]), (409, &json!("EXECUTION_ENDED")));
}

#[test]
fn wfl_27_a_gate_is_opened_by_a_patch_and_not_by_resume() {
    let place = Place::new();
    let server = place.serve();
    let id = finish(&server, &server.define(GATE), json!({}))["executionId"].as_str().unwrap().to_owned();
    let (status, answer) = act(&server, &id, "/resume", json!({}));
    assert_eq!((status, &answer["error"]["code"]), (409, &json!("CONFLICT")), "{answer}");
    let patch = |body: Value| {
        let request = server.request(Method::PATCH, &format!("/api/v1/executions/{id}/context"));
        reported_of(request.json(&body).send().unwrap())
    };
    assert_eq!(patch(json!({ "other": 1 })), (200, json!({ "executionId": id, "status": "paused" })));
    assert_eq!(patch(json!({ "go": true })).0, 200);
    until(&server, &id, "completed");
    assert_eq!(patch(json!({ "go": true })).0, 409);
    assert_eq!(patch(json!([1])).0, 400);
}

fn reported_of(response: reqwest::blocking::Response) -> (u16, Value) {
    let (status, body) = read_answer(response);
    (status.as_u16(), body)
}

#[test]
fn wfl_27_an_approval_pauses_until_a_person_decides_once() {
    let place = Place::new();
    let server = place.serve();
    let workflow = server.define(APPROVAL);
    let id = finish(&server, &workflow, json!({}))["executionId"].as_str().unwrap().to_owned();
    let paused = get(&server, &id, "");
    assert_eq!((&paused["status"], &paused["progress"]["currentNode"]), (&json!("paused"), &json!("ask")));
    let complete = |node: &str, body: Value| act(&server, &id, &format!("/actions/{node}/complete"), body);
    assert_eq!(complete("nobody", json!({ "outcome": "Succeeded" })).0, 404);
    assert_eq!(complete("ship", json!({ "outcome": "Succeeded" })).0, 409, "it waits for no person");
    assert_eq!(complete("ask", json!({ "outcome": "Maybe" })).0, 400);
    assert_eq!(complete("ask", json!({ "outcome": "Succeeded", "actorUserId": "user_other" })).0, 403);
    let yes = json!({ "outcome": "Succeeded", "notes": "go", "evidence": ["ticket-1"] });
    let (status, answer) = complete("ask", yes.clone());
    assert_eq!((status, &answer["outcome"]), (200, &json!("Succeeded")), "{answer}");
    let ended = until(&server, &id, "completed");
    let shipped = ended["nodeExecutions"].as_array().unwrap().iter().find(|entry| entry["nodeId"] == "ship");
    assert_eq!(shipped.unwrap()["nodeName"], "Ship");
    assert_eq!(complete("ask", yes).0, 200, "the same again changes nothing");
    assert_eq!(complete("ask", json!({ "outcome": "Failed" })).0, 409, "another outcome is a conflict");

    let id = finish(&server, &workflow, json!({}))["executionId"].as_str().unwrap().to_owned();
    let (status, _) = act(&server, &id, "/actions/ask/complete", json!({ "outcome": "Failed" }));
    assert_eq!(status, 200);
    let failed = until(&server, &id, "failed");
    assert_eq!(failed["errors"][0]["nodeId"], "ask");
}

#[test]
fn wfl_27_a_paused_execution_can_be_cancelled() {
    let place = Place::new();
    let server = place.serve();
    let id = finish(&server, &server.define(GATE), json!({}))["executionId"].as_str().unwrap().to_owned();
    let (status, answer) = act(&server, &id, "/cancel", json!({}));
    assert_eq!(
        (status, &answer["status"], &answer["cancelledNodes"]),
        (200, &json!("cancelled"), &json!(["g"])),
        "{answer}"
    );
}

#[test]
fn a_viewer_may_look_and_touch_nothing() {
    let place = Place::new();
    let server = place.serve();
    let made = json!({ "name": "v", "role": "viewer" });
    let viewer = server.post("/api/v1/tokens", &made).1["token"].as_str().unwrap().to_owned();
    let member = server.post("/api/v1/tokens", &json!({ "name": "m", "role": "member" })).1["token"]
        .as_str()
        .unwrap()
        .to_owned();
    let workflow = server.define(FAILS);
    let id = finish(&server, &workflow, json!({}))["executionId"].as_str().unwrap().to_owned();
    let ask = |token: &str, method: Method, path: &str, body: &str| {
        let request = server.bare(method, path).bearer_auth(token).header("Content-Type", "application/json");
        request.body(body.to_owned()).send().unwrap().status().as_u16()
    };
    let (one, execute) =
        (format!("/api/v1/executions/{id}"), format!("/api/v1/workflows/{workflow}/execute"));
    assert_eq!(ask(&viewer, Method::GET, &one, ""), 200);
    assert_eq!(ask(&viewer, Method::POST, &execute, "{}"), 403);
    for rest in ["cancel", "pause", "resume", "retry"] {
        assert_eq!(ask(&viewer, Method::POST, &format!("{one}/{rest}"), "{}"), 403, "{rest}");
    }
    assert_eq!(ask(&viewer, Method::PATCH, &format!("{one}/context"), "{}"), 403);
    assert_eq!(ask(&member, Method::POST, &execute, "{}"), 202);
    assert_eq!(
        ask(&member, Method::POST, &execute, r#"{"options": {"debugMode": true}}"#),
        403,
        "debugging is for developers"
    );
}
