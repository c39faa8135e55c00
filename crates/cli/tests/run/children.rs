//! Playbooks that start playbooks, found in the folder of the file that is run.

use crate::rig::{Place, playbook, until};
use serde_json::{Value, json};
use std::fs;

/// A playbook under that name and path.
fn named(name: &str, path: &str, steps: &str) -> String {
    format!("apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {{name: {name}, path: {path}}}\n{steps}")
}

/// One step that starts another playbook.
fn starts(path: &str) -> String {
    format!("workflow:\n- step: call\n  tool: {{kind: playbook, path: {path}, args: {{n: 2}}}}\n")
}

const LEAF: &str = "workload: {n: 1, m: 5}
workflow:
- step: leaf
  tool: {kind: shell, command: 'echo leaf {{ workload.n }} {{ workload.m }} >> output; echo {{ workload.n }}'}
";

fn list(place: &Place) -> Vec<Value> {
    let output = place.windlass(&["executions", "list", "--json"]).expect(0).json();
    output["executions"].as_array().expect("a list").clone()
}

#[test]
fn a_child_is_found_by_file_by_path_and_by_name_and_below_the_folder() {
    for (reference, file) in [
        ("child", "child.yaml"),
        ("child", "child.yml"),
        ("child.yaml", "child.yaml"),
        ("parts/child", "parts/child.yaml"),
        ("catalog/leaf", "parts/other.yaml"),
        ("the-leaf", "other.yaml"),
    ] {
        let place = Place::playing(&starts(reference));
        fs::create_dir(place.path("parts")).expect("a folder");
        place.write(file, &named("the-leaf", "catalog/leaf", LEAF));
        place.windlass(&["validate", "play.yaml"]).expect(0);
        let output = place.run(&[], 0);
        assert_eq!(
            place.lines("output"),
            ["leaf 2 5"],
            "{reference}: inputs override the defaults of the child"
        );
        assert_eq!(output["outputs"]["stdout"], "2\n", "{reference}: its output is the result of the step");
        let all = list(&place);
        assert_eq!((all.len(), &all[0]["workflowName"]), (2, &json!(reference)));
        assert_eq!(all[0]["metadata"]["parentExecutionId"], output["executionId"]);
        assert_eq!(
            (&all[0]["metadata"]["triggerType"], &all[0]["status"]),
            (&json!("workflow"), &json!("completed"))
        );
    }
}

#[test]
fn children_of_children_are_registered_before_anything_runs() {
    let place = Place::playing(&starts("middle"));
    place.write("middle.yaml", &named("middle", "middle", &starts("leaf")));
    place.write("leaf.yaml", &named("leaf", "leaf", LEAF));
    let output = place.run(&[], 0);
    assert_eq!(output["outputs"]["stdout"], "2\n");
    let all = list(&place);
    let names: Vec<&str> = all.iter().filter_map(|one| one["workflowName"].as_str()).collect();
    assert_eq!(names, ["leaf", "middle", "tested"]);
    assert_eq!(all[0]["metadata"]["parentExecutionId"], all[1]["executionId"]);
    let inner = all[0]["executionId"].as_str().expect("an id");
    let got = place.windlass(&["executions", "get", inner, "--json"]).expect(0).json();
    assert_eq!(got["metadata"]["parentExecutionId"], all[1]["executionId"]);
    assert_eq!(got["metadata"]["triggeredBy"], all[1]["executionId"]);
    place.windlass(&["admin", "check"]).expect(0);
}

#[test]
fn a_child_that_is_nowhere_is_reported_with_its_place_before_anything_runs() {
    let place = Place::playing(&format!(
        "workflow:\n- {{step: first, tool: {{kind: shell, command: 'echo ran >> output'}}, next: call}}\n{}",
        &starts("middle")["workflow:\n".len()..]
    ));
    let output = place.windlass(&["run", "play.yaml"]).expect(2);
    let output = output.says("error[E0119]: there is no playbook `middle`").says("play.yaml:7:");
    output.says("= hint: save it as `middle.yaml` in the folder of this file").says("nothing was run");
    assert!(place.lines("output").is_empty() && !place.path("data").exists());
    // One that a child names is reported at the child's line.
    place.write("middle.yaml", &named("middle", "middle", &starts("leaf")));
    place.windlass(&["run", "play.yaml"]).expect(2).says("`leaf`").says("middle.yaml:6:");
    assert!(place.lines("output").is_empty());
    // It may be registered before the step runs, so a check only warns.
    let output = place.windlass(&["validate", "play.yaml"]).expect(0).says("middle.yaml:6:");
    output.says("warning[W0251]: there is no playbook `leaf`");
    let output = place.windlass(&["validate", "play.yaml", "--json"]).expect(0).json();
    assert_eq!((&output["valid"], &output["errors"]), (&json!(true), &json!([])));
    let child = &output["children"][0];
    assert_eq!((&child["valid"], &child["warnings"][0]["code"]), (&json!(true), &json!("W0251")));
}

/// A file that was not searched is not reported as missing.
#[test]
fn a_search_that_gave_up_says_so_and_how_to_be_found() {
    let place = Place::playing("workflow:\n- {step: a, tool: {kind: playbook, path: late}}\n");
    for number in 0..1_000 {
        place.write(&format!("a{number}.yaml"), "");
    }
    place.write("zz.yaml", "metadata: {name: late}\nworkflow: [{step: s, next: []}]\n");
    place.windlass(&["validate", "play.yaml"]).expect(0).says("first 1000 files").says("own path");
    place.write(
        "play.yaml",
        &playbook("tested", "workflow:\n- {step: a, tool: {kind: playbook, path: zz}}\n"),
    );
    place.run(&[], 0);
}

#[test]
fn a_child_with_errors_keeps_its_parent_from_running() {
    let place = Place::playing(&starts("child"));
    place.write("child.yaml", &named("child", "child", "workflow:\n- {step: a, tool: {kind: nothing}}\n"));
    place.windlass(&["run", "play.yaml"]).expect(2).says("there is no tool `nothing`").says("child.yaml:5:");
    place.windlass(&["validate", "play.yaml"]).expect(2).says("1 error");
}

#[test]
fn two_files_of_one_name_are_not_guessed_between() {
    let place = Place::playing(&starts("leaf"));
    place.write("one.yaml", &named("leaf", "one", LEAF));
    place.write("two.yaml", &named("leaf", "two", LEAF));
    let output = place.windlass(&["run", "play.yaml"]).expect(2);
    output.says("several files have the name `leaf`").says("one.yaml").says("two.yaml");
}

#[test]
fn a_child_that_was_registered_before_needs_no_file() {
    let place = Place::playing(&starts("child"));
    place.write("child.yaml", &named("child", "child", LEAF));
    place.run(&[], 0);
    fs::remove_file(place.path("child.yaml")).expect("it was there");
    place.windlass(&["validate", "play.yaml"]).expect(0);
    place.run(&[], 0);
    assert_eq!(place.lines("output").len(), 2);
}

#[test]
fn the_newest_text_of_a_child_runs_even_if_it_equals_an_older_version_and_versions_are_kept() {
    let place = Place::playing(&starts("child"));
    let say = |word: &str| {
        format!("workflow:\n- {{step: a, tool: {{kind: shell, command: 'echo {word} >> output'}}}}\n")
    };
    for word in ["one", "two", "one"] {
        place.write("child.yaml", &named("child", "child", &say(word)));
        place.run(&[], 0);
    }
    assert_eq!(place.lines("output"), ["one", "two", "one"]);
    for (version, word) in [("1", "one"), ("2", "two"), ("latest", "one")] {
        place.write("play.yaml", &named("p", "p", &starts(&format!("child, version: {version}"))));
        place.run(&[], 0);
        assert_eq!(place.lines("output").last().map(String::as_str), Some(word), "{version}");
    }
    let at = |version: &str| {
        place.write("play.yaml", &named("p", "p", &starts(&format!("child, version: {version}"))))
    };
    at("9");
    place.windlass(&["run", "play.yaml"]).expect(2).says("has 3 versions, and none is 9");
    at("1.0");
    place.windlass(&["run", "play.yaml"]).expect(2).says("cannot have the version `1.0`");
}

#[test]
fn a_template_is_resolved_when_the_step_runs() {
    let place = Place::playing(&starts("'{{ workload.which }}'"));
    place.write("child.yaml", &named("child", "child", LEAF));
    let output = place.run(&["--input", "which=nowhere"], 1);
    assert_eq!(output["errors"][0]["code"], "RESOURCE_NOT_FOUND");
    assert!(output["errors"][0]["message"].as_str().expect("a text").contains("`nowhere`"));
    place.write("first.yaml", &named("first", "first", &starts("child")));
    place.windlass(&["run", "first.yaml"]).expect(0);
    place.run(&["--input", "which=child"], 0);
}

#[test]
fn a_childs_failure_is_the_steps_error_and_can_be_handled() {
    let place = Place::playing(
        "workflow:
- step: call
  tool: {kind: playbook, path: child}
  next:
    arcs:
    - {step: mend, when: \"{{ event.name == 'step.failed' }}\", args: {code: '{{ event.error.code }}', why: '{{ event.error.message }}'}}
- step: mend
  tool: {kind: shell, command: 'echo {{ args.code }}: {{ args.why }} >> output'}
",
    );
    place.write(
        "child.yaml",
        &named("child", "child", "workflow:\n- {step: a, tool: {kind: shell, command: 'exit 7'}}\n"),
    );
    let output = place.run(&[], 0);
    assert_eq!(place.lines("output"), ["SHELL_EXIT: the command ended with exit code 7"]);
    let call = &output["nodeExecutions"][0];
    assert_eq!((&call["status"], &call["error"]["code"]), (&json!("failed"), &json!("SHELL_EXIT")));
    assert_eq!(list(&place)[0]["status"], "failed");
}

#[test]
fn a_cancel_of_the_parent_reaches_the_child_and_its_process() {
    let place = Place::playing(&starts("child"));
    place.write(
        "child.yaml",
        &named(
            "child",
            "child",
            "workflow:\n- {step: a, tool: {kind: shell, command: 'echo $$ > pid; exec sleep 1000'}}\n",
        ),
    );
    let mut running = place.start(&["run", "play.yaml"]);
    let id = running.until_says("exec_").split(':').next().expect("an id").to_owned();
    let pid = crate::rig::process_of(&place, "pid");
    place.windlass(&["executions", "cancel", &id]).expect(0);
    assert_eq!(running.end().0, Some(3));
    until("the child's process is gone", || crate::rig::is_gone(pid).then_some(()));
    place.windlass(&["run", "--resume"]).expect(0);
    let ends: Vec<Value> = list(&place).iter().map(|one| one["status"].clone()).collect();
    assert_eq!(ends, ["cancelled", "cancelled"]);
}

#[test]
fn a_playbook_that_starts_itself_ends_at_the_depth_limit() {
    let place = Place::playing("workflow:\n- {step: again, tool: {kind: playbook, path: tested}}\n");
    let output = place.run(&[], 1);
    assert_eq!(output["errors"][0]["code"], "LIMIT_EXCEEDED");
    let count = list(&place).len();
    assert!((16..=17).contains(&count), "{count} executions");
}
