//! Nothing waits silently: a run that only people can continue ends, and names what is asked, of whom and until when.

use crate::rig::Place;
use serde_json::{Value, json};

/// A playbook that starts another one.
fn starts(name: &str, path: &str) -> String {
    format!(
        "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {{name: {name}, path: {name}}}\nworkflow:\n\
         - step: call\n  tool: {{kind: playbook, path: {path}}}\n"
    )
}

const GATE: &str = "apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: leaf, path: leaf}
workflow:
- step: gate
  spec: {policy: {admit: {rules: [{when: '{{ ctx.go }}', then: {allow: true}}]}}}
  tool: {kind: shell, command: 'echo through >> output'}
";

const ASKS: &str = r#"{"name": "asks", "nodes": [
  {"id": "t", "type": "trigger", "config": {}},
  {"id": "ask", "type": "approval", "name": "Ask Ann", "config": {"message": "Ship v2?", "approvers": ["owner", "ann"]}}
], "edges": [{"source": "t", "target": "ask"}]}"#;

const CALLS: &str = r#"{"name": "calls", "nodes": [
  {"id": "t", "type": "trigger", "config": {}},
  {"id": "call", "type": "sub_workflow", "config": {"workflowId": "asks"}},
  {"id": "after", "type": "shell", "config": {"command": "true"}}
], "edges": [{"source": "t", "target": "call"}, {"source": "call", "target": "after"}]}"#;

/// The executions of a folder by the names of their definitions.
fn listed(place: &Place, name: &str) -> Value {
    let all = place.windlass(&["executions", "list", "--json"]).expect(0).json();
    let rows = all["executions"].as_array().expect("a list").clone();
    rows.into_iter().find(|row| row["workflowName"] == name).expect("it is there")
}

fn id_of(place: &Place, name: &str) -> String {
    listed(place, name)["executionId"].as_str().expect("an id").to_owned()
}

#[test]
fn a_run_whose_child_waits_at_a_gate_ends_with_5_and_the_command_that_opens_it() {
    let place = Place::new();
    place.write("play.yaml", &starts("play", "middle"));
    place.write("middle.yaml", &starts("middle", "leaf"));
    place.write("leaf.yaml", GATE);
    let ran = place.windlass(&["run", "play.yaml"]).expect(5);
    let (leaf, top) = (id_of(&place, "leaf"), id_of(&place, "play"));
    let patch = format!("windlass executions patch {leaf} go=…");
    let ran = ran.says(&format!("step gate of {leaf} waits at its gate; open it with:\n  {patch}"));
    ran.says(&format!("then continue it with:\n  windlass run --resume {top}"));
    for name in ["play", "middle", "leaf"] {
        assert_eq!(listed(&place, name)["status"], "paused", "{name}");
    }
    place.windlass(&["run", "--resume", &top]).expect(5).says(&patch);
    let got = place.windlass(&["executions", "get", &top]).expect(0);
    assert!(got.out.contains(&patch), "{}", got.out);
    place.windlass(&["executions", "patch", &leaf, "go=true"]).expect(0);
    place.windlass(&["run", "--resume", &top]).expect(0);
    assert_eq!(place.lines("output"), ["through"]);
    place.windlass(&["admin", "check"]).expect(0);
}

/// Runs `calls`, whose child asks a person, then answers and continues.
fn answer_child(place: &Place) {
    place.write("asks.json", ASKS);
    place.write("calls.json", CALLS);
    let ran = place.windlass(&["run", "calls.json", "--json"]).expect(5);
    let (parent, child) = (id_of(place, "calls"), id_of(place, "asks"));
    let view = ran.json();
    let entry = &view["waitingFor"][0];
    assert_eq!(
        (&entry["kind"], &entry["childId"], &entry["nodeId"], &entry["nodeName"]),
        (&json!("approval"), &json!(child), &json!("ask"), &json!("Ask Ann"))
    );
    assert_eq!(
        (&entry["message"], &entry["approvers"]),
        (&json!("Ship v2?"), &json!(["owner", "ann"])),
        "{view}"
    );
    assert_eq!((&view["status"], &view["waitingFor"][1]), (&json!("paused"), &Value::Null));
    let got = place.windlass(&["executions", "get", &parent]).expect(0);
    let question =
        format!("step ask of {child} waits for a person: Ship v2? (asked: owner, ann); answer with:");
    let approve = format!("windlass executions approve {child} ask");
    assert!(got.out.contains(&format!("{question}\n  {approve}")), "{}", got.out);
    place.windlass(&["executions", "approve", &child, "ask"]).expect(0);
    place.windlass(&["run", "--resume", &parent]).expect(0);
    let ended = place.windlass(&["executions", "get", &parent, "--json"]).expect(0).json();
    assert_eq!((&ended["status"], ended.get("waitingFor")), (&json!("completed"), None));
}

#[test]
fn a_child_that_asks_a_person_is_named_with_its_question_in_a_folder() {
    let place = Place::new();
    answer_child(&place);
    place.windlass(&["admin", "check"]).expect(0);
}

#[test]
fn a_child_that_asks_a_person_is_named_with_its_question_at_a_server() {
    let serving = Place::new();
    let server = serving.serve();
    let place = Place::new().at(&server);
    place.write("asks.json", ASKS);
    place.windlass(&["workflows", "create", "asks.json"]).expect(0);
    place.write("calls.json", CALLS);
    let ran = place.windlass(&["run", "calls.json"]).expect(5);
    let (parent, child) = (id_of(&place, "calls"), id_of(&place, "asks"));
    let ran = ran.says(&format!("step ask of {child} waits for a person: Ship v2? (asked: owner, ann)"));
    ran.says(&format!("windlass executions approve {child} ask"));
    // Executions of a server continue by themselves, and are only waited for.
    place.windlass(&["run", "--resume", &parent]).expect(5).says(&format!("approve {child} ask"));
    place.windlass(&["executions", "approve", &child, "ask"]).expect(0);
    place.windlass(&["executions", "watch", &parent]).expect(0);
}

#[test]
fn a_gate_with_a_deadline_is_waited_for_and_the_deadline_is_shown() {
    let deadline = GATE.replace("{admit: {rules", "{admit: {deadline: 300ms, rules");
    let place = Place::new();
    place.write("play.yaml", &starts("play", "leaf"));
    place.write("leaf.yaml", &deadline);
    for file in ["leaf.yaml", "play.yaml"] {
        let ran = place.windlass(&["run", file]).expect(1);
        assert!(ran.err.contains("GATE_TIMEOUT"), "{file}: {}", ran.err);
        assert!(!ran.err.contains("windlass executions patch"), "{file}: {}", ran.err);
    }
    let ran = place.windlass(&["run", "leaf.yaml"]).expect(1);
    ran.says("step gate waits at its gate, which reads ctx.go, until 20");
}

/// A question may stay open for days, so `run` does not wait for its deadline.
#[test]
fn an_approval_with_a_deadline_ends_the_run_and_shows_the_deadline() {
    let place = Place::new();
    place.write("asks.json", &ASKS.replace(r#""Ship v2?","#, r#""Ship v2?", "timeout": "1h","#));
    place.write("calls.json", CALLS);
    let ran = place.windlass(&["run", "calls.json"]).expect(5);
    let (parent, child) = (id_of(&place, "calls"), id_of(&place, "asks"));
    assert!(ran.err.contains(&format!("windlass executions approve {child} ask")), "{}", ran.err);
    assert!(ran.err.contains("until 20"), "{}", ran.err);
    let status = place.windlass(&["executions", "get", &parent, "--json"]).expect(0).json();
    assert!(status["waitingFor"][0]["deadline"].is_string(), "{status}");
    place.windlass(&["executions", "approve", &child, "ask"]).expect(0);
    place.windlass(&["run", "--resume", &parent]).expect(0);
}
