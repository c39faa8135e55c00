//! Values in commands: words of the script, never parts of the program.

use crate::compiled::{check, net};
use serde_json::{Value, json};
use windlass_kernel::net::Work;

fn workflow(config: &Value) -> String {
    json!({ "name": "t", "nodes": [{ "id": "a", "type": "shell", "config": config }], "edges": [] })
        .to_string()
}

/// Returns the script for the worker, and the variables of its values.
fn lowered(config: Value) -> (String, Value) {
    let net = net(&workflow(&config));
    let Work::Task { spec, .. } = &net.spec().steps[0].work else { panic!("it is work") };
    let config = &spec["tasks"][0]["config"];
    (config["command"].as_str().expect("a text").to_owned(), config["env"].clone())
}

#[test]
fn a_value_is_a_variable_of_the_environment() {
    let (script, env) =
        lowered(json!({ "command": "echo {{ inputs.name }} > out-{{ inputs.n | upper }}.txt" }));
    assert_eq!(script, "echo \"${WINDLASS_VALUE_1-}\" > out-\"${WINDLASS_VALUE_2-}\".txt");
    let expected =
        json!({ "WINDLASS_VALUE_1": "{{ inputs.name }}", "WINDLASS_VALUE_2": "{{ inputs.n | upper }}" });
    assert_eq!(env, expected);
    let own = json!({ "WINDLASS_VALUE_2": "mine", "A": "{{ inputs.a }}" });
    let (script, env) = lowered(json!({ "command": "x {{ inputs.b }} \"$A\"", "env": own }));
    assert_eq!(script, "x \"${WINDLASS_VALUE_1-}\" \"$A\"");
    assert_eq!((&env["WINDLASS_VALUE_2"], &env["A"]), (&json!("mine"), &json!("{{ inputs.a }}")));
}

#[test]
fn what_the_author_wrote_stays_as_it_is() {
    for same in ["echo 'it''s' \"$HOME\" # it's", "cat <<EOF\n$X\nEOF", "awk '{print $1}' f"] {
        assert_eq!(lowered(json!({ "command": same })), (same.to_owned(), Value::Null));
    }
    // A value is one word in the quoting that is written around it.
    for (script, bound) in [
        ("echo 'Hello, {{ inputs.x }}!'", "echo 'Hello, '\"${WINDLASS_VALUE_1-}\"'!'"),
        ("echo \"{{ inputs.x }}\"", "echo \"${WINDLASS_VALUE_1-}\""),
        ("cat <<EOF\n{{ inputs.x }}\nEOF", "cat <<EOF\n${WINDLASS_VALUE_1-}\nEOF"),
        (
            "cat <<'EOF'\n$a {{ inputs.x }}\nEOF",
            "cat <<WINDLASS_END_0\n\\$a ${WINDLASS_VALUE_1-}\nWINDLASS_END_0",
        ),
        ("echo `ls {{ inputs.x }}`", "echo $( ls \"${WINDLASS_VALUE_1-}\"\n)"),
        ("echo $(( {{ inputs.x }} + 1 ))", "echo $(( (${WINDLASS_VALUE_1-0}) + 1 ))"),
        ("echo \\{{ inputs.x }}", "echo \"${WINDLASS_VALUE_1-}\""),
    ] {
        assert_eq!(lowered(json!({ "command": script })).0, bound);
    }
    let raw = "echo {% raw %}'{{ x }}'{% endraw %}";
    assert_eq!(lowered(json!({ "command": raw })).0, "{% raw %}echo '{{ x }}'{% endraw %}");
    assert_eq!(lowered(json!({ "command": "n='{{ 1 + 2 }}'" })).0, "n='3'", "it reads nothing");
    assert_eq!(lowered(json!({ "command": "ls # it's {{ inputs.p }}\n" })).0, "ls # it's \n", "a comment");
    // Commands in commands are commands.
    for script in ["x=$(basename {{ inputs.p }})", "(cd {{ inputs.p }}; ls)", "'a' {{ inputs.p }} \"b\""] {
        assert!(lowered(json!({ "command": script })).0.contains("\"${WINDLASS_VALUE_1-}\""), "{script}");
    }
}

#[test]
fn variables_are_inputs_and_in_the_environment() {
    let config = json!({ "command": "echo \"$name\"", "inputVariables": ["inputs.name", { "name": "n", "value": 3 }], "env": { "n": "4" } });
    let (_, env) = lowered(config.clone());
    assert_eq!(env, json!({ "name": "{{ inputs.name }}", "n": "4" }));
    let net = net(&workflow(&config));
    let Work::Task { spec, .. } = &net.spec().steps[0].work else { panic!("it is work") };
    assert_eq!(spec["tasks"][0]["config"]["input_variables"], json!({ "name": "{{ inputs.name }}", "n": 3 }));
}

#[test]
fn where_a_value_could_become_a_part_of_the_program_it_is_refused() {
    let refused = |config: Value, place: &str| {
        let found = windlass_dialects::compile(&workflow(&config)).diagnostics;
        assert_eq!(found.len(), 1, "{config}: {found:?}");
        assert_eq!(
            (&*found[0].code, found[0].path.as_str()),
            ("E0151", "nodes[0].config.command"),
            "{config}"
        );
        let message = format!("`command` of node `a` has `{{{{ inputs.x }}}}` {place}");
        assert_eq!(found[0].message, message, "{config}");
    };
    for (script, place) in [
        ("{{ inputs.x }}", "where the name of a command is"),
        ("true; eval ls {{ inputs.x }}", "in what `eval` evaluates"),
        ("trap {{ inputs.x }} EXIT", "in what `trap` evaluates"),
        ("/bin/bash -ec {{ inputs.x }}", "in a script that bash runs"),
        ("S=sh; $S -c {{ inputs.x }}", "in a script that a command of an unknown name runs"),
        ("echo {{ inputs.x }} | sh", "in what sh reads as its program"),
        ("[[ {{ inputs.x }} -eq 1 ]]", "where `[[ ]]` evaluates it"),
        ("echo ${{ inputs.x }}", "right after `$`"),
    ] {
        refused(json!({ "command": script }), place);
    }
    refused(
        json!({ "command": "print({{ inputs.x }})", "shell": "python3" }),
        "for a shell whose quotes are not known",
    );
    assert_eq!(
        lowered(json!({ "command": "printf %s {{ inputs.x }} | wc -c", "shell": "/bin/bash" })).1["WINDLASS_VALUE_1"],
        "{{ inputs.x }}"
    );
}

#[test]
fn a_refusal_says_where_it_is_and_how_to_mend_it() {
    check(
        "name: t\nnodes:\n- {id: a, type: shell, config: {command: \"sh -c 'ls {{ inputs.name }}'\"}}\n",
        &[
            "E0151 3:56 nodes[0].config.command: `command` of node `a` has `{{ inputs.name }}` in a script that sh runs (pass it as an argument of the script: `sh -c '… \"$1\"' _ {{ x }}`)",
        ],
    );
    check(
        "name: t\nnodes:\n- {id: a, type: shell, config: {command: 'ls {% if inputs.x %}-l{% endif %}'}}\n",
        &[
            "E0151 3:46 nodes[0].config.command: `command` of node `a` has `{% if inputs.x %}` around parts of a program (move the condition into the program, into a value, or into a separate step)",
        ],
    );
    check(
        "name: t\nnodes:\n- {id: a, type: shell, config: {command: ls, shell: '{{ inputs.x }}'}}\n",
        &[
            "E0151 3:54 nodes[0].config.shell: `shell` of node `a` is an expression: its value would be the program (name the shell)",
        ],
    );
}

#[test]
fn values_in_statements_and_in_code_are_warned_of() {
    check(
        "name: t\nnodes:\n- {id: a, type: data, config: {tables: {t: []}, query: \"SELECT '{{ inputs.x }}'\"}}\n",
        &[
            "W0248 3:68 nodes[0].config.query: `query` of node `a` has `{{ inputs.x }}`: its value becomes a part of the statement (write `$1` (SQLite: `?1`) there, and the expression in `params`)",
        ],
    );
    check(
        "name: t\nnodes:\n- {id: a, type: code, config: {language: python, code: \"x = '{{ inputs.x }}'\"}}\n",
        &[
            "W0244 3:65 nodes[0].config.code: `code` of node `a` is not a template: `{{ inputs.x }}` is left unchanged (name the value in `inputVariables`, or read `inputs`)",
        ],
    );
    check(
        "name: t\nnodes:\n- {id: a, type: code, config: {language: python, code: \"x = f'{{}}' '{{ y }}'\"}}\n",
        &[],
    );
}
