//! Nets of playbooks.

use crate::compiled::{check, lowers, playbook};
use windlass_dialects::compile;

fn workflow(steps: &str, expected: &[&str]) {
    lowers(&playbook(steps), expected);
}

#[test]
fn pbk_01_sections_are_read_and_the_workload_has_the_defaults() {
    let text = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: full, path: a/b}\nkeychain: [{name: k, kind: static, map: {}}]\nexecutor: {profile: local, version: noetl-runtime/1}\nworkload: {n: 3, list: [1, 2], id: '{{ job.uuid }}'}\nworkflow: [{step: a, next: []}]\nworkbook: []\n";
    let compiled = compile(text);
    check(text, &[]);
    assert_eq!(compiled.name.as_deref(), Some("full"));
    assert_eq!(compiled.workload, serde_json::json!({ "n": 3, "list": [1, 2], "id": "{{ job.uuid }}" }));
}

#[test]
fn pbk_02_pbk_03_the_entry_is_the_first_step_or_the_named_one() {
    workflow("- {step: end, next: start}\n- {step: start, next: []}", &["end: pure -> start", "start: pure"]);
    lowers(
        "metadata: {name: t}\nexecutor: {spec: {entry_step: b}}\nworkflow: [{step: a, next: []}, {step: b, next: a}]",
        &["from b", "a: pure", "b: pure -> a"],
    );
}

#[test]
fn pbk_14_pbk_16_pbk_17_pbk_19_the_executor_says_how_it_ends() {
    let executor = |spec: &str, expected: &[&str]| {
        lowers(
            &format!("metadata: {{name: t}}\nexecutor: {{spec: {spec}}}\nworkflow: [{{step: a, next: []}}]"),
            expected,
        );
    };
    executor("{failure: fail_on_any}", &["a: pure"]);
    executor(
        "{failure: fail_fast, no_next_is_error: true}",
        &["FailFast FailOnAny, no next is an error", "a: pure"],
    );
    executor(
        "{failure: partial, final_step: a, final_failure: partial}",
        &["final a Partial, Continue Partial", "a: pure"],
    );
    executor(
        "{pending_gates: complete, policy: {defaults: {timeout_s: 30}}}",
        &["gates do not wait", "a: pure within 30000 ms"],
    );
}

#[test]
fn pbk_05_pbk_06_pbk_28_admission_is_kept_in_order() {
    let admit = "- step: a\n  next: []\n  spec:\n    policy:\n      admit:\n        on_deny: discard\n        rules:\n        - {when: \"{{ ctx.ok }}\", then: {allow: true}}\n        - else: {then: {allow: false}}\n";
    workflow(admit, &["a: pure admit [{{ ctx.ok }}=true, else=false] Discard"]);
    let short = "- step: a\n  next: []\n  spec: {policy: {admit: {rules: [{when: true, then: {allow: false}}, {else: , then: {allow: true}}]}}}";
    workflow(short, &["a: pure admit [true=false, else=true] Wait"]);
}

#[test]
fn pbk_08_pbk_09_pbk_10_pbk_11_next_in_its_canonical_form() {
    workflow(
        "- step: a\n  next:\n    spec: {mode: inclusive}\n    arcs:\n    - {step: b, when: \"{{ event.name == 'step.done' }}\", args: {n: \"{{ ctx.n }}\", m: 2}}\n    - step: c\n- {step: b, next: {arcs: [{step: c, when: false}]}}\n- {step: c, next: {spec: {}, arcs: []}}",
        &[
            r#"a: pure => b if {{ event.name == 'step.done' }} with {"n":"{{ ctx.n }}","m":2} => c"#,
            "b: pure -> c if false",
            "c: pure",
        ],
    );
}

#[test]
fn pbk_09_short_forms_of_next_are_exclusive() {
    workflow(
        "- {step: a, next: b}\n- {step: b, next: [{step: a, when: ctx.x}, c]}\n- {step: c, next: {step: d, when: ctx.y, args: {k: 1}}}\n- {step: d, tool: {kind: noop}}",
        &["a: pure -> b", "b: pure -> a if ctx.x -> c", r#"c: pure -> d if ctx.y with {"k":1}"#, "d: pure"],
    );
}

#[test]
fn pbk_07_older_names_of_events_are_rewritten_in_guards_only() {
    workflow(
        "- step: a\n  args: {x: \"call.done\"}\n  next:\n  - {step: b, when: \"{{ event.name == 'call.done' and ctx.k != \\\"call.error\\\" }}\"}\n  - {step: b, when: \"event.name in ['call.error', 'loop.done']\"}\n  - {step: b, when: \"{{ ctx.last == 'call.done' }}\"}\n- {step: b, tool: {kind: noop}}",
        &[
            r#"a: pure -> b if {{ event.name == 'step.done' and ctx.k != "step.failed" }} -> b if event.name in ['step.failed', 'loop.done'] -> b if {{ ctx.last == 'call.done' }}"#,
            "b: pure",
        ],
    );
}

#[test]
fn pbk_20_noops_need_no_worker() {
    workflow("- {step: a, tool: {kind: noop}}", &["a: pure"]);
    workflow("- {step: a, tool: [{kind: noop, message: hi}, {x: {kind: noop}}]}", &["a: pure"]);
    workflow("- {step: a, set_ctx: {n: 1, m: '{{ workload.m }}'}}", &[r#"a: pure n=1 m="{{ workload.m }}""#]);
    let noop = |then: &str, expected: &[&str]| {
        workflow(
            &format!(
                "- step: a\n  tool:\n    kind: noop\n    spec: {{policy: {{rules: [{{else: {then}}}]}}}}"
            ),
            expected,
        );
    };
    noop("{then: {do: continue, set_ctx: {n: '{{ ctx.n + 1 }}'}}}", &[r#"a: pure n="{{ ctx.n + 1 }}""#]);
    noop("{do: continue, set_ctx: {n: 2}}", &["a: pure n=2"]);
    noop(
        "{then: {do: continue, set_ctx: {n: '{{ outcome.status }}'}}}",
        &[
            r#"a: {"tasks":[{"label":"a_task","kind":"noop","rules":[{"action":{"do":"continue"},"set_ctx":{"n":"{{ outcome.status }}"}}],"on_unmatched":"by_outcome"}]}"#,
        ],
    );
    noop(
        "{then: {do: break}}",
        &[
            r#"a: {"tasks":[{"label":"a_task","kind":"noop","rules":[{"action":{"do":"break"}}],"on_unmatched":"by_outcome"}]}"#,
        ],
    );
    noop(
        "{then: {do: continue, set_iter: {n: 2}}}",
        &[
            r#"a: {"tasks":[{"label":"a_task","kind":"noop","rules":[{"action":{"do":"continue"},"set_iter":{"n":2}}],"on_unmatched":"by_outcome"}]}"#,
        ],
    );
}

#[test]
fn pbk_20_a_patch_that_reads_an_earlier_one_is_sent_to_the_worker() {
    workflow(
        "- step: a\n  tool: {kind: noop, spec: {policy: {rules: [{else: {do: continue, set_ctx: {n: 1}}}]}}}\n  set_ctx: {m: '{{ ctx.n }}'}",
        &[
            r#"a: {"tasks":[{"label":"a_task","kind":"noop","rules":[{"action":{"do":"continue"},"set_ctx":{"n":1}}],"on_unmatched":"by_outcome"}],"set_ctx":{"m":"{{ ctx.n }}"}}"#,
        ],
    );
    workflow(
        "- step: a\n  tool: {kind: noop}\n  args: {k: 1}\n  set_ctx: {m: '{{ args.k }}'}",
        &[
            r#"a: {"args":{"k":1},"tasks":[{"label":"a_task","kind":"noop","on_unmatched":"by_outcome"}],"set_ctx":{"m":"{{ args.k }}"}}"#,
        ],
    );
}

#[test]
fn pbk_21_tools_in_three_shapes_become_one_pipeline() {
    workflow(
        "- step: a\n  tool: {kind: shell, cmds: [ls, pwd], env: {A: '{{ workload.a }}'}}",
        &[
            r#"a: {"tasks":[{"label":"a_task","kind":"shell","config":{"cmds":["ls","pwd"],"env":{"A":"{{ workload.a }}"}},"on_unmatched":"by_outcome"}]}"#,
        ],
    );
    workflow(
        "- step: a\n  tool:\n  - {name: one, kind: shell, command: ls}\n  - {kind: shell, command: pwd}",
        &[
            r#"a: {"tasks":[{"label":"one","kind":"shell","config":{"command":"ls"},"on_unmatched":"by_outcome"},{"label":"task_1","kind":"shell","config":{"command":"pwd"},"on_unmatched":"by_outcome"}]}"#,
        ],
    );
    workflow(
        "- step: a\n  tool:\n  - one: {kind: shell, command: ls}\n  - two: {kind: secrets, name: key}",
        &[
            r#"a: {"tasks":[{"label":"one","kind":"shell","config":{"command":"ls"},"on_unmatched":"by_outcome"},{"label":"two","kind":"secrets","config":{"name":"key"},"on_unmatched":"by_outcome"}]}"#,
        ],
    );
}

#[test]
fn pbk_21_task_rules_keep_their_order_and_numbers() {
    let rules = "- step: a
  tool:
  - {name: first, kind: noop, result: 1}
  - name: fetch
    kind: http
    endpoint: http://x
    spec:
      timeout: 1.5
      policy:
        on_unmatched: fail
        rules:
        - {when: \"{{ outcome.error.retryable }}\", then: {do: retry, attempts: '5', backoff: exponential, delay: 0.5}}
        - {when: true, then: {do: retry}}
        - {when: x, then: {do: jump, to: previous, set_iter: {page: 2}}}
        - {when: y, then: {do: jump, to: fetch}}
        - {when: z, then: {do: break}}
        - else: {then: {do: fail, set_ctx: {e: '{{ outcome.error }}'}}}
";
    workflow(
        rules,
        &[
            r#"a: {"tasks":[{"label":"first","kind":"noop","config":{"result":1},"on_unmatched":"by_outcome"},{"label":"fetch","kind":"http","config":{"endpoint":"http://x"},"rules":[{"when":"{{ outcome.error.retryable }}","action":{"do":"retry","attempts":5,"backoff":"exponential","delay_ms":500}},{"when":"true","action":{"do":"retry","attempts":3,"backoff":"constant","delay_ms":0}},{"when":"x","action":{"do":"jump","to":"first"},"set_iter":{"page":2}},{"when":"y","action":{"do":"jump","to":"fetch"}},{"when":"z","action":{"do":"break"}},{"action":{"do":"fail"},"set_ctx":{"e":"{{ outcome.error }}"}}],"on_unmatched":"fail","timeout_ms":1500}]}"#,
        ],
    );
}

#[test]
fn fields_nested_under_spec_are_lifted() {
    workflow(
        "- step: a\n  tool: {kind: http, method: GET, spec: {method: PUT, endpoint: http://x, timeout: {read: 5}, policy: {rules: []}}}",
        &[
            r#"a: {"tasks":[{"label":"a_task","kind":"http","config":{"method":"GET","endpoint":"http://x","timeout":{"read":5}},"on_unmatched":"by_outcome"}]}"#,
        ],
    );
}

#[test]
fn step_arguments_context_and_reads_travel_with_the_pipeline() {
    workflow(
        "- {step: a, tool: {kind: shell, command: ls}, next: b}\n- {step: b, tool: {kind: shell, command: ls}, next: c}\n- step: c\n  input: {x: '{{ a.stdout }}'}\n  tool: {kind: python, code: 'x', args: {y: '{{ steps.b.exit_code }}'}}\n  set_ctx: {z: '{{ c.result }}'}\n  spec: {timeout: 2m}",
        &[
            r#"a: {"tasks":[{"label":"a_task","kind":"shell","config":{"command":"ls"},"on_unmatched":"by_outcome"}]} -> b"#,
            r#"b: {"tasks":[{"label":"b_task","kind":"shell","config":{"command":"ls"},"on_unmatched":"by_outcome"}]} -> c"#,
            r#"c: {"args":{"x":"{{ a.stdout }}"},"tasks":[{"label":"c_task","kind":"python","config":{"code":"x","args":{"y":"{{ steps.b.exit_code }}"}},"on_unmatched":"by_outcome"}],"set_ctx":{"z":"{{ c.result }}"}} reads a reads b within 120000 ms"#,
        ],
    );
}

#[test]
fn pbk_23_loops_have_a_cap() {
    let repeat = |spec: &str, expected: &[&str]| {
        workflow(
            &format!(
                "- step: a\n  tool: {{kind: noop}}\n  loop: {{in: '{{{{ workload.xs }}}}', iterator: x{spec}}}"
            ),
            expected,
        );
    };
    repeat("", &[r#"a: pure for x in "{{ workload.xs }}" by 1"#]);
    repeat(", spec: {mode: sequential, max_in_flight: 7}", &[r#"a: pure for x in "{{ workload.xs }}" by 1"#]);
    repeat(", spec: {mode: parallel}", &[r#"a: pure for x in "{{ workload.xs }}" by 10"#]);
    repeat(", spec: {mode: parallel, max_in_flight: 50}", &[r#"a: pure for x in "{{ workload.xs }}" by 50"#]);
}

#[test]
fn a_playbook_alone_in_a_step_is_a_child() {
    workflow(
        "- step: a\n  args: {n: 1, m: 1}\n  tool: {kind: playbook, path: 'x/{{ workload.p }}', version: 2, args: {n: '{{ ctx.n }}'}}",
        &[r#"a: child {"path":"x/{{ workload.p }}","version":2} {"n":"{{ ctx.n }}","m":1}"#],
    );
    workflow(
        "- step: a\n  tool: {kind: playbook, path: x}\n  set_ctx: {n: '{{ a.n }}'}",
        &[
            r#"a: {"tasks":[{"label":"a_task","kind":"playbook","config":{"path":"x"},"on_unmatched":"by_outcome"}],"set_ctx":{"n":"{{ a.n }}"}}"#,
        ],
    );
}

#[test]
fn pbk_25_workbook_calls_are_inlined_and_the_caller_wins() {
    lowers(
        "metadata: {name: t}\nworkbook:\n- {name: greet, tool: {kind: shell, command: 'echo {{ args.who }}', args: {who: a, how: b}}}\nworkflow:\n- {step: s, tool: {kind: workbook, name: greet, args: {who: '{{ r.x }}'}}, next: r}\n- {step: r, tool: {kind: shell, command: ls}}",
        &[
            r#"s: {"tasks":[{"label":"s_task","kind":"shell","config":{"command":"echo \"${WINDLASS_VALUE_1-}\"","env":{"WINDLASS_VALUE_1":"{{ (args.who) | string }}"},"args":{"who":"{{ r.x }}","how":"b"}},"on_unmatched":"by_outcome"}]} reads r -> r"#,
            r#"r: {"tasks":[{"label":"r_task","kind":"shell","config":{"command":"ls"},"on_unmatched":"by_outcome"}]}"#,
        ],
    );
    lowers(
        "metadata: {name: t}\nworkbook: {tasks: {greet: {tool: {kind: shell, command: ls}}}}\nworkflow:\n- step: s\n  tool:\n  - call: {kind: workbook, name: greet}\n",
        &[
            r#"s: {"tasks":[{"label":"call","kind":"shell","config":{"command":"ls"},"on_unmatched":"by_outcome"}]}"#,
        ],
    );
}

#[test]
fn the_same_text_has_the_same_net() {
    let text = playbook("- {step: a, next: {step: a, when: ctx.more}, tool: {kind: shell, command: ls}}");
    let digest = || compile(&text).net.map(|net| net.digest());
    assert!(digest().is_some());
    assert_eq!(digest(), digest());
}

#[test]
fn pbk_12_the_executor_says_when_a_value_is_large() {
    let text = |bytes: &str| {
        format!(
            "metadata: {{name: t}}\nexecutor: {{spec: {{policy: {{results: {{inline_max_bytes: {bytes}}}}}}}}}\nworkflow: [{{step: a, tool: {{kind: shell, command: ls}}}}]"
        )
    };
    let net = compile(&text("2048")).net.expect("a net");
    assert_eq!(net.policy().limits.inline_bytes, 2048);
    let work = serde_json::to_value(net.spec()).expect("a spec")["steps"][0]["work"]["task"]["spec"].clone();
    assert_eq!(work["inline_bytes"], 2048);
    check(
        &text("0"),
        &[
            "E0118 2:56 executor.spec.policy.results.inline_max_bytes: `inline_max_bytes` must be a whole number from 1024 to 1048576",
        ],
    );
}
