//! What it costs to read an execution: rows of its journal, as the server counts them.

use crate::executions::{get, start, until};
use crate::rig::{Place, Server, told};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

/// Thirty rows and more, then a gate that a patch opens.
const LONG: &str = r#"
metadata: {name: long}
workflow:
- step: many
  tool: {kind: shell, command: "true"}
  loop: {in: '{{ range(30) | list }}', iterator: x}
  next: gate
- step: gate
  spec: {policy: {admit: {rules: [{when: '{{ ctx.go }}', then: {allow: true}}]}}}
  tool: {kind: noop}
"#;

/// Rows of journals that this server has read.
fn rows_read(server: &Server) -> u64 {
    let text = server.bare(Method::GET, "/metrics").send().unwrap().text().unwrap();
    let count = text.lines().find_map(|line| line.strip_prefix("windlass_journal_rows_read_total "));
    count.map_or(0, |count| count.parse().unwrap())
}

/// What `ask` reads.
fn cost<T>(server: &Server, ask: impl FnOnce() -> T) -> (u64, T) {
    let before = rows_read(server);
    let answer = ask();
    (rows_read(server) - before, answer)
}

fn at_the_gate(server: &Server) -> String {
    let id = start(server, &server.define(LONG), json!({}));
    until(server, &id, "paused");
    id
}

#[test]
fn whoever_asks_again_pays_for_what_is_new_alone() {
    let place = Place::new();
    let server = place.serve();
    let id = at_the_gate(&server);
    drop(server);
    let server = place.serve();
    let (first, told) = cost(&server, || get(&server, &id, ""));
    assert!(first >= 30, "{first}");
    let (again, same) = cost(&server, || {
        get(&server, &id, "/status");
        server.get(&format!("/api/v1/executions/{id}/graph")).text().unwrap();
        get(&server, &id, "")
    });
    assert_eq!((again, &same), (0, &told));
    let patched = server.request(Method::PATCH, &format!("/api/v1/executions/{id}/context"));
    assert_eq!(patched.json(&json!({ "go": true })).send().unwrap().status(), StatusCode::OK);
    let (new, ended) = cost(&server, || until(&server, &id, "completed"));
    assert!((1..10).contains(&new), "{new}");
    assert_eq!(cost(&server, || get(&server, &id, "/status")).0, 0);
    // What was folded bit by bit is what is folded at once.
    drop(server);
    assert_eq!(get(&place.serve(), &id, "")["nodeExecutions"], ended["nodeExecutions"]);
}

#[test]
fn a_page_of_events_reads_that_page() {
    let place = Place::new();
    let server = place.serve();
    let id = at_the_gate(&server);
    let all = get(&server, &id, "/events?limit=1000")["events"].clone();
    let (mut walked, mut query, mut last) = (Vec::new(), "?limit=5".to_owned(), String::new());
    loop {
        let (cost, mut page) = cost(&server, || get(&server, &id, &format!("/events{query}")));
        assert!(cost <= 12, "{cost} rows for {query}");
        walked.append(page["events"].as_array_mut().unwrap());
        let Some(cursor) = page["pagination"]["cursor"].as_str() else { break };
        last.clone_from(&query);
        query = format!("?limit=5&cursor={cursor}");
    }
    assert!(walked.len() > 60, "{}", walked.len());
    assert_eq!(Value::Array(walked), all);
    // A cursor outlives the server; what it needs is read anew, and only once.
    let before = get(&server, &id, &format!("/events{last}"));
    drop(server);
    let server = place.serve();
    let (cold, page) = cost(&server, || get(&server, &id, &format!("/events{last}")));
    assert!(cold > 12, "{cold}");
    assert_eq!(page, before);
    let (warm, page) = cost(&server, || get(&server, &id, &format!("/events{last}")));
    assert!(warm <= 12, "{warm}");
    assert_eq!(page, before);
    for bad in ["17", "x.y", "1.", "-1.0"] {
        use base64::Engine;
        let cursor = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bad);
        let (status, body) = told(server.get(&format!("/api/v1/executions/{id}/events?cursor={cursor}")));
        assert_eq!(
            (status, &body["error"]["details"][0]["path"]),
            (StatusCode::BAD_REQUEST, &json!("cursor"))
        );
    }
}

#[test]
fn a_story_that_is_in_memory_is_another_tenants_still() {
    let place = Place::new();
    let server = place.serve();
    let id = at_the_gate(&server);
    let (_, tenant) = server.post("/api/v1/tenants", &json!({ "name": "Other" }));
    let (_, made) =
        server.post("/api/v1/tokens", &json!({ "name": "eve", "role": "owner", "tenantId": tenant["id"] }));
    let other = made["token"].as_str().unwrap();
    for rest in ["", "/status", "/graph", "/events", "/logs"] {
        let path = format!("/api/v1/executions/{id}{rest}");
        assert_eq!(server.get(&path).status(), StatusCode::OK, "{path}");
        let (cost, answer) = cost(&server, || server.bare(Method::GET, &path).bearer_auth(other).send());
        assert_eq!((cost, answer.unwrap().status()), (0, StatusCode::NOT_FOUND), "{path}");
    }
}
