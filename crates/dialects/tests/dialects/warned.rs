//! Playbooks that can run but hardly say what their author meant.

use crate::compiled::{check, playbook};

fn workflow(steps: &str, expected: &[&str]) {
    check(&playbook(steps), expected);
}

#[test]
fn a_playbook_without_a_name_is_warned_of() {
    check(
        "workflow: [{step: a, next: []}]",
        &["W0207 1:1 : the playbook has no name (add `metadata: {name: ...}`: executions are found by it)"],
    );
}

#[test]
fn an_input_whose_bare_name_means_something_else_is_warned_of() {
    let check = |workload: &str, steps: &str, expected: &[&str]| {
        check(&format!("metadata: {{name: t}}\nworkload: {workload}\nworkflow:\n{steps}"), expected);
    };
    let read = "- {step: a, tool: {kind: noop}, next: {step: b, when: a.ok}}\n- {step: b, next: []}";
    check(
        "{a: 1, b: 2, c: 3}",
        read,
        &[
            "W0250 2:12 workload.a: `a` is an input and the result of a step: expressions that read `a` get the result of a step (write `workload.a` for the input, or rename one of them)",
        ],
    );
    check("{b: 1}", &read.replace("a.ok", "workload.b and steps.b and ctx.b"), &[]);
    check(
        "{result: 1, one: 2}",
        "- {step: a, tool: [{name: one, kind: shell, command: ls}, {name: two, kind: shell, command: 'ls {{ one.x }}'}], next: {step: b, when: result.ok}}\n- {step: b, next: []}",
        &[
            "W0250 2:12 workload.result: `result` is an input and a part of the event: expressions that read `result` get a part of the event (write `workload.result` for the input, or rename one of them)",
            "W0250 2:23 workload.one: `one` is an input and the result of a task: expressions that read `one` get the result of a task (write `workload.one` for the input, or rename one of them)",
        ],
    );
    check(
        "{}",
        "- {step: a, tool: {kind: noop}, set_ctx: {a: 1, z: 2}, next: {step: b, when: a.ok and z}}\n- {step: b, next: []}",
        &[
            "W0250 4:10 workflow[0].step: step `a` sets `ctx.a`: expressions that read `a` get the result of a step (write `ctx.a` for the context, or rename one of them)",
        ],
    );
    // An argument of the step comes before.
    check(
        "{a: 1}",
        "- {step: a, next: b}\n- {step: b, args: {a: 1}, tool: {kind: shell, command: 'ls {{ a }}'}}",
        &[],
    );
}

#[test]
fn a_rule_after_else_is_warned_of() {
    workflow(
        "- step: a\n  tool:\n    kind: noop\n    spec:\n      policy:\n        rules:\n        - {else: {do: continue}}\n        - {when: x, then: {do: fail}}",
        &[
            "W0204 10:11 workflow[0].tool.spec.policy.rules[1]: a rule after `else` is never evaluated (move `else` to the end)",
        ],
    );
}

#[test]
fn a_step_nothing_leads_to_is_warned_of() {
    workflow(
        "- {step: a, next: b}\n- {step: b, next: []}\n- {step: c, next: d}\n- {step: d, next: []}",
        &[
            "W0202 5:10 workflow[2].step: no arc leads to step `c` (add an arc to it, or remove it)",
            "W0202 6:10 workflow[3].step: no arc leads to step `d` (add an arc to it, or remove it)",
        ],
    );
    check(
        "metadata: {name: t}\nexecutor: {spec: {entry_step: b, final_step: c}}\nworkflow: [{step: a, next: b}, {step: b, next: []}, {step: c, next: []}]",
        &["W0202 3:19 workflow[0].step: no arc leads to step `a` (add an arc to it, or remove it)"],
    );
}

#[test]
fn a_cycle_without_an_exit_is_warned_of() {
    workflow(
        "- {step: a, next: b}\n- {step: b, next: c}\n- {step: c, next: b}",
        &[
            "W0203 4:10 workflow[1].step: the cycle through `b`, `c` has no exit (add `when` to an arc of the cycle)",
        ],
    );
    workflow(
        "- {step: a, next: a}",
        &[
            "W0203 3:10 workflow[0].step: the cycle through `a` has no exit (add `when` to an arc of the cycle)",
        ],
    );
    workflow("- {step: a, next: [{step: b, when: ctx.done}, a]}\n- {step: b, next: []}", &[]);
    workflow("- {step: a, next: {step: a, when: ctx.more}}", &[]);
    workflow(
        "- {step: a, next: {spec: {mode: inclusive}, arcs: [{step: b, when: ctx.done}, a]}}\n- {step: b, next: []}",
        &[
            "W0203 3:10 workflow[0].step: the cycle through `a` has no exit (add `when` to an arc of the cycle)",
        ],
    );
}

#[test]
fn an_arc_that_is_never_taken_is_warned_of() {
    workflow(
        "- {step: a, next: [b, c]}\n- {step: b, next: []}\n- {step: c, next: []}",
        &[
            "W0204 3:23 workflow[0].next[1]: the arc to `c` is never taken: the one to `b` always matches (add `when` to the earlier arc, or `spec: {mode: inclusive}` to take every arc that matches)",
        ],
    );
}

#[test]
fn pbk_13_a_step_that_does_nothing_is_warned_of() {
    workflow(
        "- {step: a, next: b}\n- {step: b}",
        &[
            "W0205 4:10 workflow[1].step: step `b` does nothing (add `tool` or `next`; a branch ends at any step without `next`)",
        ],
    );
}

#[test]
fn policies_of_results_in_other_engines_have_no_effect() {
    workflow(
        "- step: a\n  tool: {kind: shell, command: ls, spec: {result: {select: []}}}\n  result: {inline_max_bytes: 2048, store: {kind: nats_kv}, ttl: 1h}",
        &[
            "W0208 4:52 workflow[0].tool.spec.result.select: `select` of `result` has no effect here (remove it: a large result is stored, and `{{ STEP.FIELD }}` reads it)",
            "W0208 5:36 workflow[0].result.store: `store` of `result` has no effect here (remove it: a large result is stored, and `{{ STEP.FIELD }}` reads it)",
            "W0201 5:60 workflow[0].result.ttl: `result` has no key `ttl` (known here: `inline_max_bytes`)",
        ],
    );
}

#[test]
fn a_container_takes_its_image_from_the_runtime_of_other_engines() {
    workflow(
        "- step: a\n  tool:\n    kind: container\n    runtime: {provider: kubernetes, image: '{{ workload.image }}', command: [id]}",
        &[
            "W0208 6:15 workflow[0].tool.runtime.provider: `provider` of `runtime` of the tool `container` has no effect here (remove it: the worker runs the container with docker or podman)",
            "W0252 6:44 workflow[0].tool.runtime.image: `image` of the tool `container` is an expression: its value is the program that runs (name the image, unless everyone who starts the playbook may choose it)",
        ],
    );
}

#[test]
fn a_retry_that_is_never_used_or_changed_is_warned_of() {
    workflow(
        "- step: a\n  tool: {kind: shell, command: ls, retry: {max_attempts: 2, backoff_multiplier: 1.5, jitter: true}, spec: {policy: {rules: [{else: {do: fail}}]}}}",
        &[
            "W0204 4:43 workflow[0].tool.retry: `retry` is never used: a rule of the task matches always (remove `else`, or `retry`)",
            "W0208 4:81 workflow[0].tool.retry.backoff_multiplier: `backoff_multiplier` is 1.5, but the delay always doubles (write `backoff: exponential`, or `backoff: constant`)",
            "W0208 4:86 workflow[0].tool.retry.jitter: `jitter` of `retry` has no effect here (remove it: `backoff: exponential` doubles the delay, without a limit or jitter)",
        ],
    );
}
