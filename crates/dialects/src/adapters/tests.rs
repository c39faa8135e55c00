use super::{Adapters, Outside, bind, parse_adapters};
use crate::{compile, compile_for};
use expect_test::{Expect, expect};
use serde_json::{Value, json};
use windlass_kernel::Net;
use windlass_kernel::net::{Finish, Hook, Join, NetSpec, Policy, Retry, Step, Work};

fn adapters(text: &str) -> Adapters {
    let file = parse_adapters(text);
    let shown: Vec<String> =
        file.diagnostics.iter().map(|one| one.render(&file.shown, "adapters.yaml")).collect();
    assert!(file.is_valid(), "{}", shown.concat());
    file.adapters
}

fn problems(text: &str, expect: Expect) {
    let file = parse_adapters(text);
    let line = |one: &crate::Diagnostic| {
        let hint = one.hint.as_deref().unwrap_or("-");
        format!("{} {}:{} {} ({hint})\n", one.code, one.line, one.column, one.message)
    };
    expect.assert_eq(&file.diagnostics.iter().map(line).collect::<String>());
}

/// The tasks of a step's pipeline.
fn tasks(net: &Net, step: usize) -> Value {
    let Work::Task { spec } = &net.spec().steps[step].work else { panic!("no task") };
    spec["tasks"].clone()
}

fn operation(name: &str, input: &Value) -> Work {
    Work::task(json!({ "tasks": [{ "label": "call", "kind": name, "config": { "args": input } }] }))
}

#[test]
fn a_bound_operation_becomes_the_task_of_its_binding_and_so_does_its_hook() {
    let mut step = Step::new("pay", operation("invoice:write", &json!({ "amount": "{{ inputs.amount }}" })));
    let hook = operation("invoice:reverse", &json!({ "reason": "undo" }));
    step.compensation = Some(Hook { work: hook, retry: Retry::default(), timeout_ms: None });
    let policy = Policy { join: Join::All, finish: Finish::Nothing, ..Policy::default() };
    let net = Net::new(NetSpec { steps: vec![step], policy }).expect("a net");
    let both = adapters(
        "operations:
  'invoice:write': {kind: http, method: POST, url: 'https://books/invoices', json: '{{ args }}', spec: {timeout: 5}}
  'invoice:reverse': {kind: shell, command: 'echo {{ args.reason }}'}",
    );
    let bound = bind(&net, &both).expect("both are bound");
    let task = &tasks(&bound, 0)[0];
    assert_eq!(
        (&task["kind"], &task["timeout_ms"], &task["label"]),
        (&json!("http"), &json!(5_000), &json!("call"))
    );
    assert_eq!(task["config"]["args"], json!({ "amount": "{{ inputs.amount }}" }));
    assert_eq!(task["config"]["json"], json!("{{ args }}"));
    let hook = bound.spec().steps[0].compensation.as_ref().expect("a hook");
    let Work::Task { spec } = &hook.work else { panic!("no task") };
    assert_eq!(spec["tasks"][0]["kind"], "shell");
    // The value reaches the program as a variable, and not as a part of its text.
    assert!(!spec["tasks"][0]["config"]["command"].as_str().expect("a command").contains("{{"));
    assert_eq!(spec["tasks"][0]["config"]["args"], json!({ "reason": "undo" }));
    // Half of the bindings name what is left, with the line that binds it.
    let half = adapters("{operations: {'invoice:write': {kind: noop}}}");
    let left = bind(&net, &half).expect_err("one is missing");
    let shown: Vec<String> =
        left.iter().map(|one| format!("{}; {}", one.message(), one.hint().unwrap_or_default())).collect();
    expect![[r#"`pay` calls the operation `invoice:reverse`, which is not bound; add it to the definition, or to the file that `--adapters` or WINDLASS_ADAPTERS names: `adapters: {operations: {"invoice:reverse": {kind: http, method: POST, url: "https://...", json: "{{ args }}"}}}`"#]]
        .assert_eq(&shown.join("\n"));
}

#[test]
fn the_line_of_a_hint_is_an_adapters_file() {
    for name in ["invoice:write", "duckdb"] {
        assert!(adapters(&super::binding_line(name)).binds(name), "{name}");
    }
}

#[test]
fn fields_of_a_bound_kind_are_its_arguments() {
    let text = "
metadata: {name: p}
keychain: [{name: lake, kind: secret}]
adapters:
  tools:
    duckdb: {kind: python, code: 'result = args', env: {TOKEN: '{{ keychain.lake.token }}'}}
workflow:
  - step: ask
    tool: {kind: duckdb, query: 'select {{ workload.n }}', args: {limit: 5}, spec: {timeout: 3}}
";
    let compiled = compile(text);
    assert_eq!(compiled.diagnostics, []);
    let net = compiled.net.expect("a net");
    let task = &tasks(&net, 0)[0];
    assert_eq!((&task["kind"], &task["timeout_ms"]), (&json!("python"), &json!(3_000)));
    assert_eq!(task["config"]["args"], json!({ "limit": 5, "query": "select {{ workload.n }}" }));
    assert_eq!(compiled.manifest.unbound, []);
    assert_eq!(compiled.manifest.programs.len(), 1);
    assert_eq!(compiled.manifest.secrets.len(), 1);
}

#[test]
fn the_definition_wins_over_the_file_and_the_file_binds_the_rest() {
    let text = "
metadata: {name: p}
adapters: {tools: {own: {kind: shell, command: 'echo own'}}}
workflow:
  - step: a
    tool: [{x: {kind: own}}, {y: {kind: nats, subject: s}}]
";
    let file = adapters("tools: {own: {kind: noop}, nats: {kind: noop}}");
    let compiled = compile_for(text, Outside::Known(&file));
    assert_eq!(compiled.diagnostics, []);
    let left: Vec<&str> = compiled.manifest.unbound.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(left, ["nats"]);
    let bound = bind(&compiled.net.expect("a net"), &file).expect("all is bound");
    let tasks = tasks(&bound, 0);
    assert_eq!((&tasks[0]["kind"], &tasks[1]["kind"]), (&json!("shell"), &json!("noop")));
    // Without the file the kind is refused; for another process it is a warning.
    assert!(
        compile(text).diagnostics[0].hint.as_ref().expect("a hint").contains("adapters: {tools: {nats: ")
    );
    assert!(!compile(text).is_valid() && compile_for(text, Outside::Unknown).is_valid());
    assert!(!compile_for(&text.replace("nats", "htp"), Outside::Unknown).is_valid());
}

#[test]
fn a_definition_and_a_group_can_be_bound() {
    let file = adapters(
        "operations: {'a:b': {kind: workflow, name: books, version: 3}, 'c:d': {kind: worker, group: robots}}",
    );
    let steps = ["a:b", "c:d"].map(|name| Step::new(name, operation(name, &json!({ "n": 1 }))));
    let policy = Policy { join: Join::All, finish: Finish::Nothing, ..Policy::default() };
    let net = Net::new(NetSpec { steps: steps.to_vec(), policy }).expect("a net");
    let bound = bind(&net, &file).expect("both are bound");
    assert_eq!(tasks(&bound, 0)[0]["kind"], "playbook");
    assert_eq!(tasks(&bound, 0)[0]["config"], json!({ "path": "books", "version": 3, "args": { "n": 1 } }));
    assert_eq!(tasks(&bound, 1)[0]["kind"], "worker");
    let config = json!({ "group": "robots", "operation": "c:d", "args": { "n": 1 } });
    assert_eq!(tasks(&bound, 1)[0]["config"], config);
}

#[test]
fn a_secret_is_no_input_of_another_execution() {
    let text = "
metadata: {name: p}
keychain: [{name: k, kind: secret}]
adapters: {tools: {t: {kind: workflow, name: other}}}
workflow: [{step: a, tool: {kind: t, token: '{{ keychain.k.token }}'}}]";
    let found = compile(text).diagnostics;
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].message.contains("`a` cannot call `t`: its arguments read the keychain"), "{found:?}");
}

#[test]
fn every_problem_of_a_file_has_a_place() {
    problems(
        "operations:
  invoice: {kind: noop}
  'a:b': {kind: htp, url: x}
  'a:c': {kind: http, uri: x}
  'a:d': {kind: http, url: '{{ workload.url }}'}
  'a:e': {kind: http, url: x, headers: {idempotency-key: '1'}}
  'a:f': {kind: shell, command: x, retry: 3, args: {a: 1}}
  'a:g': {kind: http, url: x, auth: '{{ keychain.missing.token }}'}
  'a:h': {url: x}
  'a:i': {kind: workflow, name: '{{ args.name }}'}
  'a:j': {kind: worker}
  'a:k': {kind: shell, command: 'echo {{ args.x'}
  'a:l': 5
tools:
  http: {kind: shell, command: x}
  'a:b': {kind: noop}
more: 1",
        expect![[r#"
            E0160 2:3 `invoice` is not an operation (write it as `entity:verb`)
            E0161 3:17 the binding of `a:b` has the kind `htp`, which does not exist (did you mean `http`? known kinds: noop, shell, python, script, container, http, postgres, artifact, secrets, workflow, worker)
            E0102 4:10 the tool `http` has no `url` (add `url` or `endpoint`)
            E0103 4:23 the tool `http` has no key `uri` (did you mean `url`?)
            E0162 5:3 the binding reads `workload`, which belongs to definitions that call it (it can read `args`, `keychain`, `execution_id`, `_attempt` and `_idempotency_key`: pass the value as an argument of the call)
            E0163 6:41 the header `Idempotency-Key` of a binding is always set by the engine (remove it; other fields can read the key as `{{ _idempotency_key }}`)
            E0106 7:36 the binding of `a:f` has no `retry` (the action or the task that calls it says how often it is tried)
            E0106 7:46 the binding of `a:f` has no `args` (templates of the binding read the arguments of the call as `args`)
            E0132 8:3 the keychain has no entry `missing` (declare it: `keychain: [{name: missing, kind: secret}]`, and store it with `windlass secrets set missing`)
            E0161 9:3 the binding of `a:h` has no `kind` (known kinds: noop, shell, python, script, container, http, postgres, artifact, secrets, workflow, worker)
            E0162 10:33 `name` of a binding to `workflow` cannot be a template (write the name itself)
            E0102 11:10 a binding to `worker` has no `group` (add `group: ...`)
            E0114 12:47 bad expression: unexpected end of input, expected end of variable block (an expression is `{{ ... }}` as in Jinja: `{{ workload.count > 3 }}`)
            E0101 13:10 the binding of `a:l` must be a map, not a number (write `key: value`, one line each)
            E0160 15:3 the tool `http` is built in and cannot be bound (bind another name)
            E0160 16:3 `a:b` is not a kind of tool (write one word; an operation belongs under `operations`)
            E0103 17:1 `adapters` has no key `more` (known here: `operations`, `tools`, `keychain`)
        "#]],
    );
    problems(
        "keychain: [{name: k, kind: bearer, token: very-secret-token}]",
        expect![[r#"
        E0131 1:43 an adapters file cannot contain a secret (store it with `windlass secrets set NAME`, and write `{$secret: NAME}` or `kind: secret`)
    "#]],
    );
    problems(
        "[1]",
        expect![[r#"
        E0101 1:1 `adapters` must be a map, not a list (write `key: value`, one line each)
    "#]],
    );
    problems(
        "operations: {'a:b': {kind: http",
        expect![[r#"
        E0001 1:21 this is not YAML: unclosed bracket '{' (look for an indent, a quote or a bracket here or just before)
    "#]],
    );
}

#[test]
fn copies_of_a_binding_are_bounded() {
    let code = "x".repeat(1 << 20);
    let file = adapters(&json!({ "tools": { "big": { "kind": "python", "code": code } } }).to_string());
    let steps: Vec<Value> =
        (0..20).map(|n| json!({ "step": format!("s{n}"), "tool": { "kind": "big" } })).collect();
    let text = json!({ "metadata": { "name": "p" }, "workflow": steps }).to_string();
    let net = compile_for(&text, Outside::Known(&file)).net.expect("a net");
    let refused = bind(&net, &file).expect_err("it is too large");
    assert!(refused[0].message().contains("more than 16 MiB"), "{refused:?}");
}

#[test]
fn keychains_of_a_definition_and_of_a_binding_may_not_contradict_each_other() {
    let file = adapters(
        "{keychain: [{name: k, kind: secret, secret: other}], tools: {t: {kind: http, url: x, auth: k}}}",
    );
    let text = "
metadata: {name: p}
keychain: [{name: k, kind: secret}]
workflow: [{step: a, tool: [{x: {kind: t}}, {y: {kind: http, url: x, auth: k}}]}]";
    let net = compile_for(text, Outside::Known(&file)).net.expect("a net");
    let refused = bind(&net, &file).expect_err("they differ");
    assert!(refused[0].message().contains("different keychain entries `k`"), "{refused:?}");
}
