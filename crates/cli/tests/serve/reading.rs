//! What it costs to read an execution: rows of its journal, as the server counts them.

use crate::executions::{get, start, until};
use crate::rig::{Place, Server, read_answer};
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

/// Rows that a page of five entries may read.
const PAGE_MAX: u64 = 12;

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
fn a_repeated_read_costs_only_the_new_records() {
    let place = Place::new();
    let server = place.serve();
    let id = at_the_gate(&server);
    drop(server);
    let server = place.serve();
    let (first, answer) = cost(&server, || get(&server, &id, ""));
    assert!(first >= 30, "{first}");
    let (again, same) = cost(&server, || {
        get(&server, &id, "/status");
        server.get(&format!("/api/v1/executions/{id}/graph")).text().unwrap();
        get(&server, &id, "")
    });
    assert_eq!((again, &same), (0, &answer));
    let patched = server.request(Method::PATCH, &format!("/api/v1/executions/{id}/context"));
    assert_eq!(patched.json(&json!({ "go": true })).send().unwrap().status(), StatusCode::OK);
    let (new, ended) = cost(&server, || until(&server, &id, "completed"));
    assert!((1..10).contains(&new), "{new}");
    assert_eq!(cost(&server, || get(&server, &id, "/status")).0, 0);
    // What was folded bit by bit is what is folded at once.
    drop(server);
    assert_eq!(get(&place.serve(), &id, "")["nodeExecutions"], ended["nodeExecutions"]);
}

/// Walks through a list of an execution in small pages, in this server and in the next one.
fn check_pages(list: &str) {
    let place = Place::new();
    let server = place.serve();
    let id = at_the_gate(&server);
    let page = |server: &Server, query: &str| cost(server, || get(server, &id, &format!("/{list}{query}")));
    let all = page(&server, "?limit=1000").1[list].clone();
    let (mut walked, mut query, mut last) = (Vec::new(), "?limit=5".to_owned(), String::new());
    loop {
        let (cost, mut page) = page(&server, &query);
        assert!(cost <= PAGE_MAX, "{cost} rows for {query}");
        walked.append(page[list].as_array_mut().unwrap());
        let Some(cursor) = page["pagination"]["cursor"].as_str() else { break };
        last.clone_from(&query);
        query = format!("?limit=5&cursor={cursor}");
    }
    assert!(walked.len() > 30, "{}", walked.len());
    assert_eq!(Value::Array(walked), all);
    // A cursor outlives the server; what it needs is read anew, and only once.
    let before = page(&server, &last).1;
    drop(server);
    let server = place.serve();
    let (cold, same) = page(&server, &last);
    assert!(cold > PAGE_MAX, "{cold}");
    assert_eq!(same, before);
    let (warm, same) = page(&server, &last);
    assert!(warm <= PAGE_MAX, "{warm}");
    assert_eq!(same, before);
    for bad in ["17", "x.y", "1.", "-1.0"] {
        use base64::Engine;
        let cursor = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(format!("{list}:{bad}"));
        let (status, body) =
            read_answer(server.get(&format!("/api/v1/executions/{id}/{list}?cursor={cursor}")));
        let path = &body["error"]["details"][0]["path"];
        assert_eq!((status, path), (StatusCode::BAD_REQUEST, &json!("cursor")), "{bad}");
    }
}

#[test]
fn a_page_of_events_reads_that_page() {
    check_pages("events");
}

#[test]
fn a_page_of_evidence_reads_that_page() {
    check_pages("evidence");
}

/// Reads the pages of progress after a cursor until they have a state.
fn read_progress(server: &Server, id: &str, cursor: Option<&str>) -> Vec<Value> {
    let mut pages: Vec<Value> = Vec::new();
    loop {
        let after = pages.last().map_or(cursor, |page| page["cursor"].as_str());
        let query = after.map(|cursor| format!("?cursor={cursor}")).unwrap_or_default();
        pages.push(get(server, id, &format!("/progress{query}")));
        if pages.last().is_some_and(|page| page.get("state").is_some()) {
            return pages;
        }
    }
}

#[test]
fn progress_is_followed_by_a_cursor_and_a_poll_reads_only_new_records() {
    let place = Place::new();
    let server = place.serve();
    let id = at_the_gate(&server);
    let (first, pages) = cost(&server, || read_progress(&server, &id, None));
    assert!(first >= 30, "{first}");
    let entries = |pages: &[Value]| -> Vec<Value> {
        pages.iter().flat_map(|page| page["entries"].as_array().unwrap().clone()).collect()
    };
    let mut seen = entries(&pages);
    let steps = json!([{ "name": "many", "onDemand": false }, { "name": "gate", "onDemand": false }]);
    assert_eq!(pages[0]["steps"], steps);
    let last = pages.last().unwrap();
    assert_eq!(last["state"]["status"], "paused");
    let cursor = last["cursor"].as_str().unwrap();
    let (again, same) = cost(&server, || read_progress(&server, &id, Some(cursor)));
    let [same] = &same[..] else { panic!("{same:?}") };
    assert_eq!((again, &same["entries"], &same["cursor"]), (0, &json!([]), &last["cursor"]));
    assert!(same.get("steps").is_none(), "{same}");
    let patched = server.request(Method::PATCH, &format!("/api/v1/executions/{id}/context"));
    assert_eq!(patched.json(&json!({ "go": true })).send().unwrap().status(), StatusCode::OK);
    until(&server, &id, "completed");
    let (new, pages) = cost(&server, || read_progress(&server, &id, Some(cursor)));
    assert!((1..10).contains(&new), "{new}");
    seen.extend(entries(&pages));
    assert_eq!(pages.last().unwrap()["state"]["status"], "completed");
    assert_eq!(seen.last().unwrap()["change"], json!({ "kind": "ended", "status": "completed" }));
    assert_eq!(seen, entries(&read_progress(&server, &id, None)), "nothing is missed or repeated");
}

#[test]
fn events_are_followed_by_a_cursor_until_the_execution_has_ended() {
    let place = Place::new();
    let server = place.serve();
    let id = at_the_gate(&server);
    let page = |query: &str| get(&server, &id, &format!("/events?limit=1000{query}"));
    assert!(page("")["pagination"].get("cursor").is_none());
    let first = page("&waitMs=0");
    assert_eq!(first["pagination"]["hasMore"], false);
    let cursor = first["pagination"]["cursor"].as_str().unwrap();
    let (cost, idle) = cost(&server, || page(&format!("&waitMs=0&cursor={cursor}")));
    assert_eq!((cost, &idle["events"], &idle["pagination"]), (0, &json!([]), &first["pagination"]));
    let patched = server.request(Method::PATCH, &format!("/api/v1/executions/{id}/context"));
    assert_eq!(patched.json(&json!({ "go": true })).send().unwrap().status(), StatusCode::OK);
    // The request returns with the first events, so the cursor of each page leads to the next ones.
    let (mut seen, mut cursor) = (first["events"].as_array().unwrap().clone(), Some(cursor.to_owned()));
    while let Some(after) = cursor {
        let mut next = page(&format!("&waitMs=30000&cursor={after}"));
        seen.append(next["events"].as_array_mut().unwrap());
        cursor = next["pagination"]["cursor"].as_str().map(str::to_owned);
    }
    assert_eq!(seen.last().unwrap()["event"], "execution.completed");
    assert_eq!(Value::Array(seen), page("")["events"]);
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
    for rest in ["", "/status", "/graph", "/events", "/evidence", "/logs", "/progress"] {
        let path = format!("/api/v1/executions/{id}{rest}");
        assert_eq!(server.get(&path).status(), StatusCode::OK, "{path}");
        let (cost, answer) = cost(&server, || server.bare(Method::GET, &path).bearer_auth(other).send());
        assert_eq!((cost, answer.unwrap().status()), (0, StatusCode::NOT_FOUND), "{path}");
    }
}

#[test]
fn executions_are_listed_by_dialect_trigger_and_text() {
    let place = Place::new();
    let server = place.serve();
    let playbook =
        server.define("metadata: {name: Harbour-report}\nworkflow: [{step: a, tool: {kind: noop}}]\n");
    let workflow = server.define("name: tides\nnodes: [{id: a, type: trigger}]\n");
    let older = start(&server, &playbook, json!({}));
    let newer = start(&server, &playbook, json!({}));
    let other = start(&server, &workflow, json!({}));
    let list = |filter: &str| {
        let (status, body) = read_answer(server.get(&format!("/api/v1/executions?{filter}")));
        assert_eq!(status, StatusCode::OK, "{body}");
        body
    };
    let ids = |body: &Value| -> Vec<String> {
        let found = body["executions"].as_array().unwrap().iter();
        found.map(|execution| execution["executionId"].as_str().unwrap().to_owned()).collect()
    };
    let both = [newer.clone(), older.clone()];
    for (filter, wanted) in [
        ("dialect=playbook", both.to_vec()),
        ("dialect=workflow", vec![other.clone()]),
        ("dialect=plan", vec![]),
        ("trigger=schedule", vec![]),
        ("trigger=api", vec![other.clone(), newer.clone(), older.clone()]),
        ("text=harbour", both.to_vec()),
        ("text=harbour&dialect=workflow", vec![]),
        (&format!("text={}", &other[other.len() - 8..]), vec![other.clone()]),
        (&format!("workflowId={workflow}"), vec![other.clone()]),
    ] {
        assert_eq!(ids(&list(filter)), wanted, "{filter}");
    }
    let first = list("text=harbour&limit=1");
    assert_eq!(ids(&first), [newer]);
    let rest =
        list(&format!("text=harbour&limit=1&cursor={}", first["pagination"]["cursor"].as_str().unwrap()));
    assert_eq!(ids(&rest), [older]);
    for wrong in ["dialect=cobol", "trigger=moon", &format!("text={}", "x".repeat(201)), "workflowId=x"] {
        let (status, body) = read_answer(server.get(&format!("/api/v1/executions?{wrong}")));
        assert!(status.is_client_error(), "{wrong}: {body}");
    }
}
