//! Requests that start workflows.

use crate::executions::{finish, get, until};
use crate::rig::{Place, Server, read_answer};
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
    let (status, body) = read_answer(request.send().unwrap());
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
        (&ended["inputs"]["order"], &ended["metadata"]["triggerType"]),
        (&json!(7), &json!("webhook"))
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
    let answer = get(&server, started["executionId"].as_str().unwrap(), "");
    assert_eq!(
        (&answer["inputs"]["body"], &answer["inputs"]["hook"]["body"]),
        (&json!([1, 2]), &json!("[1,2]"))
    );
}

#[test]
fn wfl_32_a_workflow_that_another_one_starts_names_it() {
    let place = Place::new();
    let server = place.serve();
    let child = server.define(&workflow(&json!({})));
    let node = json!({ "id": "x", "type": "workflow", "config": { "workflowId": child } });
    let parent = server.define(&json!({ "name": "parent", "nodes": [node] }).to_string());
    let answer = finish(&server, &parent, json!({}));
    assert_eq!(answer["status"], "completed", "{answer}");
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
        (&json!("workflow"), &answer["executionId"])
    );
    assert_eq!(metadata["parentExecutionId"], answer["executionId"]);
}

#[test]
fn a_path_belongs_to_its_tenant_which_the_address_or_the_token_names() {
    let place = Place::new();
    let server = place.serve();
    let open = json!({ "webhookConfig": { "path": "p", "method": "GET", "requireAuth": false } });
    let first = server.define(&workflow(&open));
    let (_, tenant) = server.post("/api/v1/tenants", &json!({ "name": "Acme" }));
    let made = json!({ "name": "ann", "role": "owner", "tenantId": tenant["id"] });
    let theirs = server.post("/api/v1/tokens", &made).1["token"].as_str().unwrap().to_owned();
    let request = server.bare(Method::POST, "/api/v1/workflows").bearer_auth(&theirs);
    let request = request.header("Content-Type", "application/json").body(workflow(&open));
    let second = read_answer(request.send().unwrap()).1["id"].clone();
    let (_, started) = send(&server, Method::GET, "/hooks/p?a=1&b=x%20y", None, None);
    assert_eq!(started["workflowId"], json!(first));
    let answer = get(&server, started["executionId"].as_str().unwrap(), "");
    assert_eq!((&answer["inputs"]["a"], &answer["inputs"]["b"]), (&json!("1"), &json!("x y")));
    assert_eq!(send(&server, Method::GET, "/hooks/p", Some(&theirs), None).1["workflowId"], second);
    let named = format!("/hooks/{}/p", tenant["id"].as_str().unwrap());
    assert_eq!(send(&server, Method::GET, &named, None, None).1["workflowId"], second);
    assert_eq!(send(&server, Method::GET, &named, Some(server.token()), None).0, 404);
    let deleted = server.request(Method::DELETE, &format!("/api/v1/workflows/{first}")).send().unwrap();
    assert!(deleted.status().is_success());
    assert_eq!(send(&server, Method::GET, "/hooks/p", None, None).0, 404);
}

/// The inputs of what a request starts.
fn inputs(server: &Server, request: reqwest::blocking::RequestBuilder) -> Value {
    let (status, started) = read_answer(request.send().unwrap());
    assert_eq!(status.as_u16(), 202, "{started}");
    until(server, started["executionId"].as_str().unwrap(), "completed")["inputs"].clone()
}

#[test]
fn wfl_32_a_hook_reports_all_of_its_request_but_who_asks() {
    let place = Place::new();
    let server = place.serve();
    let schema =
        json!({ "type": "object", "properties": { "x": {}, "a": {} }, "additionalProperties": false });
    let config = json!({ "triggerMode": "webhook", "manualConfig": { "inputPayload": schema },
        "webhookConfig": { "method": "POST", "path": "events", "requireAuth": false } });
    let nodes = json!([
        { "id": "t", "type": "trigger", "config": config },
        { "id": "kind", "type": "conditional", "config": { "conditions": [
            { "id": "push", "variable": "hook.headers['x-github-event']", "operator": "equals", "value": "push" }] } },
        { "id": "yes", "type": "shell", "config": { "command": "printf '%s' {{ hook.body }}" } }]);
    let edges = json!([{ "source": "t", "target": "kind" }, { "source": "kind", "target": "yes", "sourceHandle": "push" }]);
    server.define(&json!({ "name": "events", "nodes": nodes, "edges": edges }).to_string());
    let ask = |path: &str| server.bare(Method::POST, path);
    let body = r#"{ "x":  1 }"#;
    let request = ask("/hooks/events?x=9&x=8&y=%C3%A9")
        .header("Content-Type", "application/json")
        .header("X-GitHub-Event", "push")
        .header("Cookie", "very-private")
        .header("X-API-Key", "very-private")
        .body(body);
    let (_, started) = read_answer(request.send().unwrap());
    let ended = until(&server, started["executionId"].as_str().unwrap(), "completed");
    let hook = &ended["inputs"]["hook"];
    assert_eq!(ended["inputs"]["x"], 1, "the body is the inputs");
    assert_eq!(hook["query"], json!({ "x": ["9", "8"], "y": "é" }), "{hook}");
    assert_eq!(
        (&hook["method"], &hook["path"], &hook["body"]),
        (&json!("POST"), &json!("events"), &json!(body))
    );
    assert_eq!(hook["headers"]["x-github-event"], "push");
    assert!(!ended.to_string().contains("very-private"), "{ended}");
    assert_eq!(ended["outputs"]["stdout"], body, "a signature is checked over the text as it came");
    let form = ask("/hooks/events")
        .header("Content-Type", "application/x-www-form-urlencoded")
        .body("x=a&x=b&a=c+%26d");
    let form = inputs(&server, form);
    assert_eq!((&form["x"], &form["a"]), (&json!(["a", "b"]), &json!("c &d")));
    let query = inputs(&server, ask("/hooks/events?x=a&x=b&a=1"));
    assert_eq!((&query["x"], &query["a"]), (&json!(["a", "b"]), &json!("1")));
    let (status, refused) = read_answer(ask("/hooks/events?z=1").send().unwrap());
    assert_eq!(status.as_u16(), 400, "{refused}");
}

#[test]
fn a_hook_is_open_in_its_own_mode_only_and_a_path_that_is_taken_is_reported() {
    let place = Place::new();
    let server = place.serve();
    let left_over =
        json!({ "triggerMode": "manual", "webhookConfig": { "path": "p", "requireAuth": false } });
    server.define(&workflow(&left_over));
    assert_eq!(send(&server, Method::POST, "/hooks/p", None, Some(json!({}))).0, 404);
    let register = |name: &str, config: Value| {
        let text = workflow(&config).replace("hooked", name);
        let request =
            server.request(Method::POST, "/api/v1/workflows").header("Content-Type", "application/json");
        read_answer(request.body(text).send().unwrap()).1
    };
    let open = json!({ "triggerMode": "webhook", "webhookConfig": { "path": "p", "requireAuth": false } });
    let first = register("first", open.clone());
    assert_eq!(first["warnings"], json!([]), "{first}");
    let second = register("second", open.clone());
    assert_eq!(
        (&second["error"]["code"], &second["error"]["details"][0]["message"]),
        (&json!("CONFLICT"), &json!("POST /hooks/p already starts the workflow `first`"))
    );
    let put = server.request(Method::PUT, &format!("/api/v1/workflows/{}", first["id"].as_str().unwrap()));
    let text = workflow(&open).replace("hooked", "first").replace("In", "Into");
    let again = read_answer(put.header("Content-Type", "application/json").body(text).send().unwrap()).1;
    assert_eq!(again["warnings"], json!([]), "it has the path itself: {again}");
    let pathless = register("third", json!({ "triggerMode": "webhook" }));
    assert_eq!(pathless["warnings"][0]["code"], "W0246", "{pathless}");
}

#[test]
fn the_workflow_of_the_manual_builds_what_was_signed_and_nothing_else() {
    let place = Place::new();
    let server = place.serve();
    let secret =
        server.request(Method::PUT, "/api/v1/secrets/github-secret").json(&json!({ "value": "open-sesame" }));
    assert!(secret.send().unwrap().status().is_success());
    let page = include_str!("../../../../docs/executions.md").split_once("### Hooks").unwrap().1;
    server.define(page.split_once("```yaml\n").unwrap().1.split_once("```").unwrap().0);
    let build = |signature: &str| {
        let request = server.bare(Method::POST, "/hooks/github").header("Content-Type", "application/json");
        let request = request.header("X-Hub-Signature-256", signature).body(r#"{"ref":"refs/heads/main"}"#);
        let (_, started) = read_answer(request.send().unwrap());
        let ended = until(&server, started["executionId"].as_str().unwrap(), "completed");
        let entries = ended["nodeExecutions"].as_array().unwrap();
        let entry =
            entries.iter().find(|entry| entry["nodeId"] == "build").unwrap_or_else(|| panic!("{ended}"));
        (entry["status"].clone(), entry["output"]["stdout"].clone())
    };
    let signature = "sha256=ec0f004b5cd0239c4831cf4873d8300980bef699ae06ae86559b8e4bbdf7049f";
    assert_eq!(build(signature), (json!("completed"), json!("building refs/heads/main\n")));
    assert_eq!(build("sha256=0"), (json!("skipped"), Value::Null));
}
