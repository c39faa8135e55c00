//! Ends of runs: exit codes, the output streams, files that remain.

use crate::rig::Place;
use serde_json::{Value, json};

const HELLO: &str = "workload: {name: World}
workflow:
- step: hello
  tool: {kind: shell, command: 'echo \"Hello, {{ workload.name }}!\"'}
";

fn fired(output: &Value) -> Vec<String> {
    let entries = output["nodeExecutions"].as_array().expect("a list");
    entries
        .iter()
        .map(|e| format!("{} {} {}", e["nodeId"], e["firing"], e["status"]).replace('"', ""))
        .collect()
}

fn check(steps: &str, code: i32, status: &str, expected: &[&str]) -> Value {
    let output = Place::playing(steps).run(&[], code);
    assert_eq!(
        (output["status"].as_str(), fired(&output)),
        (Some(status), expected.iter().map(ToString::to_string).collect())
    );
    output
}

#[test]
fn a_completed_execution_exits_0() {
    let output = check(HELLO, 0, "completed", &["hello 1 completed"]);
    assert_eq!(output["outputs"]["stdout"], "Hello, World!\n");
    assert_eq!(
        (&output["workflowName"], &output["workflowVersion"], &output["dialect"]),
        (&json!("tested"), &json!(1), &json!("playbook"))
    );
    assert_eq!(output["metadata"]["triggerType"], "manual");
    assert!(output["executionId"].as_str().is_some_and(|id| id.len() == 37 && id.starts_with("exec_")));
}

#[test]
fn pbk_01_defaults_that_are_templates_are_rendered_at_the_start_and_given_inputs_are_not() {
    let place = Place::playing(
        "workload: {id: '{{ job.uuid }}', n: 2, double: '{{ n * 2 }}', text: x}\nworkflow:\n- step: a\n  tool: {kind: shell, command: 'echo {{ double }}'}\n",
    );
    let output = place.run(&["--input", "n=4", "--input", "text={{ n }}"], 0);
    let id = output["executionId"].as_str().and_then(|id| id.strip_prefix("exec_")).expect("an id");
    assert_eq!(output["inputs"], json!({ "id": id, "n": 4, "double": 8, "text": "{{ n }}" }));
    assert_eq!(output["outputs"]["stdout"], "8\n");
}

#[test]
fn pbk_01_a_default_that_cannot_be_rendered_starts_nothing() {
    let place = Place::playing("workload: {n: 0, part: '{{ 1 / n }}'}\nworkflow:\n- {step: a, next: []}\n");
    place.windlass(&["run", "play.yaml"]).expect(2).says("error: input `part`: ");
    assert_eq!(place.run(&["--input", "n=4"], 0)["inputs"]["part"], 0.25);
}

#[test]
fn a_failed_execution_exits_1() {
    let output = check(
        "workflow:\n- {step: a, tool: {kind: shell, command: 'exit 3'}}\n",
        1,
        "failed",
        &["a 1 failed"],
    );
    assert_eq!(output["errors"][0]["nodeId"], "a");
}

#[test]
fn a_partly_successful_execution_exits_4() {
    let steps = "executor: {spec: {failure: partial}}
workflow:
- {step: a, next: {spec: {mode: inclusive}, arcs: [{step: good}, {step: bad}]}}
- {step: good, tool: {kind: shell, command: 'true'}}
- {step: bad, tool: {kind: shell, command: 'false'}}
";
    check(steps, 4, "partial_success", &["a 1 completed", "good 1 completed", "bad 1 failed"]);
}

#[test]
fn an_execution_at_a_gate_exits_5() {
    let steps = "workflow:
- step: g
  spec: {policy: {admit: {rules: [{when: '{{ ctx.go }}', then: {allow: true}}]}}}
";
    let output = check(steps, 5, "paused", &[]);
    assert_eq!(output["view"]["gates"][0]["step"], "g");
    Place::playing(steps)
        .windlass(&["run", "play.yaml"])
        .expect(5)
        .says("windlass executions patch exec_")
        .says(" go=…");
}

#[test]
fn outputs_go_to_stdout_and_the_story_to_stderr() {
    let output = Place::playing(HELLO).windlass(&["run", "play.yaml", "--input", "name=Ada"]).expect(0);
    assert_eq!(output.json()["stdout"], "Hello, Ada!\n");
    let lines: Vec<&str> = output.err.lines().collect();
    let [created, started, begun, said, done, ended] = lines[..] else { panic!("{}", output.err) };
    assert!(created.starts_with("exec_") && created.ends_with("tested, version 1"), "{created}");
    assert_eq!((started, begun, said), ("started", "step hello queued", "hello | Hello, Ada!"));
    assert!(done.starts_with("step hello done ") && done.ends_with("ms"), "{done}");
    assert!(ended.starts_with("completed after "), "{ended}");
}

#[test]
fn inputs_lie_over_the_workload() {
    let place = Place::playing("workload: {a: 1, b: {c: 2, d: 3}}\nworkflow:\n- {step: x}\n");
    place.write("in.json", r#"{"b": {"c": "file"}, "extra": [1]}"#);
    let output = place.run(&["--inputs", "@in.json", "--input", "a=7"], 0);
    assert_eq!(output["inputs"], json!({ "a": 7, "b": { "c": "file", "d": 3 }, "extra": [1] }));
}

#[test]
fn a_bad_definition_exits_2_reports_every_error_and_writes_nothing() {
    let place = Place::playing("workflow:\n- {step: ship, next: shp}\n- {step: b, when: x, next: ship}\n");
    let output = place.windlass(&["run", "play.yaml"]).expect(2);
    assert_eq!(output.out, "");
    let output = output.says("error[E0107]").says("play.yaml:5:22").says("did you mean `ship`?");
    output.says("error[E0106]").says("2 errors; nothing was run");
    assert!(!place.path("data").exists());
}

#[test]
fn what_cannot_be_run_exits_2_and_writes_nothing() {
    let place = Place::playing(HELLO);
    for (args, part) in [
        (&["run", "missing.yaml"][..], "cannot read missing.yaml"),
        (&["run", "play.yaml", "--input", "x"], "--input needs KEY=VALUE"),
        (&["run", "play.yaml", "--inputs", "[]"], "--inputs must be a JSON object"),
        (&["run", "play.yaml", "--resume"], "cannot be used with"),
        (&["run"], "required arguments"),
        (&["run", "--resume"], "there is no data in data"),
        (&["executions", "list"], "there is no data in data"),
        (&["admin", "check"], "there is no data in data"),
    ] {
        place.windlass(args).expect(2).says(part);
    }
    assert!(!place.path("data").exists());
}

#[test]
fn several_executions_are_one_object_each_on_a_line() {
    let place = Place::playing(
        "workload: {code: 0}\nworkflow:\n- {step: a, tool: {kind: shell, command: 'exit {{ workload.code }}'}}\n",
    );
    let output = place.windlass(&["run", "play.yaml", "--json", "--times", "3"]).expect(0);
    let objects: Vec<Value> =
        output.out.lines().map(|line| serde_json::from_str(line).expect("an object")).collect();
    assert_eq!(objects.iter().filter(|output| output["status"] == "completed").count(), 3);
    let output = place.windlass(&["run", "play.yaml", "--times", "2", "--input", "code=1"]).expect(1);
    assert_eq!(output.out.lines().filter(|line| line.ends_with(" failed")).count(), 2);
}

#[test]
fn the_same_text_keeps_its_version_and_another_has_the_next() {
    let place = Place::playing(HELLO);
    assert_eq!(place.run(&[], 0)["workflowVersion"], 1);
    assert_eq!(place.run(&[], 0)["workflowVersion"], 1);
    place.write("play.yaml", &crate::rig::playbook("tested", "workflow:\n- {step: other}\n"));
    assert_eq!(place.run(&[], 0)["workflowVersion"], 2);
}

#[test]
fn a_loop_is_one_firing_with_its_iterations_inside() {
    let steps = "workload: {xs: [p, q]}
workflow:
- step: l
  loop: {in: '{{ workload.xs }}', iterator: x}
  tool: {kind: shell, command: 'echo {{ iter.x }}'}
  next: after
- {step: after}
";
    let output = check(steps, 0, "completed", &["l 1 completed", "after 1 completed"]);
    let iterations = output["nodeExecutions"][0]["iterations"].as_array().expect("iterations");
    let said: Vec<&Value> = iterations.iter().map(|iteration| &iteration["output"]["stdout"]).collect();
    assert_eq!(said, ["p\n", "q\n"]);
}

#[test]
fn the_examples_run_as_they_say() {
    let place = Place::playing(HELLO);
    let example = |name: &str| format!("{}/../../examples/{name}.yaml", env!("CARGO_MANIFEST_DIR"));
    for (name, said) in
        [("hello", "Hello, World!\n"), ("fanout", " files in /tmp on "), ("loop", "5 words were measured\n")]
    {
        let output = place.windlass(&["run", &example(name)]).expect(0).json();
        assert!(output["stdout"].as_str().is_some_and(|stdout| stdout.contains(said)), "{name}: {output}");
    }
    for (approved, said) in [("true", "1.4.0 is out"), ("false", "stays in the harbour")] {
        let output = place.windlass(&["run", &example("approval"), "--json"]).expect(5).json();
        let id = output["executionId"].as_str().expect("an id");
        place.windlass(&["executions", "patch", id, &format!("approved={approved}")]).expect(0);
        place.windlass(&["run", "--resume", id]).expect(0).says(said);
    }
}
