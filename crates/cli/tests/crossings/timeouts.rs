//! Timeouts of steps that run, wait or are at a gate.

use crate::rig::{Place, is_gone, playbook, process_of, until};
use crate::situations::WAYS;
use crate::workflows;
use serde_json::Value;

fn check(definition: &str, code: i32, expected: &[&str]) -> Value {
    let place = Place::playing(definition);
    place.write(
        "child.yaml",
        &playbook("tested", &format!("workflow:\n- {{step: inner, tool: {LASTING}}}\n")),
    );
    let output = place.run(&[], code);
    assert_eq!(place.lines("output"), expected, "{output}");
    if place.path("pid").exists() {
        let pid = process_of(&place, "pid");
        until("the step's process is gone", || is_gone(pid).then_some(()));
    }
    place.windlass(&["admin", "check"]).expect(0);
    output
}

/// Lasts longer than any test.
const LASTING: &str = "{kind: shell, command: 'echo begun >> output; echo $$ > pid; exec sleep 1000'}";

#[test]
fn a_step_that_takes_too_long_fails_and_its_process_ends() {
    let output =
        check(&format!("workflow:\n- {{step: x, spec: {{timeout: 2s}}, tool: {LASTING}}}\n"), 1, &["begun"]);
    assert_eq!(output["errors"][0]["code"], "NETWORK_TIMEOUT", "{output}");
}

#[test]
fn a_timeout_can_be_handled_like_any_failure() {
    let output = check(
        &format!(
            "workflow:
- step: x
  spec: {{timeout: 2s}}
  tool: {LASTING}
  next: {{arcs: [{{step: late, when: \"{{{{ event.name == 'step.failed' and event.error.code == 'NETWORK_TIMEOUT' }}}}\"}}]}}
- {{step: late, tool: {{kind: shell, command: 'echo late >> output'}}}}
"
        ),
        0,
        &["begun", "late"],
    );
    assert_eq!(output["status"], "completed");
}

#[test]
fn each_iteration_of_a_loop_has_its_own_time() {
    let output = check(
        "workflow:
- step: x
  spec: {timeout: 2s}
  loop: {in: [1, 2], iterator: n}
  tool: {kind: shell, command: 'echo {{ iter.n }} >> output; test {{ iter.n }} = 2 || exec sleep 1000'}
",
        1,
        &["1", "2"],
    );
    let iterations = &output["nodeExecutions"][0]["iterations"];
    assert_eq!(iterations[0]["error"]["code"], "NETWORK_TIMEOUT", "{output}");
    assert_eq!(iterations[1]["status"], "completed");
}

#[test]
fn a_child_that_takes_too_long_is_cancelled() {
    let output = check(
        "workflow:\n- {step: x, spec: {timeout: 2s}, tool: {kind: playbook, path: child}}\n",
        1,
        &["begun"],
    );
    assert_eq!(output["errors"][0]["code"], "NETWORK_TIMEOUT", "{output}");
}

#[test]
fn a_final_step_that_takes_too_long_makes_the_outcome_worse() {
    let output = check(
        &format!(
            "executor: {{spec: {{final_step: x}}}}
workflow:
- {{step: a, tool: {{kind: shell, command: 'echo a >> output'}}}}
- {{step: x, spec: {{timeout: 2s}}, tool: {LASTING}}}
"
        ),
        1,
        &["a", "begun"],
    );
    assert_eq!(output["status"], "failed");
}

#[test]
fn wfl_12_a_timeout_ends_every_workflow_that_does_not_wait_for_a_person() {
    let at_work = workflows::ALL.iter().filter(|situation| !situation.rests());
    for (situation, way) in at_work.flat_map(|situation| WAYS.map(|way| (situation, way))) {
        let (place, _server) = situation.set(way, "settings: {timeout: 1500}");
        let output = place.windlass(&["run", "play.yaml", "--json"]).expect(1).json();
        let last = output["errors"].as_array().and_then(|errors| errors.last()).expect("an error");
        assert_eq!(last["code"], "EXECUTION_TIMEOUT", "{}, {way:?}: {output}", situation.name);
    }
}
