//! Errors of nodes: which are tried again, when, and what they mean for the execution.

use crate::executions::{finish, get, start, until};
use crate::rig::{Place, Server};
use serde_json::{Value, json};
use windlass_engine::Folder;
use windlass_kernel::ExecutionId;
use windlass_store::Reader as _;
use windlass_store::sqlite::Sqlite;

/// A node that always fails: its server does not exist.
fn refused() -> Value {
    json!({ "id": "x", "type": "http_api", "config": { "url": "http://127.0.0.1:1/" } })
}

fn define(server: &Server, name: &str, nodes: &[Value]) -> String {
    let mut all = vec![json!({ "id": "t", "type": "trigger" })];
    let edges: Vec<Value> = nodes.iter().map(|node| json!({ "source": "t", "target": node["id"] })).collect();
    all.extend(nodes.iter().cloned());
    server.define(&json!({ "name": name, "nodes": all, "edges": edges }).to_string())
}

fn entry(execution: &Value, node: &str) -> Value {
    let entries = execution["nodeExecutions"].as_array().unwrap();
    entries
        .iter()
        .find(|entry| entry["nodeId"] == node)
        .unwrap_or_else(|| panic!("{node}: {execution}"))
        .clone()
}

fn millis(time: &Value) -> i64 {
    time.as_str().unwrap().parse::<jiff::Timestamp>().unwrap().as_millisecond()
}

/// Milliseconds between each failure and the try that was planned after it.
fn delays(server: &Server, id: &str) -> Vec<i64> {
    let events = get(server, id, "/events?limit=1000");
    let planned = events["events"].as_array().unwrap().iter();
    let planned = planned.filter(|event| event["event"] == "step.retry_scheduled");
    let delay = |event: &Value| millis(&event["data"]["until"]) - millis(&event["timestamp"]);
    planned.map(delay).collect()
}

#[test]
fn wfl_15_the_policy_of_a_start_says_how_often_and_when_it_is_tried_again() {
    let place = Place::new().variable("WINDLASS_EGRESS_ALLOW", "127.0.0.1");
    let server = place.serve();
    let workflow = define(&server, "tries", &[refused()]);
    let tried = |policy: Value| {
        let id = start(&server, &workflow, json!({ "retryPolicy": policy }));
        let failed = until(&server, &id, "failed");
        (delays(&server, &id), entry(&failed, "x")["retryCount"].as_u64().unwrap())
    };
    let policy = |strategy: &str| {
        json!({ "maxRetries": 3, "backoffStrategy": strategy, "initialDelayMs": 20,
        "backoffMultiplier": 3, "maxDelayMs": 50, "jitterFactor": 0 })
    };
    assert_eq!(tried(policy("fixed")), (vec![20, 20, 20], 3));
    assert_eq!(tried(policy("linear")), (vec![20, 40, 50], 3));
    assert_eq!(tried(policy("exponential")), (vec![20, 50, 50], 3), "60 is above the cap");
    let mut unsaid = policy("");
    unsaid.as_object_mut().unwrap().remove("backoffStrategy");
    assert_eq!(tried(unsaid), (vec![20, 50, 50], 3));
    let shaken =
        json!({ "maxRetries": 8, "backoffStrategy": "fixed", "initialDelayMs": 40, "jitterFactor": 0.5 });
    let (delays, _) = tried(shaken);
    assert!(delays.iter().all(|delay| (20..=60).contains(delay)), "{delays:?}");
    assert!(delays.iter().any(|delay| *delay != 40), "{delays:?}");
}

/// The stored policy of a node.
fn retry_of(place: &Place, id: &str, node: &str) -> Value {
    let id = ExecutionId::try_from(id.trim_start_matches("exec_").to_owned()).unwrap();
    let mut reader = Sqlite::read_only(&Folder::store(&place.data())).unwrap();
    let digest = reader.load(id).unwrap().unwrap().state.head.net;
    let net = reader.net(digest).unwrap().unwrap();
    json!(net.step(net.find(node).unwrap()).retry)
}

#[test]
fn wfl_15_what_a_policy_leaves_out_is_the_documents() {
    let place = Place::new().variable("WINDLASS_EGRESS_ALLOW", "127.0.0.1");
    let server = place.serve();
    let workflow = define(&server, "usual", &[refused()]);
    for options in [json!({}), json!({ "retryPolicy": {} })] {
        let id = start(&server, &workflow, options);
        let retry = retry_of(&place, &id, "x");
        let expected = json!({ "attempts_max": 4, "backoff": "exponential", "initial_ms": 1000,
            "multiplier": 2.0, "max_ms": 60_000, "jitter": 0.1, "on": "default", "unknown": "as_flagged" });
        assert_eq!(retry, expected);
        server.post(&format!("/api/v1/executions/{id}/cancel"), &json!({}));
    }
}

#[test]
fn wfl_15_only_the_listed_errors_are_tried_again() {
    let place = Place::new().variable("WINDLASS_EGRESS_ALLOW", "127.0.0.1");
    let server = place.serve();
    let workflow = define(&server, "listed", &[refused()]);
    for (codes, retries) in
        [(json!(["CONNECTION_REFUSED"]), 1), (json!(["NETWORK_TIMEOUT"]), 0), (json!([]), 0)]
    {
        let policy = json!({ "maxRetries": 1, "initialDelayMs": 1, "retryableErrors": codes });
        let id = start(&server, &workflow, json!({ "retryPolicy": policy }));
        let failed = until(&server, &id, "failed");
        let error = &failed["errors"][0];
        assert_eq!(
            (&error["code"], &entry(&failed, "x")["retryCount"]),
            (&json!("CONNECTION_REFUSED"), &json!(retries))
        );
    }
}

/// A code, the node's own flag, whether another try follows, and the category.
const CODES: [(&str, Option<bool>, bool, &str); 15] = [
    ("NETWORK_TIMEOUT", Some(false), true, "transient"),
    ("RATE_LIMIT_EXCEEDED", Some(false), true, "transient"),
    ("SERVICE_UNAVAILABLE", Some(false), true, "transient"),
    ("CONNECTION_RESET", Some(false), true, "transient"),
    ("AI_MODEL_BUSY", Some(false), true, "transient"),
    ("PROVIDER_ERROR", Some(false), true, "transient"),
    ("VALIDATION_ERROR", Some(true), false, "validation"),
    ("AUTHENTICATION_FAILED", Some(true), false, "configuration"),
    ("PERMISSION_DENIED", Some(true), false, "configuration"),
    ("RESOURCE_NOT_FOUND", Some(true), false, "resource"),
    ("INVALID_CONFIGURATION", Some(true), false, "configuration"),
    ("MY_OWN", Some(true), true, "system"),
    ("MY_OWN", Some(false), false, "system"),
    ("MY_OWN", None, false, "system"),
    ("OUT_OF_MEMORY", None, false, "system"),
];

#[test]
fn wfl_24_the_documents_codes_decide_and_others_follow_the_nodes_flag() {
    let place = Place::new();
    let server = place.serve();
    let nodes: Vec<Value> = CODES
        .iter()
        .enumerate()
        .map(|(number, (code, flag, ..))| {
            let error = json!({ "code": code, "message": "no luck", "retryable": flag });
            let result = json!({ "success": false, "error": error });
            let command = format!("echo '{result}' > $WINDLASS_OUTPUTS/result.json");
            let policy = json!({ "maxRetries": 1, "initialDelayMs": 1 });
            json!({ "id": format!("n{number}"), "type": "shell", "config": { "command": command, "retryPolicy": policy } })
        })
        .collect();
    let id = start(&server, &define(&server, "codes", &nodes), json!({ "failureMode": "collect_errors" }));
    let failed = until(&server, &id, "failed");
    assert_eq!(failed["errors"].as_array().unwrap().len(), CODES.len(), "all of them are reported");
    for (number, (code, flag, again, category)) in CODES.into_iter().enumerate() {
        let entry = entry(&failed, &format!("n{number}"));
        let case = format!("{code} {flag:?}: {entry}");
        assert_eq!(entry["retryCount"], u32::from(again), "{case}");
        let error = &entry["error"];
        assert_eq!((&error["code"], &error["message"]), (&json!(code), &json!("no luck")), "{case}");
        assert_eq!(
            (&error["retryable"], &error["details"]["category"]),
            (&json!(again), &json!(category)),
            "{case}"
        );
    }
}

#[test]
fn wfl_25_a_failure_ends_it_or_leaves_out_what_follows_or_is_handed_on() {
    let place = Place::new();
    let server = place.serve();
    let check = |mode: Option<&str>, other_ms: u32, expected: &str| {
        let settings = mode.map_or(json!({}), |mode| json!({ "failureMode": mode }));
        let text = json!({ "name": "modes", "settings": settings,
            "nodes": [
                { "id": "t", "type": "trigger" },
                { "id": "bad", "type": "shell", "config": { "command": "exit 3" } },
                { "id": "after", "type": "shell", "config": { "command": "true" } },
                { "id": "other", "type": "delay", "config": { "duration": other_ms, "unit": "ms" } },
            ],
            "edges": [{ "source": "t", "target": "bad" }, { "source": "bad", "target": "after" }, { "source": "t", "target": "other" }] });
        let answer = finish(&server, &server.define(&text.to_string()), json!({}));
        let nodes = ["bad", "after", "other"]
            .map(|node| answer["nodeResults"][node]["status"].as_str().unwrap().to_owned());
        assert_eq!(
            format!("{}: {}", answer["status"].as_str().unwrap(), nodes.join(" ")),
            expected,
            "{mode:?}"
        );
    };
    check(None, 3_600_000, "failed: failed skipped skipped");
    check(Some("fail_fast"), 3_600_000, "failed: failed skipped skipped");
    check(Some("continue_on_error"), 1, "partial_success: failed skipped completed");
    check(Some("collect_errors"), 1, "partial_success: failed completed completed");
}

#[test]
fn wfl_25_where_only_a_trigger_completed_nothing_did() {
    let place = Place::new();
    let server = place.serve();
    let bad = json!({ "id": "bad", "type": "shell", "config": { "command": "exit 3" } });
    let workflow = define(&server, "nothing", &[bad]);
    for mode in ["continue_on_error", "collect_errors"] {
        until(&server, &start(&server, &workflow, json!({ "failureMode": mode })), "failed");
    }
}

const RETRIES: &str = r#"
metadata: {name: retries}
workflow:
- step: a
  tool:
  - first: {kind: shell, command: 'echo x >> tried; [ $(wc -l < tried) -ge 3 ] || exit 7', spec: {policy: {rules: [{when: "{{ outcome.status == 'error' }}", then: {do: retry, attempts: 5, delay: 0}}]}}}
  - second: {kind: shell, command: 'echo done'}
"#;

/// Every try of a task is known: in `retryCount`, in events and in the evidence.
#[test]
fn tries_of_tasks_are_known_and_events_have_names_and_numbers_of_their_own() {
    let place = Place::new();
    let server = place.serve();
    let dir = place.data().join("tried");
    let text = RETRIES.replace("tried", &dir.display().to_string());
    let id = start(&server, &server.define(&text), json!({}));
    let ended = until(&server, &id, "completed");
    assert_eq!(ended["nodeExecutions"][0]["retryCount"], 2, "{ended}");
    let events = get(&server, &id, "/events?limit=1000")["events"].as_array().unwrap().clone();
    let sequences: Vec<u64> = events.iter().filter_map(|event| event["sequence"].as_u64()).collect();
    assert_eq!(sequences, (1..=events.len() as u64).collect::<Vec<_>>(), "no two share one");
    let tasks: Vec<(&str, &Value, &Value)> = events
        .iter()
        .filter(|event| event["event"].as_str().unwrap().starts_with("task."))
        .map(|event| (event["event"].as_str().unwrap(), &event["data"]["task"], &event["data"]["try"]))
        .collect();
    let first = json!("first");
    let (one, two, three) = (json!(1), json!(2), json!(3));
    let expected =
        [("task.failed", &first, &one), ("task.failed", &first, &two), ("task.done", &first, &three)];
    assert_eq!(tasks, expected);
    let failed = events.iter().find(|event| event["event"] == "task.failed").unwrap();
    assert_eq!(
        (&failed["step"], &failed["firing"], &failed["data"]["error"]["code"]),
        (&json!("a"), &json!(1), &json!("SHELL_EXIT"))
    );
    // Pages have the same numbers as the whole list.
    let page = get(&server, &id, "/events?limit=3");
    let cursor = page["pagination"]["cursor"].as_str().unwrap();
    let next = get(&server, &id, &format!("/events?limit=3&cursor={cursor}"));
    assert_eq!(next["events"].as_array().unwrap()[..], events[3..6]);
    let evidence = get(&server, &id, "/evidence")["evidence"].as_array().unwrap().clone();
    let notes: Vec<&str> = evidence.iter().filter_map(|entry| entry["notes"].as_str()).collect();
    assert_eq!(notes, ["try 1 of task first", "try 2 of task first"]);
}
