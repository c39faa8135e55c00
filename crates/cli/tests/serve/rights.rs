//! Attacks by definitions of a tenant on the machine of the server.

use crate::executions::{finish, until, waits_for};
use crate::rig::{Place, Server, read_answer};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use std::path::Path;

/// A tenant that may not run programs, and a developer of it.
struct Guest<'s> {
    server: &'s Server,
    tenant: String,
    token: String,
}

impl Guest<'_> {
    fn of(server: &Server) -> Guest<'_> {
        let (_, made) = server.post("/api/v1/tenants", &json!({ "name": "Guests" }));
        assert_eq!(made["programs"], "denied", "{made}");
        let tenant = made["id"].as_str().unwrap().to_owned();
        let asked = json!({ "name": "ann", "role": "owner", "tenantId": tenant });
        let token = server.post("/api/v1/tokens", &asked).1["token"].as_str().unwrap().to_owned();
        Guest { server, tenant, token }
    }

    fn may(&self, programs: &str) {
        let path = format!("/api/v1/tenants/{}", self.tenant);
        let change = self.server.request(Method::PATCH, &path).json(&json!({ "programs": programs }));
        let (status, changed) = read_answer(change.send().unwrap());
        assert_eq!((status, &changed["programs"]), (StatusCode::OK, &json!(programs)), "{changed}");
    }

    fn send(&self, method: Method, path: &str, body: &str) -> (StatusCode, Value) {
        let request = self.server.bare(method, path).bearer_auth(&self.token);
        read_answer(request.header("Content-Type", "application/json").body(body.to_owned()).send().unwrap())
    }

    fn upload(&self, text: &str) -> (StatusCode, Value) {
        let request = self.server.bare(Method::POST, "/api/v1/workflows").bearer_auth(&self.token);
        read_answer(request.header("Content-Type", "text/yaml").body(text.to_owned()).send().unwrap())
    }

    fn run(&self, workflow: &str) -> (StatusCode, Value) {
        let path = format!("/api/v1/workflows/{workflow}/execute");
        self.send(Method::POST, &path, &json!({ "options": { "async": false } }).to_string())
    }
}

fn id(answer: &Value) -> String {
    answer["id"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

#[track_caller]
fn denied((status, answer): (StatusCode, Value)) {
    assert_eq!(status, StatusCode::FORBIDDEN, "{answer}");
    assert_eq!(answer["error"]["code"], "PERMISSION_DENIED");
    assert!(answer["error"]["message"].as_str().unwrap().contains("runs a program"), "{answer}");
}

fn touches(file: &Path) -> String {
    format!(
        "metadata: {{name: touches}}\nworkflow:\n- {{step: a, tool: {{kind: noop}}, next: b}}\n\
         - {{step: b, tool: {{kind: shell, command: 'touch {}'}}}}\n",
        file.display()
    )
}

#[test]
fn a_tenant_without_the_right_uploads_nothing_that_runs_a_program() {
    let place = Place::new();
    let server = place.serve();
    let guest = Guest::of(&server);
    let file = place.data().join("touched");
    let node = |kind: &str, config: Value| {
        json!({
            "name": "w",
            "nodes": [{ "id": "t", "type": "trigger", "config": {} }, { "id": "n", "type": kind, "config": config }],
            "edges": [{ "id": "e", "source": "t", "target": "n" }],
        })
        .to_string()
    };
    let uploads = [
        touches(&file),
        "workflow:\n- {step: a, tool: {kind: python, code: 'def main(): return 1'}}\n".to_owned(),
        "workflow:\n- step: a\n  tool:\n  - x: {kind: noop}\n  - y: {kind: shell, command: id}\n".to_owned(),
        "workbook:\n- {name: w, tool: {kind: shell, command: id}}\nworkflow:\n- {step: a, tool: {kind: workbook, name: w}}\n"
            .to_owned(),
        node("code", json!({ "language": "python", "code": "1" })),
        node("code", json!({ "language": "javascript", "code": "1" })),
    ];
    for text in &uploads {
        denied(guest.upload(text));
        let named = guest.server.bare(Method::PUT, "/api/v1/workflows?name=n").bearer_auth(&guest.token);
        denied(read_answer(named.header("Content-Type", "text/yaml").body(text.clone()).send().unwrap()));
    }
    let (status, harmless) = guest.upload("workflow:\n- {step: a, tool: {kind: noop}}\n");
    assert_eq!(status, StatusCode::CREATED);
    let path = format!("/api/v1/workflows/{}", id(&harmless));
    let next = guest.server.bare(Method::PUT, &path).bearer_auth(&guest.token);
    denied(read_answer(next.header("Content-Type", "text/yaml").body(touches(&file)).send().unwrap()));
    // They cannot give it to themselves, and it is not the role that has it.
    let path = format!("/api/v1/tenants/{}", guest.tenant);
    let (status, _) = guest.send(Method::PATCH, &path, r#"{"programs":"allowed"}"#);
    assert_eq!(status, StatusCode::FORBIDDEN);
    // The owner of the server, who acts for them, has no more rights than they have.
    let acting = server.request(Method::POST, "/api/v1/workflows").header("X-Tenant-ID", &guest.tenant);
    denied(read_answer(acting.header("Content-Type", "text/yaml").body(touches(&file)).send().unwrap()));
    assert_eq!(read_answer(server.get(&path)).1["programs"], "denied");
}

#[test]
fn a_withdrawn_right_has_no_effect_from_the_next_start_and_step_on() {
    let place = Place::new();
    let server = place.serve();
    let guest = Guest::of(&server);
    guest.may("allowed");
    let (file, go) = (place.data().join("touched"), place.data().join("go"));
    let workflow = id(&guest.upload(&touches(&file)).1);
    // One that runs a program, and then wants to run another.
    let command = format!("touch {}", file.display());
    let slow = waits_for(&go).replace(
        "{step: last, tool: {kind: noop}}",
        &format!("{{step: last, tool: {{kind: shell, command: '{command}'}}}}"),
    );
    let slow = id(&guest.upload(&slow).1);
    let path = format!("/api/v1/workflows/{slow}/execute");
    let begun = guest.send(Method::POST, &path, "{}").1["executionId"].as_str().unwrap().to_owned();
    let look = |id: &str| guest.send(Method::GET, &format!("/api/v1/executions/{id}"), "").1;
    while !look(&begun)["nodeExecutions"].to_string().contains("\"running\"") {}
    guest.may("denied");
    denied(guest.run(&workflow));
    std::fs::write(&go, "").unwrap();
    let ended = loop {
        let answer = look(&begun);
        if answer["status"] != "running" {
            break answer;
        }
    };
    assert_eq!(ended["status"], "failed", "{ended}");
    assert_eq!(ended["errors"][0]["code"], "PERMISSION_DENIED", "{ended}");
    denied(guest.send(Method::POST, &format!("/api/v1/executions/{begun}/retry"), "{}"));
    assert!(!file.exists());
    let Guest { tenant, token, .. } = guest;
    drop(server);
    let server = place.serve();
    let guest = Guest { server: &server, tenant, token };
    denied(guest.run(&workflow));
    guest.may("allowed");
    let (status, ran) = guest.run(&workflow);
    assert_eq!((status, &ran["status"]), (StatusCode::OK, &json!("completed")), "{ran}");
    assert!(file.exists());
}

#[test]
fn no_child_runs_what_its_tenant_may_not() {
    let place = Place::new();
    let server = place.serve();
    let guest = Guest::of(&server);
    guest.may("allowed");
    let file = place.data().join("touched");
    guest.upload(&touches(&file));
    let parent = "metadata: {name: parent}\nworkflow:\n- {step: a, tool: {kind: noop}, next: b}\n\
                  - {step: b, tool: {kind: playbook, path: touches}}\n";
    let parent = id(&guest.upload(parent).1);
    guest.may("denied");
    let (_, ran) = guest.run(&parent);
    assert_eq!(ran["status"], "failed", "{ran}");
    assert!(!file.exists());
}

#[test]
fn variables_of_the_server_are_read_only_where_the_operator_listed_them() {
    let reads = |name: &str| {
        format!("workflow:\n- {{step: a, tool: {{kind: secrets, provider: env, name: {name}}}}}\n")
    };
    let keychain = "keychain:\n- {name: k, kind: env, variable: CLOUD_KEY}\nworkflow:\n- {step: a, tool: {kind: noop}, next: b}\n\
                    - {step: b, tool: {kind: http, url: 'https://example.com/{{ keychain.k.token }}'}}\n";
    let refused = |server: &Server, text: &str| {
        let answer = finish(server, &server.define(text), json!({}));
        assert_eq!(answer["status"], "failed", "{answer}");
        let answer = until(server, answer["executionId"].as_str().unwrap(), "failed");
        assert_eq!(answer["errors"][0]["code"], "PERMISSION_DENIED", "{answer}");
        assert!(!answer.to_string().contains("s3cret-of-the-cloud"), "{answer}");
    };
    let place =
        || Place::new().variable("CLOUD_KEY", "s3cret-of-the-cloud").variable("APP_KEY", "s3cret-app");
    let unlisted = place();
    let server = unlisted.serve();
    for text in [reads("CLOUD_KEY"), reads("APP_KEY"), reads("PATH"), reads("NOT_THERE"), keychain.to_owned()]
    {
        refused(&server, &text);
    }
    drop(server);
    let listed = place().with(&["--env-secrets", "APP_*"]);
    let server = listed.serve();
    let answer = finish(&server, &server.define(&reads("APP_KEY")), json!({}));
    assert_eq!(answer["status"], "completed", "{answer}");
    refused(&server, &reads("CLOUD_KEY"));
    // The variables belong to the user of the server: another tenant cannot read them.
    let guest = Guest::of(&server);
    let theirs = id(&guest.upload(&reads("APP_KEY")).1);
    assert_eq!(guest.run(&theirs).1["status"], "failed");
}
