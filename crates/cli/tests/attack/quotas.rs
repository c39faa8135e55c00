//! Things that a tenant could make without end: context, secrets, tokens, values of a body.

use crate::rig::{Place, read_answer};
use crate::stage::Stage;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

/// Just below the size at which a value is set aside.
const LARGE: usize = 60_000;

/// An execution that waits at a gate, with a context that can be patched.
fn waiting(stage: &Stage, token: &str) -> String {
    let text = "metadata: {name: gate}\nworkload: {go: 0}\nworkflow:\n- step: a\n  tool: {kind: noop}\n  \
                spec: {policy: {admit: {rules: [{when: '{{ ctx.go == 1 }}', then: {allow: true}}, {else: {then: {allow: false}}}]}}}\n";
    let (status, made) = stage.upload(token, text);
    assert_eq!(status, StatusCode::CREATED, "{made}");
    let path = format!("/api/v1/workflows/{}/execute", made["id"].as_str().unwrap());
    let (status, begun) = stage.send(token, Method::POST, &path, &json!({}));
    assert_eq!(status, StatusCode::ACCEPTED, "{begun}");
    begun["executionId"].as_str().unwrap().to_owned()
}

#[test]
fn a_context_grows_to_its_bound_and_no_further() {
    let stage = Stage::new();
    let token = stage.token("member");
    let id = waiting(&stage, &stage.token("developer"));
    let path = format!("/api/v1/executions/{id}/context");
    let patch = |body: Value| stage.send(&token, Method::PATCH, &path, &body);
    let mut taken = 0;
    let refused = loop {
        let (status, answer) = patch(json!({ format!("k{taken}"): "x".repeat(LARGE) }));
        if status != StatusCode::OK {
            break (status, answer);
        }
        taken += 1;
        assert!(taken < 30, "the context has no bound");
    };
    assert_eq!(refused.0, StatusCode::PAYLOAD_TOO_LARGE, "{}", refused.1);
    let message = refused.1["error"]["message"].as_str().unwrap();
    assert!(message.contains("the context would have") && message.contains("1048576"), "{message}");
    assert!(taken >= 15, "{taken}");
    assert_eq!(
        patch(json!({ "k0": 1, "k1": 2, "more": "x".repeat(LARGE) })).0,
        StatusCode::OK,
        "it may shrink"
    );
    assert_eq!(patch(json!({ "aside": "x".repeat(1_000_000) })).0, StatusCode::OK, "a reference is small");
    assert_eq!(patch(json!({ "go": 1 })).0, StatusCode::OK);
    assert_eq!(stage.ended(&token, &id)["status"], "completed");
}

#[test]
fn a_step_that_sets_more_than_the_context_holds_fails_and_says_so() {
    let stage = Stage::new();
    // The first is decided without a worker, the second is the work of one.
    for tool in ["{kind: noop}", "[{one: {kind: noop}}, {two: {kind: noop, result: 1}}]"] {
        sets_too_much(&stage, tool);
    }
}

fn sets_too_much(stage: &Stage, tool: &str) {
    let keys: String = (0..20).map(|n| format!("ctx.k{n}: '{{{{ workload.text }}}}', ")).collect();
    let text = format!(
        "metadata: {{name: sets}}\nworkload: {{text: ''}}\nworkflow:\n- step: a\n  tool: {tool}\n  set: {{{keys}}}\n"
    );
    let token = stage.token("developer");
    let (status, made) = stage.upload(&token, &text);
    assert_eq!(status, StatusCode::CREATED, "{made}");
    let path = format!("/api/v1/workflows/{}/execute", made["id"].as_str().unwrap());
    let body = json!({ "inputs": { "text": "x".repeat(LARGE) }, "options": { "async": false } });
    let (_, ended) = stage.send(&token, Method::POST, &path, &body);
    assert_eq!(ended["status"], "failed", "{tool}: {ended}");
    let error = &ended["nodeResults"]["a"]["error"];
    assert_eq!(error["code"], "CONTEXT_TOO_LARGE", "{error}");
    assert!(error["message"].as_str().unwrap().contains("`k0`"), "{error}");
}

#[test]
fn secrets_of_a_tenant_have_a_size_together() {
    let stage = Stage::new();
    let admin = stage.token("admin");
    let value: String = ('a'..='z').cycle().take(65_000).collect();
    let put = |name: &str| {
        stage.send(&admin, Method::PUT, &format!("/api/v1/secrets/{name}"), &json!({ "value": value }))
    };
    let refused = (0..20).map(|n| put(&format!("s{n}"))).find(|(status, _)| *status != StatusCode::OK);
    let (status, answer) = refused.expect("there is a bound");
    assert_eq!(
        (status, &answer["error"]["code"]),
        (StatusCode::CONFLICT, &json!("LIMIT_EXCEEDED")),
        "{answer}"
    );
    assert_eq!(put("s0").0, StatusCode::OK, "one that is there can be replaced");
    let own = stage.server.request(Method::PUT, "/api/v1/secrets/mine").json(&json!({ "value": value }));
    assert_eq!(own.send().unwrap().status(), StatusCode::OK, "another tenant");
}

#[test]
fn tokens_of_a_tenant_have_a_number() {
    let stage = Stage::new();
    let admin = stage.token("admin");
    let make =
        || stage.send(&admin, Method::POST, "/api/v1/tokens", &json!({ "name": "t", "role": "viewer" }));
    let mut last = Value::Null;
    let refused = (0..1_001).map(|_| make()).find(|(status, made)| {
        if *status == StatusCode::CREATED {
            last = made["id"].clone();
        }
        *status != StatusCode::CREATED
    });
    let (status, answer) = refused.expect("there is a bound");
    assert_eq!(
        (status, &answer["error"]["code"]),
        (StatusCode::CONFLICT, &json!("LIMIT_EXCEEDED")),
        "{answer}"
    );
    let path = format!("/api/v1/tokens/{}", last.as_str().unwrap());
    let revoked = stage.server.bare(Method::DELETE, &path).bearer_auth(&admin).send().unwrap();
    assert_eq!(revoked.status(), StatusCode::NO_CONTENT);
    assert_eq!(make().0, StatusCode::CREATED, "a revoked one does not count");
}

#[test]
fn a_body_of_very_many_values_is_refused_before_it_takes_memory() {
    let stage = Stage::new();
    let token = stage.token("developer");
    let id = waiting(&stage, &token);
    let before = stage.peak_mib();
    let body = format!("{{\"a\": [{}[]]}}", "[],".repeat(1_300_000));
    for _ in 0..4 {
        let path = format!("/api/v1/executions/{id}/context");
        let request = stage.server.bare(Method::PATCH, &path).bearer_auth(&token);
        let request = request.header("Content-Type", "application/json").body(body.clone());
        let (status, answer) = read_answer(request.send().unwrap());
        assert_eq!(status, StatusCode::BAD_REQUEST, "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains("250000 values"), "{answer}");
    }
    println!("{before} MiB before, {} MiB after", stage.peak_mib());
    assert!(stage.peak_mib() < before + 60, "{} MiB", stage.peak_mib());
}

#[test]
fn a_server_whose_disk_reserve_is_reached_is_not_ready_and_says_why() {
    let place = Place::new().variable("WINDLASS_DISK_RESERVE", "1000000GiB");
    let server = place.serve();
    let (status, answer) = read_answer(server.get("/readyz"));
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{answer}");
    assert!(answer["error"]["message"].as_str().unwrap().contains("reserve"), "{answer}");
    assert_eq!(server.get("/healthz").status(), StatusCode::OK);
}
