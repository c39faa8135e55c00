//! Retries that repeat only what failed: iterations of loops, children, changed definitions, completed executions.

use crate::rig::{Place, playbook};
use serde_json::{Value, json};

fn id_of(output: &Value) -> String {
    output["executionId"].as_str().expect("an id").to_owned()
}

fn retry(place: &Place, id: &str, args: &[&str], code: i32) -> crate::rig::CommandOutput {
    place.windlass(&[&["executions", "retry", id], args].concat()).expect(code)
}

fn preview(place: &Place, id: &str, args: &[&str]) -> Value {
    retry(place, id, &[&["--dry-run", "--json"], args].concat(), 0).json()
}

fn count(place: &Place, file: &str) -> usize {
    place.lines(file).len()
}

/// Every hundredth item fails until the file `go` is there.
const MANY: &str = "workflow:
- step: each
  loop: {in: '{{ range(1000) | list }}', iterator: n, spec: {mode: parallel, max_in_flight: 20}}
  tool: {kind: shell, command: 'echo {{ iter.n }} >> output; test $(({{ iter.n }} % 100)) != 99 || test -e go'}
  next: {arcs: [{step: sum, when: \"{{ event.name == 'loop.done' and event.payload.failed == 0 }}\"}]}
- step: sum
  tool: {kind: shell, command: 'echo {{ each.iterations }} {{ each.succeeded }} {{ each.results | length }} >> sums'}
";

#[test]
fn of_a_thousand_items_only_the_ten_that_failed_run_again() {
    let place = Place::playing(MANY);
    let old = id_of(&place.run(&[], 1));
    assert_eq!(count(&place, "output"), 1_000);
    place.write("go", "");
    let plan = preview(&place, &old, &[]);
    assert_eq!((plan["importCount"].as_u64(), plan["runCount"].as_u64()), (Some(990), Some(10)));
    let expected =
        json!({ "nodeId": "each", "firing": 1, "path": [99], "reason": "failed", "sideEffects": true });
    assert_eq!(plan["runs"][0], expected);
    assert_eq!(plan["imports"][0], json!({ "nodeId": "each", "firing": 1, "path": [0], "changed": false }));
    assert_eq!(plan["refused"], json!([]));
    assert_eq!(count(&place, "output"), 1_000, "a dry run starts nothing");
    let output = retry(&place, &old, &[], 0);
    assert!(output.err.contains("takes over 990 completed steps: each ×990"), "{}", output.err);
    assert!(output.err.contains("runs 10 steps again: each ×10"), "{}", output.err);
    let mut again = place.lines("output").split_off(1_000);
    again.sort();
    let mut failed: Vec<String> = (0..10).map(|tens| (tens * 100 + 99).to_string()).collect();
    failed.sort();
    assert_eq!(again, failed);
    assert_eq!(place.lines("sums"), ["1000 1000 1000"], "the loop is whole");
    place.windlass(&["admin", "check"]).expect(0);
}

#[test]
fn a_dry_run_is_printed_for_people_within_a_bound() {
    let place = Place::playing(MANY);
    let old = id_of(&place.run(&[], 1));
    let out = retry(&place, &old, &["--dry-run"], 0).out;
    assert!(out.starts_with("taken over: 990\n  each[0]\n"), "{out}");
    assert!(out.contains("… 950 more; --json lists them"), "{out}");
    assert!(out.contains("runs again: 10\n  each[99]  failed, has side effects\n"), "{out}");
}

/// A workflow whose loop has a body of two nodes; `second` fails for one item until the file `go` is there.
fn looping(place: &Place) -> String {
    let node = |id: &str, kind: &str, config: Value| json!({ "id": id, "type": kind, "config": config });
    let shell = |command: &str| json!({ "command": command, "cwd": place.path("") });
    json!({
        "name": "looping",
        "nodes": [
            node("outer", "loop", json!({ "loopType": "count", "maxIterations": 2 })),
            node("inner", "loop", json!({ "loopType": "count", "maxIterations": 3 })),
            node("first", "shell", shell("echo first >> output")),
            node("second", "shell", shell("echo second >> output; test -e go || test $(wc -l < output) != 8")),
            node("end", "shell", shell("echo end >> output")),
        ],
        "edges": [
            { "source": "outer", "sourceHandle": "loop", "target": "inner" },
            { "source": "inner", "sourceHandle": "loop", "target": "first" },
            { "source": "first", "target": "second" },
            { "source": "outer", "sourceHandle": "done", "target": "end" },
        ],
    })
    .to_string()
}

#[test]
fn a_nested_loop_of_a_workflow_continues_at_the_node_that_failed() {
    let place = Place::playing("workflow:\n- {step: unused}\n");
    place.write("flow.json", &looping(&place));
    let old = id_of(&place.windlass(&["run", "flow.json", "--json"]).expect(1).json());
    assert_eq!(count(&place, "output"), 8, "the fourth pass fails in its second node");
    let plan = preview(&place, &old, &[]);
    let runs: Vec<_> = plan["runs"].as_array().expect("a list").iter().collect();
    assert_eq!(runs.len(), 1, "{plan}");
    assert_eq!((&runs[0]["nodeId"], &runs[0]["path"]), (&json!("second"), &json!([1, 0])));
    place.write("go", "");
    let new = retry(&place, &old, &["--json"], 0).json();
    assert_eq!(new["status"], "completed");
    let after = place.lines("output").split_off(8);
    assert_eq!(after, ["second", "first", "second", "first", "second", "end"]);
    place.windlass(&["admin", "check"]).expect(0);
}

const PARENT: &str = "workflow:
- {step: before, tool: {kind: shell, command: 'echo before >> output'}, next: call}
- {step: call, tool: {kind: playbook, path: child}, next: {arcs: [{step: after, when: \"{{ event.name == 'step.done' }}\"}]}}
- {step: after, tool: {kind: shell, command: 'echo after {{ call.stdout | trim }} >> output'}}
";

const CHILD: &str = "workflow:
- {step: one, tool: {kind: shell, command: 'echo one >> output'}, next: two}
- {step: two, tool: {kind: shell, command: 'echo two >> output'}, next: three}
- {step: three, tool: {kind: shell, command: 'echo three >> output; test -e go && echo 3'}}
";

#[test]
fn a_child_that_failed_in_its_third_step_continues_there() {
    let place = Place::playing(PARENT);
    place.write("child.yaml", &playbook("child", CHILD));
    let old = id_of(&place.run(&[], 1));
    assert_eq!(place.lines("output"), ["before", "one", "two", "three"]);
    let plan = preview(&place, &old, &[]);
    assert_eq!(plan["runs"][0]["nodeId"], "call");
    let child = plan["runs"][0]["childExecutionId"].as_str().expect("the failed child").to_owned();
    // It fails there again, and the retry of the retry continues there, too.
    let second = id_of(&retry(&place, &old, &["--json"], 1).json());
    place.write("go", "");
    let third = retry(&place, &second, &["--json"], 0).json();
    assert_eq!(place.lines("output"), ["before", "one", "two", "three", "three", "three", "after 3"]);
    let list = place.windlass(&["executions", "list", "--json"]).expect(0).json();
    let rows = list["executions"].as_array().expect("a list").clone();
    assert_eq!(rows.len(), 6, "three parents and three children");
    let newest = rows.iter().find(|row| row["metadata"]["parentExecutionId"] == third["executionId"]);
    let newest = newest.expect("the child of the last retry");
    assert_eq!(
        (&newest["status"], newest["metadata"]["retryOf"] != json!(child)),
        (&json!("completed"), true)
    );
    place.windlass(&["admin", "check"]).expect(0);
    // From the step itself, the child starts anew.
    retry(&place, &old, &["--from", "call"], 0);
    assert_eq!(place.lines("output").split_off(7), ["one", "two", "three", "after 3"]);
}

/// `check` always fails.
const BROKEN: &str = "workflow:
- {step: first, tool: {kind: shell, command: 'echo first >> output'}, next: second}
- {step: second, tool: {kind: shell, command: 'echo second >> output'}, next: check}
- {step: check, tool: {kind: shell, command: 'echo check >> output; exit 1'}}
";

#[test]
fn a_changed_definition_carries_on_what_failed() {
    let place = Place::playing(BROKEN);
    let old = id_of(&place.run(&[], 1));
    let fixed = BROKEN.replace("; exit 1", "").replace("echo second", "echo other second")
        + "\
- {step: last, tool: {kind: shell, command: 'echo last >> output'}}
";
    let fixed = fixed.replace("echo check >> output'}}", "echo check >> output'}, next: last}");
    place.write("fixed.yaml", &playbook("tested", &fixed));
    let plan = preview(&place, &old, &["--with", "fixed.yaml"]);
    let imports = json!([
        { "nodeId": "first", "firing": 1, "path": [], "changed": false },
        { "nodeId": "second", "firing": 1, "path": [], "changed": true },
    ]);
    assert_eq!(plan["imports"], imports);
    let versions = |place: &Place| {
        let list = place.windlass(&["workflows", "list", "--json"]).expect(0).json();
        list["workflows"][0]["version"].clone()
    };
    assert_eq!(versions(&place), json!(1), "a dry run stores no definition");
    let new = retry(&place, &old, &["--with", "fixed.yaml", "--json"], 0).json();
    assert_eq!(place.lines("output"), ["first", "second", "check", "check", "last"]);
    assert_eq!((&new["status"], &new["metadata"]["retryOf"]), (&json!("completed"), &json!(old)));
    assert_eq!(versions(&place), json!(2));
    // By number and by word; the first version fails again.
    retry(&place, &old, &["--version", "1"], 1);
    retry(&place, &old, &["--version", "latest"], 0);
    assert_eq!(place.lines("output").split_off(5), ["check", "check", "last"]);
    retry(&place, &old, &["--version", "7"], 2).says("has no version 7");
    retry(&place, &old, &["--version", "newest"], 2).says("a version is a number from 1, or `latest`");
    retry(&place, &old, &["--version", "1", "--with", "fixed.yaml"], 2).says("cannot be used with");
    place.windlass(&["admin", "check"]).expect(0);
}

#[test]
fn a_completed_step_that_was_renamed_is_refused_and_named() {
    let place = Place::playing(BROKEN);
    let old = id_of(&place.run(&[], 1));
    let renamed = BROKEN.replace("step: second", "step: renamed").replace("next: second", "next: renamed");
    place.write("renamed.yaml", &playbook("tested", &renamed));
    let plan = preview(&place, &old, &["--with", "renamed.yaml"]);
    assert_eq!(
        (&plan["refused"][0]["nodeId"], &plan["refused"][0]["reason"]),
        (&json!("second"), &json!("removed"))
    );
    retry(&place, &old, &["--with", "renamed.yaml"], 1)
        .says("step `second` completed and the new definition does not have it");
    assert_eq!(count(&place, "output"), 3, "nothing starts");
    let list = place.windlass(&["executions", "list", "--json"]).expect(0).json();
    assert_eq!(list["executions"].as_array().map(Vec::len), Some(1));
    // From a step before it, nothing is lost.
    retry(&place, &old, &["--with", "renamed.yaml", "--from", "first"], 1);
    assert_eq!(place.lines("output").split_off(3), ["first", "second", "check"]);
    place.write("broken.yaml", "workflow: [");
    retry(&place, &old, &["--with", "broken.yaml"], 2).says("nothing was run");
    retry(&place, &old, &["--with", "none.yaml"], 2).says("cannot read none.yaml");
}

#[test]
fn a_completed_execution_runs_again_from_a_named_step_only() {
    let place = Place::playing(
        "workflow:
- {step: first, tool: {kind: shell, command: 'echo first >> output; echo 1'}, next: second}
- {step: second, tool: {kind: shell, command: 'echo second {{ first.stdout | trim }} >> output'}, next: third}
- {step: third, tool: {kind: shell, command: 'echo third >> output'}}
",
    );
    let old = id_of(&place.run(&[], 0));
    retry(&place, &old, &[], 1).says("name a step to run a completed one again from there");
    let new = retry(&place, &old, &["--from", "second", "--json"], 0).json();
    assert_ne!(new["executionId"].as_str(), Some(old.as_str()));
    assert_eq!(place.lines("output"), ["first", "second 1", "third", "second 1", "third"]);
}
