//! Schemas of inputs that ask for more work than anybody has, in definitions, at starts, in sub-workflows and in stored
//! versions of before.

use crate::rig::Place;
use crate::stage::Stage;
use reqwest::{Method, StatusCode};
use serde_json::{Map, Value, json};

/// Definitions that each refer twice to the one before: 2^levels evaluations of one value.
fn doubling(levels: usize) -> Value {
    let link = |level: usize| match level {
        0 => json!({ "type": "object" }),
        _ => {
            let below = json!({ "$ref": format!("#/$defs/d{}", level - 1) });
            json!({ "allOf": [below, below] })
        }
    };
    let definitions: Map<String, Value> =
        (0..=levels).map(|level| (format!("d{level}"), link(level))).collect();
    json!({ "$ref": format!("#/$defs/d{levels}"), "$defs": definitions })
}

/// Doubles with every level of the value: harmless for flat values.
fn recursive() -> Value {
    let part = json!({ "properties": { "x": { "$ref": "#/$defs/a" } } });
    json!({ "type": "object", "$ref": "#/$defs/a", "$defs": { "a": { "allOf": [part, part] } } })
}

fn deep(levels: usize) -> Value {
    (0..levels).fold(json!({}), |inner, _| json!({ "x": inner }))
}

fn workflow(name: &str, schema: &Value) -> String {
    let trigger =
        json!({ "id": "t", "type": "trigger", "config": { "manualConfig": { "inputPayload": schema } } });
    json!({ "name": name, "nodes": [trigger], "edges": [] }).to_string()
}

fn parent(child: &str, inputs: &Value) -> String {
    let config = json!({ "workflowName": child, "inputs": inputs });
    let nodes = json!([{ "id": "sub", "type": "workflow", "config": config }]);
    json!({ "name": format!("parent of {child}"), "nodes": nodes, "edges": [] }).to_string()
}

fn uploaded(stage: &Stage, token: &str, text: &str) -> String {
    let (status, made) = stage.upload(token, text);
    assert_eq!(status, StatusCode::CREATED, "{made}");
    made["id"].as_str().unwrap().to_owned()
}

fn execute(stage: &Stage, token: &str, workflow: &str, inputs: &Value) -> (StatusCode, Value) {
    let path = format!("/api/v1/workflows/{workflow}/execute");
    stage.send(token, Method::POST, &path, &json!({ "inputs": inputs }))
}

/// The execution as the tenant sees it when it has ended.
fn ended(stage: &Stage, token: &str, started: &Value) -> Value {
    stage.ended(token, started["executionId"].as_str().unwrap())
}

/// Checks that everything responds: health, other tenants, and a start from request to end.
fn is_well(stage: &Stage) {
    assert_eq!(stage.server.get("/healthz").status(), StatusCode::OK);
    assert_eq!(stage.server.get("/readyz").status(), StatusCode::OK);
    stage.bystander();
    let id = stage.server.define(&workflow("calm", &json!({ "type": "object" })));
    let (status, started) = stage.server.post(&format!("/api/v1/workflows/{id}/execute"), &json!({}));
    assert_eq!(status, StatusCode::ACCEPTED, "{started}");
    assert_eq!(ended(stage, stage.server.token(), &started)["status"], "completed");
}

#[test]
fn a_schema_that_doubles_at_every_reference_is_refused_at_upload() {
    let stage = Stage::new();
    let token = stage.token("developer");
    for schema in [
        doubling(45),
        doubling(20),
        json!({ "$ref": "#" }),
        json!({ "$defs": { "a": { "$ref": "#/$defs/b" }, "b": { "anyOf": [{ "$ref": "#/$defs/a" }] } } }),
        json!({ "$ref": "http://127.0.0.1:1/schema.json" }),
        json!({ "properties": { "a": { "pattern": "(?=a)b" } } }),
        json!({ "description": "x".repeat(100_000) }),
        (0..40).fold(json!(true), |inner, _| json!({ "not": inner })),
    ] {
        let (status, refused) = stage.upload(&token, &workflow("bad", &schema));
        assert_eq!(status, StatusCode::BAD_REQUEST, "{refused}");
        let detail = &refused["error"]["details"][0];
        assert_eq!(detail["code"], "E0140", "{refused}");
        assert!(detail["message"].as_str().unwrap().contains("not a usable JSON Schema"), "{refused}");
    }
    is_well(&stage);
}

#[test]
fn a_value_that_takes_too_many_steps_is_refused_at_the_start() {
    let stage = Stage::new();
    let token = stage.token("developer");
    let id = uploaded(&stage, &token, &workflow("recursive", &recursive()));
    assert_eq!(execute(&stage, &token, &id, &deep(5)).0, StatusCode::ACCEPTED);
    let (status, refused) = execute(&stage, &token, &id, &deep(55));
    assert_eq!(status, StatusCode::BAD_REQUEST, "{refused}");
    let message = refused["error"]["details"][0]["message"].as_str().unwrap();
    assert!(message.contains("takes more than 200000 steps"), "{message}");
    let backtracking = json!({ "properties": { "text": { "type": "string", "pattern": "^(a+)+$" } } });
    let id = uploaded(&stage, &token, &workflow("pattern", &backtracking));
    let (status, refused) =
        execute(&stage, &token, &id, &json!({ "text": format!("{}!", "a".repeat(200_000)) }));
    assert_eq!(status, StatusCode::BAD_REQUEST, "{refused}");
    is_well(&stage);
}

#[test]
fn a_sub_workflow_whose_inputs_cannot_be_validated_fails_alone_and_again_after_a_kill() {
    let mut stage = Stage::new();
    let token = stage.token("developer");
    uploaded(&stage, &token, &workflow("recursive", &recursive()));
    let attack = uploaded(&stage, &token, &parent("recursive", &deep(50)));
    let (status, started) = execute(&stage, &token, &attack, &json!({}));
    assert_eq!(status, StatusCode::ACCEPTED, "{started}");
    let seen = ended(&stage, &token, &started);
    let node = &seen["nodeExecutions"][0];
    assert_eq!(
        (&node["status"], &node["error"]["code"]),
        (&json!("failed"), &json!("VALIDATION_ERROR")),
        "{seen}"
    );
    assert!(node["error"]["message"].as_str().unwrap().contains("200000 steps"), "{node}");
    is_well(&stage);
    // Killed right after the start: what it left is taken up again and ends the same way.
    let (_, started) = execute(&stage, &token, &attack, &json!({}));
    stage.server.kill();
    stage.server = stage.place.serve();
    assert_eq!(ended(&stage, &token, &started)["status"], "failed");
    is_well(&stage);
}

/// A store that an earlier release wrote, which let such schemas in.
#[test]
fn a_stored_version_with_such_a_schema_does_not_start() {
    let place = Place::new();
    let mark = json!({ "type": "object", "title": "to be replaced" });
    let stage = Stage::at(place);
    let token = stage.token("developer");
    let old = uploaded(&stage, &token, &workflow("old", &mark));
    let caller = uploaded(&stage, &token, &parent("old", &json!({})));
    let Stage { place, server, tenant } = stage;
    assert!(server.stop().0.success());
    let store = rusqlite::Connection::open(place.data().join("windlass.db")).unwrap();
    let replaced = store
        .execute(
            "UPDATE definitions SET source = replace(source, ?1, ?2), compiler = 0 WHERE name = 'old'",
            (mark.to_string(), doubling(45).to_string()),
        )
        .unwrap();
    assert_eq!(replaced, 1);
    drop(store);
    let server = place.serve();
    let stage = Stage { place, server, tenant };
    let (status, refused) = execute(&stage, &token, &old, &json!({}));
    assert_eq!(status, StatusCode::CONFLICT, "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("upload a version"), "{refused}");
    let (status, started) = execute(&stage, &token, &caller, &json!({}));
    assert_eq!(status, StatusCode::ACCEPTED, "{started}");
    let seen = ended(&stage, &token, &started);
    let message = seen["nodeExecutions"][0]["error"]["message"].as_str().unwrap();
    assert!(message.contains("the schema of its inputs"), "{message}");
    is_well(&stage);
}
