//! Reports of failures: text and API name the place and the commands that help.

use crate::rig::{CommandOutput, Place};
use serde_json::{Value, json};

/// Runs the file and expects it to fail.
fn fail(place: &Place, file: &str) -> CommandOutput {
    place.windlass(&["run", file]).expect(1)
}

/// The execution of the newest run, as the API has it.
fn last(place: &Place) -> Value {
    place.windlass(&["executions", "get", "@last", "--json"]).expect(0).json()
}

/// Runs a command as it was printed after a label.
fn paste(place: &Place, output: &CommandOutput, name: &str) -> CommandOutput {
    let line = output.err.lines().find_map(|line| line.trim().strip_prefix(name));
    let line = line.unwrap_or_else(|| panic!("`{name}` is missing in:\n{}", output.err));
    let words: Vec<String> = line.split_whitespace().skip(1).map(|word| word.replace('\'', "")).collect();
    place.windlass(&words.iter().map(String::as_str).collect::<Vec<_>>())
}

fn python(code: &str) -> String {
    let body: String = code.lines().map(|line| format!("        {line}\n")).collect();
    format!("workflow:\n- step: total\n  tool:\n      kind: python\n      code: |\n{body}")
}

#[test]
fn a_failure_of_python_code_names_the_line_of_the_definition() {
    let place =
        Place::playing(&python("def amount(order):\n    return order['amount']\n\nreturn amount({})"));
    let failed = fail(&place, "play.yaml").says("error: step total: KeyError: 'amount' (PYTHON_EXCEPTION)\n");
    let line = 1 + std::fs::read_to_string(place.path("play.yaml"))
        .expect("the file")
        .lines()
        .position(|line| line.contains("order['amount']"))
        .expect("the line");
    let failed =
        failed.says(&format!("  --> play.yaml:{line}\n")).says("|             return order['amount']\n");
    assert_eq!(
        failed.err.matches("KeyError").count(),
        2,
        "once when it happens, once at the end: {}",
        failed.err
    );
    assert_eq!(last(&place)["errors"][0]["location"], json!({ "line": line, "codeLine": 2 }));
    paste(&place, &failed, "logs:").expect(0);
    paste(&place, &failed, "retry:").expect(1).says("tested, version 1, line");
    let got = place.windlass(&["executions", "get", "@last"]).expect(0).out;
    assert!(got.contains("error: step total: KeyError") && got.contains(&format!("line {line}")), "{got}");
    place.windlass(&["executions", "watch", "@last"]).expect(1).says("error: step total: KeyError");
}

#[test]
fn a_syntax_error_and_a_script_have_their_lines() {
    let place = Place::playing(&python("rows = [1]\nfor row in rows\n    print(row)"));
    fail(&place, "play.yaml").says("  --> play.yaml:").says("for row in rows\n");
    assert_eq!(last(&place)["errors"][0]["location"]["codeLine"], 2);
    place.write("lib.py", "def main():\n    return 1 / 0\n");
    place.write("script.yaml", "workflow: [{step: a, tool: {kind: python, script: lib.py}}]");
    fail(&place, "script.yaml").says("  --> lib.py:2\n");
}

#[test]
fn a_failure_of_javascript_names_line_and_column() {
    let place = Place::new();
    place.write(
        "greet.yaml",
        "name: greet\nnodes:\n- {id: start, type: trigger}\n- id: hello\n  type: code\n  config:\n    language: javascript\n    code: |\n      const user = inputs.user;\n      return user.name;\nedges: [{source: start, target: hello}]\n",
    );
    fail(&place, "greet.yaml").says("error: step hello: TypeError").says("  --> greet.yaml:10:19\n");
    assert_eq!(last(&place)["errors"][0]["location"], json!({ "line": 10, "column": 19, "codeLine": 2 }));
}

#[test]
fn the_task_of_a_pipeline_is_named() {
    let steps = "workflow:\n- step: load\n  tool:\n  - fetch: {kind: shell, command: 'echo 1'}\n  - parse: {kind: shell, command: 'exit 3'}\n";
    let place = Place::playing(steps);
    fail(&place, "play.yaml").says("error: step load, task parse: the command ended with exit code 3");
    assert_eq!(last(&place)["errors"][0]["task"], "parse");
}

const MANY: &str = r#"
workflow:
- step: convert
  loop: {in: "{{ range(120) | list }}", iterator: n, spec: {mode: parallel}}
  tool: {kind: shell, command: 'echo item; test {{ (n + 1) % 10 }} -ne 0 || { echo "no rate for {{ n }}" >&2; exit 4; }'}
"#;

#[test]
fn iterations_are_summarised_and_the_output_of_a_loop_is_bounded() {
    let place = Place::playing(MANY);
    let failed = fail(&place, "play.yaml")
        .says("error: step convert: 12 of 120 iterations failed: [9], [19], ")
        .says(", …\n  [")
        .says("] the command ended with exit code 4: no rate for ")
        .says("step convert: 120 of 120 iterations ended, 12 failed\n")
        .says(": 12 iterations of `convert` failed (ITERATION_FAILED)\n")
        .says("convert | … more output: windlass executions logs exec_");
    assert!(failed.err.lines().count() < 120, "{} lines: {}", failed.err.lines().count(), failed.err);
    let execution = last(&place);
    assert_eq!(execution["errors"][0]["failedIterations"].as_array().map(Vec::len), Some(10));
    assert_eq!(execution["errors"][1]["nodeId"], "convert");
    assert_eq!(execution["errors"][1]["path"].as_array().map(Vec::len), Some(1));
    let logs = paste(&place, &failed, "logs:").expect(0).out;
    assert_eq!(logs.lines().count(), 2, "one iteration: {logs}");
    let got = place.windlass(&["executions", "get", "@last"]).expect(0).out;
    assert!(got.contains(", 12 of 120 iterations failed") && got.lines().count() < 30, "{got}");
}

#[test]
fn the_first_failure_inside_of_children_is_named() {
    let place = Place::playing(
        "workflow:\n- {step: collect, tool: {kind: shell, command: 'true'}, next: publish}\n- {step: publish, tool: {kind: playbook, path: middle}}\n",
    );
    place.write(
        "middle.yaml",
        "metadata: {name: middle}\nworkflow: [{step: inner, tool: {kind: playbook, path: low}}]",
    );
    place.write(
        "low.yaml",
        "metadata: {name: low}\nworkflow:\n- step: upload\n  tool:\n    kind: python\n    code: |\n      raise OSError('quota exceeded')\n",
    );
    let failed = fail(&place, "play.yaml");
    let execution = last(&place);
    let child = execution["errors"][0]["childExecutionId"].as_str().expect("a child").to_owned();
    let failed = failed
        .says(&format!("error: step publish: {child}, step inner: exec_"))
        .says(", step upload: OSError: quota exceeded (PYTHON_EXCEPTION)\n  --> ./low.yaml:7\n");
    assert!(execution["errors"][0].get("location").is_none(), "{execution}");
    paste(&place, &failed, "logs:").expect(0);
    assert_eq!(execution["workflowName"], "tested", "@last is what a person started");
}

#[test]
fn ids_have_short_forms() {
    let place = Place::playing("workflow: [{step: a, tool: {kind: shell, command: 'echo hello'}}]");
    place.windlass(&["executions", "get", "@last"]).expect(2).says("there is no data");
    let id = place.run(&[], 0)["executionId"].as_str().expect("an id").to_owned();
    for name in ["@last", &id[id.len() - 8..], &id[..20]] {
        let logs = place.windlass(&["executions", "logs", name]).expect(0).out;
        assert_eq!(logs, "a | hello\n", "{name}");
    }
    place.windlass(&["executions", "get", "@first"]).expect(2).says("or @last, are expected");
    place
        .windlass(&["executions", "get", "00000000"])
        .expect(2)
        .says("there is no execution `00000000` in this");
}

#[test]
fn logs_are_selected_and_show_what_a_terminal_would_show() {
    let place = Place::playing(
        r#"
workflow:
- step: draw
  tool: {kind: shell, command: 'printf "10%%\r50%%\r100%%\n\033[31mred\033[0m\033[2J\n\033]0;title\007done\n"'}
  next: each
- step: each
  loop: {in: [1, 2, 3], iterator: n}
  tool: {kind: shell, command: 'echo {{ n }}'}
"#,
    );
    place.windlass(&["run", "play.yaml"]).expect(0).says("draw | 100%\n").says("draw | red\n");
    let logs =
        |args: &[&str]| place.windlass(&[&["executions", "logs", "@last"], args].concat()).expect(0).out;
    assert_eq!(logs(&["draw"]), "draw | 100%\ndraw | red\ndraw | done\n");
    assert_eq!(logs(&["draw", "--tail", "1"]), "draw | done\n");
    assert_eq!(logs(&["--tail", "0"]), "");
    assert_eq!(logs(&["each[1]"]), "each[1] | 2\n");
    assert_eq!(logs(&["each", "draw"]).lines().count(), 6);
    let timed = logs(&["each[0]", "--timestamps"]);
    assert!(timed.starts_with("20") && timed.ends_with("Z  each[0] | 1\n"), "{timed}");
    place.windlass(&["executions", "logs", "@last", "lost[1]"]).expect(2).says("no step `lost`");
}

#[test]
fn a_quiet_run_shows_its_result_and_its_failure_only() {
    let place = Place::playing(
        "workload: {code: 0}\nworkflow: [{step: a, tool: {kind: shell, command: 'echo x; exit {{ workload.code }}'}}]",
    );
    assert_eq!(place.windlass(&["run", "play.yaml", "--quiet"]).expect(0).err, "");
    let failed = place.windlass(&["run", "play.yaml", "-q", "--input", "code=4"]).expect(1);
    assert!(failed.err.starts_with("error: step a: the command ended with exit code 4"), "{}", failed.err);
    assert_eq!(failed.err.lines().count(), 3, "{}", failed.err);
    assert_eq!(place.windlass(&["run", "play.yaml", "-q", "--times", "2"]).expect(0).err, "");
}

#[test]
fn a_debug_run_shows_the_stack() {
    let place = Place::playing(&python("def f():\n    raise OSError('x')\nf()"));
    assert!(!fail(&place, "play.yaml").err.contains("Traceback"));
    place.windlass(&["run", "play.yaml", "--debug"]).expect(1).says("Traceback").says("line 3, in <module>");
}

#[test]
fn executions_are_listed_by_workflow() {
    let place = Place::playing("workflow: [{step: a}]");
    place.write("other.yaml", "metadata: {name: other}\nworkflow: [{step: a}]");
    place.run(&[], 0);
    place.windlass(&["run", "other.yaml"]).expect(0);
    let list = place.windlass(&["executions", "list", "--workflow", "other"]).expect(0).out;
    assert!(list.lines().count() == 1 && list.contains("other"), "{list}");
    place.windlass(&["executions", "list", "--workflow", "third"]).expect(2).says("no workflow");
}

/// However many failures were handled before it, the failure that nothing handled is the reason of the end.
#[test]
fn the_reason_of_the_end_is_the_first_unhandled_failure_after_many_handled_ones() {
    let mut steps = String::from("workflow:\n");
    for number in 0..20 {
        let next = format!("next: {{arcs: [{{step: s{}, when: '{{{{ event.error }}}}'}}]}}", number + 1);
        steps += &format!(
            "- {{step: s{number}, tool: {{kind: noop, result: '{{{{ {number} // 0 }}}}'}}, {next}}}\n"
        );
    }
    steps += "- {step: s20, tool: {kind: shell, command: 'exit 7'}}\n";
    let place = Place::playing(&steps);
    let run = place.run(&[], 1);
    let errors = run["errors"].as_array().expect("errors");
    assert_eq!((errors.len(), &errors[0]["nodeId"]), (1, &json!("s20")), "{run}");
    let events = place.windlass(&["executions", "events", "@last", "--json"]).expect(0).out;
    let end: Value = serde_json::from_str(events.lines().last().expect("an event")).expect("JSON");
    let error = &end["data"]["error"];
    assert_eq!(
        (&end["event"], &error["nodeId"], &error["code"]),
        (&json!("execution.failed"), &json!("s20"), &json!("SHELL_EXIT")),
        "{end}"
    );
}
