//! The list of what waits for people.

use crate::people::{Person, person};
use crate::rig::{Place, Server, read_answer, until};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

fn asks(name: &str, approvers: &[&str]) -> String {
    json!({ "name": name, "nodes": [
        { "id": "t", "type": "trigger", "config": {} },
        { "id": "ask", "type": "approval", "config": { "message": "Ship it?", "approvers": approvers, "timeout": "2h" } },
    ], "edges": [{ "source": "t", "target": "ask" }] })
    .to_string()
}

fn tasks(who: &Person, server: &Server, query: &str) -> Vec<String> {
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = who.get(server, &format!("/api/v1/tasks?limit=2{query}{cursor}"));
        let entries = page["tasks"].as_array().unwrap();
        assert!(entries.len() <= 2);
        found.extend(entries.iter().map(|task| task["executionId"].as_str().unwrap().to_owned()));
        match page["pagination"]["cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return found,
        }
    }
}

#[test]
fn tasks_of_the_tenant_are_listed_with_filters_until_they_are_answered() {
    let place = Place::new();
    let server = place.serve();
    let ann = person(&server, "ann", "member", &["controller"]);
    let bob = person(&server, "bob", "member", &[]);
    let viewer = person(&server, "vic", "viewer", &[]);
    let open = server.define(&asks("open", &[]));
    let named = server.define(&asks("named", &["controller"]));
    let owners = server.define(&asks("owners", &["owner"]));
    let ids: Vec<String> =
        [&open, &named, &owners, &open].map(|workflow| ann.start(&server, workflow)).to_vec();
    assert_eq!(tasks(&ann, &server, ""), ids, "those of the oldest executions first");
    assert_eq!(tasks(&viewer, &server, ""), ids);
    assert_eq!(tasks(&ann, &server, "&mine=true"), [&ids[0], &ids[1], &ids[3]].map(String::clone));
    assert_eq!(tasks(&bob, &server, "&mine=true"), [&ids[0], &ids[3]].map(String::clone));
    assert!(tasks(&viewer, &server, "&mine=true").is_empty());
    assert_eq!(tasks(&bob, &server, &format!("&workflowId={owners}")), [ids[2].clone()]);
    assert_eq!(tasks(&bob, &server, &format!("&executionId={}", ids[3])), [ids[3].clone()]);
    assert_eq!(tasks(&bob, &server, "&kind=approval").len(), 4);
    assert!(tasks(&bob, &server, "&kind=manual").is_empty());

    let listed = bob.get(&server, "/api/v1/tasks?limit=1");
    let task = &listed["tasks"][0];
    let expected = json!({ "actionId": "ask", "kind": "approval", "message": "Ship it?", "approvers": [],
        "workflowName": "open", "dialect": "workflow", "startedBy": ann.id, "held": false,
        "command": format!("windlass executions approve {} ask", ids[0]) });
    for (field, value) in expected.as_object().unwrap() {
        assert_eq!(&task[field], value, "{field} of {task}");
    }
    assert!(task["since"].is_string() && task["deadline"].is_string(), "{task}");
    assert!(!listed.to_string().contains("wct_"), "lists show no tokens");

    let path = format!("/api/v1/executions/{}/actions/ask/complete", ids[0]);
    assert_eq!(bob.send(&server, Method::POST, &path, &json!({ "outcome": "Succeeded" })).0, StatusCode::OK);
    assert_eq!(tasks(&bob, &server, ""), ids[1..]);
    server.kill();
    let server = place.serve();
    assert_eq!(tasks(&bob, &server, ""), ids[1..], "after a crash, too");
}

#[test]
fn tasks_of_one_execution_are_found_behind_a_thousand_others() {
    let place = Place::new();
    let server = place.serve();
    let ann = person(&server, "ann", "member", &[]);
    let question = |number: usize| json!({ "id": format!("ask{number}"), "type": "approval", "config": { "message": "?" } });
    let edge = |number: usize| json!({ "source": "t", "target": format!("ask{number}") });
    let mut nodes = vec![json!({ "id": "t", "type": "trigger", "config": {} })];
    nodes.extend((0..1_010).map(question));
    let edges: Vec<Value> = (0..1_010).map(edge).collect();
    let wide = json!({ "name": "wide", "nodes": nodes, "edges": edges }).to_string();
    ann.start(&server, &server.define(&wide));
    let last = ann.start(&server, &server.define(&asks("open", &[])));
    let page = ann.get(&server, &format!("/api/v1/tasks?executionId={last}"));
    assert_eq!(page["tasks"].as_array().unwrap().len(), 1, "{page}");
    assert_eq!(
        (&page["tasks"][0]["executionId"], &page["pagination"]["cursor"]),
        (&json!(last), &Value::Null)
    );
}

#[test]
fn a_tenant_sees_no_task_of_another_and_bad_filters_are_refused() {
    let place = Place::new();
    let server = place.serve();
    let ann = person(&server, "ann", "member", &[]);
    ann.start(&server, &server.define(&asks("open", &[])));
    let gated = server.define(GATED);
    let [held, _] = [(); 2].map(|()| begin(&ann, &server, &gated));
    server.post(&format!("/api/v1/executions/{held}/pause"), &json!({}));
    until("two gates", || (tasks(&ann, &server, "&kind=gate").len() == 2).then_some(()));
    assert_eq!(tasks(&ann, &server, "&kind=pause"), [held]);
    let (_, tenant) = server.post("/api/v1/tenants", &json!({ "name": "other" }));
    let (_, made) = server.post(
        "/api/v1/tokens",
        &json!({ "name": "eve", "role": "owner", "tenantId": tenant["id"].as_str().unwrap() }),
    );
    let eve = Person { id: String::new(), token: made["token"].as_str().unwrap().to_owned() };
    for kind in ["", "&kind=gate", "&kind=pause"] {
        assert!(tasks(&eve, &server, kind).is_empty());
    }
    let cursor = ann.get(&server, "/api/v1/tasks")["pagination"]["cursor"].clone();
    assert_eq!(cursor, Value::Null);
    for (query, path) in [
        ("limit=0", "limit"),
        ("cursor=abc", "cursor"),
        ("kind=door", "kind"),
        ("workflowId=x", "workflowId"),
        ("executionId=x", "executionId"),
        ("mine=maybe", "mine"),
    ] {
        let (status, refused) = read_answer(server.get(&format!("/api/v1/tasks?{query}")));
        assert_eq!(status, StatusCode::BAD_REQUEST, "{query}");
        assert_eq!(refused["error"]["details"][0]["path"], path, "{refused}");
    }
}

/// One branch runs, and another one waits at a gate.
const GATED: &str = r#"
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: gated}
workflow:
  - step: begin
    tool: {kind: noop}
    next: {spec: {mode: inclusive}, arcs: [{step: runs}, {step: deploy}]}
  - step: runs
    tool: {kind: shell, command: sleep 600}
  - step: deploy
    spec: {policy: {admit: {rules: [{when: "{{ ctx.window == 'open' }}", then: {allow: true}}, {else: {then: {allow: false}}}]}}}
    tool: {kind: noop}
"#;

fn begin(who: &Person, server: &Server, workflow: &str) -> String {
    let path = format!("/api/v1/workflows/{workflow}/execute");
    let (status, started) = who.send(server, Method::POST, &path, &json!({}));
    assert_eq!(status, StatusCode::ACCEPTED, "{started}");
    started["executionId"].as_str().unwrap().to_owned()
}

#[test]
fn gates_beside_running_branches_and_held_executions_are_listed_by_kind() {
    let place = Place::new();
    let server = place.serve();
    let ann = person(&server, "ann", "member", &[]);
    let viewer = person(&server, "vic", "viewer", &[]);
    let workflow = server.define(GATED);
    let ids: Vec<String> = (0..3).map(|_| begin(&ann, &server, &workflow)).collect();
    until("three gates", || (tasks(&ann, &server, "&kind=gate").len() == 3).then_some(()));
    assert_eq!(tasks(&ann, &server, "&kind=gate"), ids, "over pages");
    let status = ann.get(&server, &format!("/api/v1/executions/{}/status", ids[0]));
    assert_eq!(status["status"], "running", "{status}");
    assert!(tasks(&ann, &server, "").is_empty(), "without a kind, only steps are listed");
    assert!(tasks(&viewer, &server, "&kind=gate&mine=true").is_empty());
    assert_eq!(tasks(&viewer, &server, &format!("&kind=gate&executionId={}", ids[1])), [ids[1].clone()]);
    let gate = &ann.get(&server, "/api/v1/tasks?kind=gate&limit=1")["tasks"][0];
    let shown = &status["waitingFor"][0];
    assert_eq!((&gate["waiting"], &gate["actionId"]), (shown, &json!("deploy")), "{gate}");
    assert!(gate["since"].is_string(), "{gate}");

    let pause = format!("/api/v1/executions/{}/pause", ids[1]);
    ann.send(&server, Method::POST, &pause, &json!({ "reason": "fog" }));
    let paused = &ann.get(&server, "/api/v1/tasks?kind=pause&mine=true")["tasks"][0];
    assert_eq!(
        (&paused["executionId"], &paused["actionId"], &paused["waiting"]["reason"], &paused["waiting"]["by"]),
        (&json!(ids[1]), &Value::Null, &json!("fog"), &json!(ann.id)),
        "{paused}"
    );
    let patch = format!("/api/v1/executions/{}/context", ids[0]);
    ann.send(&server, Method::PATCH, &patch, &json!({ "window": "open" }));
    assert_eq!(tasks(&ann, &server, "&kind=gate"), ids[1..]);
    server.kill();
    let server = place.serve();
    assert_eq!(tasks(&ann, &server, "&kind=gate"), ids[1..], "after a crash, too");
    ann.send(&server, Method::POST, &format!("/api/v1/executions/{}/resume", ids[1]), &json!({}));
    assert!(tasks(&ann, &server, "&kind=pause").is_empty());
}
