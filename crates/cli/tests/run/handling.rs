//! Failures: which guards handle one, which errors an execution lists, and what is left of a loop that failed in part.

use crate::rig::Place;
use serde_json::{Value, json};

/// Runs a step that fails, or succeeds with `ok`, with one arc to the step `after`.
fn run_step(guard: &str, ok: bool, code: i32) -> Value {
    let command = if ok { "true" } else { "exit 3" };
    let place = Place::playing(&format!(
        "workflow:
- step: work
  tool: {{kind: shell, command: '{command}'}}
  next: {{arcs: [{{step: after, when: \"{{{{ {guard} }}}}\"}}]}}
- {{step: after, tool: {{kind: shell, command: 'echo after >> ran'}}}}
"
    ));
    let mut output = place.run(&[], code);
    output["ran"] = json!(place.lines("ran"));
    output
}

/// Runs a loop whose second of three iterations fails, with one arc to the step `after`.
fn run_loop(guard: &str, code: i32) -> Value {
    let place = Place::playing(&format!(
        "workflow:
- step: each
  loop: {{in: [5, 0, 7], iterator: n}}
  tool: {{kind: shell, command: 'test {{{{ iter.n }}}} -gt 0'}}
  next: {{arcs: [{{step: after, when: \"{{{{ {guard} }}}}\"}}]}}
- {{step: after, tool: {{kind: shell, command: 'echo after >> ran'}}}}
"
    ));
    let mut output = place.run(&[], code);
    output["ran"] = json!(place.lines("ran"));
    output
}

fn check_handled(output: &Value) {
    assert_eq!(output["status"], "completed", "{output}");
    assert_eq!((&output["errors"], &output["ran"]), (&json!([]), &json!(["after"])), "{output}");
    assert_eq!(output["nodeExecutions"][0]["status"], "failed", "{output}");
    assert_eq!(output["view"]["steps"][0]["handled"], true, "{output}");
}

fn check_unhandled(output: &Value, code: &str) {
    assert_eq!((&output["status"], &output["ran"]), (&json!("failed"), &json!(["after"])), "{output}");
    let errors = output["errors"].as_array().expect("errors");
    // The first failed iteration follows the failure of its loop.
    let inside = usize::from(code == "ITERATION_FAILED");
    assert_eq!((errors.len(), &errors[0]["code"]), (1 + inside, &json!(code)), "{output}");
}

#[test]
fn a_guard_that_is_false_after_a_success_handles_a_failure() {
    for guard in [
        "event.name == 'step.failed'",
        "event.error.code == 'SHELL_EXIT'",
        "event.name != 'step.done'",
        "error",
        "event.error.message.startswith('the')",
        "work is not defined",
    ] {
        check_handled(&run_step(guard, false, 0));
    }
}

#[test]
fn a_guard_that_is_also_true_after_a_success_continues_and_the_execution_fails() {
    for guard in [
        "event.name in ['step.done', 'step.failed']",
        "event.step == 'work'",
        "not event.result.missing",
        "workload.missing is not defined",
        "event.payload.code == 'SHELL_EXIT' or true",
    ] {
        check_unhandled(&run_step(guard, false, 1), "SHELL_EXIT");
    }
    assert_eq!(run_step("event.name in ['step.done', 'step.failed']", true, 0)["status"], "completed");
}

#[test]
fn a_loop_behind_the_usual_guard_continues_and_hides_no_failed_iteration() {
    for guard in ["event.name == 'loop.done'", "loop.done", "event.payload.iterations == 3"] {
        check_unhandled(&run_loop(guard, 1), "ITERATION_FAILED");
    }
    for guard in [
        "event.payload.failed > 0",
        "event.error",
        "each.stats.success < each.stats.total",
        "event.payload.errors | length == 1",
        "event.name == 'loop.done' and event.payload.succeeded == 2",
    ] {
        check_handled(&run_loop(guard, 0));
    }
}

/// Expected result of the loops below: the second of three iterations failed.
fn check_partial(loop_result: &Value, results: &Value, node: &str) {
    assert_eq!(
        [
            &loop_result["iterations"],
            &loop_result["succeeded"],
            &loop_result["failed"],
            &loop_result["stats"],
            &loop_result["results"],
            &loop_result["errors"][0]["index"],
            &loop_result["errors"][0]["error"]["nodeId"],
        ],
        [
            &json!(3),
            &json!(2),
            &json!(1),
            &json!({ "total": 3, "success": 2, "failed": 1 }),
            results,
            &json!(1),
            &json!(node),
        ],
        "{loop_result}"
    );
    assert_eq!(loop_result["errors"].as_array().map(Vec::len), Some(1), "{loop_result}");
}

#[test]
fn a_failed_loop_has_the_results_of_its_other_iterations() {
    let place = Place::playing(
        r#"
executor: {spec: {final_step: last}}
workflow:
- step: each
  loop: {in: [5, 0, 7], iterator: n, spec: {mode: parallel}}
  tool: {kind: python, args: {n: "{{ iter.n }}"}, code: "result = 70 // n"}
  next:
    arcs: [{step: after, when: "{{ event.payload.failed > 0 }}", args: {payload: "{{ event.payload }}"}}]
- step: after
  tool: {kind: python, args: {got: "{{ args.payload }}", by_name: "{{ each }}"}, code: "result = [got, by_name]"}
- step: last
  tool: {kind: python, args: {each: "{{ each }}"}, code: "result = each"}
"#,
    );
    let output = place.run(&[], 0);
    let results = json!([14, null, 10]);
    check_partial(&output["outputs"], &results, "each");
    check_partial(&output["nodeExecutions"][0]["output"], &results, "each");
    check_partial(&output["nodeExecutions"][1]["output"][0], &results, "each");
    check_partial(&output["nodeExecutions"][1]["output"][1], &results, "each");
    let id = output["executionId"].as_str().expect("an id");
    let got = place.windlass(&["executions", "get", id, "--json"]).expect(0).json();
    check_partial(&got["nodeExecutions"][0]["output"], &results, "each");
    place.windlass(&["admin", "check"]).expect(0);
}

#[test]
fn a_failed_loop_that_nothing_reads_shows_its_results_too() {
    let place = Place::playing(
        r#"
workflow:
- step: each
  loop: {in: [5, 0, 7], iterator: n}
  tool: {kind: python, args: {n: "{{ iter.n }}"}, code: "result = 70 // n"}
"#,
    );
    let output = place.run(&[], 1);
    check_partial(&output["nodeExecutions"][0]["output"], &json!([14, null, 10]), "each");
    let error = &output["errors"][0];
    assert_eq!((&error["code"], &error["nodeId"]), (&json!("ITERATION_FAILED"), &json!("each")), "{output}");
}

const WORKFLOW: &str = r#"
name: partial
nodes:
- {id: start, type: trigger}
- {id: rows, type: loop, config: {loopType: for_each, dataSource: [5, 0, 7], iteratorVariable: n}}
- {id: divide, type: code, name: Divide the row, config: {language: python, code: "return 70 // n", inputVariables: {n: "{{ n }}"}}}
- {id: report, type: code, config: {language: python, code: "return got", inputVariables: {got: "{{ rows }}"}}}
edges:
- {source: start, target: rows}
- {source: rows, target: divide, sourceHandle: body}
- {source: rows, target: report, sourceHandle: error}
"#;

#[test]
fn a_failed_loop_of_a_workflow_is_handled_at_its_error_handle_with_its_results() {
    for mode in ["fail_fast", "continue_on_error", "collect_errors"] {
        let place = Place::new();
        place.write("play.yaml", &format!("{WORKFLOW}settings: {{failureMode: {mode}}}\n"));
        let output = place.run(&[], 0);
        assert_eq!((&output["status"], &output["errors"]), (&json!("completed"), &json!([])), "{output}");
        check_partial(&output["outputs"], &json!([14, null, 10]), "divide");
        assert_eq!(output["outputs"]["errors"][0]["error"]["nodeName"], "Divide the row", "{output}");
    }
}

/// Fields that an error has in every place; a response adds two more.
fn fields_of(error: &Value) -> Value {
    let names = ["code", "class", "kind", "message", "retryable", "nodeId", "nodeName", "attempt"];
    assert_eq!((&error["class"], error["retryable"].is_boolean()), (&error["kind"], true), "{error}");
    Value::Object(names.iter().map(|name| ((*name).to_owned(), error[*name].clone())).collect())
}

#[test]
fn an_error_has_the_same_fields_in_every_place() {
    let place = Place::playing(
        r#"
executor: {spec: {final_step: last}}
workflow:
- step: call
  tool:
    kind: http
    url: http://127.0.0.1:1/
    spec:
      policy:
        rules:
        - {when: "{{ outcome.meta.attempt == 1 }}", then: {do: retry, attempts: 2, delay: 0}}
        - {when: "{{ outcome.status == 'error' }}", then: {do: fail, set_ctx: {outcome: "{{ outcome.error }}"}}}
  next: {arcs: [{step: after, args: {event: "{{ event.error }}"}}]}
- {step: after, tool: {kind: noop, result: {event: "{{ args.event }}"}}}
- step: last
  tool: {kind: noop, result: {outcome: "{{ ctx.outcome }}", event: "{{ after.event }}"}}
"#,
    );
    let output = place.run(&[], 1);
    let expected = fields_of(&output["errors"][0]);
    assert_eq!(
        expected,
        json!({ "code": "CONNECTION_REFUSED", "class": "transport", "kind": "transport",
            "message": output["errors"][0]["message"], "retryable": true,
            "nodeId": "call", "nodeName": "call", "attempt": 2 })
    );
    assert_eq!(output["errors"].as_array().map(Vec::len), Some(1), "{output}");
    for error in
        [&output["nodeExecutions"][0]["error"], &output["outputs"]["outcome"], &output["outputs"]["event"]]
    {
        assert_eq!(fields_of(error), expected, "{output}");
    }
}

#[test]
fn an_error_handle_passes_the_same_error_on() {
    let place = Place::new();
    place.write(
        "play.yaml",
        r#"
name: errors
settings: {retryPolicy: {maxRetries: 1, initialDelayMs: 1}}
nodes:
- {id: start, type: trigger}
- {id: call, type: http_api, name: Ask the shop, config: {url: "http://nowhere.invalid/"}}
- {id: seen, type: code, config: {language: python, code: "return error", inputVariables: {error: "{{ args.error }}"}}}
edges:
- {source: start, target: call}
- {source: call, target: seen, sourceHandle: error}
"#,
    );
    let output = place.run(&[], 0);
    let error = output["nodeExecutions"].as_array().and_then(|nodes| {
        nodes.iter().find(|node| node["nodeId"] == "call").map(|node| node["error"].clone())
    });
    let expected = fields_of(&error.expect("an error"));
    assert_eq!(
        [&expected["code"], &expected["class"], &expected["nodeName"], &expected["attempt"]],
        [&json!("DNS_FAILED"), &json!("transport"), &json!("Ask the shop"), &json!(2)],
        "{output}"
    );
    assert_eq!((fields_of(&output["outputs"]), &output["errors"]), (expected, &json!([])), "{output}");
}

#[test]
fn errors_list_what_nothing_handled_and_the_rest_is_at_its_step() {
    let place = Place::playing(
        r#"
workflow:
- step: each
  loop: {in: [0, 1], iterator: n}
  tool: {kind: shell, command: 'test {{ iter.n }} -gt 0'}
  next: {arcs: [{step: taken, when: "{{ event.payload.failed > 0 }}"}]}
- step: taken
  tool: {kind: shell, command: 'exit 5'}
  next: {arcs: [{step: open, when: "{{ event.name == 'step.failed' }}"}]}
- {step: open, tool: {kind: shell, command: 'exit 6'}}
"#,
    );
    let output = place.run(&[], 1);
    let nodes: Vec<&Value> =
        output["errors"].as_array().into_iter().flatten().map(|e| &e["nodeId"]).collect();
    assert_eq!(nodes, [&json!("open")], "{output}");
    for (index, code) in ["ITERATION_FAILED", "SHELL_EXIT", "SHELL_EXIT"].into_iter().enumerate() {
        assert_eq!(output["nodeExecutions"][index]["error"]["code"], code, "{output}");
    }
}
