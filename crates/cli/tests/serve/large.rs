//! Values over 64 KiB: answer as they are up to a bound, and had whole beyond it.

use crate::executions::{finish, get};
use crate::rig::{Place, Server, read_answer};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

/// Definition whose result is one text.
const ECHO: &str = "
metadata: {name: echo}
workload: {text: ''}
workflow:
- {step: say, tool: {kind: noop, result: '{{ workload.text }}'}}
";

fn text(bytes: usize) -> Value {
    json!("x".repeat(bytes))
}

fn node<'v>(answer: &'v Value, name: &str) -> &'v Value {
    let nodes = answer["nodeExecutions"].as_array().unwrap();
    nodes.iter().find(|node| node["nodeId"] == name).unwrap()
}

fn fetched(server: &Server, reference: &Value) -> Value {
    let response = server.get(reference["url"].as_str().unwrap_or_else(|| panic!("no url: {reference}")));
    assert_eq!(response.headers()["Content-Type"], "application/json");
    assert_eq!(response.headers()["ETag"], format!("\"{}\"", reference["$artifact"].as_str().unwrap()));
    let (status, value) = read_answer(response);
    assert_eq!(status, StatusCode::OK, "{value}");
    value
}

#[test]
fn wfl_04_wfl_07_large_inputs_and_outputs_are_reported_as_they_are() {
    let place = Place::new();
    let server = place.serve();
    let finished = finish(&server, &server.define(ECHO), json!({ "text": text(200_000) }));
    assert_eq!(finished["outputs"], json!({ "say": text(200_000) }));
    let reference = &finished["nodeResults"]["say"]["output"];
    assert_eq!(fetched(&server, reference), text(200_000));
    let whole = get(&server, finished["executionId"].as_str().unwrap(), "");
    assert_eq!(whole["inputs"], json!({ "text": text(200_000) }));
    assert_eq!(whole["outputs"], json!({ "say": text(200_000) }));
    assert_eq!(node(&whole, "say")["output"], *reference);
}

#[test]
fn wfl_07_beyond_the_bound_a_reference_says_where_the_value_is() {
    let place = Place::new();
    let server = place.serve();
    let finished = finish(&server, &server.define(ECHO), json!({ "text": text(1_200_000) }));
    let whole = get(&server, finished["executionId"].as_str().unwrap(), "");
    for outputs in [&finished["outputs"], &whole["outputs"]] {
        assert_eq!(fetched(&server, outputs), text(1_200_000));
    }
    assert_eq!(fetched(&server, &whole["inputs"]), json!({ "text": text(1_200_000) }));
}

#[test]
fn wfl_19_streams_say_where_a_large_value_is() {
    let place = Place::new();
    let server = place.serve();
    let finished = finish(&server, &server.define(ECHO), json!({ "text": text(100_000) }));
    let id = finished["executionId"].as_str().unwrap();
    let stream = server.get(&format!("/api/v1/executions/{id}/stream")).text().unwrap();
    let messages = stream.lines().filter_map(|line| line.strip_prefix("data:"));
    let messages: Vec<Value> = messages.map(|line| serde_json::from_str(line).unwrap()).collect();
    let said = |kind: &str| messages.iter().find(|message| message["type"] == kind).unwrap()["data"].clone();
    assert_eq!(fetched(&server, &said("node_completed")["output"]), text(100_000));
    assert_eq!(fetched(&server, &said("execution_completed")["outputs"]), text(100_000));
}

#[test]
fn a_value_is_there_for_executions_that_name_it_and_for_their_tenant_alone() {
    let place = Place::new();
    let server = place.serve();
    let workflow = server.define(ECHO);
    let large = finish(&server, &workflow, json!({ "text": text(100_000) }));
    let small = finish(&server, &workflow, json!({ "text": "small" }));
    let reference = &large["nodeResults"]["say"]["output"];
    let (url, key) = (reference["url"].as_str().unwrap(), reference["$artifact"].as_str().unwrap());
    let status = |path: &str| server.get(path).status();
    assert_eq!(status(url), StatusCode::OK);
    let other = format!("/api/v1/executions/{}/artifacts/{key}", small["executionId"].as_str().unwrap());
    assert_eq!(status(&other), StatusCode::NOT_FOUND);
    let (no_digits, another) =
        (url.replace("sha256:", ""), url.replace(key, &format!("sha256:{}", "0".repeat(64))));
    assert_eq!((status(&no_digits), status(&another)), (StatusCode::NOT_FOUND, StatusCode::NOT_FOUND));
    assert_eq!(server.bare(Method::GET, url).send().unwrap().status(), StatusCode::UNAUTHORIZED);
    let (_, tenant) = server.post("/api/v1/tenants", &json!({ "name": "Acme" }));
    let foreign = server.request(Method::GET, url).header("X-Tenant-ID", tenant["id"].as_str().unwrap());
    assert_eq!(foreign.send().unwrap().status(), StatusCode::NOT_FOUND);
    let again =
        server.request(Method::GET, url).header("If-None-Match", format!("\"{key}\"")).send().unwrap();
    assert_eq!((again.status(), again.text().unwrap().len()), (StatusCode::NOT_MODIFIED, 0));
    // What a program says about a reference is only data.
    let forged = finish(&server, &workflow, json!({ "text": { "$artifact": key, "bytes": 100_002 } }));
    assert_eq!(forged["outputs"], json!({ "$artifact": key, "bytes": 100_002 }), "{forged}");
}
