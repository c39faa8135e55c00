//! Workflows of actions: order, graphs, fail-fast, tiers. The operations are commands in the folder of the test.

use crate::rig::{Place, until};
use serde_json::{Value, json};
use std::fs;
use std::process::Command;

/// A document of these actions, whose operations are commands.
pub fn document(head: &str, actions: &str, operations: &[(&str, &str)]) -> String {
    let mut text = format!(
        "schemaVersion: 1\nworkflowId: tested\nname: tested\n{head}actions:\n{actions}\nadapters:\n  operations:\n"
    );
    for (name, command) in operations {
        text += &format!("    {name:?}: {{kind: shell, command: {command:?}}}\n");
    }
    text
}

/// A folder with such a document in `play.yaml`.
pub fn acting(head: &str, actions: &str, operations: &[(&str, &str)]) -> Place {
    let place = Place::new();
    place.write("play.yaml", &document(head, actions, operations));
    place
}

/// The view of the newest run of the folder; None while there is none.
fn find_view(place: &Place) -> Option<Value> {
    let output = place.windlass(&["executions", "get", "@last", "--json"]);
    (output.code == 0).then(|| output.json()["view"].clone())
}

fn view(place: &Place) -> Value {
    find_view(place).expect("a run")
}

pub fn action<'v>(view: &'v Value, id: &str) -> &'v Value {
    let all = view["actions"].as_array().expect("actions");
    all.iter().find(|action| action["actionId"] == id).unwrap_or_else(|| panic!("no action {id}: {view}"))
}

/// `a Succeeded 1, b Failed 3`.
pub fn states(view: &Value) -> String {
    let all = view["actions"].as_array().expect("actions").iter();
    let each = all.map(|action| {
        format!(
            "{} {} {}",
            action["actionId"].as_str().unwrap_or_default(),
            action["status"].as_str().unwrap_or_default(),
            action["attempts"]
        )
    });
    each.collect::<Vec<_>>().join(", ")
}

/// Events of the newest run, in the order of its journal.
pub fn events(place: &Place) -> Vec<Value> {
    let output = place.windlass(&["executions", "events", "@last", "--json"]).expect(0);
    output.out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// Makes a pipe that a command waits at until [`open`].
fn gate(place: &Place, name: &str) {
    let made = Command::new("mkfifo").arg(place.path(name)).status().expect("mkfifo runs");
    assert!(made.success());
}

fn open(place: &Place, name: &str) {
    fs::write(place.path(name), "go\n").expect("the pipe is written");
}

/// Three actions: each notes its begin and its end.
const IN_ORDER: &str = "- {actionId: c, order: 1, operation: 'note:write', input: {id: c}}
- {actionId: a, order: 2, operation: 'note:write', input: {id: a}}
- {actionId: b, order: 3, operation: 'note:write', input: {id: b}}";
const NOTE: (&str, &str) =
    ("note:write", "echo {{ args.id }} begins >> log; echo {{ args.id }} ends >> log; echo {{ args.id }}");

#[test]
fn act_01_an_order_with_a_gap_a_repetition_or_another_start_is_refused() {
    let refused = |orders: [&str; 3], message: &str| {
        let [a, b, c] = orders;
        let actions = format!(
            "- {{actionId: a, order: {a}, operation: 'note:write'}}\n- {{actionId: b, order: {b}, operation: 'note:write'}}\n- {{actionId: c, order: {c}, operation: 'note:write'}}"
        );
        let place = acting("", &actions, &[NOTE]);
        place.windlass(&["run", "play.yaml"]).expect(2).says(message);
        place.windlass(&["validate", "play.yaml"]).expect(2).says(message);
        assert!(place.lines("log").is_empty(), "nothing ran");
    };
    let rule = "actions must be ordered by 'order' with contiguous values starting at 1";
    refused(["1", "3", "4"], &format!("action `b`: {rule} (expected 2, got 3)"));
    refused(["1", "2", "2"], &format!("action `c`: {rule} (expected 3, got 2)"));
    refused(["2", "3", "4"], &format!("action `a`: {rule} (expected 1, got 2)"));
    refused(["2", "1", "3"], &format!("action `a`: {rule} (expected 1, got 2)"));
    refused(["0", "1", "2"], "action `a`: order must be a whole number from 1");
    refused(["1", "'2'", "3"], "action `b`: order must be a whole number from 1");
    let place = acting(
        "",
        "- {actionId: a, order: 1, operation: 'note:write'}\n- {actionId: a, order: 2, operation: 'note:write'}",
        &[NOTE],
    );
    place
        .windlass(&["run", "play.yaml"])
        .expect(2)
        .says("action `a` is defined twice: actionId must be unique");
}

#[test]
fn act_02_without_dependencies_actions_run_strictly_in_order() {
    let place = acting("", IN_ORDER, &[NOTE]);
    let run = place.run(&[], 0);
    assert_eq!(place.lines("log"), ["c begins", "c ends", "a begins", "a ends", "b begins", "b ends"]);
    assert_eq!(run["dialect"], "actions");
    assert_eq!(run["view"]["runId"], run["executionId"]);
    assert_eq!(run["view"]["status"], "Succeeded");
    assert_eq!(states(&run["view"]), "c Succeeded 1, a Succeeded 1, b Succeeded 1");
    let first = action(&run["view"], "c");
    assert!(first["startedAtIso"].is_string() && first["endedAtIso"].is_string(), "{first}");
    assert_eq!((&first["order"], &first["error"]), (&json!(1), &Value::Null));
    let zeros = json!({ "attempted": 0, "succeeded": 0, "failed": 0, "nonCompensable": 0, "entries": [] });
    assert_eq!(run["view"]["compensation"], zeros);
}

#[test]
fn act_02_inputs_have_a_schema_with_defaults_and_outputs_are_read_by_later_actions() {
    let head = "inputs: {type: object, required: [who], properties: {who: {type: string}, times: {type: integer, default: 2}}}\n";
    let actions = "- {actionId: first, order: 1, operation: 'text:make', input: {text: '{{ inputs.who }} {{ inputs.times }}'}}
- {actionId: second, order: 2, operation: 'text:make', input: {text: '{{ actions.first.output.stdout | trim }}!'}}";
    let place = acting(head, actions, &[("text:make", "echo {{ args.text }}")]);
    let run = place.run(&["--input", "who=Ada"], 0);
    assert_eq!(run["outputs"]["stdout"], "Ada 2!\n");
    place.windlass(&["run", "play.yaml"]).expect(2).says("who");
    place
        .windlass(&["run", "play.yaml", "--input", "who=Ada", "--input", "times=often"])
        .expect(2)
        .says("inputs.times");
}

#[test]
fn act_03_an_action_starts_when_all_its_predecessors_have_succeeded() {
    let actions = "- {actionId: a, order: 1, operation: 'quick:run', input: {id: a}}
- {actionId: b, order: 2, dependsOn: [a], operation: 'quick:run', input: {id: b}}
- {actionId: c, order: 3, dependsOn: [a], operation: 'slow:run'}
- {actionId: d, order: 4, dependsOn: [b, c], operation: 'quick:run', input: {id: d}}";
    let place = acting(
        "",
        actions,
        &[("quick:run", "echo {{ args.id }} >> log"), ("slow:run", "read line < gate; echo c >> log")],
    );
    gate(&place, "gate");
    let running = place.start(&["run", "play.yaml"]);
    until("b succeeds while c runs", || {
        let view = find_view(&place)?;
        (states(&view) == "a Succeeded 1, b Succeeded 1, c Running 1, d Pending 0").then_some(())
    });
    assert_eq!(place.lines("log"), ["a", "b"], "c has not ended, so d has not begun");
    open(&place, "gate");
    assert_eq!(running.end().0, Some(0));
    assert_eq!(place.lines("log"), ["a", "b", "c", "d"]);
}

/// Actions that all start after the first one. The list of ids is not in the order of the alphabet.
fn fan_out() -> String {
    let ids = ["w", "k", "z", "b", "m", "a", "x", "c"];
    let mut actions =
        "- {actionId: start, order: 1, operation: 'note:write', input: {id: start}}\n".to_owned();
    for (id, order) in ids.iter().zip(2..) {
        actions += &format!(
            "- {{actionId: {id}, order: {order}, dependsOn: [start], operation: 'note:write', input: {{id: {id}}}}}\n"
        );
    }
    actions
}

#[test]
fn act_04_act_17_actions_that_are_ready_together_are_dispatched_by_their_order() {
    let expected = ["start", "w", "k", "z", "b", "m", "a", "x", "c"];
    for slots in ["1", "4", "16"] {
        let place = acting("", &fan_out(), &[("note:write", "echo {{ args.id }} >> log")]);
        place.run(&["--slots", slots], 0);
        let offers = events(&place).into_iter().filter(|event| event["event"] == "step.offered");
        let steps: Vec<String> =
            offers.map(|event| event["step"].as_str().unwrap_or_default().to_owned()).collect();
        assert_eq!(steps, expected, "{slots} slots");
        if slots == "1" {
            assert_eq!(place.lines("log"), expected, "side effects follow the order of the dispatch");
        }
    }
}

#[test]
fn act_05_act_06_after_a_failure_running_actions_finish_and_all_others_are_cancelled() {
    let actions = "- {actionId: bad, order: 1, dependsOn: [], operation: 'bad:run', retryPolicy: {maxAttempts: 1}}
- {actionId: slow, order: 2, operation: 'slow:run'}
- {actionId: again, order: 3, operation: 'again:run', retryPolicy: {initialBackoffMs: 600000, maxBackoffMs: 600000}}
- {actionId: person, order: 4, operation: 'person:run', completionMode: manual}
- {actionId: asked, order: 5, operation: 'note:write', executionTierOverride: HumanApprove}
- {actionId: after, order: 6, dependsOn: [slow], operation: 'note:write'}";
    let place = acting(
        "",
        actions,
        &[
            ("bad:run", "read line < bad; exit 3"),
            ("slow:run", "read line < slow; echo slow >> log"),
            ("again:run", "exit 4"),
            ("person:run", "true"),
            ("note:write", "echo never >> log"),
        ],
    );
    gate(&place, "bad");
    gate(&place, "slow");
    let running = place.start(&["run", "play.yaml"]);
    until("everything is on its way", || {
        let all = "bad Running 1, slow Running 1, again Running 1, person WaitingForManualCompletion 1, asked Pending 0, after Pending 0";
        let view = find_view(&place)?;
        (states(&view) == all && action(&view, "again")["error"].is_object()).then_some(())
    });
    assert_eq!(action(&view(&place), "asked")["approval"], "Waiting");
    open(&place, "bad");
    until("the failure stops the run", || {
        let all = "bad Failed 1, slow Running 1, again Cancelled 1, person Cancelled 1, asked Cancelled 0, after Cancelled 0";
        (states(&find_view(&place)?) == all).then_some(())
    });
    open(&place, "slow");
    assert_eq!(running.end().0, Some(1));
    let ended = view(&place);
    assert_eq!(
        states(&ended),
        "bad Failed 1, slow Succeeded 1, again Cancelled 1, person Cancelled 1, asked Cancelled 0, after Cancelled 0"
    );
    assert_eq!(ended["status"], "Failed");
    assert_eq!(place.lines("log"), ["slow"]);
    let id = ended["runId"].as_str().expect("an id");
    place.windlass(&["executions", "approve", id, "asked"]).expect(2);
    assert_eq!(view(&place), ended, "the states at the end do not change");
}

/// One action that a person must approve, after one that can be undone.
fn gated(tier: &str) -> Place {
    let actions = format!(
        "- {{actionId: first, order: 1, operation: 'note:write', input: {{id: first}}, compensation: {{compensationOperation: 'note:undo'}}}}
- {{actionId: pay, order: 2, operation: 'note:write', input: {{id: pay}}, executionTierOverride: {tier}}}"
    );
    acting("", &actions, &[("note:write", "echo {{ args.id }} >> log"), ("note:undo", "echo undone >> log")])
}

#[test]
fn act_06_an_action_of_a_gated_tier_waits_for_an_approval_before_it_is_dispatched() {
    for tier in ["HumanApprove", "ManualOnly"] {
        let place = gated(tier);
        let ran = place.windlass(&["run", "play.yaml", "--json"]).expect(5);
        let waiting = ran.json();
        assert_eq!(
            (&waiting["view"]["status"], place.lines("log")),
            (&json!("Paused"), vec!["first".to_owned()])
        );
        assert_eq!(states(&waiting["view"]), "first Succeeded 1, pay Pending 0");
        let pay = action(&waiting["view"], "pay");
        assert_eq!((&pay["approval"], &pay["executionTier"]), (&json!("Waiting"), &json!(tier)));
        assert_eq!(
            (&waiting["waitingFor"][0]["kind"], &waiting["waitingFor"][0]["nodeId"]),
            (&json!("approval"), &json!("pay"))
        );
        let id = waiting["executionId"].as_str().expect("an id");
        place.windlass(&["executions", "approve", id, "pay", "--note", "paid before noon"]).expect(0);
        let done = place.windlass(&["run", "--resume", id, "--json"]).expect(0).json();
        assert_eq!(states(&done["view"]), "first Succeeded 1, pay Succeeded 1");
        assert_eq!(action(&done["view"], "pay")["approval"], "Approved");
        assert_eq!(place.lines("log"), ["first", "pay"]);
        let evidence = place.windlass(&["evidence", id, "--json"]).expect(0).out;
        let records: Vec<Value> =
            evidence.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let of_pay: Vec<String> = records
            .iter()
            .filter(|record| record["actionId"] == "pay")
            .map(|record| {
                format!(
                    "{} {} {}",
                    record["category"].as_str().unwrap_or_default(),
                    record["outcome"].as_str().unwrap_or_default(),
                    record["terminal"]
                )
            })
            .collect();
        assert_eq!(of_pay, ["Approval Succeeded false", "Action Succeeded true"], "{evidence}");
    }
}

/// An approval was given for what the approver saw.
#[test]
fn act_06_an_action_that_was_changed_is_approved_again() {
    let actions = "- {actionId: pay, order: 1, operation: 'pay:send', input: {amount: 1}, executionTierOverride: HumanApprove, retryPolicy: {maxAttempts: 1}}";
    let place = acting("", actions, &[("pay:send", "test -e go && echo {{ args.amount }} >> paid")]);
    let text = fs::read_to_string(place.path("play.yaml")).expect("a file");
    place.write("changed.yaml", &text.replace("amount: 1}", "amount: 1000}"));
    let id = place.run(&[], 5)["executionId"].as_str().expect("an id").to_owned();
    place.windlass(&["executions", "approve", &id, "pay"]).expect(0);
    place.windlass(&["run", "--resume", &id]).expect(1);
    place.write("go", "");
    let preview = place.windlass(&["executions", "retry", &id, "--dry-run"]).expect(0).out;
    assert!(preview.contains("taken over: 1\n  pay:approval"), "{preview}");
    let preview =
        place.windlass(&["executions", "retry", &id, "--with", "changed.yaml", "--dry-run"]).expect(0).out;
    assert!(preview.contains("taken over: 0\n"), "{preview}");
    place.windlass(&["executions", "retry", &id, "--with", "changed.yaml"]).expect(5);
    assert!(place.lines("paid").is_empty(), "it waits for another approval");
    place.windlass(&["executions", "retry", &id]).expect(0);
    assert_eq!(place.lines("paid"), ["1"], "the approval of the same action is kept");
}

#[test]
fn act_06_a_rejected_action_never_starts_and_fails_the_run_which_is_compensated() {
    let place = gated("HumanApprove");
    let id = place.run(&[], 5)["executionId"].as_str().expect("an id").to_owned();
    place.windlass(&["executions", "reject", &id, "pay"]).expect(0);
    let ended = place.windlass(&["run", "--resume", &id, "--json"]).expect(1).json();
    assert_eq!(states(&ended["view"]), "first Succeeded 1, pay Cancelled 0");
    let pay = action(&ended["view"], "pay");
    assert_eq!((&pay["approval"], &pay["error"]["code"]), (&json!("Rejected"), &json!("REJECTED")));
    assert_eq!(place.lines("log"), ["first", "undone"]);
    let compensation = &ended["view"]["compensation"];
    assert_eq!((&compensation["attempted"], &compensation["succeeded"]), (&json!(1), &json!(1)));
}

#[test]
fn an_assisted_action_runs_at_once_and_its_evidence_notes_the_tier() {
    let place = acting("executionTier: Assisted\n", IN_ORDER, &[NOTE]);
    let id = place.run(&[], 0)["executionId"].as_str().expect("an id").to_owned();
    let evidence = place.windlass(&["evidence", &id, "--json"]).expect(0).out;
    assert_eq!(evidence.matches("execution tier Assisted").count(), 3, "{evidence}");
}

#[test]
fn an_override_may_only_be_stricter() {
    let tiers = ["Auto", "Assisted", "HumanApprove", "ManualOnly"];
    for (rank, workflow) in tiers.iter().enumerate() {
        for (other, tier) in tiers.iter().enumerate() {
            let action = format!(
                "- {{actionId: a, order: 1, operation: 'note:write', executionTierOverride: {tier}}}"
            );
            let place = acting(&format!("executionTier: {workflow}\n"), &action, &[NOTE]);
            let checked = place.windlass(&["validate", "play.yaml"]);
            if other < rank {
                checked.expect(2).says("cannot be less strict than the workflow executionTier");
            } else {
                checked.expect(0);
            }
        }
    }
}

#[test]
fn an_inactive_workflow_is_stored_and_not_started() {
    let place = acting("active: false\n", IN_ORDER, &[NOTE]);
    place.windlass(&["workflows", "create", "play.yaml"]).expect(0);
    let refused = place.windlass(&["workflows", "run", "tested"]);
    assert_ne!(refused.code, 0, "{}", refused.out);
    assert!(place.lines("log").is_empty());
}

#[test]
fn the_picture_shows_order_tiers_approvals_and_hooks() {
    let place = gated("HumanApprove");
    let picture = place.windlass(&["graph", "play.yaml"]).expect(0).out;
    for part in
        ["1. note:write", "undone by note:undo", "pay: approval", "2. note:write", "tier HumanApprove"]
    {
        assert!(picture.contains(part), "`{part}` is missing:\n{picture}");
    }
    let schema = place.windlass(&["schema", "actions"]).expect(0).json();
    assert_eq!(schema["required"], json!(["schemaVersion", "workflowId", "name", "actions"]));
}
