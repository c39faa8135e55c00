//! Repeated starts after a lost answer, and concurrent starts.

use crate::executions::until;
use crate::rig::{Place, Server, read_answer};
use reqwest::blocking::{RequestBuilder, Response};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Barrier;

/// Definition with the hook `in`; its executions are open until the file exists.
fn waits_for(file: &Path, inputs: &Value) -> String {
    let command = format!("until [ -e {} ]; do sleep 0.02; done", file.display());
    let config = json!({ "manualConfig": { "inputPayload": inputs },
        "webhookConfig": { "path": "in", "method": "POST", "requireAuth": false } });
    let trigger = json!({ "id": "t", "type": "trigger", "config": config });
    let wait = json!({ "id": "wait", "type": "shell", "config": { "command": command } });
    let edge = json!({ "source": "t", "target": "wait" });
    json!({ "name": "waits", "nodes": [trigger, wait], "edges": [edge] }).to_string()
}

fn any_inputs() -> Value {
    json!({ "type": "object" })
}

fn limit(server: &Server, open: u32) {
    let request = server.request(Method::PATCH, "/api/v1/tenants/default");
    let response = request.json(&json!({ "openExecutions": open })).send().unwrap();
    assert_eq!(response.status(), StatusCode::OK);
}

fn execute(server: &Server, workflow: &str) -> RequestBuilder {
    server.request(Method::POST, &format!("/api/v1/workflows/{workflow}/execute"))
}

fn keyed(request: RequestBuilder, key: &str) -> RequestBuilder {
    request.header("X-Idempotency-Key", key)
}

fn id(answer: &Value) -> String {
    answer["executionId"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

/// Sends all of them at the same moment.
fn at_once(requests: Vec<RequestBuilder>) -> Vec<Response> {
    let together = Barrier::new(requests.len());
    std::thread::scope(|scope| {
        let send = |request: RequestBuilder| {
            let together = &together;
            scope.spawn(move || {
                together.wait();
                request.send().unwrap()
            })
        };
        let sent: Vec<_> = requests.into_iter().map(send).collect();
        sent.into_iter().map(|one| one.join().unwrap()).collect()
    })
}

#[test]
fn wfl_05_a_repeated_start_gets_its_answer_after_every_change() {
    let place = Place::new();
    let server = place.serve();
    let never = place.data().join("never");
    let workflow = server.define(&waits_for(&never, &any_inputs()));
    let path = format!("/api/v1/workflows/{workflow}");
    let by_api = || read_answer(keyed(execute(&server, &workflow), "k").json(&json!({})).send().unwrap());
    let by_hook = || read_answer(keyed(server.bare(Method::POST, "/hooks/in"), "h").send().unwrap());
    let first = (by_api(), by_hook());
    assert_eq!((first.0.0, first.1.0), (StatusCode::ACCEPTED, StatusCode::ACCEPTED), "{first:?}");
    let check = |what: &str| assert_eq!((by_api(), by_hook()), first, "{what}");
    limit(&server, 2);
    assert_eq!(execute(&server, &workflow).send().unwrap().status(), StatusCode::TOO_MANY_REQUESTS);
    check("its own executions are all that may be open");
    let stricter =
        json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] });
    let put = server.request(Method::PUT, &path).header("Content-Type", "application/json");
    assert!(put.body(waits_for(&never, &stricter)).send().unwrap().status().is_success());
    assert_eq!(execute(&server, &workflow).send().unwrap().status(), StatusCode::BAD_REQUEST);
    check("the newest version would not take its inputs");
    let patch = server.request(Method::PATCH, &path).json(&json!({ "status": "paused" }));
    assert!(patch.send().unwrap().status().is_success());
    let (status, other) =
        read_answer(keyed(execute(&server, &workflow), "new").json(&json!({})).send().unwrap());
    assert_eq!((status, &other["error"]["code"]), (StatusCode::CONFLICT, &json!("WORKFLOW_NOT_ACTIVE")));
    check("the workflow is paused");
    let another = json!({ "inputs": { "n": 1 } });
    let (status, other) = read_answer(keyed(execute(&server, &workflow), "k").json(&another).send().unwrap());
    assert_eq!((status, &other["error"]["code"]), (StatusCode::CONFLICT, &json!("IDEMPOTENCY_KEY_REUSED")));
}

#[test]
fn wfl_05_another_query_or_text_under_the_key_of_a_hook_is_another_event() {
    let place = Place::new();
    let server = place.serve();
    server.define(&waits_for(&place.data().join("never"), &any_inputs()));
    let send = |key: &str, query: &str, text: &'static str| {
        let request = keyed(server.bare(Method::POST, &format!("/hooks/in{query}")), key);
        let request = if text.is_empty() { request } else { request.header("Content-Type", "text/plain") };
        read_answer(request.body(text).send().unwrap())
    };
    for (key, first, second) in
        [("query", ("?a=1", ""), ("?a=2", "")), ("text", ("", "one event"), ("", "another"))]
    {
        let (status, event) = send(key, first.0, first.1);
        assert_eq!(status, StatusCode::ACCEPTED, "{event}");
        assert_eq!(send(key, first.0, first.1), (status, event.clone()), "the same event");
        let (status, lost) = send(key, second.0, second.1);
        assert_eq!(
            (status, &lost["error"]["code"]),
            (StatusCode::CONFLICT, &json!("IDEMPOTENCY_KEY_REUSED"))
        );
    }
}

#[test]
fn no_more_executions_are_open_than_the_limit_however_many_starts_come_at_once() {
    let place = Place::new().with(&["--open-executions", "3"]);
    let server = place.serve();
    let go = place.data().join("go");
    let workflow = server.define(&waits_for(&go, &any_inputs()));
    let before = id(&read_answer(execute(&server, &workflow).send().unwrap()).1);
    let cancel = server.post(&format!("/api/v1/executions/{before}/cancel"), &json!({}));
    assert_eq!(cancel.0, StatusCode::OK, "{}", cancel.1);
    until(&server, &before, "cancelled");
    let round = || {
        let requests = (0..24).map(|number| match number % 3 {
            0 => execute(&server, &workflow),
            1 => server.bare(Method::POST, "/hooks/in"),
            _ => server.request(Method::POST, &format!("/api/v1/executions/{before}/retry")),
        });
        let (taken, refused): (Vec<_>, Vec<_>) =
            at_once(requests.collect()).into_iter().partition(|one| one.status() == StatusCode::ACCEPTED);
        assert_eq!(taken.len(), 3, "as many as there is room for");
        for one in refused {
            assert_eq!(one.status(), StatusCode::TOO_MANY_REQUESTS);
            assert!(one.headers().contains_key("Retry-After"));
        }
        taken.into_iter().map(|one| id(&read_answer(one).1)).collect::<Vec<String>>()
    };
    let open = round();
    std::fs::write(&go, "").unwrap();
    for one in open {
        until(&server, &one, "completed");
    }
    std::fs::remove_file(&go).unwrap();
    round();
}

#[test]
fn wfl_05_one_start_sent_many_times_at_once_is_one_execution_also_at_the_limit() {
    let place = Place::new().with(&["--open-executions", "1"]);
    let server = place.serve();
    let workflow = server.define(&waits_for(&place.data().join("never"), &any_inputs()));
    let requests = (0..20).map(|_| keyed(execute(&server, &workflow), "k")).collect();
    let ids: BTreeSet<String> = at_once(requests).into_iter().map(|one| id(&read_answer(one).1)).collect();
    assert_eq!(ids.len(), 1, "{ids:?}");
}

#[test]
fn a_limit_that_is_changed_holds_for_what_was_open_before() {
    let place = Place::new();
    let server = place.serve();
    let workflow = server.define(&waits_for(&place.data().join("never"), &any_inputs()));
    let status = || execute(&server, &workflow).send().unwrap().status();
    limit(&server, 9);
    assert_eq!(status(), StatusCode::ACCEPTED);
    limit(&server, 0);
    for _ in 0..3 {
        assert_eq!(status(), StatusCode::ACCEPTED);
    }
    for full in [9, 4, 2, 3, 4] {
        limit(&server, full);
        let expected = if full > 4 { StatusCode::ACCEPTED } else { StatusCode::TOO_MANY_REQUESTS };
        assert_eq!(status(), expected, "five are open, {full} may be");
    }
    limit(&server, 6);
    assert_eq!(status(), StatusCode::ACCEPTED);
    assert_eq!(status(), StatusCode::TOO_MANY_REQUESTS);
}
