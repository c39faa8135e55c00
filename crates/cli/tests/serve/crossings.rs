//! Each control meets what a workflow can be doing, over HTTP: the table of docs/semantics.md as users see it.

use crate::executions::{get, start, until, until_node};
use crate::model::model;
use crate::rig::{Place, Server, read_answer};
use reqwest::Method;
use serde_json::{Value, json};
use std::path::Path;

/// State of node `x`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doing {
    InFlight,
    Manual,
    Looping,
    Child,
    /// An agent waits for a node that it runs.
    Agent,
    Backoff,
}

const ALL: [Doing; 6] =
    [Doing::InFlight, Doing::Manual, Doing::Looping, Doing::Child, Doing::Agent, Doing::Backoff];

fn workflow(name: &str, nodes: &[Value], edges: &[Value]) -> String {
    let mut all = vec![json!({ "id": "t", "type": "trigger", "config": {} })];
    all.extend(nodes.iter().cloned());
    json!({ "name": name, "nodes": all, "edges": edges }).to_string()
}

/// A workflow whose node `x` does that until the file is there.
fn define(server: &Server, doing: Doing, file: &Path) -> String {
    let waits = json!({ "command": format!("until [ -e {} ]; do sleep 0.02; done", file.display()) });
    let edge = |source: &str, target: &str| json!({ "source": source, "target": target });
    let text = match doing {
        Doing::InFlight => {
            workflow("flight", &[json!({ "id": "x", "type": "shell", "config": waits })], &[edge("t", "x")])
        }
        Doing::Manual => {
            workflow("manual", &[json!({ "id": "x", "type": "approval", "config": {} })], &[edge("t", "x")])
        }
        Doing::Looping => workflow(
            "looping",
            &[
                json!({ "id": "x", "type": "loop", "config": { "loopType": "count", "maxIterations": 2 } }),
                json!({ "id": "body", "type": "shell", "config": waits }),
            ],
            &[edge("t", "x"), json!({ "source": "x", "sourceHandle": "body", "target": "body" })],
        ),
        Doing::Child => {
            let child = workflow(
                "inner",
                &[json!({ "id": "y", "type": "shell", "config": waits })],
                &[edge("t", "y")],
            );
            let id = server.define(&child);
            let config = json!({ "workflowId": id });
            workflow(
                "outer",
                &[json!({ "id": "x", "type": "workflow", "config": config })],
                &[edge("t", "x")],
            )
        }
        Doing::Agent => {
            let agent = json!({ "model": "m", "baseUrl": model(), "userPromptTemplate": "Wait" });
            workflow(
                "agent",
                &[
                    json!({ "id": "x", "type": "ai_agent", "config": agent }),
                    json!({ "id": "tool", "type": "shell", "description": "Waits", "config": waits }),
                ],
                &[edge("t", "x"), edge("x", "tool")],
            )
        }
        Doing::Backoff => {
            // There is no listener, and the next try is far away.
            let config = json!({ "url": "http://127.0.0.1:1/", "retryPolicy": { "maxRetries": 3, "initialDelayMs": 600_000, "maxDelayMs": 600_000 } });
            workflow(
                "backoff",
                &[json!({ "id": "x", "type": "http_api", "config": config })],
                &[edge("t", "x")],
            )
        }
    };
    server.define(&text)
}

/// Waits until it is doing that.
fn reach(server: &Server, id: &str, doing: Doing) {
    let node = match doing {
        Doing::Looping => "body",
        Doing::Agent => "tool",
        _ => "x",
    };
    until_node(server, id, node, if doing == Doing::Backoff { "retrying" } else { "running" });
}

/// Lets it go on to its end.
fn release(server: &Server, id: &str, doing: Doing, file: &Path) {
    match doing {
        Doing::Manual => {
            let path = format!("/api/v1/executions/{id}/actions/x/complete");
            let (status, body) = server.post(&path, &json!({ "outcome": "Succeeded" }));
            assert!(status.is_success(), "{body}");
        }
        _ => std::fs::write(file, "").unwrap(),
    }
}

fn act(server: &Server, id: &str, rest: &str, body: Value) -> (u16, String) {
    let method = if rest == "/context" { Method::PATCH } else { Method::POST };
    let request = server.request(method, &format!("/api/v1/executions/{id}{rest}")).json(&body);
    let (status, body) = read_answer(request.send().unwrap());
    (status.as_u16(), body["status"].as_str().unwrap_or_default().to_owned())
}

/// The status while nothing else happens.
fn standing(doing: Doing) -> &'static str {
    if doing == Doing::Manual { "paused" } else { "running" }
}

fn check(control: impl Fn(&Server, &str, Doing), ends_well: bool) {
    let place = Place::new().variable("WINDLASS_EGRESS_ALLOW", "127.0.0.1");
    let server = place.serve();
    for doing in ALL {
        let file = place.data().join(format!("{doing:?}"));
        let id = start(&server, &define(&server, doing, &file), json!({}));
        reach(&server, &id, doing);
        control(&server, &id, doing);
        if ends_well && doing != Doing::Backoff {
            release(&server, &id, doing, &file);
            until(&server, &id, "completed");
        }
    }
}

#[test]
fn wfl_27_a_pause_meets_everything_a_workflow_can_be_doing() {
    check(
        |server, id, doing| {
            assert_eq!(act(server, id, "/pause", json!({})), (200, "paused".to_owned()), "{doing:?}");
            assert_eq!(act(server, id, "/pause", json!({})), (200, "paused".to_owned()), "{doing:?}: twice");
            assert_eq!(act(server, id, "/resume", json!({})), (200, standing(doing).to_owned()), "{doing:?}");
            assert_eq!(act(server, id, "/resume", json!({})).0, 409, "{doing:?}: nothing is held");
        },
        true,
    );
}

#[test]
fn wfl_09_a_cancel_meets_everything_a_workflow_can_be_doing() {
    for force in [false, true] {
        check(
            |server, id, doing| {
                let cancelled = (200, "cancelled".to_owned());
                assert_eq!(act(server, id, "/cancel", json!({ "force": force })), cancelled, "{doing:?}");
                assert_eq!(
                    act(server, id, "/cancel", json!({ "force": force })).0,
                    409,
                    "{doing:?}: it has ended"
                );
                assert_eq!(act(server, id, "/pause", json!({})).0, 409, "{doing:?}");
                assert_eq!(act(server, id, "/context", json!({ "k": 1 })).0, 409, "{doing:?}");
            },
            false,
        );
    }
}

#[test]
fn wfl_27_a_patch_meets_everything_a_workflow_can_be_doing() {
    check(
        |server, id, doing| {
            let patched = (200, standing(doing).to_owned());
            assert_eq!(act(server, id, "/context", json!({ "k": 1 })), patched, "{doing:?}");
        },
        true,
    );
}

#[test]
fn wfl_12_a_timeout_ends_everything_but_what_waits_for_a_person() {
    let place = Place::new().variable("WINDLASS_EGRESS_ALLOW", "127.0.0.1");
    let server = place.serve();
    for doing in ALL {
        let file = place.data().join(format!("{doing:?}"));
        let id = start(&server, &define(&server, doing, &file), json!({ "timeout": 1_500 }));
        if doing == Doing::Manual {
            reach(&server, &id, doing);
            release(&server, &id, doing, &file);
            until(&server, &id, "completed");
        } else {
            let failed = until(&server, &id, "failed");
            assert_eq!(
                failed["errors"].as_array().unwrap().last().unwrap()["code"],
                "EXECUTION_TIMEOUT",
                "{doing:?}: {failed}"
            );
        }
    }
}

#[test]
fn wfl_10_what_was_cancelled_in_the_middle_is_done_again_from_there() {
    let place = Place::new().variable("WINDLASS_EGRESS_ALLOW", "127.0.0.1");
    let server = place.serve();
    for doing in ALL.into_iter().filter(|doing| *doing != Doing::Backoff) {
        let file = place.data().join(format!("{doing:?}"));
        let id = start(&server, &define(&server, doing, &file), json!({}));
        reach(&server, &id, doing);
        assert_eq!(act(&server, &id, "/cancel", json!({ "force": true })).0, 200);
        let (status, body) =
            server.post(&format!("/api/v1/executions/{id}/retry"), &json!({ "fromNode": "x" }));
        assert_eq!(status, 202, "{doing:?}: {body}");
        let again = body["executionId"].as_str().unwrap();
        reach(&server, again, doing);
        release(&server, again, doing, &file);
        let ended = until(&server, again, "completed");
        assert_eq!(ended["metadata"]["parentExecutionId"], json!(id));
        assert_eq!(get(&server, &id, "")["status"], "cancelled");
    }
}

#[test]
fn wfl_15_a_starts_retry_policy_holds_for_nodes_without_their_own() {
    let place = Place::new().variable("WINDLASS_EGRESS_ALLOW", "127.0.0.1");
    let server = place.serve();
    let edges = [json!({ "source": "t", "target": "x" })];
    let node = json!({ "id": "x", "type": "http_api", "config": { "url": "http://127.0.0.1:1/" } });
    let id = server.define(&workflow("tries", &[node], &edges));
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
    let id = server.define(&workflow("modes", &nodes, &edges));
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

#[test]
fn wfl_02_nodes_have_the_states_of_the_document() {
    let place = Place::new().variable("WINDLASS_EGRESS_ALLOW", "127.0.0.1");
    let server = place.serve();
    let file = place.data().join("go");
    let status = |id: &str, node: &str| {
        let answer = get(&server, id, "");
        let entry = answer["nodeExecutions"]
            .as_array()
            .unwrap()
            .iter()
            .find(|entry| entry["nodeId"] == node)
            .cloned();
        entry.map(|entry| entry["status"].as_str().unwrap().to_owned())
    };
    let retrying = start(&server, &define(&server, Doing::Backoff, &file), json!({}));
    reach(&server, &retrying, Doing::Backoff);
    let edge = |source: &str, target: &str| json!({ "source": source, "target": target });
    let waits = json!({ "command": format!("until [ -e {} ]; do sleep 0.02; done", file.display()) });
    let nodes = [
        json!({ "id": "x", "type": "shell", "config": waits }),
        json!({ "id": "next", "type": "shell", "config": { "command": "true" } }),
    ];
    let text = workflow("waits", &nodes, &[edge("t", "x"), edge("x", "next")]);
    let waiting = start(&server, &server.define(&text), json!({}));
    reach(&server, &waiting, Doing::InFlight);
    assert_eq!(status(&waiting, "t").as_deref(), Some("completed"));
    assert_eq!(status(&waiting, "next").as_deref(), Some("pending"));
    let nodes = [
        json!({ "id": "bad", "type": "shell", "config": { "command": "exit 1", "retryPolicy": { "maxRetries": 0 } } }),
        json!({ "id": "after", "type": "shell", "config": { "command": "true" } }),
    ];
    let text = workflow("skips", &nodes, &[edge("t", "bad"), edge("bad", "after")]);
    let id = start(&server, &server.define(&text), json!({ "failureMode": "continue_on_error" }));
    until(&server, &id, "failed");
    assert_eq!(
        (status(&id, "bad").as_deref(), status(&id, "after").as_deref()),
        (Some("failed"), Some("skipped"))
    );
    for id in [&retrying, &waiting] {
        assert_eq!(act(&server, id, "/cancel", json!({})).0, 200);
    }
    assert_eq!(status(&waiting, "next").as_deref(), Some("skipped"), "it never will");
}
