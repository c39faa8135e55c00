//! Invalid requests: a 4xx with code, message and the field's path, and nothing is written.

use crate::rig::{Place, Server, read_answer};
use crate::rows;
use reqwest::Method;
use serde_json::{Value, json};

const PLAYBOOK: &str = "metadata: {name: hello}\nworkflow:\n  - step: start\n    tool: {kind: noop}\n";

struct Case<'c> {
    method: Method,
    path: String,
    kind: &'c str,
    body: Vec<u8>,
}

fn json_case(method: Method, path: &str, body: &Value) -> Case<'static> {
    Case { method, path: path.to_owned(), kind: "application/json", body: body.to_string().into() }
}

fn raw<'c>(method: Method, path: &str, kind: &'c str, body: impl Into<Vec<u8>>) -> Case<'c> {
    Case { method, path: path.to_owned(), kind, body: body.into() }
}

fn check(server: &Server, case: Case<'_>, status: u16, path: Option<&str>, message: &str) {
    let Case { method, path: route, kind, body } = case;
    let shown = String::from_utf8_lossy(&body[..body.len().min(200)]).into_owned();
    let mut request = server.request(method.clone(), &route);
    if !kind.is_empty() {
        request = request.header("Content-Type", kind);
    }
    let (found, answer) = read_answer(request.body(body).send().unwrap());
    let error = &answer["error"];
    assert_eq!(found.as_u16(), status, "{method} {route} {shown}: {answer}");
    assert!(error["code"].is_string() && error["details"].is_array(), "{answer}");
    let answer = error["message"].as_str().unwrap();
    assert!(answer.contains(message), "{method} {route} {shown}: {answer}");
    if let Some(path) = path {
        assert_eq!(error["details"][0]["path"], path, "{method} {route} {shown}: {answer}");
    }
}

#[test]
fn wfl_35_what_is_longer_than_its_column_is_refused_and_what_just_fits_is_taken() {
    let place = Place::new();
    let server = place.serve();
    let definition = |name: usize, id: usize, title: usize, code: usize| {
        let policy = json!({ "retryableErrors": ["c".repeat(code)] });
        let node = json!({ "id": "n".repeat(id), "name": "t".repeat(title), "type": "trigger", "retryPolicy": policy });
        json!({ "name": "w".repeat(name), "nodes": [node] })
    };
    let good = server.define(&definition(255, 100, 255, 50).to_string());
    let before = rows::all(&place.data());
    let post = |body: &Value| json_case(Method::POST, "/api/v1/workflows", body);
    check(&server, post(&definition(256, 1, 1, 1)), 400, Some("name"), "has errors");
    check(&server, post(&definition(1, 101, 1, 1)), 400, Some("nodes[0].id"), "has errors");
    check(&server, post(&definition(1, 1, 256, 1)), 400, Some("nodes[0].name"), "has errors");
    check(
        &server,
        post(&definition(1, 1, 1, 51)),
        400,
        Some("nodes[0].retryPolicy.retryableErrors[0]"),
        "has errors",
    );
    let kind = json!({ "name": "w", "nodes": [{ "id": "a", "type": "x".repeat(51) }] });
    check(&server, post(&kind), 400, Some("nodes[0].type"), "has errors");
    let execute = |options: Value| {
        let body = json!({ "options": options });
        json_case(Method::POST, &format!("/api/v1/workflows/{good}/execute"), &body)
    };
    let long = |count: usize| "é".repeat(count);
    check(
        &server,
        execute(json!({ "correlationId": long(101) })),
        400,
        Some("options.correlationId"),
        "1 to 100",
    );
    check(&server, execute(json!({ "tags": [long(201)] })), 400, Some("options.tags[0]"), "1 to 200");
    let policy = json!({ "retryPolicy": { "retryableErrors": ["OK", long(51)] } });
    check(&server, execute(policy), 400, Some("options.retryPolicy.retryableErrors[1]"), "1 to 50");
    let parent = json!({ "parentExecutionId": format!("exec_{}", "1".repeat(32)) });
    check(&server, execute(parent), 400, Some("options.parentExecutionId"), "there is no execution");
    assert_eq!(rows::all(&place.data()), before, "nothing was written");
    let fits = json!({ "options": { "correlationId": long(100), "retryPolicy": { "retryableErrors": [long(50)] } } });
    let (status, answer) = server.post(&format!("/api/v1/workflows/{good}/execute"), &fits);
    assert_eq!(status.as_u16(), 202, "{answer}");
}

#[test]
fn wfl_35_bad_input_is_a_4xx_with_the_place_and_nothing_is_written() {
    let place = Place::new().with(&["--body-limit", "64KiB"]);
    let server = place.serve();
    let id = server.define(PLAYBOOK);
    let workflow = format!("/api/v1/workflows/{id}");
    let before = rows::all(&place.data());
    let tokens = |body: &Value| json_case(Method::POST, "/api/v1/tokens", body);
    let get = |path: &str| raw(Method::GET, path, "", "");
    let long = "x".repeat(300);

    // Wrong types, unknown fields, missing fields, values out of range.
    let good = json!({ "name": "ci", "role": "viewer" });
    let with = |name: &str, value: Value| {
        let mut body = good.clone();
        body[name] = value;
        body
    };
    check(&server, tokens(&with("name", json!(7))), 400, Some("name"), "must be a string, not `7`");
    check(&server, tokens(&with("role", json!("king"))), 400, Some("role"), "unknown value `king`");
    check(&server, tokens(&with("rôle", json!(1))), 400, Some("rôle"), "unknown field");
    check(&server, tokens(&with("name", json!(long))), 400, Some("name"), "1 to 255 characters");
    check(&server, tokens(&with("name", json!("  "))), 400, Some("name"), "1 to 255 characters");
    check(&server, tokens(&with("name", json!("a\nb"))), 400, Some("name"), "control characters");
    check(&server, tokens(&with("expiresAt", json!("tomorrow"))), 400, Some("expiresAt"), "must be a time");
    check(&server, tokens(&with("tenantId", json!("tnt_none"))), 404, None, "there is no tenant");
    check(&server, tokens(&json!({ "name": "ci" })), 400, None, "missing field `role`");
    check(&server, tokens(&json!([])), 400, None, "must be an object, not an array of length 0");
    let tenant = |body: &Value| json_case(Method::PATCH, "/api/v1/tenants/default", body);
    check(
        &server,
        tenant(&json!({ "rateLimit": -1 })),
        400,
        Some("rateLimit"),
        "must be a non-negative integer",
    );
    check(
        &server,
        tenant(&json!({ "rateLimit": 1.5 })),
        400,
        Some("rateLimit"),
        "must be a non-negative integer",
    );
    check(&server, tenant(&json!({ "rateLimit": 4_000_000_000_u32 })), 400, Some("rateLimit"), "at most");
    check(&server, tenant(&json!({ "name": null })), 400, Some("name"), "must be a string, not null");
    let status = |body: &Value| json_case(Method::PATCH, &workflow, body);
    check(&server, status(&json!({ "status": "gone" })), 400, Some("status"), "unknown value");
    check(&server, status(&json!({ "nodes": [] })), 400, Some("nodes"), "unknown field");
    let secret = |name: &str, body: &Value| json_case(Method::PUT, &format!("/api/v1/secrets/{name}"), body);
    check(
        &server,
        secret(".webhook", &json!({ "value": "stolen-stolen" })),
        400,
        Some("name"),
        "cannot be the name",
    );
    check(
        &server,
        secret("a%20b", &json!({ "value": "long-enough" })),
        400,
        Some("name"),
        "cannot be the name",
    );
    check(&server, secret("a", &json!({ "value": "abc" })), 400, Some("value"), "at least 4");

    // Bodies that are not JSON, or are too large or too deep.
    let post = |kind: &'static str, body: Vec<u8>| raw(Method::POST, "/api/v1/tokens", kind, body);
    check(&server, post("application/json", b"{".into()), 400, Some(""), "ends too early");
    check(&server, post("application/json", b"".into()), 400, Some(""), "the body is empty");
    check(&server, post("application/json", b"{\"name\": \"\xff\"}".into()), 400, Some("name"), "unicode");
    check(&server, post("application/json", vec![b'['; 60_000]), 400, Some(""), "64 levels deep");
    check(&server, post("application/json", vec![b' '; 70_000]), 413, None, "65536 bytes");
    check(&server, post("text/plain", good.to_string().into()), 415, None, "send application/json");
    check(&server, post("", good.to_string().into()), 415, None, "Content-Type is missing");

    // Definitions.
    let define = |kind: &'static str, body: Vec<u8>| raw(Method::POST, "/api/v1/workflows", kind, body);
    check(&server, define("text/yaml", b"\xff\xfe".into()), 400, None, "not UTF-8 text: see byte 0");
    check(&server, define("text/yaml", b"a: b".into()), 400, Some(""), "not a definition");
    check(&server, define("application/json", b"{\"workflow\": ".into()), 400, None, "has errors");
    check(&server, define("application/json", vec![b'['; 60_000]), 400, Some(""), "64 levels deep");
    check(&server, define("text/yaml", vec![b'['; 60_000]), 400, None, "has errors");
    check(&server, define("text/yaml", vec![b'#'; 70_000]), 413, None, "65536 bytes");
    check(&server, define("application/xml", b"<x/>".into()), 415, None, "application/yaml");
    let named = PLAYBOOK.replace("hello", &long);
    check(&server, define("text/yaml", named.into()), 400, Some("name"), "1 to 255 characters");

    // Ids, versions, cursors and other parameters.
    for wrong in
        ["wf_1", "x", &format!("{id}0"), &format!("exec_{}", &id[3..]), "%F0%9F%9A%80", &"0".repeat(32)]
    {
        check(&server, get(&format!("/api/v1/workflows/{wrong}")), 404, None, "there is no workflow");
    }
    check(&server, get(&format!("{workflow}/versions/0")), 404, None, "there is no version");
    check(&server, get(&format!("{workflow}/versions/99999999999")), 404, None, "there is no version");
    check(
        &server,
        get(&format!("{workflow}/versions?cursor=abc")),
        400,
        Some("cursor"),
        "not a cursor of this list",
    );
    check(
        &server,
        get("/api/v1/audit?cursor=dmVyc2lvbnM6MQ"),
        400,
        Some("cursor"),
        "not a cursor of this list",
    );
    check(&server, get("/api/v1/audit?since=yesterday"), 400, Some("since"), "must be a time");
    check(&server, get("/api/v1/audit?limit=0"), 400, Some("limit"), "from 1 to 100");
    check(&server, get("/api/v1/audit?limit=101"), 400, Some("limit"), "from 1 to 100");
    check(&server, get("/api/v1/audit?limit=ten"), 400, Some("limit"), "must be a non-negative integer");
    check(&server, get("/api/v1/audit?who=me"), 400, None, "unknown field `who`");
    check(&server, get("/api/v1/workflows?offset=-1"), 400, Some("offset"), "must be a non-negative integer");
    check(&server, get(&format!("/api/v1/workflows?search={long}")), 400, Some("search"), "at most 255");
    check(&server, get("/api/v1/workflows?status=gone"), 400, Some("status"), "unknown value");
    check(
        &server,
        get("/api/v1/workflows?status=active&status=draft"),
        400,
        None,
        "duplicate field `status`",
    );

    assert_eq!(rows::all(&place.data()), before, "nothing was written");
    assert_eq!(server.get("/healthz").status().as_u16(), 200);
}

#[test]
fn a_setting_that_could_have_no_effect_is_refused_and_named() {
    let place = Place::new();
    let server = place.serve();
    let nodes = json!([{ "id": "t", "type": "trigger" }]);
    let good = server.define(&json!({ "name": "w", "nodes": nodes }).to_string());
    let execute = |options: Value| {
        let body = json!({ "options": options });
        json_case(Method::POST, &format!("/api/v1/workflows/{good}/execute"), &body)
    };
    for field in ["notifyOnComplete", "notifyOnError", "webhookEvents"] {
        let value = if field == "webhookEvents" { json!(["node.started"]) } else { json!(true) };
        let path = format!("options.{field}");
        check(&server, execute(json!({ (field): value })), 400, Some(&path), "needs options.webhookUrl");
    }
    for code in ["VALIDATION_ERROR", "PERMISSION_DENIED", "AUTHENTICATION_FAILED", "conflict"] {
        let policy = json!({ "retryableErrors": ["NETWORK_TIMEOUT", code] });
        let path = Some("options.retryPolicy.retryableErrors[1]");
        let message = format!("`{code}` can never be retried");
        check(&server, execute(json!({ "retryPolicy": policy })), 400, path, &message);
        let node = json!({ "id": "t", "type": "trigger", "retryPolicy": policy });
        let body = json!({ "name": "w", "nodes": [node] });
        let path = Some("nodes[0].retryPolicy.retryableErrors[1]");
        check(&server, json_case(Method::POST, "/api/v1/workflows", &body), 400, path, "has errors");
    }
}
