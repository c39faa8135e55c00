//! Bindings of a server: its adapters file, starts that are refused, keys over crashes, and the rights of tenants.

use crate::rig::{Books, Place, Server, requests, until};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const PAY: &str = "metadata: {name: pay}
workload: {amount: 12}
workflow:
- step: pay
  tool: {kind: 'invoice:write', args: {amount: '{{ workload.amount }}'}, retry: {max_attempts: 100, initial_delay: 0.2}}
";

fn start(server: &Server, workflow: &str) -> String {
    let (status, made) = server.post(&format!("/api/v1/workflows/{workflow}/execute"), &json!({}));
    assert_eq!(status, StatusCode::ACCEPTED, "{made}");
    made["executionId"].as_str().expect("an id").to_owned()
}

fn ended(server: &Server, execution: &str) -> Value {
    until("the execution ends", || {
        let found: Value = server.get(&format!("/api/v1/executions/{execution}")).json().expect("JSON");
        ["completed", "failed"].contains(&found["status"].as_str()?).then_some(found)
    })
}

fn upload(server: &Server, token: &str, text: &str) -> (StatusCode, Value) {
    let request = server.bare(Method::POST, "/api/v1/workflows").bearer_auth(token);
    let request = request.header("Content-Type", "application/yaml").body(text.to_owned());
    crate::rig::read_answer(request.send().expect("an answer"))
}

#[test]
fn a_key_stays_the_same_when_the_server_is_killed_between_two_tries() {
    let place = Place::new().with(&["--adapters", "adapters.yaml"]);
    let place = place.variable("WINDLASS_EGRESS_ALLOW", "127.0.0.0/8");
    let books = Books::open(&place.path("seen"), 1_000_000);
    let binding = format!(
        "operations: {{'invoice:write': {{kind: http, method: POST, url: '{}/', json: '{{{{ args }}}}'}}}}",
        books.url()
    );
    place.write("adapters.yaml", &binding);
    let server = place.serve();
    let workflow = server.define(PAY);
    let execution = start(&server, &workflow);
    until("two tries were made", || (place.lines("seen").len() >= 2).then_some(()));
    server.kill();
    let before = place.lines("seen").len();
    // The file changes; the execution keeps the bindings that it began with.
    place.write("adapters.yaml", "operations: {'invoice:write': {kind: noop}}");
    let server = place.serve();
    until("another try was made", || (place.lines("seen").len() > before + 1).then_some(()));
    let seen = requests(&place.lines("seen"));
    let keys: BTreeSet<&str> =
        seen.iter().map(|one| one["headers"]["idempotency-key"].as_str().expect("a key")).collect();
    assert_eq!(keys.len(), 1, "{keys:?}");
    let (status, _) = server.post(&format!("/api/v1/executions/{execution}/cancel"), &json!({}));
    assert!(status.is_success(), "{status}");
    // What starts now is bound by the new file.
    let execution = start(&server, &workflow);
    assert_eq!(ended(&server, &execution)["status"], "completed");
}

#[test]
fn a_start_is_refused_where_the_file_lost_its_binding() {
    let place = Place::new().with(&["--adapters", "adapters.yaml"]);
    place.write("adapters.yaml", "operations: {'invoice:write': {kind: noop}, 'other:thing': {kind: noop}}");
    let server = place.serve();
    let workflow = server.define(PAY);
    let execution = start(&server, &workflow);
    assert_eq!(ended(&server, &execution)["status"], "completed");
    server.stop();
    place.write("adapters.yaml", "operations: {'other:thing': {kind: noop}}");
    let server = place.serve();
    let path = format!("/api/v1/workflows/{workflow}/execute");
    let (status, refused) = server.post(&path, &json!({}));
    assert_eq!(status, StatusCode::BAD_REQUEST, "{refused}");
    let message = refused["error"]["message"].as_str().expect("a message");
    assert!(
        message.starts_with("`pay` calls the operation `invoice:write`, which is not bound"),
        "{message}"
    );
    assert!(message.contains("adapters: {operations: {\"invoice:write\": {kind: http"), "{message}");
    assert_eq!(refused["error"]["details"][0]["path"], "pay", "{refused}");
    // A dry run says the same, and an upload warns of it.
    let (status, checked) = server.post(&path, &json!({ "options": { "dryRun": true } }));
    assert_eq!((status, &checked["valid"]), (StatusCode::OK, &json!(false)), "{checked}");
    let (status, made) = upload(&server, server.token(), PAY);
    assert_eq!((status, &made["warnings"][0]["code"]), (StatusCode::CREATED, &json!("W0257")), "{made}");
    let (status, refused) = upload(&server, server.token(), &PAY.replace("'invoice:write'", "duckdb"));
    assert_eq!(status, StatusCode::BAD_REQUEST, "{refused}");
    // The ended execution can be repeated: it has its bindings.
    let retry = format!("/api/v1/executions/{execution}/retry");
    let (status, retried) = server.post(&retry, &json!({ "fromNode": "pay" }));
    assert_eq!(status, StatusCode::ACCEPTED, "{retried}");
    // Under its stored version it would start anew, and that is not bound.
    let (status, refused) = server.post(&retry, &json!({ "fromNode": "pay", "version": "latest" }));
    assert_eq!(status, StatusCode::BAD_REQUEST, "{refused}");
}

#[test]
fn programs_of_bindings_need_the_right_of_the_tenant() {
    let place = Place::new().with(&["--adapters", "adapters.yaml"]);
    place.write("adapters.yaml", "operations: {'invoice:write': {kind: shell, command: 'echo paid'}}");
    let server = place.serve();
    let (_, tenant) = server.post("/api/v1/tenants", &json!({ "name": "other" }));
    let body = json!({ "name": "t", "role": "developer", "tenantId": tenant["id"] });
    let (_, token) = server.post("/api/v1/tokens", &body);
    let token = token["token"].as_str().expect("a token");
    let (status, made) = upload(&server, token, PAY);
    assert_eq!(status, StatusCode::CREATED, "{made}");
    let path = format!("/api/v1/workflows/{}/execute", made["id"].as_str().expect("an id"));
    let request = server.bare(Method::POST, &path).bearer_auth(token).json(&json!({}));
    let (status, refused) = crate::rig::read_answer(request.send().expect("an answer"));
    assert_eq!(status, StatusCode::FORBIDDEN, "{refused}");
    assert!(
        refused["error"]["message"].as_str().expect("a message").contains("runs a program (`shell`)"),
        "{refused}"
    );
    // A document's own binding is refused at its upload.
    let own = format!("adapters: {{operations: {{'invoice:write': {{kind: shell, command: id}}}}}}\n{PAY}");
    let (status, refused) = upload(&server, token, &own);
    assert_eq!(status, StatusCode::FORBIDDEN, "{refused}");
    // The owner's tenant may.
    let execution = start(&server, &server.define(PAY));
    assert_eq!(ended(&server, &execution)["status"], "completed");
}

#[test]
fn the_egress_guard_holds_for_bindings() {
    let place = Place::new().with(&["--adapters", "adapters.yaml"]);
    place.write("adapters.yaml", "operations: {'invoice:write': {kind: http, url: 'http://127.0.0.1:9/'}}");
    let server = place.serve();
    let text = PAY.replace(", retry: {max_attempts: 100, initial_delay: 0.2}", "");
    let execution = start(&server, &server.define(&text));
    let failed = ended(&server, &execution);
    assert_eq!(failed["errors"][0]["code"], "EGRESS_REFUSED", "{failed}");
}

#[test]
fn act_16_the_key_of_an_action_stays_the_same_when_its_worker_is_killed() {
    let place = Place::new().with(&["--adapters", "adapters.yaml"]);
    let command = "echo \"$WINDLASS_IDEMPOTENCY_KEY\" >>keys; test -e ready || { touch ready; sleep 600; }";
    place.write(
        "adapters.yaml",
        &json!({ "operations": { "invoice:write": { "kind": "shell", "command": command } } }).to_string(),
    );
    let server = place.serve();
    let workflow = server.define(
        "{schemaVersion: 1, workflowId: w, name: w, actions: [{actionId: bill, order: 1, operation: 'invoice:write', retryPolicy: {initialBackoffMs: 1}}]}",
    );
    let execution = start(&server, &workflow);
    until("the first try began", || place.path("ready").exists().then_some(()));
    server.kill();
    let server = place.serve();
    let done = ended(&server, &execution);
    assert_eq!(done["status"], "completed", "{done}");
    assert_eq!(place.lines("keys"), vec![format!("{execution}:bill"); 2]);
}

#[test]
fn a_start_of_actions_that_are_not_bound_is_refused_with_the_action_and_the_line() {
    let place = Place::new();
    let server = place.serve();
    let workflow = server.define(
        "{schemaVersion: 1, workflowId: w, name: w, actions: [{actionId: bill, order: 1, operation: 'invoice:write'}]}",
    );
    let (status, refused) = server.post(&format!("/api/v1/workflows/{workflow}/execute"), &json!({}));
    assert_eq!(status, StatusCode::BAD_REQUEST, "{refused}");
    let message = refused["error"]["message"].as_str().expect("a message");
    assert!(
        message.starts_with("`bill` calls the operation `invoice:write`, which is not bound; add it"),
        "{message}"
    );
    let hint = refused["error"]["details"][0]["hint"].as_str().expect("a hint");
    assert!(hint.contains("adapters: {operations: {\"invoice:write\": {kind: http, method: POST"), "{hint}");
}
