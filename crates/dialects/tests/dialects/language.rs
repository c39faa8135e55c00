//! The language as playbooks in the field use it: aliases, short forms, what guards see, keys that have no effect here.

use crate::compiled::{check, lowers, playbook};
use crate::running::Run;
use serde_json::{Value, json};

fn workflow(steps: &str, expected: &[&str]) {
    check(&playbook(steps), expected);
}

/// Returns whether an arc with a guard from `a` to `b` is taken, when `a` ends as `end` states.
fn guard(when: &str, inputs: Value, end: fn(&mut Run) -> String) -> bool {
    after(when, inputs, end) == "b Running"
}

fn after(when: &str, inputs: Value, end: fn(&mut Run) -> String) -> String {
    let arc = json!({ "step": "b", "when": when });
    let shell = json!({ "kind": "shell", "command": "ls" });
    let text = json!({ "metadata": { "name": "t" }, "workflow": [
        { "step": "a", "tool": shell, "next": [arc] }, { "step": "b", "tool": shell },
    ] });
    let (mut run, _) = Run::start(&text.to_string(), inputs);
    end(&mut run)
}

fn done(run: &mut Run) -> String {
    run.done("a", json!({ "n": 3, "list": [1, 2] }))
}

fn fail(run: &mut Run) -> String {
    run.fail("a")
}

#[test]
fn pbk_08_guards_see_the_event_the_result_the_inputs_and_the_execution() {
    let id = "00000000000000000000000000000007";
    for when in [
        "{{ event.name == 'step.done' }}",
        "{{ event.name == 'call.done' }}",
        "{{ event.name in ['call.done', 'loop.done'] }}",
        "{{ event.step == 'a' }}",
        "{{ event.payload.n == 3 }}",
        "{{ event.result.n == 3 }}",
        "{{ result.n == 3 and response.n == 3 }}",
        "{{ a.n == 3 and steps.a.n == 3 }}",
        "{{ a.data.n == 3 }}",
        "{{ a['data']['list'] | length == 2 }}",
        "{{ limit == 5 and workload.limit == 5 }}",
        &format!("{{{{ execution_id == '{id}' }}}}"),
        &format!("{{{{ job.uuid == '{id}' }}}}"),
        "{{ error is undefined and event.error is undefined }}",
        "limit > a.n",
        "true",
    ] {
        assert!(guard(when, json!({ "limit": 5 }), done), "{when}");
    }
    for when in
        ["{{ event.name == 'call.error' }}", "{{ error }}", "{{ loop }}", "{{ a.nope.deep }}", "{{ 'no' }}"]
    {
        assert!(!guard(when, json!({ "limit": 5 }), done), "{when}");
    }
    let inputs = json!({ "result": "mine", "job": 1, "a": { "n": 9 } });
    let when = "{{ result.n == 3 and a.n == 3 and workload.result == 'mine' and job == 1 }}";
    assert!(guard(when, inputs, done), "names of the language and of steps come before inputs");
}

#[test]
fn pbk_07_pbk_08_guards_see_the_error_and_handle_it() {
    for when in [
        "{{ event.name == 'step.failed' }}",
        "{{ event.name == 'call.error' }}",
        "{{ error.code == 'X' }}",
        "{{ event.error.message == 'no' }}",
        "{{ event.payload.code == 'X' }}",
        "{{ error and a is undefined }}",
    ] {
        assert!(guard(when, json!({}), fail), "{when}");
        let handled = |run: &mut Run| {
            run.fail("a");
            run.done("b", json!({}))
        };
        assert_eq!(
            after(when, json!({}), handled),
            "Ended(Completed)",
            "a guard that reads the error handles it: {when}"
        );
    }
}

#[test]
fn pbk_07_older_names_of_events_mean_the_same_in_arguments() {
    let text = playbook(
        "- {step: a, tool: {kind: shell, command: ls}, next: {step: b, args: {ok: \"{{ event.name == 'call.done' }}\", text: call.done}}}\n- {step: b, tool: {kind: shell, command: ls}}",
    );
    let (mut run, _) = Run::start(&text, json!({}));
    run.done("a", json!({}));
    assert_eq!(run.args("b"), json!({ "ok": true, "text": "call.done" }));
}

#[test]
fn pbk_23_a_loop_has_its_counts_under_all_their_names() {
    for when in [
        "{{ event.name == 'loop.done' }}",
        "{{ loop.done and loop.length == 2 and loop.index == 1 and not loop.first }}",
        "{{ a.stats.total == 2 and a.stats.success == 2 and a.stats.failed == 0 }}",
        "{{ a.succeeded == 2 and event.payload.iterations == 2 }}",
        "{{ a.data.stats.total == 2 }}",
    ] {
        let text = json!({ "metadata": { "name": "t" }, "workflow": [
            { "step": "a", "loop": { "in": [1, 2], "iterator": "i" }, "tool": { "kind": "shell", "command": "ls" },
              "next": [{ "step": "b", "when": when }] },
            { "step": "b", "tool": { "kind": "shell", "command": "ls" } },
        ] });
        let (mut run, _) = Run::start(&text.to_string(), json!({}));
        assert_eq!(run.done("a", json!({})), "a Running");
        assert_eq!(run.done("a", json!({})), "b Running", "{when}");
    }
}

#[test]
fn pbk_20_pbk_23_a_noop_in_a_loop_sees_the_iteration_by_all_its_names() {
    let names = "{{ iter.x }}{{ x }} {{ iter.index }}{{ iter._index }}{{ loop_index }} {{ iter.first }}{{ iter._first }} {{ iter.last }}{{ iter._last }}";
    let text = json!({ "metadata": { "name": "t" }, "workflow": [
        { "step": "a", "loop": { "in": "{{ xs }}", "iterator": "x" }, "tool": { "kind": "noop" }, "set_ctx": { "seen": names } },
    ] });
    let (run, diagnostic) = Run::start(&text.to_string(), json!({ "xs": ["p", "q"] }));
    assert_eq!(diagnostic, "Ended(Completed)", "no worker was needed");
    assert_eq!(run.ctx("seen"), json!("qq 111 FalseFalse TrueTrue"));
}

#[test]
fn pbk_21_set_is_another_spelling_of_set_ctx_and_set_iter() {
    lowers(
        &playbook("- {step: a, set: {n: 1, ctx.m: 2}, next: []}\n- {step: b, set_ctx: {ctx.n: 1}, next: a}"),
        &["a: pure n=1 m=2", "b: pure n=1 -> a"],
    );
    lowers(
        &playbook(
            "- step: a\n  tool: {kind: noop, spec: {policy: {rules: [{when: x, then: {do: continue, set: {ctx.n: 1, iter.m: 2, k: 3}}}]}}}",
        ),
        &[
            r#"a: {"tasks":[{"label":"a_task","kind":"noop","rules":[{"when":"x","action":{"do":"continue"},"set_ctx":{"n":1,"k":3},"set_iter":{"m":2}}],"on_unmatched":"by_outcome"}]}"#,
        ],
    );
    workflow(
        "- {step: a, set: {iter.n: 1, ctx.a.b: 2, step.z: 3, ctx.: 4, n: 5}, set_ctx: {n: 1}, next: []}",
        &[
            "E0120 3:19 workflow[0].set.iter.n: a step cannot set `iter.n` (a step writes to the context; the iteration is written by rules of tasks)",
            "E0120 3:30 workflow[0].set.ctx.a.b: `ctx.a.b` cannot be set (name a scope and one key: `ctx.total`; a part of a value is set with the whole value)",
            "E0120 3:42 workflow[0].set.step.z: `step.z` cannot be set (name a scope and one key: `ctx.total`; a part of a value is set with the whole value)",
            "E0120 3:53 workflow[0].set.ctx.: `ctx.` cannot be set (name a scope and one key: `ctx.total`; a part of a value is set with the whole value)",
            "E0120 3:62 workflow[0].set.n: `n` is set twice (keep one of them)",
        ],
    );
}

#[test]
fn pbk_21_jumps_have_four_names_for_the_task_before() {
    for word in ["previous", "prev", "_previous", "'@previous'"] {
        let tool = format!(
            "- step: s\n  tool: [{{a: {{kind: noop}}}}, {{b: {{kind: noop, spec: {{policy: {{rules: [{{else: {{do: jump, to: {word}}}}}]}}}}}}}}]"
        );
        lowers(
            &playbook(&tool),
            &[
                r#"s: {"tasks":[{"label":"a","kind":"noop","on_unmatched":"by_outcome"},{"label":"b","kind":"noop","rules":[{"action":{"do":"jump","to":"a"}}],"on_unmatched":"by_outcome"}]}"#,
            ],
        );
    }
}

#[test]
fn pbk_21_else_has_four_forms_and_numbers_may_be_text() {
    let retry = r#"{"do":"retry","attempts":4,"backoff":"linear","delay_ms":500}"#;
    let then = "do: retry, attempts: '4', backoff: linear, delay: '0.5'";
    for rule in [
        format!("{{else: {{then: {{{then}}}}}}}"),
        format!("{{else: {{{then}}}}}"),
        format!("{{else: , then: {{{then}}}}}"),
        format!("{{else: null, then: {{{then}}}}}"),
    ] {
        let task = format!(
            "- step: s\n  tool: {{kind: noop, spec: {{policy: {{on_unmatched: fail, rules: [{rule}]}}}}}}"
        );
        let expected = format!(
            r#"s: {{"tasks":[{{"label":"s_task","kind":"noop","rules":[{{"action":{retry}}}],"on_unmatched":"fail"}}]}}"#
        );
        lowers(&playbook(&task), &[&expected]);
    }
}

#[test]
fn pbk_21_fields_under_spec_are_the_tools_unless_they_are_next_to_it() {
    lowers(
        &playbook(
            "- step: s\n  tool: {kind: http, method: PUT, spec: {url: 'http://x', method: GET, timeout: 5, args: {k: 1}}}",
        ),
        &[
            r#"s: {"tasks":[{"label":"s_task","kind":"http","config":{"method":"PUT","url":"http://x","args":{"k":1}},"on_unmatched":"by_outcome","timeout_ms":5000}]}"#,
        ],
    );
}

#[test]
fn keys_without_effect_are_warnings() {
    check(
        "metadata: {name: t}\nexecutor:\n  requires: {tools: [shell], features: [x]}\n  spec:\n    loop_mode: fanout\n    policy: {results: {reference_first: true}, defaults: {timeout_s: 3, other: 1}}\nworkflow:\n- step: a\n  next: []\n  spec: {policy: {failure: {mode: best_effort}, lifecycle: {deadline_s: 3}}}\n",
        &[
            "W0208 3:30 executor.requires.features: `features` of `requires` has no effect here (remove it, or name kinds of tools under `tools`)",
            "W0208 5:5 executor.spec.loop_mode: `loop_mode` of `executor.spec` has no effect here (use `loop.spec` of the step)",
            "W0208 6:24 executor.spec.policy.results.reference_first: `reference_first` of `executor.spec.policy.results` has no effect here (remove it)",
            "W0201 6:73 executor.spec.policy.defaults.other: `executor.spec.policy.defaults` has no key `other` (known here: `timeout_s`, `timeout`)",
            "W0208 10:19 workflow[0].spec.policy.failure: `failure` of `policy` of a step has no effect here (handle the failure with an arc (`when: \"{{ event.name == 'step.failed' }}\"`), or set `executor.spec.failure`)",
            "W0208 10:61 workflow[0].spec.policy.lifecycle.deadline_s: `deadline_s` of `lifecycle` has no effect here (use `timeout_s`)",
        ],
    );
}

#[test]
fn fields_of_other_engines_have_no_effect_and_are_accepted() {
    check(
        "metadata: {name: t}\nworkflow:\n- step: a\n  tool: {kind: playbook, path: p, return_step: end}",
        &[
            "W0208 4:35 workflow[0].tool.return_step: `return_step` of the tool `playbook` has no effect here (remove it: the task waits for the playbook, and its result is the playbook's)",
        ],
    );
}

#[test]
fn what_a_playbook_requires_must_exist() {
    check(
        "metadata: {name: t}\nexecutor: {profile: cloud, requires: {tools: [shell, duckdb]}}\nworkflow: [{step: a, next: []}]",
        &[
            "E0108 2:21 executor.profile: profile `cloud` does not exist (use `local` or `distributed` or `auto` or `hybrid`)",
            "E0111 2:54 executor.requires.tools[1]: the tool `duckdb` is not built in, and no binding exists for this kind (use `kind: python` with the duckdb module, or `kind: shell` with the `duckdb` program, or bind the kind: `adapters: {tools: {duckdb: {kind: python, code: \"result = args\"}}}`)",
        ],
    );
}

#[test]
fn keys_of_other_versions_are_refused_with_the_right_place() {
    workflow(
        "- step: a\n  sink: x\n  spec: {next_mode: inclusive}\n  tool: {kind: noop, eval: []}\n  next: {arcs: [{step: a, when: x, set: {b: 1}}]}",
        &[
            "E0106 4:3 workflow[0].sink: a step has no `sink` (write the result with a task of its own, after the one that makes it)",
            "E0106 5:10 workflow[0].spec.next_mode: `spec` of a step has no `next_mode` (use `next: {spec: {mode: ...}}`)",
            "E0106 6:22 workflow[0].tool.eval: a tool has no `eval` (use `spec.policy.rules` of the task)",
            "E0106 7:36 workflow[0].next.arcs[0].set: an arc has no `set` (write the context with `set_ctx` of the step; pass what only the next step needs in `args`)",
        ],
    );
}

#[test]
fn pbk_01_defaults_of_inputs_may_be_templates_of_the_start() {
    let steps = "\nworkflow: [{step: a, next: []}]";
    check(
        &format!(
            "metadata: {{name: t}}\nworkload: {{id: '{{{{ job.uuid }}}}', n: 1, m: '{{{{ n + 1 }}}}'}}{steps}"
        ),
        &[],
    );
    check(
        &format!(
            "metadata: {{name: t}}\nworkload: {{q: 'a {{{{ iter.x }}}}', b: '{{{{ n + }}}}', c: '{{{{ d }}}}', d: '{{{{ c }}}}'}}{steps}"
        ),
        &[
            "W0209 2:15 workload.q: `q` stays text: `iter` is not known when an execution starts (a default may read other inputs, `execution_id` and `job.uuid`; write `{% raw %}...{% endraw %}` for text with braces)",
            "E0114 2:44 workload.b: bad expression: unexpected end of variable block (an expression is `{{ ... }}` as in Jinja: `{{ workload.count > 3 }}`)",
            "E0119 2:49 workload.c: input `c` needs itself, or another input that needs it (write a value that is not a template for one of them)",
        ],
    );
}

#[test]
fn a_loop_collects_what_its_iterations_give_where_something_reads_it() {
    let collects = |read: &str| {
        let text = format!(
            "metadata: {{name: t}}\nworkflow:\n- {{step: a, tool: {{kind: shell, command: ls}}, loop: {{in: [1], iterator: i}}, next: b}}\n- {{step: b, tool: {{kind: shell, command: 'echo {read}'}}}}"
        );
        let net = windlass_dialects::compile(&text).net.unwrap_or_else(|| panic!("{text}"));
        net.spec().steps.iter().map(|step| step.collect).collect::<Vec<_>>()
    };
    for read in ["{{ a.results }}", "{{ a }}", "{{ a.data.results }}", "{{ steps.a }}", "{{ steps }}"] {
        assert_eq!(collects(read), [true, false], "{read}");
    }
    for read in ["{{ a.stats.total }}", "{{ b.results }}", "{{ steps.b }}", "{{ ctx.a }}"] {
        assert_eq!(collects(read), [false, false], "{read}");
    }
}
