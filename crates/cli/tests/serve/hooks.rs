//! Requests that start workflows.

use crate::executions::{finish, get, until};
use crate::rig::{Place, Server, told};
use reqwest::Method;
use serde_json::{Value, json};

fn workflow(config: &Value) -> String {
    json!({
        "name": "hooked",
        "nodes": [{ "id": "t", "type": "trigger", "name": "In", "config": config }],
        "edges": [],
    })
    .to_string()
}

fn send(
    server: &Server,
    method: Method,
    path: &str,
    token: Option<&str>,
    body: Option<Value>,
) -> (u16, Value) {
    let mut request = server.bare(method, path);
    if let Some(token) = token {
        request = request.bearer_auth(token);
    }
    if let Some(body) = body {
        request = request.json(&body);
    }
    let (status, body) = told(request.send().unwrap());
    (status.as_u16(), body)
}

#[test]
fn wfl_32_a_request_to_a_hook_starts_the_workflow_of_its_trigger() {
    let place = Place::new();
    let server = place.serve();
    let schema =
        json!({ "type": "object", "properties": { "order": { "type": "integer" } }, "required": ["order"] });
    let config = json!({ "triggerMode": "webhook", "manualConfig": { "inputPayload": schema },
        "webhookConfig": { "method": "POST", "path": "/orders/new", "requireAuth": false } });
    let id = server.define(&workflow(&config));
    let (status, started) =
        send(&server, Method::POST, "/hooks/orders/new", None, Some(json!({ "order": 7 })));
    assert_eq!((status, &started["workflowId"]), (202, &json!(id)), "{started}");
    let execution = started["executionId"].as_str().unwrap();
    let ended = until(&server, execution, "completed");
    assert_eq!(
        (&ended["inputs"], &ended["metadata"]["triggerType"]),
        (&json!({ "order": 7 }), &json!("webhook"))
    );
    assert_eq!(ended["metadata"]["triggeredBy"], "webhook");
    let (status, refused) =
        send(&server, Method::POST, "/hooks/orders/new", None, Some(json!({ "order": "x" })));
    assert_eq!((status, &refused["error"]["details"][0]["path"]), (400, &json!("inputs.order")), "{refused}");
    assert_eq!(send(&server, Method::GET, "/hooks/orders/new", None, None).0, 405);
    assert_eq!(send(&server, Method::POST, "/hooks/orders", None, None).0, 404);
    // The next version has another path.
    let moved = json!({ "webhookConfig": { "path": "moved", "requireAuth": true } });
    let request = server.request(Method::PUT, &format!("/api/v1/workflows/{id}"));
    assert!(
        request
            .header("Content-Type", "application/json")
            .body(workflow(&moved))
            .send()
            .unwrap()
            .status()
            .is_success()
    );
    assert_eq!(send(&server, Method::POST, "/hooks/orders/new", None, Some(json!({ "order": 7 }))).0, 404);
    assert_eq!(send(&server, Method::POST, "/hooks/moved", None, Some(json!({}))).0, 401);
    let (status, started) =
        send(&server, Method::POST, "/hooks/moved", Some(server.token()), Some(json!([1, 2])));
    assert_eq!(status, 202, "{started}");
    let told = get(&server, started["executionId"].as_str().unwrap(), "");
    assert_eq!(told["inputs"], json!({ "body": [1, 2] }));
}

#[test]
fn wfl_32_a_workflow_that_another_one_starts_names_it() {
    let place = Place::new();
    let server = place.serve();
    let child = server.define(&workflow(&json!({})));
    let node = json!({ "id": "x", "type": "workflow", "config": { "workflowId": child } });
    let parent = server.define(&json!({ "name": "parent", "nodes": [node] }).to_string());
    let told = finish(&server, &parent, json!({}));
    assert_eq!(told["status"], "completed", "{told}");
    let (_, listed) = send(
        &server,
        Method::GET,
        &format!("/api/v1/workflows/{child}/executions"),
        Some(server.token()),
        None,
    );
    let begun = get(&server, listed["executions"][0]["executionId"].as_str().unwrap(), "");
    let metadata = &begun["metadata"];
    assert_eq!(
        (&metadata["triggerType"], &metadata["triggeredBy"]),
        (&json!("workflow"), &told["executionId"])
    );
    assert_eq!(metadata["parentExecutionId"], told["executionId"]);
}

#[test]
fn a_path_belongs_to_who_claimed_it_first_and_with_a_token_to_the_callers_own() {
    let place = Place::new();
    let server = place.serve();
    let open = json!({ "webhookConfig": { "path": "p", "method": "GET", "requireAuth": false } });
    let first = server.define(&workflow(&open));
    let (_, tenant) = server.post("/api/v1/tenants", &json!({ "name": "Acme" }));
    let made = json!({ "name": "ann", "role": "owner", "tenantId": tenant["id"] });
    let theirs = server.post("/api/v1/tokens", &made).1["token"].as_str().unwrap().to_owned();
    let request = server.bare(Method::POST, "/api/v1/workflows").bearer_auth(&theirs);
    let request = request.header("Content-Type", "application/json").body(workflow(&open));
    let second = told(request.send().unwrap()).1["id"].clone();
    let (_, started) = send(&server, Method::GET, "/hooks/p?a=1&b=x%20y", None, None);
    assert_eq!(started["workflowId"], json!(first));
    let told = get(&server, started["executionId"].as_str().unwrap(), "");
    assert_eq!(told["inputs"], json!({ "a": "1", "b": "x y" }));
    assert_eq!(send(&server, Method::GET, "/hooks/p", Some(&theirs), None).1["workflowId"], second);
    let deleted = server.request(Method::DELETE, &format!("/api/v1/workflows/{first}")).send().unwrap();
    assert!(deleted.status().is_success());
    assert_eq!(send(&server, Method::GET, "/hooks/p", None, None).1["workflowId"], second);
}
