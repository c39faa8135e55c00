//! Compensation of actions: what a failed run undoes, in which order, and how users see it.

use crate::rig::Place;
use serde_json::{Value, json};

/// Five actions succeed, the last one fails. Every operation appends a line with its key to `ledger`.
const ORDER: &str = r#"schemaVersion: 1
workflowId: shop/order
name: order
inputs: {type: object, properties: {customer: {type: string, default: Ada}}}
actions:
- actionId: reserve
  order: 1
  operation: stock:reserve
  compensation:
    compensationOperation: stock:release
    compensationInput:
      item: "{{ actions.reserve.output.stdout }}"
      why: "{{ failure.code }} in {{ failure.nodeId }} for {{ inputs.customer }}"
- actionId: charge
  order: 2
  operation: payment:charge
  compensation:
    compensationOperation: payment:refund
    compensationInput: {amount: 7}
    retryPolicy: {initialBackoffMs: 1}
- actionId: label
  order: 3
  operation: label:print
  compensation:
    compensationOperation: label:void
    compensationInput: {code: "{{ actions.label.output.stdout }}"}
    compensationInputSchema: {type: object, properties: {code: {type: integer}}, required: [code]}
- {actionId: notify, order: 4, operation: "email:send"}
- {actionId: look, order: 5, operation: "stock:read"}
- {actionId: ship, order: 6, operation: "parcel:ship", retryPolicy: {maxAttempts: 1}}
- {actionId: thank, order: 7, operation: "email:send"}
adapters:
  operations:
    "stock:reserve": {kind: shell, command: 'echo "reserve $WINDLASS_IDEMPOTENCY_KEY" >> ledger; printf r-1'}
    "stock:release": {kind: shell, command: 'echo release {{ args.item }}, {{ args.why }}: "$WINDLASS_IDEMPOTENCY_KEY" >> ledger'}
    "stock:read": {kind: shell, command: 'true'}
    "payment:charge": {kind: shell, command: 'echo "charge $WINDLASS_IDEMPOTENCY_KEY" >> ledger'}
    "payment:refund": {kind: shell, command: 'echo "refund $WINDLASS_IDEMPOTENCY_KEY" >> ledger; echo no such card >&2; exit 9'}
    "label:print": {kind: shell, command: 'echo "label $WINDLASS_IDEMPOTENCY_KEY" >> ledger; printf L1'}
    "label:void": {kind: shell, command: 'echo void >> ledger'}
    "email:send": {kind: shell, command: 'echo "notify $WINDLASS_IDEMPOTENCY_KEY" >> ledger'}
    "parcel:ship": {kind: shell, command: 'exit 3'}
"#;

fn ordered() -> (Place, Value) {
    let place = Place::new();
    place.write("order.yaml", ORDER);
    let ended = place.windlass(&["run", "order.yaml", "--json"]).expect(1).json();
    (place, ended)
}

#[test]
fn act_13_act_14_act_15_a_failed_run_is_undone_newest_completion_first() {
    let (place, ended) = ordered();
    let id = ended["executionId"].as_str().unwrap();
    let key = |action: &str| format!("{id}:{action}");
    let expected = [
        format!("reserve {}", key("reserve")),
        format!("charge {}", key("charge")),
        format!("label {}", key("label")),
        format!("notify {}", key("notify")),
        // The hook of `label` is not called: its input does not fit the schema.
        format!("refund {}", key("charge:compensate")),
        format!("refund {}", key("charge:compensate")),
        format!("release r-1, SHELL_EXIT in ship for Ada: {}", key("reserve:compensate")),
    ];
    assert_eq!(place.lines("ledger"), expected, "{ended}");
    assert_eq!((&ended["status"], &ended["view"]["status"]), (&json!("failed"), &json!("Failed")));
    let mut summary = ended["view"]["compensation"].clone();
    let errors: Vec<Value> =
        summary["entries"].as_array_mut().unwrap().iter_mut().map(|entry| entry["error"].take()).collect();
    let entry = |action: &str, operation: Value, attempts: u32, outcome: &str| {
        let key = operation.as_str().map(|_| format!("{id}:{action}:compensate"));
        json!({ "actionId": action, "operation": operation, "idempotencyKey": key, "attempts": attempts,
            "outcome": outcome, "error": null })
    };
    let expected = json!({
        "attempted": 3, "succeeded": 1, "failed": 2, "nonCompensable": 1,
        "entries": [
            entry("notify", json!(null), 0, "NonCompensable"),
            entry("label", json!("label:void"), 1, "Failed"),
            entry("charge", json!("payment:refund"), 2, "Failed"),
            entry("reserve", json!("stock:release"), 1, "Succeeded"),
        ],
    });
    assert_eq!(summary, expected);
    assert_eq!((&errors[0], &errors[3]), (&json!(null), &json!(null)));
    assert_eq!(errors[1]["class"], "validation", "{errors:?}");
    assert!(errors[2]["message"].as_str().unwrap().contains("no such card"), "{errors:?}");
}

#[test]
fn act_15_users_see_what_was_undone_and_what_is_left() {
    let place = Place::new();
    place.write("order.yaml", ORDER);
    let said = place.windlass(&["run", "order.yaml"]).expect(1).err;
    let got = place.windlass(&["executions", "get", "@last"]).expect(0).out;
    for text in [said, got] {
        for words in [
            "compensation: 1 of 4 actions undone, 2 failed, 1 without compensation",
            "reserve  undone by stock:release",
            "charge   not undone: payment:refund failed after 2 attempts",
            "label    not undone: label:void failed after 1 attempt",
            "notify   not undone: it has no compensation",
            "logs:  windlass executions logs exec_",
            "undo the rest by hand; every attempt: windlass evidence exec_",
        ] {
            assert!(text.contains(words), "`{words}` is missing in:\n{text}");
        }
    }
}

#[test]
fn act_18_evidence_has_every_attempt_every_end_and_the_summary() {
    let (place, ended) = ordered();
    let id = ended["executionId"].as_str().unwrap();
    let text = place.windlass(&["evidence", id, "--jsonl"]).expect(0).out;
    place.write("evidence.jsonl", &text);
    place.windlass(&["evidence", "verify", "evidence.jsonl"]).expect(0);
    let records: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let shown: Vec<String> = records
        .iter()
        .map(|record| {
            let text = |key: &str| record[key].as_str().unwrap_or("-").to_owned();
            format!("{} {} {} {}", text("category"), text("actionId"), record["attempt"], text("outcome"))
        })
        .collect();
    let expected = [
        "Action reserve 1 Succeeded",
        "Action charge 1 Succeeded",
        "Action label 1 Succeeded",
        "Action notify 1 Succeeded",
        "Action look 1 Succeeded",
        "Action ship 1 Failed",
        "Action thank null Cancelled",
        "Compensation label 1 Failed",
        "Compensation charge 1 Failed",
        "Compensation charge 2 Failed",
        "Compensation reserve 1 Succeeded",
        "Compensation notify null NonCompensable",
        "System - null Failed",
    ];
    assert_eq!(shown, expected);
    for record in records.iter().filter(|record| !record["attempt"].is_null()) {
        assert!(
            record["startedAtIso"].as_str().unwrap() <= record["endedAtIso"].as_str().unwrap(),
            "{record}"
        );
        let is_failed = record["outcome"] == "Failed";
        assert_eq!(record["error"]["class"].is_string(), is_failed, "{record}");
        assert_eq!((&record["runId"], &record["correlationId"]), (&json!(id), &json!(id)));
    }
    for record in records.iter().filter(|record| record["category"] == "Compensation") {
        let (action, is_called) = (record["actionId"].as_str().unwrap(), !record["attempt"].is_null());
        let key = is_called.then(|| format!("{id}:{action}:compensate"));
        assert_eq!(record["idempotencyKey"].as_str(), key.as_deref(), "{record}");
        assert_eq!(record["operation"].is_string(), is_called, "{record}");
    }
    assert_eq!(records.last().unwrap()["compensation"], ended["view"]["compensation"]);
}

#[test]
fn act_19_a_run_that_takes_too_long_is_compensated_before_it_ends() {
    let place = Place::new();
    let slow = ORDER
        .replace("name: order\n", "name: order\ntimeoutMs: 2500\n")
        .replace("'echo \"charge $WINDLASS_IDEMPOTENCY_KEY\" >> ledger'", "'sleep 600'");
    place.write("order.yaml", &slow);
    let ended = place.windlass(&["run", "order.yaml", "--json"]).expect(1).json();
    assert_eq!(ended["errors"][0]["code"], "EXECUTION_TIMEOUT", "{ended}");
    let entries = ended["view"]["compensation"]["entries"].as_array().unwrap();
    let shown: Vec<(&Value, &Value)> =
        entries.iter().map(|entry| (&entry["actionId"], &entry["outcome"])).collect();
    assert_eq!(shown, [(&json!("reserve"), &json!("Succeeded"))]);
    assert!(
        place.lines("ledger")[1].starts_with("release r-1, EXECUTION_TIMEOUT in"),
        "{:?}",
        place.lines("ledger")
    );
}

#[test]
fn act_14_a_hook_that_takes_too_long_follows_its_own_timeout() {
    let place = Place::new();
    let slow = ORDER
        .replace("retryPolicy: {initialBackoffMs: 1}", "retryPolicy: {maxAttempts: 1}\n    timeoutMs: 300")
        .replace("echo no such card >&2; exit 9", "sleep 600");
    place.write("order.yaml", &slow);
    let ended = place.windlass(&["run", "order.yaml", "--json"]).expect(1).json();
    let entry = &ended["view"]["compensation"]["entries"][2];
    assert_eq!((&entry["actionId"], &entry["outcome"]), (&json!("charge"), &json!("Failed")), "{ended}");
    assert_eq!((&entry["error"]["class"], &entry["attempts"]), (&json!("timeout"), &json!(1)), "{entry}");
    assert_eq!(ended["view"]["compensation"]["entries"][3]["outcome"], "Succeeded", "the others run");
}

#[test]
fn a_compensation_that_reads_a_name_that_does_not_exist_is_refused() {
    let place = Place::new();
    place.write("order.yaml", &ORDER.replace("{{ failure.code }}", "{{ mistake.code }}"));
    place.windlass(&["validate", "order.yaml"]).expect(2).says("`mistake`, which does not exist");
    // Only a compensation has a failure.
    place.write(
        "order.yaml",
        &ORDER.replace(
            "operation: stock:reserve\n",
            "operation: stock:reserve\n  input: {a: '{{ failure.code }}'}\n",
        ),
    );
    place.windlass(&["validate", "order.yaml"]).expect(2).says("`failure`, which does not exist");
}
