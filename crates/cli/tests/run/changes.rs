//! Commands that change an execution in a folder that no process holds.

use crate::rig::Place;

const GATE: &str = "workflow:
- step: g
  spec: {policy: {admit: {rules: [{when: '{{ ctx.go }}', then: {allow: true}}, {else: {then: {allow: false}}}]}}}
  tool: {kind: shell, command: 'echo passed >> output'}
";

/// Returns an execution that is paused at the gate.
fn paused() -> (Place, String) {
    let place = Place::playing(GATE);
    let id = place.run(&[], 5)["executionId"].as_str().expect("an id").to_owned();
    (place, id)
}

#[test]
fn a_gate_is_opened_by_a_patch_and_resume_does_the_work() {
    let (place, id) = paused();
    let output = place.windlass(&["executions", "patch", &id, "other=1"]).expect(0);
    assert_eq!(output.out, format!("{id} paused\n"));
    place.windlass(&["run", "--resume", &id]).expect(5);
    let output = place.windlass(&["executions", "patch", &id, "go=true"]).expect(0);
    assert_eq!(output.out, format!("{id} running\n"));
    output.says(&format!(
        "no process runs it at the moment; continue it with:\n  windlass run --resume {id}\n"
    ));
    assert!(place.lines("output").is_empty(), "nothing runs without a worker");
    let output = place.windlass(&["run", "--resume", &id, "--json"]).expect(0).json();
    assert_eq!((&output["status"], &output["view"]["ctx"]["go"]), (&"completed".into(), &true.into()));
    assert_eq!(place.lines("output"), ["passed"]);
}

#[test]
fn a_cancelled_execution_stays_cancelled_and_exits_3() {
    let (place, id) = paused();
    let output =
        place.windlass(&["executions", "cancel", &id, "--reason", "enough", "--json"]).expect(0).json();
    assert_eq!(output["status"], "cancelled");
    let output = place.windlass(&["run", "--resume", &id, "--json"]).expect(3).json();
    assert_eq!(
        (&output["errors"][0]["code"], &output["errors"][0]["message"]),
        (&"CANCELLED".into(), &"enough".into())
    );
}

#[test]
fn a_held_execution_is_released_by_resume() {
    let (place, id) = paused();
    place.windlass(&["executions", "pause", &id]).expect(0).says(&format!("windlass executions resume {id}"));
    place.windlass(&["executions", "resume", &id]).expect(0);
    place.windlass(&["executions", "resume", &id]).expect(1).says("it is not held");
}

#[test]
fn what_cannot_be_done_is_refused_in_words() {
    let (place, id) = paused();
    place.windlass(&["executions", "cancel", &id]).expect(0);
    for args in [&["cancel"][..], &["pause"], &["patch", "go=true"]] {
        let all = [&["executions", args[0], &id], &args[1..]].concat();
        let output = place.windlass(&all).expect(1).says("has ended (cancelled)");
        assert!(!output.err.contains("Ended("), "{}", output.err);
    }
}

#[test]
fn what_names_nothing_exits_2() {
    let (place, id) = paused();
    place.windlass(&["executions", "patch", &id, "go"]).expect(2).says("KEY=VALUE");
    place.windlass(&["executions", "patch", &id]).expect(2);
    let missing = format!("exec_{}", "0".repeat(32));
    for command in ["cancel", "pause", "resume"] {
        place.windlass(&["executions", command, &missing]).expect(2).says("there is no execution");
    }
}
