//! Compensation on request: cancels with and without it, and a forced cancel in the middle of it.

use crate::executions::{get, start, until};
use crate::rig::{self, Place, Server};
use serde_json::{Value, json};
use std::path::Path;

/// Two actions with hooks, then one that a person completes. The hook of `pay` waits for the file `go`.
fn saga(folder: &Path) -> String {
    let ledger = folder.join("ledger");
    let (ledger, go) = (ledger.display(), folder.join("go"));
    let go = go.display();
    format!(
        r#"schemaVersion: 1
workflowId: shop/pay
name: pay
actions:
- actionId: book
  order: 1
  operation: seat:book
  compensation: {{compensationOperation: "seat:free", compensationInput: {{}}}}
- actionId: pay
  order: 2
  operation: card:charge
  compensation: {{compensationOperation: "card:refund", compensationInput: {{}}}}
- {{actionId: sign, order: 3, operation: "paper:sign", completionMode: manual, sideEffecting: false}}
adapters:
  operations:
    "seat:book": {{kind: shell, command: 'true'}}
    "seat:free": {{kind: shell, command: 'echo free >> {ledger}'}}
    "card:charge": {{kind: shell, command: 'true'}}
    "card:refund": {{kind: shell, command: 'echo refund >> {ledger}; until [ -e {go} ]; do sleep 0.02; done'}}
    "paper:sign": {{kind: shell, command: 'true'}}
"#
    )
}

fn waiting(place: &Place) -> (Server, String) {
    let server = place.serve();
    let id = start(&server, &server.define(&saga(&place.path(""))), json!({}));
    until(&server, &id, "paused");
    (server, id)
}

fn cancel(server: &Server, id: &str, body: Value) -> u16 {
    server.post(&format!("/api/v1/executions/{id}/cancel"), &body).0.as_u16()
}

fn outcomes(execution: &Value) -> Vec<(String, String)> {
    let entries = execution["view"]["compensation"]["entries"].as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    entries.iter().map(|entry| (text(&entry["actionId"]), text(&entry["outcome"]))).collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(action, outcome)| ((*action).to_owned(), (*outcome).to_owned())).collect()
}

#[test]
fn act_13_a_cancelled_run_is_compensated_only_on_request() {
    let place = Place::new();
    place.write("go", "");
    let (server, id) = waiting(&place);
    assert_eq!(cancel(&server, &id, json!({})), 200);
    let ended = until(&server, &id, "cancelled");
    assert_eq!(outcomes(&ended), []);
    assert!(place.lines("ledger").is_empty());

    let id = start(&server, &server.define(&saga(&place.path(""))), json!({}));
    until(&server, &id, "paused");
    place.windlass(&["executions", "cancel", &id, "--compensate"]).expect(0);
    let ended = until(&server, &id, "cancelled");
    assert_eq!(outcomes(&ended), pairs(&[("pay", "Succeeded"), ("book", "Succeeded")]));
    assert_eq!(place.lines("ledger"), ["refund", "free"]);
}

#[test]
fn act_15_a_forced_cancel_ends_a_compensation_and_the_rest_is_listed_as_not_run() {
    let place = Place::new();
    let (server, id) = waiting(&place);
    let (status, answer) = server.post(
        &format!("/api/v1/executions/{id}/cancel"),
        &json!({ "compensate": true, "reason": "changed my mind" }),
    );
    assert!(status.is_success(), "{answer}");
    rig::until("the hook runs", || (!place.lines("ledger").is_empty()).then_some(()));
    let now = get(&server, &id, "");
    assert_eq!(outcomes(&now), pairs(&[("pay", "Running"), ("book", "Pending")]), "{now}");
    assert_eq!(cancel(&server, &id, json!({})), 409, "it is being compensated");
    assert_eq!(cancel(&server, &id, json!({ "force": true })), 200);
    let ended = until(&server, &id, "cancelled");
    assert_eq!(outcomes(&ended), pairs(&[("pay", "Cancelled"), ("book", "NotRun")]));
    assert_eq!(place.lines("ledger"), ["refund"]);
    let evidence = get(&server, &id, "/evidence")["evidence"].as_array().unwrap().clone();
    let shown: Vec<(&Value, &Value)> = evidence
        .iter()
        .filter(|record| record["category"] == "Compensation")
        .map(|record| (&record["actionId"], &record["outcome"]))
        .collect();
    assert_eq!(shown, [(&json!("pay"), &json!("Cancelled")), (&json!("book"), &json!("NotRun"))]);
    assert_eq!(evidence.last().unwrap()["compensation"], ended["view"]["compensation"]);
}
