//! `spec: {join: all}`: a step that runs once for all branches, when each has arrived or ended.

use crate::rig::{Place, is_gone, playbook, process_of, until};
use rustix::process::Signal;
use serde_json::{Value, json};

/// Runs once the named file is there.
fn after(file: &str, name: &str) -> String {
    format!("until test -e {file}; do sleep 0.01; done; echo {name} >> output; touch {name}.done")
}

/// `start` leads to three branches, and each of them to `merge`.
fn fan(a: &str, b: &str, c: &str) -> String {
    format!(
        "workflow:
- step: start
  next: {{spec: {{mode: inclusive}}, arcs: [{{step: a}}, {{step: b}}, {{step: c}}]}}
{a}
{b}
{c}
- step: merge
  spec: {{join: all}}
  tool: {{kind: shell, command: 'echo merge {{{{ args.arrived | map(attribute=\"step\") | join(\" \") }}}} >> output'}}
  next: last
- step: last
  tool: {{kind: shell, command: 'echo last >> output'}}
"
    )
}

/// A branch that passes its name to `merge` if it succeeds.
fn branch(name: &str, command: &str) -> String {
    format!(
        "- step: {name}\n  tool: {{kind: shell, command: '{command}'}}\n  next: {{arcs: [{{step: merge, when: \"{{{{ event.name == 'step.done' }}}}\", args: {{x: {name}, {name}: 1}}}}]}}"
    )
}

fn id_of(output: &Value) -> String {
    output["executionId"].as_str().expect("an id").to_owned()
}

fn firings(output: &Value, step: &str) -> usize {
    output["nodeExecutions"]
        .as_array()
        .expect("entries")
        .iter()
        .filter(|entry| entry["nodeId"] == step)
        .count()
}

#[test]
fn three_branches_of_unequal_speed_join_once_in_the_order_of_the_definition() {
    let (a, b, c) = (after("b.done", "a"), after("c.done", "b"), after(".", "c"));
    let place = Place::playing(&fan(&branch("a", &a), &branch("b", &b), &branch("c", &c)));
    let output = place.run(&[], 0);
    assert_eq!(place.lines("output"), ["c", "b", "a", "merge a b c", "last"]);
    assert_eq!((firings(&output, "merge"), firings(&output, "last")), (1, 1));
    let steps = output["view"]["steps"].as_array().expect("steps");
    let merge = steps.iter().find(|step| step["step"] == "merge").expect("merge ran");
    let arrived = |name: &str| json!({ "step": name, "failed": false, "args": { "x": name, name: 1 } });
    assert_eq!(
        merge["args"],
        json!({ "x": "c", "a": 1, "b": 1, "c": 1, "arrived": [arrived("a"), arrived("b"), arrived("c")] })
    );
    let events = place.windlass(&["executions", "events", &id_of(&output), "--json"]).expect(0).out;
    let joined = events.lines().filter(|line| line.contains("token.joined")).count();
    assert_eq!(joined, 1, "{events}");
    place.windlass(&["admin", "check"]).expect(0);
}

#[test]
fn without_join_the_same_playbook_runs_the_step_once_per_branch() {
    let plain = fan(&branch("a", "true"), &branch("b", "true"), &branch("c", "true"));
    for document in [plain.replace("  spec: {join: all}\n", ""), plain.replace("join: all", "join: each")] {
        let output = Place::playing(&document).run(&[], 0);
        assert_eq!((firings(&output, "merge"), firings(&output, "last")), (3, 3), "{document}");
        assert_eq!(output["view"].get("joins"), None);
    }
}

#[test]
fn a_branch_that_is_not_taken_is_not_awaited() {
    let document =
        fan(&branch("a", "echo a >> output"), &branch("b", "echo b >> output"), &branch("c", "true"))
            .replace("{step: c}", "{step: c, when: '{{ workload.c }}'}");
    let place = Place::playing(&format!("workload: {{c: false}}\n{document}"));
    place.run(&[], 0);
    assert_eq!(place.lines("output").last().map(String::as_str), Some("last"));
    assert!(place.lines("output").contains(&"merge a b".to_owned()), "{:?}", place.lines("output"));
}

#[test]
fn a_branch_that_fails_is_not_awaited_and_its_failure_is_not_hidden() {
    let c = after("b.done", "c") + "; false";
    let place = Place::playing(&fan(&branch("a", "true"), &branch("b", &after(".", "b")), &branch("c", &c)));
    let output = place.run(&[], 1);
    assert_eq!(output["status"], "failed");
    assert_eq!(place.lines("output"), ["b", "c", "merge a b", "last"]);
    assert_eq!(output["errors"][0]["nodeId"], "c");
    // Without any arrival, it does not run.
    let place = Place::playing(&fan(&branch("a", "false"), &branch("b", "false"), &branch("c", "false")));
    let output = place.run(&[], 1);
    assert_eq!((firings(&output, "merge"), place.lines("output").len()), (0, 0));
}

#[test]
fn a_branch_at_a_gate_is_awaited_and_named() {
    let gate = "- step: c\n  spec: {policy: {admit: {rules: [{when: '{{ ctx.go }}', then: {allow: true}}]}}}\n  tool: {kind: shell, command: 'echo c >> output'}\n  next: merge";
    let place = Place::playing(&fan(&branch("a", "true"), &branch("b", "true"), gate));
    let output = place.run(&[], 5);
    let waits = json!([{ "step": "merge", "arrived": ["a", "b"], "waitsFor": ["c"] }]);
    assert_eq!(output["view"]["joins"], waits);
    let id = id_of(&output);
    let page = place.windlass(&["executions", "get", &id]).expect(0).out;
    assert!(page.contains("  merge  waits for c\n"), "{page}");
    let picture = place.windlass(&["executions", "get", &id, "--graph"]).expect(0).out;
    assert!(picture.contains("joins all branches"), "{picture}");
    place.windlass(&["executions", "patch", &id, "go=true"]).expect(0);
    let output = place.windlass(&["run", "--resume", &id, "--json"]).expect(0).json();
    assert_eq!(place.lines("output"), ["c", "merge a b c", "last"]);
    assert_eq!(output["view"]["joins"], json!([]));
    // A gate that discards ends its branch.
    let discard = gate.replace("allow: true}}]", "allow: true}}], on_deny: discard");
    let place = Place::playing(&fan(&branch("a", "true"), &branch("b", "true"), &discard));
    place.run(&[], 0);
    assert_eq!(place.lines("output"), ["merge a b", "last"]);
}

#[test]
fn joins_follow_each_other_and_rounds_join_again() {
    // Two joins in sequence, the inner one inside a branch of the outer one, and a round of all of it.
    let place = Place::playing(
        "workload: {rounds: 2}
workflow:
- {step: start, set_ctx: {round: '{{ (ctx.round | default(0)) + 1 }}'}, tool: {kind: noop}, next: {spec: {mode: inclusive}, arcs: [{step: a}, {step: b}, {step: e}]}}
- {step: a, tool: {kind: shell, command: 'true'}, next: inner}
- {step: b, tool: {kind: shell, command: 'true'}, next: inner}
- {step: inner, spec: {join: all}, tool: {kind: shell, command: 'echo inner >> output'}, next: {spec: {mode: inclusive}, arcs: [{step: c}, {step: d}]}}
- {step: c, tool: {kind: shell, command: 'true'}, next: outer}
- {step: d, tool: {kind: shell, command: 'true'}, next: outer}
- {step: e, tool: {kind: shell, command: 'true'}, next: outer}
- {step: outer, spec: {join: all}, tool: {kind: shell, command: 'echo outer {{ args.arrived | length }} >> output'}, next: check}
- {step: check, tool: {kind: noop}, next: [{step: start, when: '{{ ctx.round < workload.rounds }}'}, {step: last}]}
- {step: last, tool: {kind: shell, command: 'echo last >> output'}}
",
    );
    place.run(&[], 0);
    assert_eq!(place.lines("output"), ["inner", "outer 3", "inner", "outer 3", "last"]);
}

#[test]
fn a_killed_run_joins_once_after_it_is_resumed() {
    let c = "echo $$ > pid; test -e go || exec sleep 1000; echo c >> output";
    let place =
        Place::playing(&fan(&branch("a", "echo a >> output"), &branch("b", "touch b.done"), &branch("c", c)));
    let running = place.start(&["run", "play.yaml"]);
    let pid = process_of(&place, "pid");
    until("two branches wait", || {
        let output = place.windlass(&["executions", "get", "@last", "--json"]);
        (output.out.contains("\"arrived\":[\"a\",\"b\"]")).then_some(())
    });
    running.signal(Signal::KILL);
    running.end();
    until("the step's process is gone", || is_gone(pid).then_some(()));
    place.write("go", "");
    let output = place.windlass(&["run", "--resume", "--json"]).expect(0).json();
    assert_eq!(place.lines("output"), ["a", "c", "merge a b c", "last"]);
    assert_eq!(firings(&output, "merge"), 1);
    place.windlass(&["admin", "check"]).expect(0);
}

#[test]
fn a_retry_of_a_failed_branch_joins_again_and_one_after_the_join_keeps_it() {
    let c = after("b.done", "c") + "; test -e go";
    let document = fan(&branch("a", "echo a >> output"), &branch("b", &after(".", "b")), &branch("c", &c));
    let place = Place::playing(&document);
    let old = id_of(&place.run(&[], 1));
    let before = place.lines("output").len();
    place.write("go", "");
    let plan = place.windlass(&["executions", "retry", &old, "--dry-run", "--json"]).expect(0).json();
    let names = |key: &str| {
        let listed = plan[key].as_array().expect("a list").iter();
        listed.map(|entry| entry["nodeId"].as_str().expect("a step").to_owned()).collect::<Vec<_>>()
    };
    let mut kept = names("imports");
    kept.sort();
    assert_eq!(
        (kept, names("runs")),
        (vec!["a".into(), "b".into(), "start".into()], vec!["c".into(), "merge".into(), "last".into()])
    );
    place.windlass(&["executions", "retry", &old]).expect(0);
    assert_eq!(place.lines("output").split_off(before), ["c", "merge a b c", "last"]);

    let after = document.replace("echo last >> output", "echo last >> output; test -e later");
    let place = Place::playing(&after);
    place.write("go", "");
    let old = id_of(&place.run(&[], 1));
    let before = place.lines("output").len();
    place.write("later", "");
    place.windlass(&["executions", "retry", &old]).expect(0);
    assert_eq!(place.lines("output").split_off(before), ["last"], "the join is taken over");
    place.windlass(&["executions", "retry", "@last", "--from", "merge"]).expect(0);
    assert_eq!(place.lines("output").split_off(before + 1), ["merge a b c", "last"]);
    place.windlass(&["admin", "check"]).expect(0);
}

#[test]
fn a_wrong_join_is_refused_and_a_fan_out_names_the_line_to_write() {
    let place = Place::playing("workflow:\n- {step: a, spec: {join: any}, tool: {kind: noop}}\n");
    place
        .windlass(&["validate", "play.yaml"])
        .expect(2)
        .says("join `any` does not exist")
        .says("use `each` or `all`");
    let many: String =
        (0..65).map(|n| format!("- {{step: j{n}, spec: {{join: all}}, next: j{}}}\n", n + 1)).collect();
    place.write(
        "play.yaml",
        &playbook("tested", &format!("workflow:\n{many}- {{step: j65, tool: {{kind: noop}}}}\n")),
    );
    place.windlass(&["validate", "play.yaml"]).expect(2).says("E0121").says("65 joins, more than 64");
    let twice = fan(&branch("a", "true"), &branch("b", "true"), &branch("c", "true"));
    place.write("play.yaml", &playbook("tested", &twice.replace("  spec: {join: all}\n", "")));
    let advised = place.windlass(&["validate", "play.yaml"]).expect(0);
    advised.says("W0255").says("write `spec: {join: all}` in the step to run it once");
    place.write("play.yaml", &playbook("tested", &twice));
    let joined = place.windlass(&["validate", "play.yaml"]).expect(0);
    assert!(!format!("{}{}", joined.out, joined.err).contains("W0255"), "{} {}", joined.out, joined.err);
}
