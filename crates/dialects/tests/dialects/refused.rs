//! Playbooks with mistakes: each is reported at its line, with a repair.

use crate::compiled::{check, playbook};

fn workflow(steps: &str, expected: &[&str]) {
    check(&playbook(steps), expected);
}

/// A step whose task has this `then`.
fn rule(rule: &str, expected: &[&str]) {
    workflow(
        &format!(
            "- step: a\n  tool:\n    kind: noop\n    spec:\n      policy:\n        rules:\n        - {rule}\n"
        ),
        expected,
    );
}

#[test]
fn pbk_01_a_playbook_needs_a_list_of_steps() {
    check(
        "kind: Playbook\nmetadata: {name: t}",
        &[
            "E0104 1:1 : the playbook has no `workflow` (write a list: `workflow:` and under it `- step: NAME`)",
        ],
    );
    check(
        "metadata: {name: t}\nworkflow:\n",
        &[
            "E0104 2:1 workflow: the playbook has no `workflow` (write a list: `workflow:` and under it `- step: NAME`)",
        ],
    );
    check(
        "metadata: {name: t}\nworkflow: []",
        &[
            "E0104 2:11 workflow: `workflow` has no steps (write a list: `workflow:` and under it `- step: NAME`)",
        ],
    );
    check(
        "metadata: {name: t}\nworkflow: {step: a}",
        &[
            "E0104 2:11 workflow: `workflow` must be a list of steps, not a map (write a list: `workflow:` and under it `- step: NAME`)",
        ],
    );
    check(
        "metadata: {name: t}\nworkflow: [a, {desc: x}, {step: 1}]",
        &[
            "E0101 2:12 workflow[0]: a step must be a map, not a string (write `key: value`, one line each)",
            "E0102 2:15 workflow[1]: a step has no `step` (add `step: ...`)",
            "E0101 2:33 workflow[2].step: `step` of a step must be a string, not a number (put it in quotes)",
        ],
    );
}

#[test]
fn pbk_01_the_sections_have_types() {
    check(
        "metadata: t\nkind: Job\nworkload: [1]\nkeychain: {}\nexecutor: local\nworkflow: [{step: a, next: []}]",
        &[
            "E0101 1:11 metadata: `metadata` must be a map, not a string (write `key: value`, one line each)",
            "E0108 2:7 kind: kind `Job` does not exist (use `Playbook`)",
            "E0101 3:11 workload: `workload` must be a map, not a list (write `key: value`, one line each)",
            "E0101 4:11 keychain: `keychain` must be a list, not a map (write `- item`, one line each, or `[...]`)",
            "E0101 5:11 executor: `executor` must be a map, not a string (write `key: value`, one line each)",
        ],
    );
}

#[test]
fn pbk_01_an_unknown_root_key_is_a_warning_and_vars_an_error() {
    check(
        "metadata: {name: t}\nworklod: {}\nvars: {}\nworkflow: [{step: a, next: []}]",
        &[
            "W0201 2:1 worklod: a playbook has no key `worklod` (did you mean `workload`?)",
            "E0106 3:1 vars: a playbook has no `vars` (move them to `workload`; what changes while it runs is `ctx`, written by `set_ctx`)",
        ],
    );
}

#[test]
fn pbk_03_pbk_17_unknown_entry_and_final_steps_are_rejected() {
    check(
        "metadata: {name: t}\nexecutor: {spec: {entry_step: strat, final_step: ned}}\nworkflow: [{step: start, next: end}, {step: end, next: []}]",
        &[
            "E0107 2:31 executor.spec.entry_step: step `strat` is not defined (did you mean `start`?)",
            "E0107 2:50 executor.spec.final_step: step `ned` is not defined (did you mean `end`?)",
        ],
    );
}

#[test]
fn pbk_14_pbk_16_executor_policies_are_checked() {
    check(
        "metadata: {name: t}\nexecutor:\n  spec:\n    no_next_is_error: \"yes\"\n    failure: fast\n    final_failure: 1\n    pending_gates: skip\n    entry: a\nworkflow: [{step: a, next: []}]",
        &[
            "E0101 4:23 executor.spec.no_next_is_error: `no_next_is_error` must be true or false, not a string (write `true`, without quotes)",
            "E0108 5:14 executor.spec.failure: failure policy `fast` does not exist (use `fail_on_any` or `fail_fast` or `partial`)",
            "E0101 6:20 executor.spec.final_failure: policy of the final step must be a string, not a number (put it in quotes)",
            "E0108 7:20 executor.spec.pending_gates: policy of gates `skip` does not exist (use `wait` or `complete`)",
            "E0103 8:5 executor.spec.entry: `executor.spec` has no key `entry` (known here: `entry_step`, `final_step`, `no_next_is_error`, `failure`, `final_failure`, `pending_gates`, `templates`, `policy`)",
        ],
    );
}

#[test]
fn duplicate_step_names_are_rejected() {
    workflow(
        "- {step: a, next: a}\n- {step: a, next: a}",
        &["E0105 4:10 workflow[1].step: step `a` is defined twice (rename one of them)"],
    );
}

#[test]
fn pbk_26_step_when_does_not_exist_and_the_hint_names_admission() {
    workflow(
        "- step: a\n  when: \"{{ x }}\"\n  next: []",
        &[
            "E0106 4:3 workflow[0].when: a step has no `when` (use `spec.policy.admit.rules` to hold the step back, or `when` on the arc that leads to it)",
        ],
    );
}

#[test]
fn misplaced_keys_are_refused_with_the_right_place() {
    workflow(
        "- {step: a, case: [], retry: {}, next: []}",
        &[
            "E0106 3:13 workflow[0].case: a step has no `case` (use `next.arcs` with a `when` on each arc)",
            "E0106 3:23 workflow[0].retry: a step has no `retry` (use a rule of the task: `spec.policy.rules` with `then: {do: retry, attempts: 3}`)",
        ],
    );
}

#[test]
fn an_unknown_key_of_a_step_gets_the_nearest() {
    workflow(
        "- {step: a, tols: {kind: noop}, set_ctxt: {}, next: []}",
        &[
            "E0103 3:13 workflow[0].tols: a step has no key `tols` (did you mean `tool`?)",
            "E0103 3:33 workflow[0].set_ctxt: a step has no key `set_ctxt` (did you mean `set_ctx`?)",
        ],
    );
}

#[test]
fn pbk_27_an_arc_to_an_unknown_step_is_rejected_in_every_form() {
    workflow(
        "- step: ship\n  next: shp",
        &["E0107 4:9 workflow[0].next: step `shp` is not defined (did you mean `ship`?)"],
    );
    workflow(
        "- step: ship\n  next: [shp, ship]",
        &[
            "E0107 4:10 workflow[0].next[0]: step `shp` is not defined (did you mean `ship`?)",
            "W0204 4:15 workflow[0].next[1]: the arc to `ship` is never taken: the one to `shp` always matches (add `when` to the earlier arc, or `spec: {mode: inclusive}` to take every arc that matches)",
        ],
    );
    workflow(
        "- step: ship\n  next: {step: shp}",
        &["E0107 4:16 workflow[0].next.step: step `shp` is not defined (did you mean `ship`?)"],
    );
    workflow(
        "- step: ship\n  next:\n    arcs:\n    - step: shp\n      when: \"{{ true }}\"",
        &["E0107 6:13 workflow[0].next.arcs[0].step: step `shp` is not defined (did you mean `ship`?)"],
    );
}

#[test]
fn pbk_27_an_unknown_mode_is_rejected() {
    workflow(
        "- step: a\n  next: {spec: {mode: all}, arcs: []}",
        &[
            "E0108 4:23 workflow[0].next.spec.mode: router mode `all` does not exist (use `exclusive` or `inclusive`)",
        ],
    );
    workflow(
        "- step: a\n  loop: {in: [1], iterator: i, spec: {mode: cursor}}\n  tool: {kind: noop}",
        &[
            "E0108 4:45 workflow[0].loop.spec.mode: loop mode `cursor` does not exist (use `sequential` or `parallel`)",
        ],
    );
}

#[test]
fn pbk_27_a_malformed_arc_is_rejected() {
    workflow(
        "- step: a\n  next: {arcs: [{when: x}, {step: a, whn: x}, {step: a, args: 3}, 7]}",
        &[
            "E0102 4:17 workflow[0].next.arcs[0]: an arc has no `step` (add `step: ...`)",
            "E0103 4:38 workflow[0].next.arcs[1].whn: an arc has no key `whn` (did you mean `when`?)",
            "E0101 4:63 workflow[0].next.arcs[2].args: `args` of an arc must be a map, not a number (write `key: value`, one line each)",
            "E0101 4:67 workflow[0].next.arcs[3]: an arc of step `a` must be a string, not a number (put it in quotes)",
        ],
    );
    workflow(
        "- step: a\n  next: {arc: []}",
        &["E0103 4:10 workflow[0].next.arc: `next` has no key `arc` (did you mean `arcs`?)"],
    );
}

#[test]
fn pbk_05_pbk_27_a_malformed_admission_rule_is_rejected() {
    let admit = |rules: &str| format!("- step: a\n  next: []\n  spec:\n    policy:\n      admit: {rules}");
    workflow(
        &admit("{}"),
        &["E0109 7:14 workflow[0].spec.policy.admit: `admit` has no `rules` (add `rules: [...]`)"],
    );
    workflow(
        &admit("{rules: {}}"),
        &[
            "E0101 7:22 workflow[0].spec.policy.admit.rules: `rules` of `admit` must be a list, not a map (write `- item`, one line each, or `[...]`)",
        ],
    );
    workflow(
        &admit("{rules: [{when: x}]}"),
        &[
            r#"E0109 7:23 workflow[0].spec.policy.admit.rules[0]: a rule has no `then` (write `{when: "...", then: {allow: true}}` or `{else: {then: {allow: true}}}`)"#,
        ],
    );
    workflow(
        &admit("{rules: [{then: {allow: true}}]}"),
        &[
            r#"E0109 7:23 workflow[0].spec.policy.admit.rules[0]: a rule has no `when` (write `{when: "...", then: {allow: true}}` or `{else: {then: {allow: true}}}`)"#,
        ],
    );
    workflow(
        &admit("{rules: [{when: x, then: {do: fail}}]}"),
        &[
            "E0109 7:39 workflow[0].spec.policy.admit.rules[0].then: an admission rule has no `allow` (write `then: {allow: true}` or `then: {allow: false}`)",
            "E0103 7:40 workflow[0].spec.policy.admit.rules[0].then.do: `then` of an admission rule has no key `do` (known here: `allow`)",
        ],
    );
    workflow(
        &admit("{rules: [{when: x, then: {allow: \"no\"}}], on_deny: drop}"),
        &[
            "E0101 7:47 workflow[0].spec.policy.admit.rules[0].then.allow: `allow` must be true or false, not a string (write `false`, without quotes)",
            "E0108 7:65 workflow[0].spec.policy.admit.on_deny: `on_deny` `drop` does not exist (use `wait` or `discard`)",
        ],
    );
    workflow(
        &admit("{rules: [{when: x, else: {allow: true}}]}"),
        &[
            r#"E0109 7:23 workflow[0].spec.policy.admit.rules[0]: a rule has `when` or `else`, not both (write `{when: "...", then: {allow: true}}` or `{else: {then: {allow: true}}}`)"#,
        ],
    );
}

#[test]
fn pbk_27_a_malformed_task_rule_is_rejected() {
    rule(
        "{then: {do: fail}}",
        &[
            r#"E0109 9:11 workflow[0].tool.spec.policy.rules[0]: a rule has no `when` (write `{when: "...", then: {do: continue}}` or `{else: {then: {do: continue}}}`)"#,
        ],
    );
    rule(
        "{when: \"{{ outcome }}\"}",
        &[
            r#"E0109 9:11 workflow[0].tool.spec.policy.rules[0]: a rule has no `then` (write `{when: "...", then: {do: continue}}` or `{else: {then: {do: continue}}}`)"#,
        ],
    );
    rule(
        "{when: \"{{ outcome }}\", then: {set_ctx: {a: 1}}}",
        &[
            "E0109 9:41 workflow[0].tool.spec.policy.rules[0].then: a rule has no `do` (add `do: continue`, `retry`, `jump`, `break` or `fail`)",
        ],
    );
    rule(
        "{else: {then: {do: stop}}}",
        &[
            "E0108 9:30 workflow[0].tool.spec.policy.rules[0].else.then.do: action `stop` does not exist (use `continue` or `retry` or `jump` or `break` or `fail`)",
        ],
    );
    rule(
        "{else: {then: {do: retry, attempts: 0, backoff: slow}}}",
        &[
            "E0118 9:47 workflow[0].tool.spec.policy.rules[0].else.then.attempts: `attempts` must be a whole number from 1 to 1000000",
            "E0108 9:59 workflow[0].tool.spec.policy.rules[0].else.then.backoff: backoff `slow` does not exist (use `none` or `fixed` or `constant` or `linear` or `exponential`)",
        ],
    );
    rule(
        "{else: {then: {do: retry, attempts: many}}}",
        &[
            "E0101 9:47 workflow[0].tool.spec.policy.rules[0].else.then.attempts: `attempts` must be a number, not a string (write it in digits; it cannot be a template)",
        ],
    );
    rule(
        "{else: {then: {do: retry, delay: soon}}}",
        &[
            r#"E0101 9:44 workflow[0].tool.spec.policy.rules[0].else.then.delay: `delay` is not a duration (write seconds as a number, or "500ms", "30s", "2m", "1h"; at most 365 days)"#,
        ],
    );
    rule(
        "{else: {then: {do: continue, set_ctx: [1]}}}",
        &[
            "E0101 9:49 workflow[0].tool.spec.policy.rules[0].else.then.set_ctx: `set_ctx` must be a map, not a list (write `key: value`, one line each)",
        ],
    );
    rule(
        "{else: }",
        &[
            r#"E0109 9:11 workflow[0].tool.spec.policy.rules[0]: a rule has no `then` (write `{when: "...", then: {do: continue}}` or `{else: {then: {do: continue}}}`)"#,
        ],
    );
    rule(
        "just text",
        &[
            "E0101 9:11 workflow[0].tool.spec.policy.rules[0]: a rule must be a map, not a string (write `key: value`, one line each)",
        ],
    );
}

#[test]
fn pbk_21_a_jump_needs_a_label_of_its_own_step() {
    rule(
        "{else: {then: {do: jump}}}",
        &[
            "E0109 9:25 workflow[0].tool.spec.policy.rules[0].else.then: a jump has no `to` (add `to:` and the label of a task of this step)",
        ],
    );
    rule(
        "{else: {then: {do: jump, to: tsk}}}",
        &[
            "E0113 9:40 workflow[0].tool.spec.policy.rules[0].else.then.to: step `a` has no task `tsk` to jump to (known here: `a_task`)",
        ],
    );
    rule(
        "{else: {then: {do: jump, to: previous}}}",
        &[
            "E0113 9:40 workflow[0].tool.spec.policy.rules[0].else.then.to: step `a` has no task `previous` to jump to (known here: `a_task`)",
        ],
    );
}

#[test]
fn a_tool_needs_a_kind_that_exists() {
    workflow(
        "- step: a\n  tool: {code: x}",
        &[
            "E0110 4:9 workflow[0].tool: the tool has no `kind` (known kinds: noop, shell, python, script, container, http, postgres, artifact, secrets, worker, playbook, workbook)",
        ],
    );
    workflow(
        "- step: a\n  tool: {kind: htp, url: x}",
        &[
            "E0111 4:16 workflow[0].tool.kind: there is no tool `htp` (did you mean `http`? known kinds: noop, shell, python, script, container, http, postgres, artifact, secrets, worker, playbook, workbook)",
        ],
    );
    workflow(
        "- step: a\n  tool: {kind: duckdb}",
        &[
            "E0111 4:16 workflow[0].tool.kind: the tool `duckdb` is not built in, and no binding exists for this kind (use `kind: python` with the duckdb module, or `kind: shell` with the `duckdb` program, or bind the kind: `adapters: {tools: {duckdb: {kind: python, code: \"result = args\"}}}`)",
        ],
    );
    workflow(
        "- step: a\n  tool: []",
        &[
            "E0110 4:9 workflow[0].tool: `tool` of step `a` is an empty list (omit `tool` for a step that only routes)",
        ],
    );
    workflow(
        "- step: a\n  tool: shell",
        &[
            "E0101 4:9 workflow[0].tool: a tool must be a map, not a string (write `key: value`, one line each)",
        ],
    );
}

#[test]
fn a_tool_needs_its_main_field() {
    workflow(
        "- step: a\n  tool: [{kind: shell}, {kind: http, method: GET}, {kind: secrets}]",
        &[
            "E0102 4:10 workflow[0].tool[0]: the tool `shell` has no `cmds` (add `cmds` or `command`)",
            "E0102 4:25 workflow[0].tool[1]: the tool `http` has no `url` (add `url` or `endpoint`)",
            "E0102 4:52 workflow[0].tool[2]: the tool `secrets` has no `name` (add `name`)",
        ],
    );
}

#[test]
fn a_tool_has_only_its_own_fields() {
    workflow(
        "- step: a\n  tool: [{kind: shell, comand: ls, cmds: [ls]}, {kind: http, url: u, spec: {retries: 3}}]",
        &[
            "E0103 4:24 workflow[0].tool[0].comand: the tool `shell` has no key `comand` (did you mean `command`?)",
            "E0103 4:77 workflow[0].tool[1].spec.retries: the tool `http` has no key `retries`",
        ],
    );
}

#[test]
fn labels_are_unique_in_a_pipeline() {
    workflow(
        "- step: a\n  tool: [{name: x, kind: noop}, {x: {kind: noop}}]",
        &["E0112 4:34 workflow[0].tool[1].x: task `x` is defined twice (rename one)"],
    );
}

#[test]
fn arguments_have_one_name_at_a_time() {
    workflow(
        "- {step: a, args: {}, input: {}, next: []}",
        &["E0103 3:23 workflow[0].input: `input` is another name of `args` (keep one of them)"],
    );
    workflow(
        "- step: a\n  tool: {kind: noop, args: {}, input: {}}",
        &["E0103 4:32 workflow[0].tool.input: `args` and `input` are the same thing (keep one of them)"],
    );
    workflow(
        "- step: a\n  tool: {kind: noop, args: 4}",
        &[
            "E0101 4:28 workflow[0].tool.args: `args` of a tool must be a map, not a number (write `key: value`, one line each)",
        ],
    );
}

#[test]
fn pbk_25_a_workbook_call_needs_an_entry() {
    let book = "metadata: {name: t}\nworkbook:\n- {name: greet, tool: {kind: noop}}\n- {name: again, tool: {kind: workbook, name: greet}}\n- {name: greet, tool: {kind: noop}}\nworkflow:\n- step: a\n  tool: {kind: workbook, name: great}\n";
    check(
        book,
        &[
            "E0116 4:23 workbook[1].tool: workbook entry `again` calls the workbook (call that entry from the step instead)",
            "E0112 5:10 workbook[2].name: workbook entry `greet` is defined twice (rename one)",
            "E0116 8:9 workflow[0].tool: the workbook has no entry `great` (did you mean `greet`?)",
        ],
    );
}

#[test]
fn pbk_23_a_loop_needs_a_list_an_iterator_and_sound_numbers() {
    let repeat = |inside: &str| format!("- step: a\n  tool: {{kind: noop}}\n  loop: {inside}");
    workflow(
        &repeat("{}"),
        &[
            r#"E0115 5:9 workflow[0].loop: the loop of step `a` has no `in` (write `loop: {in: "{{ workload.items }}", iterator: item}`)"#,
            r#"E0115 5:9 workflow[0].loop: the loop of step `a` has no `iterator` (write `loop: {in: "{{ workload.items }}", iterator: item}`)"#,
        ],
    );
    workflow(
        &repeat("{in: [1]}"),
        &[
            r#"E0115 5:9 workflow[0].loop: the loop of step `a` has no `iterator` (write `loop: {in: "{{ workload.items }}", iterator: item}`)"#,
        ],
    );
    workflow(
        &repeat("{in: items, iterator: i}"),
        &[
            r#"E0101 5:14 workflow[0].loop.in: a loop cannot iterate over a string (write a list, or `"{{ workload.items }}"` for one that is known later)"#,
        ],
    );
    workflow(
        &repeat("{in: [1], iterator: i, spec: {mode: parallel, max_in_flight: 0}}"),
        &[
            "E0118 5:70 workflow[0].loop.spec.max_in_flight: `max_in_flight` must be a whole number from 1 to 10000",
        ],
    );
    workflow(
        &repeat("{in: [1], iterator: i, spec: {mode: parallel, max_in_flight: two}}"),
        &[
            "E0101 5:70 workflow[0].loop.spec.max_in_flight: `max_in_flight` must be a number, not a string (write it in digits; it cannot be a template)",
        ],
    );
    workflow(
        &repeat("{in: [1], iterator: i, mode: parallel}"),
        &[
            "E0103 5:32 workflow[0].loop.mode: `loop` has no key `mode` (known here: `in`, `iterator`, `spec`)",
        ],
    );
}

#[test]
fn a_timeout_is_a_duration() {
    workflow(
        "- {step: a, next: [], spec: {timeout: soon}}\n- {step: b, next: a, spec: {timeout: -1}}",
        &[
            r#"E0101 3:39 workflow[0].spec.timeout: `timeout` is not a duration (write seconds as a number, or "500ms", "30s", "2m", "1h"; at most 365 days)"#,
            r#"E0101 4:38 workflow[1].spec.timeout: `timeout` is not a duration (write seconds as a number, or "500ms", "30s", "2m", "1h"; at most 365 days)"#,
        ],
    );
}

#[test]
fn a_bad_expression_is_placed_inside_the_document() {
    workflow(
        "- step: a\n  tool:\n    kind: shell\n    command: >\n      echo a\n      echo {{ b | }}\n",
        &[
            "E0114 8:19 workflow[0].tool.command: bad expression: unexpected end of variable block, expected identifier (an expression is `{{ ... }}` as in Jinja: `{{ workload.count > 3 }}`)",
        ],
    );
    workflow(
        "- step: a\n  next:\n    arcs:\n    - step: a\n      when: \"{{ ctx.n > }}\"",
        &[
            "E0114 7:25 workflow[0].next.arcs[0].when: bad expression: unexpected end of variable block (an expression is `{{ ... }}` as in Jinja: `{{ workload.count > 3 }}`)",
        ],
    );
    workflow(
        "- step: a\n  tool:\n    kind: shell\n    command: |\n      echo ok\n      echo {{ 1 + }}\n",
        &[
            "E0114 8:19 workflow[0].tool.command: bad expression: unexpected end of variable block (an expression is `{{ ... }}` as in Jinja: `{{ workload.count > 3 }}`)",
        ],
    );
    workflow(
        "- step: a\n  set_ctx: {x: \"{{ y | nofilter }}\"}",
        &[
            "E0114 4:24 workflow[0].set_ctx.x: bad expression: filter `nofilter` is unknown (docs/playbooks.md lists the filters and tests)",
        ],
    );
    workflow(
        "- step: a\n  set_ctx: {x: \"{{ y | lenght }}\", z: \"{{ y is maping }}\"}",
        &[
            "E0114 4:24 workflow[0].set_ctx.x: bad expression: filter `lenght` is unknown (did you mean `length`?)",
            "E0114 4:48 workflow[0].set_ctx.z: bad expression: test `maping` is unknown (did you mean `mapping`?)",
        ],
    );
    workflow(
        "- step: a\n  next: {step: a, when: ctx.n = 3}",
        &[
            "E0114 4:31 workflow[0].next.when: bad expression: unexpected input after expression (compare with `==`)",
        ],
    );
    workflow(
        "- step: a\n  tool: {kind: shell, command: 'echo ${#name}'}",
        &[
            "E0114 4:38 workflow[0].tool.command: bad expression: `${#` begins a comment here: write `{% raw %}${#name}{% endraw %}` for the shell's length (`{{ '${#' }}name}` means the same)",
        ],
    );
}

#[test]
fn several_problems_are_reported_at_once_in_order() {
    workflow(
        "- step: a\n  when: x\n  next: bb\n- step: a\n  tool: {kind: nop}\n",
        &[
            "E0106 4:3 workflow[0].when: a step has no `when` (use `spec.policy.admit.rules` to hold the step back, or `when` on the arc that leads to it)",
            "E0107 5:9 workflow[0].next: step `bb` is not defined (known here: `a`)",
            "E0105 6:9 workflow[1].step: step `a` is defined twice (rename one of them)",
            "E0111 7:16 workflow[1].tool.kind: there is no tool `nop` (did you mean `noop`? known kinds: noop, shell, python, script, container, http, postgres, artifact, secrets, worker, playbook, workbook)",
        ],
    );
}

#[test]
fn at_most_a_hundred_problems_are_kept() {
    let steps: String = (0..500).map(|n| format!("- {{step: s{n}, nxt: x, next: q{n}}}\n")).collect();
    assert_eq!(
        windlass_dialects::compile(&playbook(&steps)).diagnostics.len(),
        windlass_dialects::DIAGNOSTICS_MAX
    );
}

#[test]
fn places_are_right_in_every_kind_of_text() {
    // Line ends of Windows, letters of several bytes, quotes and escapes before the mistake.
    check(
        "metadata: {name: t}\r\nworkflow:\r\n- step: a\r\n  tool:\r\n    kind: shell\r\n    command: |\r\n      echo é🦀 {{ 1 + }}\r\n  next: bb\r\n",
        &[
            "E0114 7:22 workflow[0].tool.command: bad expression: unexpected end of variable block (an expression is `{{ ... }}` as in Jinja: `{{ workload.count > 3 }}`)",
            "E0107 8:9 workflow[0].next: step `bb` is not defined (known here: `a`)",
        ],
    );
    workflow(
        "- step: a\n  set_ctx:\n    a: \"x \\\"q\\\" {{ b || c }}\"\n    b: 'x ''q'' {{ x = 3 }}'\n    c: >-\n      one\n      two {{ a && b }}\n    d: \"many\n      lines {{ a ? b : c }}\"\n    e: plain\n      more {{ !a }}\n",
        &[
            "E0114 5:23 workflow[0].set_ctx.a: bad expression: unexpected `|`, expected identifier (write `or`)",
            "E0114 6:22 workflow[0].set_ctx.b: bad expression: unexpected `=`, expected end of variable block (compare with `==`)",
            "E0114 9:16 workflow[0].set_ctx.c: bad expression: unexpected character (write `and`)",
            "E0114 11:18 workflow[0].set_ctx.d: bad expression: unexpected character (write `a if condition else b`)",
            "E0114 13:15 workflow[0].set_ctx.e: bad expression: unexpected character (write `not`, or `!=` to compare)",
        ],
    );
    workflow(
        "- {step: a, next: {step: a, when: '|'}}",
        &[
            "E0114 3:36 workflow[0].next.when: bad expression: unexpected `|` (an expression is `{{ ... }}` as in Jinja: `{{ workload.count > 3 }}`)",
        ],
    );
    check(
        "metadata:\n\tname: t\n",
        &[
            "E0001 2:1 : this is not YAML: tabs disallowed within this context (block indentation) (YAML is indented with spaces: replace the tab)",
        ],
    );
}

#[test]
fn the_mark_under_a_line_is_under_wide_letters_too() {
    let text = playbook("- step: a\n  tool: {kind: shell, command: '日本 {{ 1 + }}'}");
    let compiled = windlass_dialects::compile(&text);
    let rendered = compiled.diagnostics[0].render(&text, "f");
    let lines: Vec<&str> = rendered.lines().collect();
    assert_eq!(lines[3], "4 |   tool: {kind: shell, command: '日本 {{ 1 + }}'}");
    let mark = lines[4].find('^').expect("a mark");
    assert_eq!(mark, lines[3].find("}}'").expect("the end") - "日本".len() + 4, "{rendered}");
}
