//! Values in commands and code of playbooks: data, unless the playbook says that templates are program text.

use crate::compiled::{check, net};
use serde_json::{Value, json};
use windlass_kernel::net::Work;

fn playbook(spec: &str, tool: &str) -> String {
    format!("metadata: {{name: p}}\nexecutor: {{spec: {{{spec}}}}}\nworkflow:\n- step: a\n  tool: {tool}\n")
}

fn lowered(spec: &str, tool: &Value) -> Value {
    let net = net(&playbook(spec, &tool.to_string()));
    let Work::Task { spec, .. } = &net.spec().steps[0].work else { panic!("it is work") };
    spec["tasks"][0]["config"].clone()
}

#[test]
fn values_of_a_command_are_variables() {
    let config = lowered("", &json!({ "kind": "shell", "command": "echo \"Hello, {{ workload.name }}!\"" }));
    let env = json!({ "WINDLASS_VALUE_1": "{{ (workload.name) | string }}" });
    assert_eq!(config, json!({ "command": "echo \"Hello, ${WINDLASS_VALUE_1-}!\"", "env": env }));
    let tool = json!({ "kind": "shell", "cmds": ["cd {{ workload.d }}", "ls '{{ workload.f }}'"], "env": { "A": "1" } });
    let config = lowered("", &tool);
    let script = "cd \"${WINDLASS_VALUE_1-}\"\nls ''\"${WINDLASS_VALUE_2-}\"''";
    assert_eq!(config["cmds"], json!([script]));
    assert_eq!(config["env"]["A"], "1");
    assert_eq!(config["env"]["WINDLASS_VALUE_2"], "{{ (workload.f) | string }}");
}

#[test]
fn values_of_code_are_literals() {
    let config =
        lowered("", &json!({ "kind": "python", "code": "result = [{{ workload.n }}, '{{ workload.s }}']" }));
    let code = "result = [{{ (workload.n) | as_python }}, '{{ (workload.s) | in_python }}']";
    assert_eq!(config, json!({ "code": code }));
    let script = json!({ "source": { "type": "inline", "code": "result = {{ workload.n }}" } });
    let config = lowered("", &json!({ "kind": "python", "script": script }));
    assert_eq!(config["script"]["source"]["code"], "result = {{ (workload.n) | as_python }}");
}

#[test]
fn a_playbook_can_say_that_templates_are_program_text() {
    let tool = json!({ "kind": "shell", "command": "{{ workload.command }}" });
    assert_eq!(lowered("templates: text", &tool)["command"], "{{ workload.command }}");
    assert!(net(&playbook("templates: text", &tool.to_string())).policy().editors_only);
    assert!(!net(&playbook("templates: values", "{kind: noop}")).policy().editors_only);
    check(
        &playbook("templates: text", "{kind: noop}"),
        &[
            "W0249 2:30 executor.spec.templates: templates are a part of the programs: their values run as code (only callers who may edit definitions can start it; omit `templates` to pass values as data)",
        ],
    );
}

#[test]
fn where_a_value_would_be_a_program_it_is_refused_with_the_way_out() {
    check(
        &playbook("", "{kind: shell, command: '{{ workload.command }}'}"),
        &[
            "E0151 5:36 workflow[0].tool.command: `command` of the tool `shell` has `{{ workload.command }}` where the name of a command is (write the name; a value can choose among names with `case`; `executor.spec.templates: text` makes templates a part of the program)",
        ],
    );
    check(
        &playbook("", "{kind: python, code: 'import {{ workload.m }}x'}"),
        &[
            "E0151 5:41 workflow[0].tool.code: `code` of the tool `python` has `{{ workload.m }}` as a part of the program (a value cannot be a part of a name; use a dictionary, or `getattr(object, {{ … }})`; `executor.spec.templates: text` makes templates a part of the program)",
        ],
    );
    for tool in [
        "{kind: shell, command: ls, shell: '{{ workload.x }}'}",
        "{kind: python, script: '{{ workload.x }}'}",
        "{kind: python, code: 'x = 1', python: '{{ workload.x }}'}",
    ] {
        let found = windlass_dialects::compile(&playbook("", tool)).diagnostics;
        assert!(
            found
                .iter()
                .any(|one| one.code == "E0151" && one.message.ends_with("its value would be the program")),
            "{tool}"
        );
    }
}
