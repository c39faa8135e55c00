//! Executions over HTTP: started, answer, listed.

use crate::rig::{self, Place, Server, read_answer};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use std::path::Path;

pub const TWO: &str = r#"
metadata: {name: two}
workflow:
- {step: a, tool: {kind: shell, command: "echo one; echo two >&2"}, next: b}
- {step: b, tool: {kind: shell, command: "echo three"}}
"#;
pub const FAILS: &str = "
metadata: {name: fails}
workflow:
- {step: a, tool: {kind: noop}, next: b}
- {step: b, tool: {kind: shell, command: 'exit 3'}}
";

/// A playbook whose step `wait` ends when a file is there.
pub fn waits_for(file: &Path) -> String {
    let command = format!("until [ -e {} ]; do sleep 0.02; done", file.display());
    format!(
        "metadata: {{name: waits}}\nworkflow:\n- {{step: first, tool: {{kind: noop}}, next: wait}}\n\
         - {{step: wait, tool: {{kind: shell, command: '{command}'}}, next: last}}\n- {{step: last, tool: {{kind: noop}}}}\n"
    )
}

/// Starts it, and waits for its end or a person.
pub fn finish(server: &Server, workflow: &str, inputs: Value) -> Value {
    let body = json!({ "inputs": inputs, "options": { "async": false } });
    let (status, answer) = server.post(&format!("/api/v1/workflows/{workflow}/execute"), &body);
    assert_eq!(status, StatusCode::OK, "{answer}");
    answer
}

pub fn start(server: &Server, workflow: &str, options: Value) -> String {
    let (status, answer) =
        server.post(&format!("/api/v1/workflows/{workflow}/execute"), &json!({ "options": options }));
    assert_eq!(status, StatusCode::ACCEPTED, "{answer}");
    answer["executionId"].as_str().unwrap().to_owned()
}

pub fn get(server: &Server, id: &str, rest: &str) -> Value {
    let (status, body) = read_answer(server.get(&format!("/api/v1/executions/{id}{rest}")));
    assert_eq!(status, StatusCode::OK, "{body}");
    body
}

/// Looks until it has that status.
#[track_caller]
pub fn until(server: &Server, id: &str, status: &str) -> Value {
    looked_at(server, id, status, |now| now["status"] == status)
}

/// Looks until that node has that status.
#[track_caller]
pub fn until_node(server: &Server, id: &str, node: &str, status: &str) -> Value {
    let matches = |entry: &Value| entry["nodeId"] == node && entry["status"] == status;
    let what = format!("{node} {status}");
    looked_at(server, id, &what, |now| now["nodeExecutions"].as_array().unwrap().iter().any(matches))
}

/// An execution that has ended otherwise never comes there.
#[track_caller]
pub fn looked_at(server: &Server, id: &str, what: &str, is_there: impl Fn(&Value) -> bool) -> Value {
    rig::until(&format!("{id}: {what}"), || {
        let now = get(server, id, "");
        if is_there(&now) {
            return Some(now);
        }
        assert!(now["completedAt"].is_null(), "it should become {what}: {now}");
        None
    })
}

fn refused(server: &Server, method: Method, path: &str, body: &Value) -> (u16, String, Value) {
    let (status, body) = read_answer(server.request(method, path).json(body).send().unwrap());
    let error = &body["error"];
    assert!(error["message"].as_str().is_some_and(|message| !message.is_empty()), "{body}");
    (status.as_u16(), error["code"].as_str().unwrap().to_owned(), error["details"].clone())
}

#[test]
fn wfl_03_a_start_is_answered_with_five_links_that_resolve() {
    let place = Place::new();
    let server = place.serve();
    let workflow = server.define(TWO);
    let (status, answer) =
        server.post(&format!("/api/v1/workflows/{workflow}/execute"), &json!({ "inputs": {} }));
    assert_eq!(status, StatusCode::ACCEPTED, "{answer}");
    let fields: Vec<&String> = answer.as_object().unwrap().keys().collect();
    assert_eq!(fields, ["executionId", "workflowId", "status", "createdAt", "estimatedDuration", "links"]);
    assert_eq!((&answer["status"], &answer["workflowId"]), (&json!("queued"), &json!(workflow)));
    assert_eq!(answer["estimatedDuration"], Value::Null, "nothing is known yet");
    let id = answer["executionId"].as_str().unwrap();
    assert!(id.starts_with("exec_") && id.len() == 37, "{id}");
    for link in ["self", "status", "logs"] {
        let path = answer["links"][link].as_str().unwrap();
        assert_eq!(server.get(path).status(), StatusCode::OK, "{path}");
    }
    let ended = until(&server, id, "completed");
    assert_eq!(ended["createdAt"], answer["createdAt"]);
    let (status, _) = server.post(answer["links"]["cancel"].as_str().unwrap(), &json!({}));
    assert_eq!(status, StatusCode::CONFLICT, "it is there, and has ended");
    let socket = answer["links"]["websocket"].as_str().unwrap();
    assert_eq!(socket, format!("{}/ws/executions/{id}", server.url().replacen("http", "ws", 1)));
    assert_eq!(server.get(&format!("/ws/executions/{id}")).status(), StatusCode::UPGRADE_REQUIRED);
    // Both forms of an id are taken.
    let bare = id.strip_prefix("exec_").unwrap();
    assert_eq!(get(&server, bare, "/status")["executionId"], id);
}

#[test]
fn wfl_03_an_estimate_comes_from_the_workflows_own_history() {
    let place = Place::new();
    let server = place.serve();
    let (workflow, other) = (server.define(TWO), server.define(FAILS));
    let durations: Vec<u64> =
        (0..3).map(|_| finish(&server, &workflow, json!({}))["duration"].as_u64().unwrap()).collect();
    finish(&server, &other, json!({}));
    drop(server);
    // A server that has just started knows it, too.
    let server = place.serve();
    let estimate = |workflow: &str| {
        server.post(&format!("/api/v1/workflows/{workflow}/execute"), &json!({})).1["estimatedDuration"]
            .clone()
    };
    let mut sorted = durations.clone();
    sorted.sort_unstable();
    assert_eq!(estimate(&workflow), json!(sorted[1]), "the median of {durations:?}");
    assert_eq!(estimate(&other), Value::Null, "only completed ones count");
}

#[test]
fn wfl_04_a_synchronous_start_is_answered_with_the_end_also_when_it_failed() {
    let place = Place::new();
    let server = place.serve();
    let answer = finish(&server, &server.define(TWO), json!({}));
    let fields: Vec<&String> = answer.as_object().unwrap().keys().collect();
    let expected = [
        "executionId",
        "workflowId",
        "status",
        "createdAt",
        "completedAt",
        "duration",
        "outputs",
        "nodeResults",
    ];
    assert_eq!(fields, expected);
    assert_eq!(answer["status"], "completed");
    assert_eq!(answer["nodeResults"]["a"]["status"], "completed");
    assert!(answer["nodeResults"]["b"]["output"].is_object() && answer["duration"].is_u64(), "{answer}");

    let failed = finish(&server, &server.define(FAILS), json!({}));
    assert_eq!(
        (&failed["status"], &failed["nodeResults"]["a"]["status"]),
        (&json!("failed"), &json!("completed"))
    );
    assert_eq!(failed["nodeResults"]["b"]["status"], "failed");

    let gate = "metadata: {name: gate}\nworkflow:\n- step: g\n  spec: {policy: {admit: {rules: [{when: '{{ ctx.go }}', then: {allow: true}}]}}}\n";
    let paused = finish(&server, &server.define(gate), json!({}));
    assert_eq!((&paused["status"], &paused["completedAt"]), (&json!("paused"), &Value::Null));
}

#[test]
fn wfl_05_the_same_key_starts_no_second_execution_and_another_body_is_a_conflict() {
    let place = Place::new();
    let server = place.serve();
    let (workflow, other) = (server.define(TWO), server.define(TWO));
    let start = |workflow: &str, key: &str, body: &str| {
        let path = format!("/api/v1/workflows/{workflow}/execute");
        let request = server.request(Method::POST, &path).header("X-Idempotency-Key", key);
        read_answer(request.header("Content-Type", "application/json").body(body.to_owned()).send().unwrap())
    };
    let (status, first) = start(&workflow, "k1", r#"{"inputs": {"a": 1, "b": 2}}"#);
    assert_eq!(status, StatusCode::ACCEPTED, "{first}");
    let (status, again) = start(&workflow, "k1", r#"{ "inputs": {"b": 2, "a": 1} }"#);
    assert_eq!((status, &again), (StatusCode::ACCEPTED, &first), "spaces and order make no other request");
    let (status, conflict) = start(&workflow, "k1", r#"{"inputs": {"a": 2}}"#);
    assert_eq!(
        (status, &conflict["error"]["code"]),
        (StatusCode::CONFLICT, &json!("IDEMPOTENCY_KEY_REUSED"))
    );
    let id = |answer: &Value| answer["executionId"].as_str().unwrap().to_owned();
    assert_ne!(id(&start(&workflow, "k2", r#"{"inputs": {"a": 1, "b": 2}}"#).1), id(&first));
    assert_ne!(id(&start(&other, "k1", r#"{"inputs": {"a": 1, "b": 2}}"#).1), id(&first));
    until(&server, &id(&first), "completed");
    drop(server);
    let server = place.serve();
    let path = format!("/api/v1/workflows/{workflow}/execute");
    let request = server.request(Method::POST, &path).header("X-Idempotency-Key", "k1");
    let (_, after) = read_answer(request.json(&json!({ "inputs": { "a": 1, "b": 2 } })).send().unwrap());
    assert_eq!(id(&after), id(&first), "also after a restart, and after its end");
}

#[test]
fn wfl_06_another_tenants_executions_are_not_there() {
    let place = Place::new();
    let server = place.serve();
    let (_, tenant) = server.post("/api/v1/tenants", &json!({ "name": "Acme" }));
    let made = json!({ "name": "ann", "role": "owner", "tenantId": tenant["id"] });
    let theirs = server.post("/api/v1/tokens", &made).1["token"].as_str().unwrap().to_owned();
    let workflow = server.define(TWO);
    let id = finish(&server, &workflow, json!({}))["executionId"].as_str().unwrap().to_owned();
    let ask = |method: Method, path: &str| {
        let request =
            server.bare(method, path).bearer_auth(&theirs).header("Content-Type", "application/json");
        read_answer(request.body("{\"outcome\": \"Succeeded\"}").send().unwrap())
    };
    for (method, rest) in [
        (Method::GET, ""),
        (Method::GET, "/status"),
        (Method::GET, "/logs"),
        (Method::GET, "/events"),
        (Method::GET, "/evidence"),
        (Method::GET, "/graph"),
        (Method::GET, "/stream"),
        (Method::POST, "/actions/a/complete"),
    ] {
        let (status, body) = ask(method, &format!("/api/v1/executions/{id}{rest}"));
        assert_eq!(
            (status, &body["error"]["code"]),
            (StatusCode::NOT_FOUND, &json!("RESOURCE_NOT_FOUND")),
            "{rest}"
        );
    }
    for rest in ["/cancel", "/pause", "/retry"] {
        let path = format!("/api/v1/executions/{id}{rest}");
        let response = server.bare(Method::POST, &path).bearer_auth(&theirs).send().unwrap();
        assert_eq!(response.status(), StatusCode::NOT_FOUND, "{rest}");
    }
    let (status, _) = ask(Method::GET, &format!("/api/v1/workflows/{workflow}/executions"));
    assert_eq!(status, StatusCode::NOT_FOUND);
    assert_eq!(ask(Method::GET, "/api/v1/executions").1["executions"], json!([]));
    // Its id is no parent, and its place in a list no cursor, of theirs.
    finish(&server, &workflow, json!({}));
    let page = server.get("/api/v1/executions?limit=1").json::<Value>().unwrap();
    let cursor = page["pagination"]["cursor"].as_str().unwrap();
    let (status, refused) = ask(Method::GET, &format!("/api/v1/executions?cursor={cursor}"));
    assert_eq!(
        (status, &refused["error"]["details"][0]["path"]),
        (StatusCode::BAD_REQUEST, &json!("cursor"))
    );
    let own = {
        let request = server.bare(Method::POST, "/api/v1/workflows").bearer_auth(&theirs);
        let harmless = "workflow:\n- {step: a, tool: {kind: noop}}\n";
        read_answer(request.header("Content-Type", "application/yaml").body(harmless).send().unwrap()).1
    };
    let path = format!("/api/v1/workflows/{}/execute", own["id"].as_str().unwrap());
    let body = json!({ "options": { "parentExecutionId": id } });
    let (status, body) =
        read_answer(server.bare(Method::POST, &path).bearer_auth(&theirs).json(&body).send().unwrap());
    assert_eq!(
        (status, &body["error"]["details"][0]["path"]),
        (StatusCode::BAD_REQUEST, &json!("options.parentExecutionId"))
    );
}

#[test]
fn wfl_07_wfl_31_wfl_32_wfl_33_an_execution_is_reported_in_the_shape_of_the_document() {
    let place = Place::new();
    let server = place.serve();
    let workflow = server.define(TWO);
    let id = finish(&server, &workflow, json!({ "n": 1 }))["executionId"].as_str().unwrap().to_owned();
    let answer = get(&server, &id, "");
    for field in [
        "executionId",
        "workflowId",
        "workflowName",
        "workflowVersion",
        "status",
        "createdAt",
        "startedAt",
        "completedAt",
        "duration",
        "progress",
        "inputs",
        "outputs",
        "nodeExecutions",
        "errors",
        "metadata",
        "links",
    ] {
        assert!(!answer[field].is_null(), "{field}: {answer}");
    }
    assert_eq!(
        (&answer["workflowId"], &answer["workflowName"], &answer["workflowVersion"]),
        (&json!(workflow), &json!("two"), &json!(1))
    );
    assert_eq!(answer["inputs"], json!({ "n": 1 }));
    let progress = json!({ "percentage": 100, "completedNodes": 2, "totalNodes": 2 });
    assert_eq!(answer["progress"], progress);
    let owner = server.get("/api/v1/tokens").json::<Value>().unwrap()["tokens"][0]["id"].clone();
    assert_eq!(
        (&answer["metadata"]["triggerType"], &answer["metadata"]["triggeredBy"]),
        (&json!("api"), &owner)
    );
    let entry = &answer["nodeExecutions"][0];
    for (field, value) in [("nodeId", "a"), ("nodeName", "a"), ("nodeType", "shell"), ("status", "completed")]
    {
        assert_eq!(entry[field], value, "{entry}");
    }
    assert!(entry["startedAt"].is_string() && entry["completedAt"].is_string() && entry["duration"].is_u64());
    let status = get(&server, &id, "/status");
    assert_eq!(status, json!({ "executionId": id, "status": "completed", "progress": progress }));
    let picture = server.get(&format!("/api/v1/executions/{id}/graph")).text().unwrap();
    assert!(picture.contains("flowchart") || picture.contains("graph"), "{picture}");
    assert_eq!(
        server.get(&format!("/api/v1/executions/{id}/graph?format=png")).status(),
        StatusCode::BAD_REQUEST
    );
}

#[test]
fn wfl_07_a_running_node_is_reported_with_its_start_and_nothing_is_done_twice() {
    let place = Place::new();
    let file = place.data().join("go");
    let server = place.serve();
    let id = start(&server, &server.define(&waits_for(&file)), json!({}));
    let running = until_node(&server, &id, "wait", "running");
    assert_eq!(
        (&running["status"], &running["progress"]["currentNode"]),
        (&json!("running"), &json!("wait"))
    );
    assert!(
        running["nodeExecutions"][1]["startedAt"].is_string() && running["outputs"].is_null(),
        "{running}"
    );
    std::fs::write(&file, "").unwrap();
    let ended = until(&server, &id, "completed");
    assert_eq!(ended["nodeExecutions"].as_array().unwrap().len(), 3);
}

#[test]
fn wfl_30_errors_are_reported_with_code_node_time_and_whether_to_try_again() {
    let place = Place::new();
    let server = place.serve();
    let id = finish(&server, &server.define(FAILS), json!({}))["executionId"].as_str().unwrap().to_owned();
    let answer = get(&server, &id, "");
    let error = &answer["errors"][0];
    for field in ["code", "message", "timestamp"] {
        assert!(error[field].as_str().is_some_and(|text| !text.is_empty()), "{field}: {answer}");
    }
    assert_eq!((&error["nodeId"], &error["nodeName"]), (&json!("b"), &json!("b")));
    assert!(error["retryable"].is_boolean() && error.get("stack").is_none(), "{error}");
    assert_eq!(answer["nodeExecutions"][1]["error"], *error);
}

#[test]
fn wfl_08_logs_are_filtered_and_their_pages_neither_lose_nor_repeat_a_line() {
    let place = Place::new();
    let server = place.serve();
    let text = r#"
metadata: {name: talks}
workflow:
- {step: a, tool: {kind: shell, command: "for i in 1 2 3 4 5 6 7 8 9; do echo a$i; done; echo oh >&2"}, next: b}
- {step: b, tool: {kind: shell, command: "for i in 1 2 3 4 5 6 7 8 9; do echo b$i; done"}}
"#;
    let id = finish(&server, &server.define(text), json!({}))["executionId"].as_str().unwrap().to_owned();
    let page = |query: &str| get(&server, &id, &format!("/logs?{query}"));
    let all = page("")["logs"].as_array().unwrap().clone();
    let printed = |logs: &[Value]| -> Vec<String> {
        let lines = logs.iter().filter(|line| line["data"]["stream"] == "stdout");
        lines.map(|line| line["message"].as_str().unwrap().to_owned()).collect()
    };
    let expected: Vec<String> =
        ["a", "b"].iter().flat_map(|step| (1..10).map(move |number| format!("{step}{number}"))).collect();
    assert_eq!(printed(&all), expected, "oldest first");
    for field in ["id", "timestamp", "level", "nodeId", "nodeName", "message", "data"] {
        assert!(!all[0][field].is_null(), "{field}");
    }
    let said = |node: &str, message: &str| {
        all.iter().position(|line| line["nodeId"] == node && line["message"] == message).unwrap()
    };
    assert!(said("a", "Node started") < said("a", "a1") && said("a", "a9") < said("a", "Node completed"));
    assert_eq!(all[0]["message"], "Workflow execution started");
    assert_eq!(all.last().unwrap()["message"], "Workflow execution completed");
    let (mut walked, mut query) = (Vec::new(), "limit=4".to_owned());
    loop {
        let page = page(&query);
        walked.extend(page["logs"].as_array().unwrap().clone());
        assert_eq!(page["pagination"]["hasMore"], page["pagination"]["cursor"].is_string());
        let Some(cursor) = page["pagination"]["cursor"].as_str() else { break };
        query = format!("limit=4&cursor={cursor}");
    }
    assert_eq!(walked, all);
    let only_b = page("nodeId=b&level=info")["logs"].as_array().unwrap().clone();
    assert_eq!(printed(&only_b), expected[9..]);
    let warnings = page("level=warn")["logs"].as_array().unwrap().clone();
    assert_eq!(warnings.iter().map(|line| &line["message"]).collect::<Vec<_>>(), [&json!("oh")]);
    let last = all.last().unwrap()["timestamp"].as_str().unwrap();
    let later = page(&format!("since={last}"))["logs"].as_array().unwrap().len();
    assert_eq!(later, 0, "since is exclusive");
    for bad in ["level=loud", "limit=0", "limit=1001", "limit=x", "cursor=zz", "since=now", "colour=red"] {
        let (status, body) = read_answer(server.get(&format!("/api/v1/executions/{id}/logs?{bad}")));
        let field = bad.split('=').next().unwrap();
        assert_eq!(status, StatusCode::BAD_REQUEST, "{bad}: {body}");
        assert!(body.to_string().contains(field), "{bad}: {body}");
    }
}

#[test]
fn wfl_11_wfl_18_executions_are_listed_by_workflow_and_found_by_what_was_said_of_them() {
    let place = Place::new();
    let server = place.serve();
    let (workflow, other) = (server.define(TWO), server.define(FAILS));
    let mut made = Vec::new();
    for number in 0..5 {
        let options =
            json!({ "tags": ["all", format!("n{number}")], "correlationId": format!("order-{number}") });
        made.push(start(&server, &workflow, options));
    }
    for id in &made {
        until(&server, id, "completed");
    }
    let child = start(&server, &other, json!({ "parentExecutionId": made[0] }));
    until(&server, &child, "failed");
    let ids = |path: &str| -> (Vec<String>, Value) {
        let (status, body) = read_answer(server.get(path));
        assert_eq!(status, StatusCode::OK, "{path}: {body}");
        let found = body["executions"].as_array().unwrap().iter();
        (
            found.map(|one| one["executionId"].as_str().unwrap().to_owned()).collect(),
            body["pagination"].clone(),
        )
    };
    let newest: Vec<String> = made.iter().rev().cloned().collect();
    let of = format!("/api/v1/workflows/{workflow}/executions");
    assert_eq!(ids(&of), (newest.clone(), json!({ "hasMore": false })));
    let (mut walked, mut path) = (Vec::new(), format!("{of}?limit=2"));
    loop {
        let (page, pagination) = ids(&path);
        walked.extend(page);
        let Some(cursor) = pagination["cursor"].as_str() else { break };
        path = format!("{of}?limit=2&cursor={cursor}");
    }
    assert_eq!(walked, newest);
    assert_eq!(ids(&format!("{of}?status=completed")).0, newest);
    assert!(ids(&format!("{of}?status=failed")).0.is_empty());
    let created = get(&server, &made[2], "")["createdAt"].as_str().unwrap().to_owned();
    assert!(!ids(&format!("{of}?since={created}")).0.contains(&made[2]));
    assert!(!ids(&format!("{of}?until={created}")).0.contains(&made[2]));
    let created = get(&server, &child, "")["createdAt"].as_str().unwrap().to_owned();
    let earlier: jiff::Timestamp = created.parse().unwrap();
    let earlier = earlier - std::time::Duration::from_millis(1);
    assert_eq!(ids(&format!("/api/v1/executions?since={created}")).0, Vec::<String>::new());
    assert_eq!(ids(&format!("/api/v1/executions?since={earlier}")).0, [child.as_str()]);
    assert_eq!(ids(&format!("/api/v1/executions?until={created}")).0, newest);
    assert_eq!(ids(&format!("{of}?since={created}")).0, Vec::<String>::new());
    assert_eq!(ids("/api/v1/executions?tag=n3").0, [made[3].clone()]);
    assert_eq!(ids("/api/v1/executions?tag=all").0, newest);
    assert_eq!(ids("/api/v1/executions?correlationId=order-1").0, [made[1].clone()]);
    assert_eq!(ids(&format!("/api/v1/executions?parentExecutionId={}", made[0])).0, [child.as_str()]);
    assert_eq!(ids("/api/v1/executions?status=failed").0, [child.as_str()]);
    let metadata = &get(&server, &child, "")["metadata"];
    assert_eq!(metadata["parentExecutionId"], made[0]);
    let metadata = &get(&server, &made[1], "")["metadata"];
    assert_eq!((&metadata["tags"], &metadata["correlationId"]), (&json!(["all", "n1"]), &json!("order-1")));
    let listed =
        server.get("/api/v1/executions?tag=n1").json::<Value>().unwrap()["executions"][0]["metadata"].clone();
    assert_eq!((&listed["tags"], &listed["correlationId"]), (&json!(["all", "n1"]), &json!("order-1")));
    let listed = server.get("/api/v1/executions?status=failed").json::<Value>().unwrap();
    assert_eq!(listed["executions"][0]["metadata"]["parentExecutionId"], made[0]);
    for bad in ["status=done", "limit=101", "limit=0", "cursor=x", "since=x", "until=1", "foo=1"] {
        assert_eq!(server.get(&format!("{of}?{bad}")).status(), StatusCode::BAD_REQUEST, "{bad}");
    }
}

#[test]
fn wfl_12_a_timeout_ends_it_as_failed() {
    let place = Place::new();
    let server = place.serve();
    let id =
        start(&server, &server.define(&waits_for(&place.data().join("never"))), json!({ "timeout": 300 }));
    let ended = until(&server, &id, "failed");
    assert_eq!(ended["errors"][0]["code"], "EXECUTION_TIMEOUT", "{ended}");
    assert!(ended["duration"].as_u64().unwrap() >= 300);
}

#[test]
fn wfl_13_a_scheduled_execution_stays_queued_until_its_time_also_over_a_restart() {
    let place = Place::new();
    let server = place.serve();
    let workflow = server.define(TWO);
    let far = start(&server, &workflow, json!({ "scheduledAt": "2999-01-01T00:00:00Z" }));
    let soon = jiff::Timestamp::now() + std::time::Duration::from_secs(2);
    let near = start(&server, &workflow, json!({ "scheduledAt": soon.to_string() }));
    let queued = get(&server, &near, "");
    assert_eq!((&queued["status"], queued.get("startedAt")), (&json!("queued"), None), "{queued}");
    drop(server);
    let server = place.serve();
    let ended = until(&server, &near, "completed");
    let started: jiff::Timestamp = ended["startedAt"].as_str().unwrap().parse().unwrap();
    assert!(started.as_millisecond() >= soon.as_millisecond(), "{ended}");
    assert_eq!(get(&server, &far, "")["status"], "queued");
    let past = start(&server, &workflow, json!({ "scheduledAt": "2020-01-01T00:00:00Z" }));
    until(&server, &past, "completed");
}

#[test]
fn wfl_14_every_priority_is_taken_and_no_other() {
    let place = Place::new();
    let server = place.serve();
    let workflow = server.define(TWO);
    for priority in ["low", "normal", "high", "critical"] {
        until(&server, &start(&server, &workflow, json!({ "priority": priority })), "completed");
    }
    let path = format!("/api/v1/workflows/{workflow}/execute");
    let (status, _, details) =
        refused(&server, Method::POST, &path, &json!({ "options": { "priority": "urgent" } }));
    assert_eq!((status, &details[0]["path"]), (400, &json!("options.priority")));
}

#[test]
fn wfl_17_a_dry_run_checks_and_runs_nothing() {
    let place = Place::new();
    let server = place.serve();
    let workflow = server.define(TWO);
    let path = format!("/api/v1/workflows/{workflow}/execute");
    let (status, answer) = server.post(&path, &json!({ "options": { "dryRun": true } }));
    assert_eq!(
        (status, &answer["valid"], &answer["errors"]),
        (StatusCode::OK, &json!(true), &json!([])),
        "{answer}"
    );
    assert!(answer["warnings"].is_array());
    // A playbook says itself how its steps are retried.
    let policy = json!({ "options": { "dryRun": true, "retryPolicy": { "maxRetries": 1 } } });
    let (status, answer) = server.post(&path, &policy);
    assert_eq!((status, &answer["valid"]), (StatusCode::OK, &json!(false)), "{answer}");
    assert_eq!(answer["errors"][0]["path"], "options.retryPolicy");
    let list = server.get(&format!("/api/v1/workflows/{workflow}/executions")).json::<Value>().unwrap();
    assert_eq!(list["executions"], json!([]));
}

#[test]
fn wfl_35_what_makes_no_sense_is_refused_with_its_place_and_nothing_is_written() {
    let place = Place::new();
    let server = place.serve();
    let workflow = server.define(TWO);
    let path = format!("/api/v1/workflows/{workflow}/execute");
    let check = |body: Value, field: &str| {
        let (status, code, details) = refused(&server, Method::POST, &path, &body);
        assert_eq!((status, code.as_str()), (400, "VALIDATION_ERROR"), "{body}");
        assert_eq!(details[0]["path"], field, "{body}: {details}");
    };
    check(json!({ "inputs": [] }), "inputs");
    check(json!({ "input": {} }), "input");
    check(json!({ "options": { "timeout": "1s" } }), "options.timeout");
    check(json!({ "options": { "timeout": 0 } }), "options.timeout");
    check(json!({ "options": { "asynch": true } }), "options.asynch");
    check(json!({ "options": { "async": "yes" } }), "options.async");
    check(json!({ "options": { "tags": "one" } }), "options.tags");
    check(json!({ "options": { "correlationId": "x".repeat(101) } }), "options.correlationId");
    check(
        json!({ "options": { "parentExecutionId": "exec_00000000000000000000000000000001" } }),
        "options.parentExecutionId",
    );
    check(json!({ "options": { "scheduledAt": "tomorrow" } }), "options.scheduledAt");
    check(json!({ "options": { "webhookUrl": "http://127.0.0.1:9/" } }), "options.webhookUrl");
    check(
        json!({ "options": { "webhookUrl": "https://example.org", "webhookEvents": ["node.exploded"] } }),
        "options.webhookEvents[0]",
    );
    check(json!({ "options": { "retryPolicy": { "maxRetries": 1 } } }), "options.retryPolicy");
    let raw = |body: &str, kind: &str| {
        let request = server.request(Method::POST, &path).header("Content-Type", kind).body(body.to_owned());
        request.send().unwrap().status().as_u16()
    };
    assert_eq!(raw("{", "application/json"), 400);
    assert_eq!(
        raw(
            &format!("{{\"inputs\": {{\"x\": {}1{}}}}}", "[".repeat(100), "]".repeat(100)),
            "application/json"
        ),
        400
    );
    assert_eq!(raw("{}", "text/plain"), 415);
    assert_eq!(
        raw(&format!("{{\"inputs\": {{\"x\": \"{}\"}}}}", "x".repeat(5 << 20)), "application/json"),
        413
    );
    let missing = format!("/api/v1/workflows/wf_{}/execute", "0".repeat(32));
    assert_eq!(refused(&server, Method::POST, &missing, &json!({})).0, 404);
    assert_eq!(refused(&server, Method::POST, "/api/v1/workflows/nonsense/execute", &json!({})).0, 404);
    let list = server.get("/api/v1/executions").json::<Value>().unwrap();
    assert_eq!(list["executions"], json!([]));
}

#[test]
fn what_happened_is_reported_in_public_names_page_by_page() {
    let place = Place::new();
    let server = place.serve();
    let id = finish(&server, &server.define(TWO), json!({}))["executionId"].as_str().unwrap().to_owned();
    let names = |page: &Value| -> Vec<String> {
        let events = page["events"].as_array().unwrap().iter();
        events.map(|event| event["event"].as_str().unwrap().to_owned()).collect()
    };
    let all = names(&get(&server, &id, "/events"));
    for name in ["execution.created", "execution.started", "step.offered", "step.done", "execution.completed"]
    {
        assert!(all.iter().any(|found| found == name), "{name}: {all:?}");
    }
    let (mut walked, mut query) = (Vec::new(), "?limit=3".to_owned());
    loop {
        let page = get(&server, &id, &format!("/events{query}"));
        walked.extend(names(&page));
        let Some(cursor) = page["pagination"]["cursor"].as_str() else { break };
        query = format!("?limit=3&cursor={cursor}");
    }
    assert_eq!(walked, all);
}

#[test]
fn wfl_04_a_client_that_hangs_up_changes_nothing() {
    use std::io::Write;
    let place = Place::new();
    let file = place.data().join("go");
    let server = place.serve();
    let workflow = server.define(&waits_for(&file));
    let address = server.url().strip_prefix("http://").unwrap();
    let body = r#"{"options": {"async": false}}"#;
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    write!(
        stream,
        "POST /api/v1/workflows/{workflow}/execute HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        server.token(),
        body.len()
    )
    .unwrap();
    let id = rig::until("it is listed", || {
        let list = server.get("/api/v1/executions").json::<Value>().unwrap();
        list["executions"][0]["executionId"].as_str().map(str::to_owned)
    });
    drop(stream);
    std::fs::write(&file, "").unwrap();
    until(&server, &id, "completed");
}
