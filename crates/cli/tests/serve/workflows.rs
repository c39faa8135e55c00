//! Definitions over HTTP.

use crate::rig::{Place, Server, read_answer};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

fn playbook(message: &str) -> String {
    format!(
        "metadata: {{name: hello}}\nworkflow:\n  - step: start\n    desc: {message}\n    tool: {{kind: noop}}\n"
    )
}

fn send(server: &Server, method: Method, path: &str, kind: &str, text: &str) -> (StatusCode, Value) {
    let request = server.request(method, path).header("Content-Type", kind).body(text.to_owned());
    read_answer(request.send().unwrap())
}

#[test]
fn a_definition_is_registered_listed_changed_in_versions_and_deleted() {
    let place = Place::new();
    let server = place.serve();
    let (status, made) =
        send(&server, Method::POST, "/api/v1/workflows", "application/yaml", &playbook("one"));
    assert_eq!(status, StatusCode::CREATED, "{made}");
    let id = made["id"].as_str().unwrap();
    assert!(id.starts_with("wf_") && made["netDigest"].as_str().unwrap().len() == 64, "{made}");
    assert_eq!(
        (&made["name"], &made["version"], &made["dialect"]),
        (&json!("hello"), &json!(1), &json!("playbook"))
    );

    let path = format!("/api/v1/workflows/{id}");
    let response = server.get(&path);
    assert_eq!(response.headers()["ETag"], "\"1\"");
    let view = read_answer(response).1;
    assert_eq!(view["source"], playbook("one"));
    assert_eq!(view["definition"]["workflow"][0]["desc"], "one");
    assert_eq!(view["status"], "active");

    let (status, next) = send(&server, Method::PUT, &path, "text/yaml", &playbook("two"));
    assert_eq!((status, &next["version"]), (StatusCode::OK, &json!(2)), "{next}");
    assert_eq!(read_answer(server.get(&path)).1["version"], 2);
    assert_eq!(read_answer(server.get(&format!("{path}/versions/1"))).1["source"], playbook("one"));
    assert_eq!(server.get(&format!("{path}/versions/3")).status(), StatusCode::NOT_FOUND);
    let versions = read_answer(server.get(&format!("{path}/versions?limit=1"))).1;
    assert_eq!(
        (&versions["versions"][0]["version"], &versions["pagination"]["hasMore"]),
        (&json!(2), &json!(true))
    );
    let cursor = versions["pagination"]["cursor"].as_str().unwrap();
    let older = read_answer(server.get(&format!("{path}/versions?limit=1&cursor={cursor}"))).1;
    assert_eq!(
        (&older["versions"][0]["version"], &older["pagination"]["hasMore"]),
        (&json!(1), &json!(false))
    );

    let copy = read_answer(server.request(Method::POST, &format!("{path}/duplicate")).send().unwrap()).1;
    assert_eq!(
        (&copy["name"], &copy["version"], &copy["netDigest"]),
        (&json!("hello (copy)"), &json!(1), &next["netDigest"])
    );
    assert_eq!(server.request(Method::DELETE, &path).send().unwrap().status(), StatusCode::NO_CONTENT);
    assert_eq!(server.get(&path).status(), StatusCode::NOT_FOUND);
    let list = read_answer(server.get("/api/v1/workflows")).1;
    assert_eq!(list["workflows"].as_array().unwrap().len(), 1);
    assert_eq!(list["workflows"][0]["id"], copy["id"]);
}

#[test]
fn a_lost_update_is_refused() {
    let place = Place::new();
    let server = place.serve();
    let id = server.define(&playbook("one"));
    let path = format!("/api/v1/workflows/{id}");
    let put = |tag: &str, text: &str| {
        let request =
            server.request(Method::PUT, &path).header("Content-Type", "text/yaml").header("If-Match", tag);
        request.body(playbook(text)).send().unwrap().status().as_u16()
    };
    assert_eq!(put("\"1\"", "two"), 200);
    assert_eq!(put("\"1\"", "three"), 412);
    assert_eq!(put("\"7\"", "three"), 412);
    assert_eq!(put("*", "three"), 200);
    assert_eq!(put("3", "four"), 400);
    assert_eq!(read_answer(server.get(&path)).1["version"], 3);
}

#[test]
fn what_is_wrong_with_a_definition_is_reported_with_line_column_and_hint() {
    let place = Place::new();
    let server = place.serve();
    let text = "metadata: {name: x}\nworkflow:\n  - step: start\n    tool: {kind: noop}\n    next: [{step: nowhere}]\n";
    let (status, body) = send(&server, Method::POST, "/api/v1/workflows", "text/yaml", text);
    assert_eq!((status, &body["error"]["code"]), (StatusCode::BAD_REQUEST, &json!("INVALID_DEFINITION")));
    let detail = &body["error"]["details"][0];
    assert_eq!(detail["line"], 5, "{body}");
    assert!(detail["column"].is_u64() && detail["path"].is_string() && detail["code"].is_string(), "{body}");
    let (status, checked) = send(&server, Method::POST, "/api/v1/validate", "text/yaml", text);
    assert_eq!((status, &checked["valid"]), (StatusCode::OK, &json!(false)));
    assert_eq!(checked["errors"][0], *detail);
    assert_eq!(read_answer(server.get("/api/v1/workflows")).1["workflows"], json!([]), "nothing was written");
}

#[test]
fn a_checked_definition_is_drawn_as_the_stored_one() {
    let place = Place::new();
    let server = place.serve();
    let text = playbook("drawn");
    let check = |query: &str, text: &str| {
        let (status, checked) =
            send(&server, Method::POST, &format!("/api/v1/validate{query}"), "text/yaml", text);
        assert_eq!(status, StatusCode::OK, "{checked}");
        checked
    };
    let drawn = check("?graph=true", &text)["graph"].clone();
    assert!(!drawn["nodes"].as_array().unwrap().is_empty(), "{drawn}");
    assert_eq!(check("", &text).get("graph"), None);
    assert_eq!(check("?graph=true", "workflow: []").get("graph"), None);
    let stored = server.define(&text);
    assert_eq!(read_answer(server.get(&format!("/api/v1/workflows/{stored}/graph?format=json"))).1, drawn);
}

#[test]
fn lists_are_filtered_and_paged() {
    let place = Place::new();
    let server = place.serve();
    let ids: Vec<String> = ["alpha", "Beta", "beta 2"]
        .iter()
        .map(|name| server.define(&playbook("x").replace("hello", name)))
        .collect();
    let names = |query: &str| -> Vec<String> {
        let list = read_answer(server.get(&format!("/api/v1/workflows{query}"))).1;
        list["workflows"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(names(""), ["beta 2", "Beta", "alpha"]);
    assert_eq!(names("?search=BETA"), ["beta 2", "Beta"]);
    assert_eq!(names("?limit=1&offset=1"), ["Beta"]);
    let patch = server.request(Method::PATCH, &format!("/api/v1/workflows/{}", ids[0]));
    assert_eq!(
        read_answer(patch.json(&json!({ "status": "archived" })).send().unwrap()).1["status"],
        "archived"
    );
    assert_eq!(names("?status=archived"), ["alpha"]);
    assert_eq!(names("?status=active"), ["beta 2", "Beta"]);
}

#[test]
fn a_literal_secret_of_a_definition_is_encrypted_before_it_is_stored() {
    let place = Place::new();
    let server = place.serve();
    let value = "s3cr3t-value-of-a-definition";
    let text = format!(
        "metadata: {{name: hello}}\nkeychain:\n  - name: api\n    kind: static\n    map: {{token: {value}}}\nworkflow:\n  - step: start\n    tool: {{kind: noop}}\n"
    );
    let (status, made) = send(&server, Method::POST, "/api/v1/workflows", "text/yaml", &text);
    assert_eq!(status, StatusCode::CREATED, "{made}");
    let view = server.get(&format!("/api/v1/workflows/{}", made["id"].as_str().unwrap())).text().unwrap();
    assert!(!view.contains(value) && view.contains("$secret"), "{view}");
    drop(server);
    for file in crate::rig::files(&place.data()) {
        let bytes = std::fs::read(&file).unwrap();
        assert!(!bytes.windows(value.len()).any(|part| part == value.as_bytes()), "{}", file.display());
    }
}

#[test]
fn editors_get_the_schema_of_a_dialect_that_the_command_prints() {
    let place = Place::new();
    let server = place.serve();
    for dialect in ["playbook", "workflow", "actions"] {
        let (status, schema) = read_answer(server.get(&format!("/api/v1/schemas/{dialect}")));
        let printed = place.windlass(&["schema", dialect]);
        assert_eq!(status, StatusCode::OK, "{schema}");
        assert_eq!(schema, serde_json::from_str::<Value>(&printed.out).unwrap(), "{dialect}");
        assert!(schema["properties"].is_object() || schema["$ref"].is_string(), "{dialect}");
    }
}
