//! A tenant that stores without end: journals, logs and large values count against its limit, and others go on.

use crate::rig::{Place, until};
use crate::stage::Stage;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

const ECHO: &str = "metadata: {name: echo}\nworkload: {text: ''}\nworkflow:\n\
                    - {step: say, tool: {kind: noop, result: '{{ workload.text }}'}}\n";
/// Writes more than any limit here, step by step.
const CHATTER: &str = "metadata: {name: chatter}\nworkflow:\n\
                       - {step: a, tool: {kind: shell, command: 'head -c 3000000 /dev/zero | tr \"\\\\0\" x | fold -w 1000'}, next: b}\n\
                       - {step: b, tool: {kind: shell, command: 'echo late'}}\n";

#[test]
fn what_a_tenant_stores_is_bounded_and_counted() {
    let stage = Stage::at(Place::new().with(&["--tenant-storage", "2MiB"]));
    let token = stage.token("developer");
    let workflow = uploaded(&stage, &token, ECHO);
    let mut answers = Vec::new();
    // Different values: each is kept.
    for number in 0..20 {
        let text = format!("{number} {}", "x".repeat(300_000));
        answers.push(executed(&stage, &token, &workflow, &json!({ "text": text })));
        if answers.last().is_some_and(|(status, _)| *status != StatusCode::OK) {
            break;
        }
    }
    let (status, refused) = answers.pop().unwrap();
    assert_eq!(
        (status, &refused["error"]["code"]),
        (StatusCode::INSUFFICIENT_STORAGE, &json!("QUOTA_EXCEEDED"))
    );
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("prune") && message.contains("storage"), "{message}");
    assert!(answers.len() > 1, "{answers:?}");
    let (status, upload) = stage.upload(&token, &ECHO.replace("echo", "other"));
    assert_eq!(status, StatusCode::INSUFFICIENT_STORAGE, "{upload}");
    // The tenant sees what it uses, and the operator what the limit is.
    let usage = usage(&stage);
    assert!(usage["artifacts"].as_u64().unwrap() > 1_000_000, "{usage}");
    assert_eq!(usage["limit"], 2 * 1024 * 1024, "{usage}");
    // Others go on.
    let own = stage.server.define(ECHO);
    let (status, answer) = executed(&stage, stage.server.token(), &own, &json!({ "text": "x" }));
    assert_eq!(status, StatusCode::OK, "{answer}");
    // More room opens it again.
    change(&stage, &json!({ "storage": 20 * 1024 * 1024 }));
    let (status, answer) = executed(&stage, &token, &workflow, &json!({ "text": "again" }));
    assert_eq!(status, StatusCode::OK, "{answer}");
}

#[test]
fn a_killed_server_counts_what_it_counted_before() {
    let stage = Stage::new();
    let token = stage.token("developer");
    let workflow = uploaded(&stage, &token, ECHO);
    for number in 0..5 {
        let text = format!("{number} {}", "x".repeat(if number == 0 { 100_000 } else { 100 }));
        let (status, answer) = executed(&stage, &token, &workflow, &json!({ "text": text }));
        assert_eq!(status, StatusCode::OK, "{answer}");
    }
    let before = usage(&stage);
    assert!(before["journal"].as_u64().unwrap() > 1_000, "{before}");
    let stage = stage.restarted();
    assert_eq!(usage(&stage), before);
    // The count goes on from there, and its limit is that of the count.
    change(&stage, &json!({ "storage": before["total"].as_u64().unwrap() + 1 }));
    let (status, answer) = executed(&stage, &token, &workflow, &json!({ "text": "once more" }));
    assert_eq!(status, StatusCode::OK, "{answer}");
    let (status, refused) = executed(&stage, &token, &workflow, &json!({ "text": "too much" }));
    assert_eq!(status, StatusCode::INSUFFICIENT_STORAGE, "{refused}");
}

#[test]
fn a_log_ends_where_the_storage_does_and_later_steps_say_so() {
    let stage = Stage::new();
    change(&stage, &json!({ "storage": 1024 * 1024, "programs": "allowed" }));
    let token = stage.token("developer");
    let workflow = uploaded(&stage, &token, CHATTER);
    let (status, answer) = executed(&stage, &token, &workflow, &json!({}));
    assert_eq!((status, &answer["status"]), (StatusCode::OK, &json!("failed")), "{answer}");
    let path = format!("/api/v1/executions/{}", answer["executionId"].as_str().unwrap());
    let (_, whole) = stage.send(&token, Method::GET, &path, &json!({}));
    assert_eq!(whole["errors"][0]["code"], "QUOTA_EXCEEDED", "{}", whole["errors"]);
    let usage = usage(&stage);
    assert!(usage["logs"].as_u64().unwrap() < 2 * 1024 * 1024, "{usage}");
    let end = until("the log says why it ends", || {
        let mut cursor = String::new();
        loop {
            let (_, page) =
                stage.send(&token, Method::GET, &format!("{path}/logs?limit=1000{cursor}"), &json!({}));
            let lines = page["logs"].as_array().unwrap();
            let end = lines.iter().find(|line| line["message"].as_str().unwrap().contains("is not kept"));
            if end.is_some() {
                return end.cloned();
            }
            let next = page["pagination"]["cursor"].as_str()?;
            cursor = format!("&cursor={next}");
        }
    });
    assert!(end["message"].as_str().unwrap().contains("storage"), "{end}");
}

#[test]
fn a_disk_below_its_reserve_takes_nothing_new_and_answers() {
    // More than any disk has.
    let stage = Stage::at(Place::new().with(&["--disk-reserve", "1000000GiB"]));
    let (status, refused) = stage.upload(stage.server.token(), ECHO);
    assert_eq!((status, &refused["error"]["code"]), (StatusCode::SERVICE_UNAVAILABLE, &json!("DISK_FULL")));
    assert_eq!(stage.server.get("/api/v1/workflows").status(), StatusCode::OK);
    let metrics = stage.server.get("/metrics").text().unwrap();
    assert!(metrics.contains("windlass_disk_full 1"), "{metrics}");
}

fn uploaded(stage: &Stage, token: &str, definition: &str) -> String {
    let (status, made) = stage.upload(token, definition);
    assert_eq!(status, StatusCode::CREATED, "{made}");
    made["id"].as_str().unwrap().to_owned()
}

fn executed(stage: &Stage, token: &str, workflow: &str, inputs: &Value) -> (StatusCode, Value) {
    let body = json!({ "inputs": inputs, "options": { "async": false } });
    stage.send(token, Method::POST, &format!("/api/v1/workflows/{workflow}/execute"), &body)
}

fn change(stage: &Stage, change: &Value) {
    let path = format!("/api/v1/tenants/{}", stage.tenant);
    let (status, changed) = stage.send(stage.server.token(), Method::PATCH, &path, change);
    assert_eq!(status, StatusCode::OK, "{changed}");
}

fn usage(stage: &Stage) -> Value {
    let path = format!("/api/v1/tenants/{}", stage.tenant);
    let (status, tenant) = stage.send(&stage.token("admin"), Method::GET, &path, &json!({}));
    assert_eq!(status, StatusCode::OK, "{tenant}");
    tenant["usage"].clone()
}
