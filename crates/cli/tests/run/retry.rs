//! `executions retry`: a new execution that keeps what had completed.

use crate::rig::{Place, until};
use serde_json::Value;

/// `check` fails until the file `go` exists; it and `last` do not wait.
const CHAIN: &str = "workload: {n: 1}
workflow:
- step: first
  tool: {kind: shell, command: 'echo first >> output; echo 41'}
  next: check
- step: check
  tool: {kind: shell, command: 'echo check >> output; test -e go'}
  next: {arcs: [{step: last, when: \"{{ event.name == 'step.done' }}\"}]}
- step: last
  tool: {kind: shell, command: 'echo last {{ first.stdout | trim }} {{ workload.n }} >> output'}
";

fn id_of(output: &Value) -> String {
    output["executionId"].as_str().expect("an id").to_owned()
}

fn nodes(output: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let entries = output["nodeExecutions"].as_array().expect("entries").iter();
    entries.map(|entry| (text(&entry["nodeId"]), text(&entry["status"]))).collect()
}

#[test]
fn a_failed_execution_is_done_again_from_its_failure_and_keeps_what_was_done() {
    let place = Place::playing(CHAIN);
    let old = place.run(&[], 1);
    place.write("go", "");
    let output = place.windlass(&["executions", "retry", &id_of(&old), "--json"]).expect(0);
    let new = output.json();
    assert_eq!(place.lines("output"), ["first", "check", "check", "last 41 1"]);
    let done = |step: &str| (step.to_owned(), "completed".to_owned());
    assert_eq!(nodes(&new), [done("first"), done("check"), done("last")]);
    assert_ne!(new["executionId"], old["executionId"]);
    assert_eq!(new["metadata"]["parentExecutionId"], old["executionId"]);
    assert_eq!(new["metadata"]["retryOf"], old["executionId"]);
    // The old one is unchanged, the list shows the origin of the new one, and the whole folder is sound.
    let again = place.windlass(&["executions", "get", &id_of(&old), "--json"]).expect(0).json();
    assert_eq!(again, old);
    let list = place.windlass(&["executions", "list", "--json"]).expect(0).json();
    assert_eq!(list["executions"][0]["metadata"]["parentExecutionId"], old["executionId"]);
    assert_eq!(list["executions"][1]["metadata"].get("parentExecutionId"), None);
    let page = place.windlass(&["executions", "get", &id_of(&new)]).expect(0).out;
    assert!(page.contains(&format!("retry of    {}", id_of(&old))), "{page}");
    place.windlass(&["admin", "check"]).expect(0);
}

#[test]
fn progress_reports_only_what_the_retry_does_itself() {
    let place = Place::playing(CHAIN);
    let old = place.run(&[], 1);
    place.write("go", "");
    let output = place.windlass(&["executions", "retry", &id_of(&old)]).expect(0);
    assert!(output.err.contains(&format!("takes over from {}", id_of(&old))), "{}", output.err);
    assert!(output.err.contains("step check done") && !output.err.contains("step first"), "{}", output.err);
}

#[test]
fn a_retry_begins_at_the_step_and_with_the_inputs_it_is_reported() {
    let place = Place::playing(CHAIN);
    let old = place.run(&[], 1);
    place.write("go", "");
    let args = ["executions", "retry", &id_of(&old), "--from", "first", "--input", "n=2", "--json"];
    let new = place.windlass(&args).expect(0).json();
    assert_eq!(new["inputs"]["n"], 2);
    assert_eq!(place.lines("output"), ["first", "check", "first", "check", "last 41 2"]);
}

#[test]
fn one_of_several_firings_is_named_by_its_number() {
    let place = Place::playing(
        "workflow:
- step: turn
  tool:
    kind: shell
    command: 'echo {{ args.n | default(1) }} >> output; test {{ args.n | default(1) }} != 3 || test -e go'
  next: {arcs: [{step: turn, when: \"{{ event.name == 'step.done' and (args.n | default(1)) < 3 }}\", args: {n: '{{ (args.n | default(1)) + 1 }}'}}]}
",
    );
    let old = id_of(&place.run(&[], 1));
    place.write("go", "");
    place.windlass(&["executions", "retry", &old, "--from", "turn", "--firing", "2"]).expect(0);
    assert_eq!(place.lines("output"), ["1", "2", "3", "2", "3"]);
    place.windlass(&["executions", "retry", &old, "--from", "turn"]).expect(0);
    assert_eq!(place.lines("output").last().map(String::as_str), Some("3"));
    assert_eq!(place.lines("output").len(), 6, "without a number it is the one that failed");
    let output = place.windlass(&["executions", "retry", &old, "--from", "turn", "--firing", "4"]).expect(2);
    output.says("step `turn` fired 3 times, so it has no firing 4");
}

#[test]
fn what_cannot_be_retried_is_reported_with_the_reason() {
    let place = Place::playing(
        "executor: {spec: {final_step: close}}
workflow:
- {step: a, tool: {kind: shell, command: 'exit 1'}}
- {step: close, tool: {kind: shell, command: 'echo closed'}}
",
    );
    let failed = id_of(&place.run(&[], 1));
    let retry = |args: &[&str], code| place.windlass(&[&["executions", "retry"], args].concat()).expect(code);
    retry(&[&failed, "--from", "b"], 2).says("no step `b`").says("its steps are a, close");
    retry(&[&failed, "--from", "close"], 2).says("is the final step");
    retry(&[&failed, "--firing", "1"], 2).says("--from");
    retry(&[&failed, "--from", "a", "--firing", "0"], 2).says("--firing");
    retry(&["exec_0123456789abcdef0123456789abcdef"], 2).says("there is no execution");
    place.write("good.yaml", &crate::rig::playbook("tested", "workflow:\n- {step: a, tool: {kind: noop}}\n"));
    let good = id_of(&place.windlass(&["run", "good.yaml", "--json"]).expect(0).json());
    retry(&[&good], 1).says("only a failed, partial or cancelled execution can be retried");
}

/// A definition that runs until the file `end` is there, so that an engine holds the folder.
const LASTING: &str = "workflow:\n- step: lasting\n  tool: {kind: shell, command: 'echo begun; while ! test -e end; do sleep 0.02; done'}\n";

#[test]
fn a_retry_in_a_held_folder_runs_in_the_process_that_holds_it() {
    let place = Place::playing(CHAIN);
    let old = id_of(&place.run(&[], 1));
    place.write("lasting.yaml", &crate::rig::playbook("tested", LASTING));
    let mut running = place.start(&["run", "lasting.yaml"]);
    let line = running.until_says("exec_");
    let other = line.split(':').next().expect("an id").to_owned();
    running.until_says("begun");
    place.windlass(&["executions", "retry", &other]).expect(1).says("it has not ended");
    place.windlass(&["executions", "retry", &old, "--from", "nowhere"]).expect(2).says("no step `nowhere`");
    place.write("go", "");
    let output = place.windlass(&["executions", "retry", &old, "--from", "check", "--json"]).expect(0).json();
    assert_eq!((&output["status"], &output["metadata"]["retryOf"]), (&"completed".into(), &old.into()));
    assert_eq!(place.lines("output"), ["first", "check", "check", "last 41 1"]);
    place.write("end", "");
    assert_eq!(running.end().0, Some(0));
}

#[test]
fn a_retry_that_is_killed_continues_under_its_own_id() {
    let place = Place::playing(
        "workflow:
- {step: first, tool: {kind: shell, command: 'echo first >> output'}, next: second}
- step: second
  tool: {kind: shell, command: 'echo second >> output; test -e again || exit 1; echo $$ > pid; test -e go || exec sleep 1000'}
",
    );
    let old = id_of(&place.run(&[], 1));
    place.write("again", "");
    let mut running = place.start(&["executions", "retry", &old]);
    let new = running.until_says("exec_").split(':').next().expect("an id").to_owned();
    let pid = crate::rig::process_of(&place, "pid");
    running.signal(rustix::process::Signal::KILL);
    running.end();
    until("the step's process is gone", || crate::rig::is_gone(pid).then_some(()));
    place.write("go", "");
    let output = place.windlass(&["run", "--resume", &new, "--json"]).expect(0).json();
    assert_eq!(output["metadata"]["retryOf"], old.as_str());
    assert_eq!(place.lines("output"), ["first", "second", "second", "second"]);
    let list = place.windlass(&["executions", "list", "--json"]).expect(0).json();
    assert_eq!(list["executions"].as_array().map(Vec::len), Some(2), "it was made once");
}
