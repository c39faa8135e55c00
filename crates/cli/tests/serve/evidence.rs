//! Evidence: every attempt and every end, with who did what, as a chain that anybody can check.

use crate::executions::{finish, get, start, until, waits_for};
use crate::rig::{Place, Server, windlass};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

/// The first attempt fails, the second does not; then a person is asked.
fn flaky(marker: &std::path::Path) -> String {
    let command = format!("test -e {0} || {{ touch {0}; exit 75; }}", marker.display());
    json!({
        "name": "release",
        "nodes": [
            { "id": "build", "type": "shell", "name": "Build", "config": { "command": command } },
            { "id": "ask", "type": "approval", "name": "Ask Ann", "config": {} }
        ],
        "edges": [ { "source": "build", "target": "ask" } ]
    })
    .to_string()
}

fn evidence(server: &Server, id: &str) -> Vec<Value> {
    get(server, id, "/evidence")["evidence"].as_array().unwrap().clone()
}

/// Checks the chain as a reader of the documentation would.
fn check_chain(entries: &[Value]) {
    let mut previous = None;
    for entry in entries {
        let mut entry = entry.as_object().unwrap().clone();
        let hash = entry.shift_remove("hashSha256").unwrap();
        assert_eq!(entry.get("previousHash"), previous.as_ref(), "{entry:?}");
        assert_eq!(json!(sha256(&canonical(&Value::Object(entry)))), hash);
        previous = Some(hash);
    }
}

fn canonical(value: &Value) -> String {
    match value {
        Value::Object(object) => {
            let mut keys: Vec<&String> = object.keys().collect();
            keys.sort();
            let members: Vec<String> =
                keys.iter().map(|key| format!("{}:{}", json!(key), canonical(&object[*key]))).collect();
            format!("{{{}}}", members.join(","))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(canonical).collect::<Vec<_>>().join(",")),
        plain => plain.to_string(),
    }
}

fn sha256(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn part(entry: &Value, keys: &[&str]) -> Value {
    let found = keys.iter().filter_map(|key| Some(((*key).to_owned(), entry.get(*key)?.clone())));
    Value::Object(found.collect::<Map<_, _>>())
}

#[test]
fn act_18_every_attempt_and_every_end_leaves_evidence() {
    let place = Place::new();
    let server = place.serve();
    let workflow = server.define(&flaky(&place.data().join("built")));
    let options = json!({ "correlationId": "order-7", "retryPolicy": {
        "maxRetries": 1, "backoffMultiplier": 1, "initialDelayMs": 1, "maxDelayMs": 1, "retryableErrors": ["SHELL_EXIT"] } });
    let id = start(&server, &workflow, options);
    until(&server, &id, "paused");
    let answer = json!({ "outcome": "Succeeded", "notes": "looks good", "evidenceRefs": ["ticket-1"] });
    let (status, answer) = server.post(&format!("/api/v1/executions/{id}/actions/ask/complete"), &answer);
    assert!(status.is_success(), "{answer}");
    let ended = until(&server, &id, "completed");

    let entries = evidence(&server, &id);
    let user = json!({ "kind": "User", "userId": ended["metadata"]["triggeredBy"] });
    let keys =
        ["actionId", "attempt", "category", "outcome", "terminal", "error", "actor", "notes", "evidenceRefs"];
    let mut answer: Vec<Value> = entries.iter().map(|entry| part(entry, &keys)).collect();
    let system = json!({ "kind": "System" });
    let message = answer[0]["error"]["message"].take();
    assert!(message.as_str().unwrap().contains("75"), "{message}");
    let expected = [
        json!({ "actionId": "build", "attempt": 1, "category": "Action", "outcome": "Failed", "terminal": false,
            "error": { "code": "SHELL_EXIT", "class": "unknown", "message": null, "retryable": false }, "actor": system }),
        json!({ "actionId": "build", "attempt": 2, "category": "Action", "outcome": "Succeeded", "terminal": true,
            "actor": system }),
        json!({ "actionId": "ask", "attempt": 1, "category": "Approval", "outcome": "Succeeded", "terminal": false,
            "actor": user, "notes": "looks good", "evidenceRefs": ["ticket-1"] }),
        json!({ "actionId": "ask", "attempt": 1, "category": "Action", "outcome": "Succeeded", "terminal": true,
            "actor": system }),
        json!({ "category": "System", "outcome": "Succeeded", "terminal": true, "actor": system }),
    ];
    assert_eq!(answer, expected);
    for (entry, number) in entries.iter().zip(1..) {
        assert_eq!(entry["evidenceId"], json!(format!("{id}.{number}")));
        assert_eq!((&entry["runId"], &entry["correlationId"]), (&json!(id), &json!("order-7")));
        assert!(entry["startedAtIso"].as_str().unwrap() <= entry["endedAtIso"].as_str().unwrap(), "{entry}");
    }
    assert_eq!(entries.last().unwrap()["endedAtIso"], ended["completedAt"]);
    check_chain(&entries);

    let shown = |flag: &[&str]| {
        let output =
            windlass().args(["evidence", &id, "--data"]).arg(place.data()).args(flag).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let lines: Vec<Value> =
        shown(&["--json"]).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines, entries, "the command asks the server");
    assert!(shown(&[]).contains("build, attempt 1: Failed (SHELL_EXIT)"));
    server.stop();
    let lines: Vec<Value> =
        shown(&["--json"]).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines, entries, "and reads the folder when there is none: the chain is the same");
}

#[test]
fn act_18_who_cancelled_is_in_the_evidence_and_work_in_flight_too() {
    let place = Place::new();
    let server = place.serve();
    let id = start(&server, &server.define(&waits_for(&place.data().join("never"))), json!({}));
    let path = |rest: &str| format!("/api/v1/executions/{id}/{rest}");
    server.post(&path("pause"), &json!({ "reason": "wait a moment" }));
    server.post(&path("resume"), &json!({}));
    server.post(&path("cancel"), &json!({ "reason": "enough" }));
    let ended = until(&server, &id, "cancelled");
    let user = json!({ "kind": "User", "userId": ended["metadata"]["triggeredBy"] });
    let entries = evidence(&server, &id);
    check_chain(&entries);
    let answer = |outcome: &str| {
        let found = entries.iter().find(|entry| entry["outcome"] == outcome);
        found.unwrap_or_else(|| panic!("no {outcome} in {entries:?}"))
    };
    assert_eq!((&answer("Held")["actor"], &answer("Held")["notes"]), (&user, &json!("wait a moment")));
    assert_eq!(answer("Released")["actor"], user);
    let last = entries.last().unwrap();
    assert_eq!((&last["outcome"], &last["actor"]), (&json!("Cancelled"), &user));
    assert_eq!(last["error"]["message"], "enough");
    let waiting = entries.iter().find(|entry| entry["actionId"] == "wait").unwrap();
    assert_eq!((&waiting["outcome"], &waiting["terminal"]), (&json!("Cancelled"), &json!(true)));
}

#[test]
fn act_18_evidence_is_paged_and_what_a_retry_took_over_names_the_execution_before() {
    let place = Place::new();
    let server = place.serve();
    let file = place.data().join("fixed");
    let text = format!(
        "metadata: {{name: mends}}\nworkflow:\n- {{step: a, tool: {{kind: shell, command: 'echo ran'}}, next: b}}\n\
         - {{step: b, tool: {{kind: shell, command: 'test -e {}'}}}}\n",
        file.display()
    );
    let id = finish(&server, &server.define(&text), json!({}))["executionId"].as_str().unwrap().to_owned();
    std::fs::write(&file, "").unwrap();
    let (_, answer) = server.post(&format!("/api/v1/executions/{id}/retry"), &json!({}));
    let new = answer["executionId"].as_str().unwrap().to_owned();
    until(&server, &new, "completed");
    let entries = evidence(&server, &new);
    check_chain(&entries);
    let runs: Vec<(&Value, &Value)> =
        entries.iter().map(|entry| (&entry["runId"], &entry["outcome"])).collect();
    let (before, now, well) = (json!(id), json!(new), json!("Succeeded"));
    assert_eq!(runs, [(&before, &well), (&now, &well), (&now, &well)]);

    let (mut paged, mut query) = (Vec::new(), "?limit=1".to_owned());
    loop {
        let page = get(&server, &new, &format!("/evidence{query}"));
        paged.extend(page["evidence"].as_array().unwrap().clone());
        let Some(cursor) = page["pagination"]["cursor"].as_str() else { break };
        query = format!("?limit=1&cursor={cursor}");
    }
    assert_eq!(paged, entries);
    for bad in ["?limit=0", "?limit=1001", "?cursor=x", "?page=2"] {
        let refused = server.get(&format!("/api/v1/executions/{new}/evidence{bad}"));
        assert_eq!(refused.status(), 400, "{bad}");
    }
}
